// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/order.ipp: cumsum and sort.
#pragma once
#include <algorithm>
#include <array>
#include <deft/kernels/cpu/row_reduction.hpp>
#include <deft/kernels/spec/order.hpp>
#include <deft/kernels/team.hpp>

namespace deft::ext::cpu {
namespace {

template <class T>
class kernel_of<spec::cumsum, T> final : public spec::cumsum {
  using engine = fold<T, plus>;

  void ready() override {
    cumsum::ready();
    cost_ = 20 + static_cast<double>(in(0).elements()) * (inner_ == 1 ? 0.7 : 0.3);
  }
  void run(const kernel_call& c) override {
    const T* x = static_cast<const T*>(c.in[0]);
    T* to = static_cast<T*>(c.out[0]);
    if (out().elements() == 0) return;
    constexpr std::int64_t widest = engine::W;
    const std::int64_t strips = (inner_ + widest - 1) / widest, all = outer_ * strips;
    const std::int64_t some =
        std::max<std::int64_t>(1, thresholds::piece_elements / (n_ * std::min(inner_, widest)));
    parallel_chunks((all + some - 1) / some, cost_, [&](std::int64_t p) {
      for (std::int64_t u = p * some; u < std::min(all, (p + 1) * some); ++u) {
        const std::int64_t first = u % strips * widest, at = u / strips * n_ * inner_ + first;
        strip(x + at, to + at, std::min(widest, inner_ - first));
      }
    });
  }

  /// Some columns next to each other.
  void strip(const T* x, T* to, std::int64_t columns) const {
    std::int64_t j = 0;
    for (; j + engine::W <= columns; j += engine::W) add_up<engine::W>(x + j, to + j);
    for (; j + engine::L <= columns; j += engine::L) add_up<engine::L>(x + j, to + j);
    for (; j < columns; ++j) add_up<1>(x + j, to + j);
  }

  template <int N>
  static DEFT_ALWAYS_INLINE auto taken(const T* p) {
    if constexpr (N == 1)
      return *p;
    else
      return load<T, N>(p);
  }
  template <int N, class V>
  static DEFT_ALWAYS_INLINE void put(T* p, const V& v) {
    if constexpr (N == 1)
      *p = v;
    else
      store(p, v);
  }

  /// N columns.
  template <int N>
  void add_up(const T* x, T* to) const {
    using V = decltype(taken<N>(x));
    const std::int64_t step = op_.reverse ? -inner_ : inner_;
    if (op_.reverse) x += (n_ - 1) * inner_, to += (n_ - 1) * inner_;
    std::int64_t n = n_;
    if (op_.exclusive) {
      for (int k = 0; k < N; ++k) to[k] = T(0);
      to += step, --n;
    }
    // Of each level, the sum of the blocks that are complete in the one that is not, and with what
    // comes before that.
    constexpr int levels = 16;
    V within[levels], before[levels];
    for (std::int64_t b = 0; b * block < n; ++b) {
      const std::int64_t end = std::min(n, (b + 1) * block);
      const auto add_block = [&](auto sum_before) DEFT_INLINED {
        V sum = taken<N>(x);
        put<N>(to, sum_before(sum));
        x += step, to += step;
        for (std::int64_t i = b * block + 1; i < end; ++i, x += step, to += step) {
          sum = plus::combine(sum, taken<N>(x));
          put<N>(to, sum_before(sum));
        }
        return sum;
      };
      V sum;
      if (b == 0) {
        sum = add_block([](const V& v) DEFT_INLINED { return v; });
      } else {
        const V base = before[0];
        sum = add_block([&](const V& v) DEFT_INLINED { return plus::combine(base, v); });
      }
      std::int64_t k = b;
      int level = 0;
      for (;; ++level, k /= block) {
        within[level] = k % block == 0 ? sum : plus::combine(within[level], sum);
        if (k % block != block - 1) break;
        sum = within[level];
      }
      const V all = k < block ? within[level] : plus::combine(before[level + 1], within[level]);
      for (int l = 0; l <= level; ++l) before[l] = all;
    }
  }
};

template <class T>
class kernel_of<spec::sort, T> final : public spec::sort {
  /// A key and its index: entries differ, and their order is that of a stable sort.
  struct wide_entry {
    std::uint64_t key;
    std::uint32_t at;
    friend bool operator<(const wide_entry& a, const wide_entry& b) {
      return a.key != b.key ? a.key < b.key : a.at < b.at;
    }
  };
  static constexpr bool packed = sizeof(T) <= 4;  // a key and an index in one number
  using entry = std::conditional_t<packed, std::uint64_t, wide_entry>;

