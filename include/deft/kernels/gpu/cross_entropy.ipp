// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cross_entropy.ipp: the cross entropy of softmax with classes or probabilities,
// and its gradient.
#pragma once
#include <deft/kernels/gpu/exponentials.hpp>
#include <deft/kernels/spec/softmax.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// A class per row.
template <class T>
struct label_classes {
  using state = exponentials<T>;
  struct elements {};
  const void* of;
  static_assert(index_dtypes == dtype_set{dtype::int32, dtype::int64});
  bool wide;  ///< int64, else int32
  std::int64_t n;

  label_classes() = default;
  label_classes(const stream& s, const void* labels, const tensor_type& type, std::int64_t classes)
      : of(s.in<void>(labels)), wide(type.type == dtype::int64), n(classes) {}

  const void* array() const { return nullptr; }
  DEFT_HD std::int64_t label(std::int64_t r) const {
    return wide ? static_cast<const std::int64_t*>(of)[r] : static_cast<const std::int32_t*>(of)[r];
  }
  DEFT_HD elements load(const row_groups&, std::int64_t, std::int64_t) const { return {}; }
  DEFT_HD elements none() const { return {}; }
  DEFT_HD void add(state& s, T x, std::int64_t, std::int64_t) const { s.add(x); }
  DEFT_HD void add(state& s, T x, const elements&, int, std::int64_t) const { s.add(x); }
  DEFT_HD T settle(state& s, T x, const elements&, int, std::int64_t) const { return s.settle(x); }
  DEFT_HD bool check(std::int64_t r, const fault_report& report) const {
    const std::int64_t l = label(r);
    const bool sound = l >= 0 && l < n;
    if (!sound) report(fault_kind::labelled, l, n, r);
    return sound;
  }
  DEFT_HD T loss(const T* x, std::int64_t r, const state& s, T log_sum) const {
    return log_sum + (s.most - x[label(r)]);
  }
  DEFT_HD T total(const state&) const { return 1; }
  /// What a row's gradients take: its class.
  DEFT_HD std::int64_t known(std::int64_t r) const { return label(r); }
  /// `e`: an element's share of the row's gradient.
  DEFT_HD T gradient(T e, T dz, std::int64_t label, std::int64_t c) const {
    return label == c ? e - dz : e;
  }
  DEFT_HD void gradients(columns<T>& e, T dz, const elements&, std::int64_t label,
                         std::int64_t c) const {
    for (int u = 0; u < columns_at_once; ++u)
      if (label - c == u) e.v[u] = e.v[u] - dz;
  }
};
/// Probabilities.
template <class T>
struct label_probabilities {
  using state = weighed_exponentials<T>;
  using elements = columns<T>;
  const T* of;
  std::int64_t n;

  label_probabilities() = default;
  label_probabilities(const stream& s, const void* labels, const tensor_type&, std::int64_t classes)
      : of(s.in<T>(labels)), n(classes) {}

  const void* array() const { return of; }
  DEFT_HD elements load(const row_groups& rows, std::int64_t r, std::int64_t c) const {
    return rows.load(of, r, c, T(0));
  }
  DEFT_HD elements none() const { return filled(T(0)); }
  DEFT_HD void add(state& s, T x, std::int64_t r, std::int64_t c) const { s.add(x, of[r * n + c]); }
  // Behind the row's end there is nothing to weigh: 0 times infinity is NaN.
  DEFT_HD void add(state& s, T x, const elements& e, int u, std::int64_t c) const {
    if (c + u < n) s.add(x, e.v[u]);
  }
  DEFT_HD T settle(state& s, T x, const elements& e, int u, std::int64_t c) const {
    return c + u < n ? s.settle(x, e.v[u]) : T(0);
  }
  DEFT_HD bool check(std::int64_t, const fault_report&) const { return true; }
  DEFT_HD T loss(const T*, std::int64_t, const state& s, T log_sum) const {
    return state::product(s.labels, log_sum) + s.loss;
  }
  DEFT_HD T total(const state& s) const { return s.labels; }
  DEFT_HD std::int64_t known(std::int64_t r) const { return r; }
  DEFT_HD T gradient(T e, T dz, std::int64_t r, std::int64_t c) const {
    return e - state::product(of[r * n + c], dz);
  }
  DEFT_HD void gradients(columns<T>& e, T dz, const elements& labels, std::int64_t,
                         std::int64_t) const {
    for (int u = 0; u < columns_at_once; ++u) e.v[u] = e.v[u] - state::product(labels.v[u], dz);
  }
};
/// dz * (total softmax - label), of a row's elements.
template <class T, class Labels>
struct row_gradient {
  using state = exponentials<T>;
  T most, share, dz;
  std::int64_t known;  ///< of the labels

