// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/softmax.ipp: softmax, and its cross entropy with classes or probabilities.
#pragma once
#include <algorithm>
#include <deft/core/num_lane.hpp>
#include <deft/execute/gpu/divider.hpp>
#include <deft/execute/gpu/groups.hpp>
#include <deft/execute/gpu/kernels.hpp>
#include <deft/op/softmax.hpp>
#include <deft/op/softmax_cross_entropy.hpp>
#include <limits>

namespace deft::gpu::DEFT_GPU_SYSTEM {
namespace {

/// The largest of some elements, and the sum of the exponentials of all less that, in one pass.
/// Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
template <class T>
struct exponentials {
  using V = num::lane<T>;
  static constexpr T infinity = std::numeric_limits<T>::infinity();
  T most, sum;

  static DEFT_HD exponentials none() { return below(-infinity); }
  static DEFT_HD exponentials below(T largest) { return {largest, 0}; }
  static DEFT_HD T exp(T x) { return num::exp(V(x)).v; }
  static DEFT_HD T product(T a, T b) { return (V(a) * V(b)).v; }

  DEFT_HD void add(T x) {
    const bool rises = x > most;
    const T e = x == -infinity ? T(0) : exp(rises ? most - x : x - most);
    sum = rises ? product(sum, e) + 1 : sum + e;
    if (rises) most = x;
  }
  /// Of the largest or less than it: returns its exponential.
  DEFT_HD T settle(T x) {
    const T e = exp(x - most);
    sum += e;
    return e;
  }
  DEFT_HD void join(const exponentials& o) {
    const T to = o.most > most ? o.most : most;
    sum = product(sum, factor(most, to)) + product(o.sum, factor(o.most, to));
    most = to;
  }
  /// NaN where the largest is infinite, as the difference of two infinities is.
  DEFT_HD T total() const { return sum + (most - most); }

 private:
  static DEFT_HD T factor(T from, T to) { return from == to ? T(1) : exp(from - to); }
};

/// These, and of labels the sum, and the sum of each times what its element lacks to the largest.
/// (The largest is subtracted from the elements before the logarithm of the sum is added, which is
/// small in comparison, and would lose its bits.)
template <class T>
struct weighed_exponentials : exponentials<T> {
  using base = exponentials<T>;
  T labels, loss;

  static DEFT_HD weighed_exponentials none() { return below(-base::infinity); }
  static DEFT_HD weighed_exponentials below(T largest) { return {base::below(largest), 0, 0}; }
  DEFT_HD void add(T x, T label) {
    const T before = this->most;
    base::add(x);
    raise(before);
    weigh(x, label);
  }
  DEFT_HD T settle(T x, T label) {
    weigh(x, label);
    return base::settle(x);
  }
  DEFT_HD void join(weighed_exponentials o) {
    const T mine = this->most, theirs = o.most;
    base::join(o);
    o.most = this->most;
    raise(mine), o.raise(theirs);
    loss += o.loss;
    labels += o.labels;
  }

 private:
  DEFT_HD void weigh(T x, T label) {
    loss += base::product(label, x == -base::infinity ? base::infinity : this->most - x);
    labels += label;
  }
  DEFT_HD void raise(T before) {
    if (before != this->most && before != -base::infinity)
      loss += base::product(labels, this->most - before);
  }
};

/// Columns that a thread takes at a time.
constexpr int columns_at_once = 4;
template <class T>
using columns = group<T, columns_at_once>;
template <class T>
DEFT_HD columns<T> filled(T value) {
  columns<T> g;
  for (T& v : g.v) v = value;
  return g;
}

/// The larger of two, of which NaN is none.
template <class T>
DEFT_HD T larger_of(T a, T b) {
  return std::fmax(a, b);
}
template <class T>
DEFT_HD T largest_of(const columns<T>& g) {
  return larger_of(larger_of(g.v[0], g.v[1]), larger_of(g.v[2], g.v[3]));
}

/// Of rows of n elements each, how groups of columns are read and written.
struct row_groups {
  std::int64_t n;
  bool aligned;  ///< all groups, and none of them is cut off by its row's end