  void ready() override {
    sort::ready();
    const double each = kept_ < n_ ? 1.5 : n_ < thresholds::sorted_by_digits ? 40 : sizeof(T) * 2;
    cost_ = 20 + static_cast<double>(rows_ * n_) * each;
  }
  void run(const kernel_call& c) override {
    const T* x = static_cast<const T*>(c.in[0]);
    T* values = static_cast<T*>(c.out[0]);
    auto* indices = static_cast<std::int64_t*>(c.out[1]);
    if (kept_ == 0) return;
    const std::int64_t some = std::max<std::int64_t>(1, thresholds::piece_elements / 16 / n_);
    parallel_chunks((rows_ + some - 1) / some, cost_, [&](std::int64_t p) {
      for (std::int64_t r = p * some; r < std::min(rows_, (p + 1) * some); ++r) {
        const T* row = x + r * n_;
        const entry* e = kept_ < n_ ? first_of(row) : sorted(row);
        for (std::int64_t j = 0; j < kept_; ++j) {
          const std::int64_t at = index_of(e[j]);
          if (values) values[r * kept_ + j] = row[at];
          if (indices) indices[r * kept_ + j] = at;
        }
      }
    });
  }

  entry entry_of(T x, std::int64_t i) const {
    const std::uint64_t key = spec::sort_key(x, op_.descending);
    if constexpr (packed)
      return key << 32 | static_cast<std::uint64_t>(i);
    else
      return {key, static_cast<std::uint32_t>(i)};
  }
  static std::int64_t index_of(const entry& e) {
    if constexpr (packed)
      return static_cast<std::uint32_t>(e);
    else
      return e.at;
  }
  static entry* room(std::int64_t entries) {
    return static_cast<entry*>(thread_scratch(static_cast<std::size_t>(entries) * sizeof(entry)));
  }

  const entry* sorted(const T* x) const {
    const bool by_digits = n_ >= thresholds::sorted_by_digits;
    entry* const all = room(by_digits ? 2 * n_ : n_);
    for (std::int64_t i = 0; i < n_; ++i) all[i] = entry_of(x[i], i);
    if (by_digits) return sort_digits(all, all + n_);
    std::sort(all, all + n_);
    return all;
  }

  /// The first kept_ in order: of more candidates than that, those behind are dropped from time to
  /// time.
  const entry* first_of(const T* x) const {
    const std::int64_t most = std::min(n_, std::max(2 * kept_, kept_ + 256));
    entry* const all = room(most);
    entry* const last = all + (kept_ - 1);
    entry limit{};
    std::int64_t count = 0;
    bool limited = false;
    for (std::int64_t i = 0; i < n_; ++i) {
      const entry e = entry_of(x[i], i);
      if (limited && !(e < limit)) continue;
      all[count++] = e;
      if (count < most) continue;
      std::nth_element(all, last, all + count);
      count = kept_, limit = *last, limited = true;
    }
    if (count > kept_) std::nth_element(all, last, all + count);
    std::sort(all, all + kept_);
    return all;
  }

  // By digits of the key, the lowest first.
  static constexpr int digit_bits = 11, key_bits = 8 * static_cast<int>(sizeof(T)),
                       digits = (key_bits + digit_bits - 1) / digit_bits;
  static std::size_t digit(const entry& e, int d) {
    std::uint64_t key;
    if constexpr (packed)
      key = e >> 32;
    else
      key = e.key;
    return static_cast<std::size_t>(key >> (d * digit_bits)) & ((1u << digit_bits) - 1);
  }
  /// `other` has as much room. Returns the one with the result.
  const entry* sort_digits(entry* from, entry* other) const {
    std::array<std::array<std::uint32_t, 1u << digit_bits>, digits> starts{};
    for (std::int64_t i = 0; i < n_; ++i)
      for (int d = 0; d < digits; ++d) ++starts[static_cast<std::size_t>(d)][digit(from[i], d)];
    for (int d = 0; d < digits; ++d) {
      auto& start = starts[static_cast<std::size_t>(d)];
      if (start[digit(from[0], d)] == n_) continue;  // the same digit everywhere
      std::uint32_t before = 0;
      for (auto& s : start) before += std::exchange(s, before);
      for (std::int64_t i = 0; i < n_; ++i) other[start[digit(from[i], d)]++] = from[i];
      std::swap(from, other);
    }
    return from;
  }
};

}  // namespace
}  // namespace deft::ext::cpu