  DEFT_HD row_gradient(T largest, T sum, T d, T total, const Labels& l, std::int64_t r)
      : most(largest), share(state::product(d, total) / sum), dz(d), known(l.known(r)) {}
  DEFT_HD T of(T x, const Labels& l, std::int64_t c) const {
    return l.gradient(state::product(state::exp(x - most), share), dz, known, c);
  }
  /// Takes the place of a group's elements.
  DEFT_HD void replace(columns<T>& x, const Labels& l, const typename Labels::elements& labels,
                       std::int64_t c) const {
    for (T& v : x.v) v = state::exp(v - most);
    replace_exponentials(x, l, labels, c);
  }
  DEFT_HD void replace_exponentials(columns<T>& e, const Labels& l,
                                    const typename Labels::elements& labels, std::int64_t c) const {
    for (T& v : e.v) v = state::product(v, share);
    l.gradients(e, dz, labels, known, c);
  }
};

/// Logits and labels of a group.
template <class T, class Labels>
struct examples {
  columns<T> x;
  [[no_unique_address]] typename Labels::elements labels;
};

/// The loss, or null if nothing needs it.
template <class T, class Labels>
struct cross_entropy_rows {
  using state = typename Labels::state;
  using elements = examples<T, Labels>;
  static constexpr int together = columns_at_once;
  const T* x;
  Labels labels;
  T* loss;
  row_groups rows;
  fault_report report;

  DEFT_HD state start() const { return state::none(); }
  DEFT_HD state add(state s, std::int64_t r, std::int64_t c) const {
    labels.add(s, x[r * rows.n + c], r, c);
    return s;
  }
  DEFT_HD state join(state a, const state& b) const {
    a.join(b);
    return a;
  }
  DEFT_HD void end(std::int64_t r, const state& s) const {
    if (!labels.check(r, report) || !loss) return;
    loss[r] =
        rows.n ? labels.loss(x + r * rows.n, r, s, num::log(num::lane<T>(s.total())).v) : T(0);
  }

  DEFT_HD elements load(std::int64_t r, std::int64_t c) const {
    return {rows.load(x, r, c, -state::infinity), labels.load(rows, r, c)};
  }
  DEFT_HD state add_all(state s, const elements& e, std::int64_t, std::int64_t c) const {
    for (int u = 0; u < together; ++u) labels.add(s, e.x.v[u], e.labels, u, c);
    return s;
  }

  DEFT_HD elements none() const { return {filled(-state::infinity), labels.none()}; }
  DEFT_HD T larger(T a, T b) const { return larger_of(a, b); }
  DEFT_HD T largest(const elements& e) const { return largest_of(e.x); }
  DEFT_HD state start(T peak) const { return state::below(peak); }
  DEFT_HD state settle(state s, elements& e, std::int64_t c) const {
    for (int u = 0; u < together; ++u) e.x.v[u] = labels.settle(s, e.x.v[u], e.labels, u, c);
    return s;
  }
};
template <class T, class Labels>
struct cross_entropy_grad_rows : cross_entropy_rows<T, Labels> {
  using typename cross_entropy_rows<T, Labels>::state;
  using typename cross_entropy_rows<T, Labels>::elements;
  const T* dz;
  std::int64_t dz_step;  ///< 0: one for all rows
  T* y;

  DEFT_HD void each(std::int64_t r, std::int64_t c, const state& s) const {
    const std::int64_t i = r * this->rows.n + c;
    y[i] = known(r, s).of(this->x[i], this->labels, c);
  }
  DEFT_HD row_gradient<T, Labels> known(std::int64_t r, const state& s) const {
    return {s.most, s.total(), dz[r * dz_step], this->labels.total(s), this->labels, r};
  }
  DEFT_HD void each_of(elements e, std::int64_t r, std::int64_t c,
                       const row_gradient<T, Labels>& g) const {
    g.replace(e.x, this->labels, e.labels, c);
    this->rows.store(y, r, c, e.x);
  }
  DEFT_HD void put(elements e, std::int64_t r, std::int64_t c,
                   const row_gradient<T, Labels>& g) const {
    g.replace_exponentials(e.x, this->labels, e.labels, c);
    this->rows.store(y, r, c, e.x);
  }
};

/// Label: of a class per row, or T, of probabilities.
template <class Op, class T, class Label>
class kernel_of<spec::cross_entropy<Op>, T, Label> final : public queued<spec::cross_entropy<Op>> {
  using base = spec::cross_entropy<Op>;
  using labels =
      std::conditional_t<std::is_same_v<Label, T>, label_probabilities<T>, label_classes<T>>;
  using rows = std::conditional_t<base::gradient, cross_entropy_grad_rows<T, labels>,
                                  cross_entropy_rows<T, labels>>;

  std::size_t scratch() const override { return row_room(rows(), this->rows_, this->n_); }
  void queue(const kernel_call& c, stream& s) override {
    if (this->rows_ == 0) return;
    rows f{};
    f.x = s.in<T>(c.in[0]);
    f.labels = labels(s, c.in[1], this->in_[1], this->n_);
    f.loss = s.out<T>(c.out[base::loss_output]);
    f.report = s.faults();
    if constexpr (base::gradient) {
      f.dz = s.in<T>(c.in[2]);
      f.dz_step = this->in(2).rank() == 0 ? 0 : 1;
      f.y = s.out<T>(c.out[0]);
      f.rows = row_groups(this->n_, {f.x, f.labels.array(), f.y});
    } else {
      f.rows = row_groups(this->n_, {f.x, f.labels.array()});
    }
    s.over_rows(f, this->rows_, this->n_, c.scratch);
  }
};

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