  row_groups() = default;
  row_groups(std::int64_t columns_of_row, std::initializer_list<const void*> arrays)
      : n(columns_of_row),
        aligned(n % columns_at_once == 0 &&
                std::ranges::all_of(arrays, [](auto* p) { return is_aligned(p, widest); })) {}

  /// From column c on; `none` where the row has ended.
  template <class T>
  DEFT_HD columns<T> load(const T* from, std::int64_t r, std::int64_t c, T none) const {
    const T* const at = from + (r * n + c);
    if (aligned) return *reinterpret_cast<const columns<T>*>(at);
    columns<T> g;
    for (int u = 0; u < columns_at_once; ++u) g.v[u] = has(c, u) ? at[u] : none;
    return g;
  }
  template <class T>
  DEFT_HD void store(T* to, std::int64_t r, std::int64_t c, const columns<T>& g) const {
    T* const at = to + (r * n + c);
    if (aligned)
      *reinterpret_cast<columns<T>*>(at) = g;
    else
      for (int u = 0; u < columns_at_once; ++u)
        if (has(c, u)) at[u] = g.v[u];
  }
  DEFT_HD bool has(std::int64_t c, int u) const { return aligned || c + u < n; }
};

template <class T>
struct softmax_rows {
  using state = exponentials<T>;
  using elements = columns<T>;
  struct pass_of_row {
    T most, share;
  };
  static constexpr int together = columns_at_once;
  const T* x;
  T* y;
  row_groups rows;

  DEFT_HD state start() const { return state::none(); }
  DEFT_HD state add(state s, std::int64_t r, std::int64_t c) const {
    s.add(x[r * rows.n + c]);
    return s;
  }
  DEFT_HD state join(state a, const state& b) const {
    a.join(b);
    return a;
  }
  DEFT_HD void end(std::int64_t, const state&) const {}
  DEFT_HD void each(std::int64_t r, std::int64_t c, const state& s) const {
    const std::int64_t i = r * rows.n + c;
    y[i] = state::product(state::exp(x[i] - s.most), T(1) / s.total());
  }

  DEFT_HD elements load(std::int64_t r, std::int64_t c) const {
    return rows.load(x, r, c, -state::infinity);
  }
  DEFT_HD state add_all(state s, const elements& e, std::int64_t, std::int64_t) const {
    for (T v : e.v) s.add(v);
    return s;
  }
  DEFT_HD pass_of_row known(std::int64_t, const state& s) const {
    return {s.most, T(1) / s.total()};
  }
  DEFT_HD void each_of(elements e, std::int64_t r, std::int64_t c, const pass_of_row& p) const {
    for (T& v : e.v) v = state::exp(v - p.most);
    put(e, r, c, p);
  }

  DEFT_HD elements none() const { return filled(-state::infinity); }
  DEFT_HD T larger(T a, T b) const { return larger_of(a, b); }
  DEFT_HD T largest(const elements& e) const { return largest_of(e); }
  DEFT_HD state start(T most) const { return state::below(most); }
  DEFT_HD state settle(state s, elements& e, std::int64_t) const {
    for (T& v : e.v) v = s.settle(v);
    return s;
  }
  DEFT_HD void put(elements e, std::int64_t r, std::int64_t c, const pass_of_row& p) const {
    for (T& v : e.v) v = state::product(v, p.share);
    rows.store(y, r, c, e);
  }
};

/// A class per row.
template <class T>
struct label_classes {
  using state = exponentials<T>;
  struct elements {};
  const void* of;
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
  /// `e`: an element's share of the row's gradient.
  DEFT_HD T gradient(T e, T dz, std::int64_t r, std::int64_t c) const {
    return label(r) == c ? e - dz : e;
  }
  using of_row = std::int64_t;
  DEFT_HD of_row row(std::int64_t r) const { return label(r); }
  DEFT_HD void gradients(columns<T>& e, T dz, const elements&, of_row label, std::int64_t c) const {
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
  DEFT_HD T gradient(T e, T dz, std::int64_t r, std::int64_t c) const {
    return e - state::product(of[r * n + c], dz);
  }
  struct of_row {};
  DEFT_HD of_row row(std::int64_t) const { return {}; }
  DEFT_HD void gradients(columns<T>& e, T dz, const elements& labels, of_row, std::int64_t) const {
    for (int u = 0; u < columns_at_once; ++u) e.v[u] = e.v[u] - state::product(labels.v[u], dz);
  }
};
/// dz * (total softmax - label).
template <class T, class Labels>
struct row_gradient {
  using state = exponentials<T>;
  T most, share, dz;

