// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/exponentials.hpp: what the rows of softmax and its losses are folded to, and how
// their columns are read and written.
#pragma once
#include <algorithm>
#include <cmath>
#include <deft/core/num_lane.hpp>
#include <deft/kernels/gpu/groups.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <initializer_list>
#include <limits>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// The largest of some elements, and the sum of the exponentials of all less that, in one pass.
/// Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
template <class T>
struct exponentials {
  using V = num::lane<T>;
  static constexpr T infinity = greatest_of<T>;
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
    // What is impossible, and is so by its logit, too, costs nothing.
    if (label != 0)
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

/// The larger of two; if one is NaN, the other.
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

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
