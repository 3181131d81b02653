// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/softmax.ipp: softmax along rows.
#pragma once
#include <deft/kernels/gpu/exponentials.hpp>
#include <deft/kernels/spec/softmax.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

template <class T>
struct softmax_rows {
  using state = exponentials<T>;
  using elements = columns<T>;
  struct known_row {
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
  DEFT_HD known_row known(std::int64_t, const state& s) const { return {s.most, T(1) / s.total()}; }
  DEFT_HD void each_of(elements e, std::int64_t r, std::int64_t c, const known_row& p) const {
    for (T& v : e.v) v = state::exp(v - p.most);
    put(e, r, c, p);
  }

  DEFT_HD elements none() const { return filled(-state::infinity); }
  DEFT_HD T larger(T a, T b) const { return larger_of(a, b); }
  DEFT_HD T largest(const elements& e) const { return largest_of(e); }
  DEFT_HD state start(T peak) const { return state::below(peak); }
  DEFT_HD state settle(state s, elements& e, std::int64_t) const {
    for (T& v : e.v) v = s.settle(v);
    return s;
  }
  DEFT_HD void put(elements e, std::int64_t r, std::int64_t c, const known_row& p) const {
    for (T& v : e.v) v = state::product(v, p.share);
    rows.store(y, r, c, e);
  }
};

template <class T>
class kernel_of<spec::softmax, T> final : public queued<spec::softmax> {
  std::size_t scratch() const override { return row_room(softmax_rows<T>(), rows_, n_); }
  void queue(const kernel_call& c, stream& s) override {
    if (rows_ * n_ == 0) return;
    const T* const x = s.in<T>(c.in[0]);
    T* const y = s.out<T>(c.out[0]);
    s.over_rows(softmax_rows<T>{x, y, row_groups(n_, {x, y})}, rows_, n_, c.scratch);
  }
};

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