  DEFT_HD row_gradient(T largest, T sum, T d, T total)
      : most(largest), share(state::product(d, total) / sum), dz(d) {}
  DEFT_HD T of(T x, const Labels& l, std::int64_t r, std::int64_t c) const {
    return l.gradient(state::product(exp(x), share), dz, r, c);
  }
  DEFT_HD T exp(T x) const { return state::exp(x - most); }
};
template <class T, class Labels>
struct known_gradient : row_gradient<T, Labels> {
  [[no_unique_address]] typename Labels::of_row row;

  /// Of the exponentials of a group.
  DEFT_HD void put(columns<T>& e, const Labels& l, const typename Labels::elements& labels,
                   std::int64_t c) const {
    for (T& v : e.v) v = exponentials<T>::product(v, this->share);
    l.gradients(e, this->dz, labels, row, c);
  }
  DEFT_HD void exp_all(columns<T>& e) const {
    for (T& v : e.v) v = this->exp(v);
  }
};

/// Logits and labels of a group.
template <class T, class Labels>
struct examples {
  columns<T> x;
  [[no_unique_address]] typename Labels::elements labels;
};

/// Outputs that nothing needs are null.
template <class T, class Labels>
struct cross_entropy_rows {
  using state = typename Labels::state;
  using elements = examples<T, Labels>;
  static constexpr int together = columns_at_once;
  const T* x;
  Labels labels;
  T *loss, *most, *sum;
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
    const T total = rows.n ? s.total() : T(0);
    if (most) most[r] = s.most;
    if (sum) sum[r] = total;
    if (!labels.check(r, report) || !loss) return;
    loss[r] = rows.n ? labels.loss(x + r * rows.n, r, s, num::log(num::lane<T>(total)).v) : T(0);
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
  DEFT_HD state start(T largest_element) const { return state::below(largest_element); }
  DEFT_HD state settle(state s, elements& e, std::int64_t c) const {
    for (int u = 0; u < together; ++u) e.x.v[u] = labels.settle(s, e.x.v[u], e.labels, u, c);
    return s;
  }
};
template <class T, class Labels>
struct cross_entropy_with_grad_rows : cross_entropy_rows<T, Labels> {
  using typename cross_entropy_rows<T, Labels>::state;
  using typename cross_entropy_rows<T, Labels>::elements;
  const T* dz;
  std::int64_t dz_step;  ///< 0: one for all rows
  T* y;

  DEFT_HD void each(std::int64_t r, std::int64_t c, const state& s) const {
    const std::int64_t i = r * this->rows.n + c;
    y[i] = gradient(r, s).of(this->x[i], this->labels, r, c);
  }
  DEFT_HD known_gradient<T, Labels> known(std::int64_t r, const state& s) const {
    return {gradient(r, s), this->labels.row(r)};
  }
  DEFT_HD void each_of(elements e, std::int64_t r, std::int64_t c,
                       const known_gradient<T, Labels>& g) const {
    g.exp_all(e.x);
    put(e, r, c, g);
  }
  DEFT_HD void put(elements e, std::int64_t r, std::int64_t c,
                   const known_gradient<T, Labels>& g) const {
    g.put(e.x, this->labels, e.labels, c);
    this->rows.store(y, r, c, e.x);
  }

 private:
  DEFT_HD row_gradient<T, Labels> gradient(std::int64_t r, const state& s) const {
    return {s.most, s.total(), dz[r * dz_step], this->labels.total(s)};
  }
};

/// The gradient, given what the loss' pass found in a row. Of classes, whose sum is 1.
template <class T, class Labels>
struct cross_entropy_gradient {
  const T* x;
  Labels labels;
  const T *dz, *most, *sum;
  T* y;
  divider n;
  fault_report report;

  DEFT_HD row_gradient<T, Labels> gradient(std::int64_t r, T total) const {
    return {most[r], sum[r], dz[r], total};
  }
  DEFT_HD void operator()(std::int64_t i) const {
    std::int64_t r = i;
    const std::int64_t c = n.cut(r);
    if (c != 0 || labels.check(r, report)) y[i] = gradient(r, 1).of(x[i], labels, r, c);
  }
};
/// Of probabilities, whose sum comes first: in the order in which the loss' pass takes it.
template <class T, class Labels>
struct cross_entropy_gradient_rows : cross_entropy_gradient<T, Labels> {
  using state = T;
  using elements = examples<T, Labels>;
  static constexpr int together = columns_at_once;
  row_groups rows;

  DEFT_HD state start() const { return 0; }
  DEFT_HD state add(state s, std::int64_t r, std::int64_t c) const {
    return s + this->labels.of[r * rows.n + c];
  }
  DEFT_HD state join(state a, state b) const { return a + b; }
  DEFT_HD void end(std::int64_t, state) const {}
  DEFT_HD void each(std::int64_t r, std::int64_t c, state s) const {
    const std::int64_t i = r * rows.n + c;
    this->y[i] = this->gradient(r, s).of(this->x[i], this->labels, r, c);
  }

  DEFT_HD elements load(std::int64_t r, std::int64_t c) const {
    return {rows.load(this->x, r, c, T(0)), this->labels.load(rows, r, c)};
  }
  DEFT_HD state add_all(state s, const elements& e, std::int64_t, std::int64_t) const {
    for (T label : e.labels.v) s += label;
    return s;
  }
  DEFT_HD known_gradient<T, Labels> known(std::int64_t r, state s) const {
    return {this->gradient(r, s), this->labels.row(r)};
  }
  DEFT_HD void each_of(elements e, std::int64_t r, std::int64_t c,
                       const known_gradient<T, Labels>& g) const {
    g.exp_all(e.x);
    g.put(e.x, this->labels, e.labels, c);
    rows.store(this->y, r, c, e.x);
  }
};

class softmax_kernel_base : public queued_kernel {
 protected:
  void ready() override {
    n_ = in(0).back();
    rows_ = n_ ? in(0).elements() / n_ : out().elements();
  }
  std::int64_t rows_ = 0, n_ = 0;
};

template <class T>
class softmax_kernel final : public softmax_kernel_base {
 public:
  std::size_t scratch() const override { return row_room(softmax_rows<T>(), rows_, n_); }
  void queue(const kernel_call& c, stream& s) override {
    if (rows_ * n_ == 0) return;
    const T* const x = s.in<T>(c.in[0]);
    T* const y = s.out<T>(c.out[0]);
    s.over_rows(softmax_rows<T>{x, y, row_groups(n_, {x, y})}, rows_, n_, c.scratch);
  }
};

template <class T, class Labels, bool Gradient>
class cross_entropy_kernel final : public softmax_kernel_base {
 public:
  bool optional_output(int o) const override { return o != (Gradient ? 3 : 0); }
  std::size_t scratch() const override { return row_room(rows(), this->rows_, this->n_); }
  void queue(const kernel_call& c, stream& s) override {
    if (this->rows_ == 0) return;
    rows f{};
    f.x = s.in<T>(c.in[0]);
    f.labels = Labels(s, c.in[1], this->in_[1], this->n_);
    f.loss = s.out<T>(c.out[0]), f.most = s.out<T>(c.out[1]), f.sum = s.out<T>(c.out[2]);
    f.report = s.faults();
    if constexpr (Gradient) {
      f.dz = s.in<T>(c.in[2]);
      f.dz_step = this->in(2).rank() == 0 ? 0 : 1;
      f.y = s.out<T>(c.out[3]);
      f.rows = row_groups(this->n_, {f.x, f.labels.array(), f.y});
    } else {
      f.rows = row_groups(this->n_, {f.x, f.labels.array()});
    }
    s.over_rows(f, this->rows_, this->n_, c.scratch);
  }

 private:
  using rows = std::conditional_t<Gradient, cross_entropy_with_grad_rows<T, Labels>,
                                  cross_entropy_rows<T, Labels>>;
};

template <class T, class Labels>
class cross_entropy_grad_kernel final : public softmax_kernel_base {
 public:
  std::size_t scratch() const override {
    if constexpr (dense)
      return row_room(rows(), this->rows_, this->n_);
    else
      return 0;
  }
  void queue(const kernel_call& c, stream& s) override {
    const std::int64_t elements = this->rows_ * this->n_;
    if (elements == 0) return;
    rows f{};
    f.x = s.in<T>(c.in[0]);
    f.labels = Labels(s, c.in[1], this->in_[1], this->n_);
    f.dz = s.in<T>(c.in[2]), f.most = s.in<T>(c.in[3]), f.sum = s.in<T>(c.in[4]);
    f.y = s.out<T>(c.out[0]);
    f.n = divider(this->n_);
    f.report = s.faults();
    if constexpr (dense) {
      f.rows = row_groups(this->n_, {f.x, f.labels.array(), f.y});
      s.over_rows(f, this->rows_, this->n_, c.scratch);
    } else {
      s.launch(elements, f);
    }
  }

 private:
  static constexpr bool dense = std::is_same_v<Labels, label_probabilities<T>>;
  using rows = std::conditional_t<dense, cross_entropy_gradient_rows<T, Labels>,
                                  cross_entropy_gradient<T, Labels>>;
};
template <class T, class Labels>
using cross_entropy_alone = cross_entropy_kernel<T, Labels, false>;
template <class T, class Labels>
using cross_entropy_with_grad = cross_entropy_kernel<T, Labels, true>;

kernel_ptr make_softmax(const node_def& n, std::span<const tensor_type> in) {
  if (in[0].type == dtype::float32) return std::make_unique<softmax_kernel<float>>();
  if (in[0].type == dtype::float64) return std::make_unique<softmax_kernel<double>>();
  no_kernel(n, in[0].type);
}
/// The kernel of that template for the dtypes of logits and labels.
template <template <class, class> class Kernel>
kernel_ptr make_for_labels(const node_def& n, std::span<const tensor_type> in) {
  auto of = [&]<class T>() -> kernel_ptr {
    if (in[1].type == dtype_of<T>) return std::make_unique<Kernel<T, label_probabilities<T>>>();
    if (in[1].type == dtype::int32 || in[1].type == dtype::int64)
      return std::make_unique<Kernel<T, label_classes<T>>>();
    no_kernel(n, in[1].type);
  };
  if (in[0].type == dtype::float32) return of.template operator()<float>();
  if (in[0].type == dtype::float64) return of.template operator()<double>();
  no_kernel(n, in[0].type);
}

}  // namespace

kernel_table softmax_kernels() {
  static constexpr kernel_entry table[] = {
      {op::softmax::name, floating_dtypes, &make_softmax},
      {op::softmax_cross_entropy::name, floating_dtypes, &make_for_labels<cross_entropy_alone>},
      {op::softmax_cross_entropy_grad::name, floating_dtypes,
       &make_for_labels<cross_entropy_grad_kernel>},
      {op::softmax_cross_entropy_with_grad::name, floating_dtypes,
       &make_for_labels<cross_entropy_with_grad>},
  };
  return table;
}

}  // namespace deft::gpu::DEFT_GPU_SYSTEM
