// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/order.ipp: cumsum and sort.
#pragma once
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/spec/order.hpp>
#include <deft/kernels/spec/reducers.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// The elements along an axis, of each of some series that lie next to each other.
template <class T>
struct series_of {
  const T* x;
  T* to;
  divider series, inner;
  std::int64_t n, shift;  ///< shift: 1 if a sum is without the element itself
  bool reverse;

  /// Where the place number i of series s is.
  DEFT_HD std::int64_t at(std::int64_t s, std::int64_t i) const {
    const std::int64_t column = inner.cut(s);
    return (s * n + (reverse ? n - 1 - i : i)) * inner.by() + column;
  }
};
constexpr std::int64_t summed_block = spec::cumsum::block;

/// Sums within blocks, and those of whole blocks, of all series of a block one after the other.
template <class T>
struct block_sums : series_of<T> {
  T* totals;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t b = number;
    const std::int64_t s = this->series.cut(b), count = this->n - this->shift;
    const std::int64_t first = b * summed_block;
    const std::int64_t end = first + summed_block < count ? first + summed_block : count;
    if (b == 0 && this->shift) this->to[this->at(s, 0)] = T(0);
    if (first >= end) return;
    T sum = this->x[this->at(s, first)];
    this->to[this->at(s, first + this->shift)] = sum;
    for (std::int64_t i = first + 1; i < end; ++i) {
      sum = plus::combine(sum, this->x[this->at(s, i)]);
      this->to[this->at(s, i + this->shift)] = sum;
    }
    totals[number] = sum;
  }
};
/// Replaces sums by those of the ones before in the block, and adds up the block.
template <class T>
struct sums_before {
  T *totals, *above;
  divider series;
  std::int64_t count;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t b = number;
    const std::int64_t s = series.cut(b), first = b * summed_block;
    const std::int64_t end = first + summed_block < count ? first + summed_block : count;
    T sum = totals[first * series.by() + s];
    for (std::int64_t i = first + 1; i < end; ++i) {
      T& here = totals[i * series.by() + s];
      const T next = here;
      here = sum;
      sum = plus::combine(sum, next);
    }
    above[number] = sum;
  }
};
/// Adds what comes before each block, from the longest sums on.
template <class T>
struct added_sums : series_of<T> {
  static constexpr int most_levels = 16;
  const T* totals[most_levels];
  int levels;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t i = number;
    const std::int64_t s = this->series.cut(i);
    T before{};
    bool any = false;
    for (int l = levels; l-- > 0;) {
      const std::int64_t b = i >> (4 * (l + 1));
      if (b % summed_block == 0) continue;
      const T v = totals[l][b * this->series.by() + s];
      before = any ? plus::combine(before, v) : v;
      any = true;
    }
    if (!any) return;
    T& sum = this->to[this->at(s, i + this->shift)];
    sum = plus::combine(before, sum);
  }
};
static_assert(summed_block == 1 << 4);

template <class T>
class kernel_of<spec::cumsum, T> final : public queued<spec::cumsum> {
  std::size_t scratch() const override {
    std::int64_t elements = 0;
    for (int l = 0; l < levels_; ++l) elements += blocks_[l] * outer_ * inner_;
    return static_cast<std::size_t>(elements) * sizeof(T);
  }
  void ready() override {
    cumsum::ready();
    levels_ = 0;
    if (out().elements() == 0) return;
    // The sum of the only block of the last level is not needed, but made.
    for (std::int64_t b = n_; b > 1 || levels_ == 0;) {
      b = (b + block - 1) / block;
      blocks_[levels_++] = b;
    }
  }
  void queue(const kernel_call& c, stream& s) override {
    if (levels_ == 0) return;
    const std::int64_t series = outer_ * inner_;
    const series_of<T> all{
        s.in<T>(c.in[0]), s.out<T>(c.out[0]), divider(series), divider(inner_), n_,
        op_.exclusive,    op_.reverse};
    T* totals = s.out<T>(c.scratch);
    added_sums<T> added{all, {}, levels_};
    s.launch(blocks_[0] * series, block_sums<T>{all, totals});
    for (int l = 0; l < levels_; ++l) {
      added.totals[l] = totals;
      T* const above = totals + blocks_[l] * series;
      if (l + 1 < levels_)
        s.launch(blocks_[l + 1] * series, sums_before<T>{totals, above, all.series, blocks_[l]});
      totals = above;
    }
    if (n_ - all.shift > block) s.launch((n_ - all.shift) * series, added);
  }

  int levels_ = 0;
  std::int64_t blocks_[added_sums<T>::most_levels] = {};  ///< of each level
};

/// 32 bits of the keys of elements, in the order of `positions`, or in their own, which `kept`
/// becomes.
template <class T>
struct element_keys {
  const T* x;
  const std::uint32_t* positions;
  std::uint32_t *keys, *kept;
  int shift;
  bool descending;

  DEFT_HD void operator()(std::int64_t i) const {
    const std::int64_t at = positions ? positions[i] : i;
    if (!positions) kept[i] = static_cast<std::uint32_t>(i);
    keys[i] = static_cast<std::uint32_t>(std::uint64_t{spec::sort_key(x[at], descending)} >> shift);
  }
};
struct row_keys {
  const std::uint32_t* positions;
  std::uint32_t* keys;
  divider n;
  DEFT_HD void operator()(std::int64_t i) const {
    keys[i] = static_cast<std::uint32_t>(n.quotient(positions[i]));
  }
};
template <class T>
struct sorted_elements {
  const T* x;
  const std::uint32_t* positions;
  T* values;
  std::int64_t* indices;
  divider kept;
  std::int64_t n;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t r = number;
    const std::int64_t j = kept.cut(r), at = positions[r * n + j];
    if (values) values[number] = x[at];
    if (indices) indices[number] = at - r * n;
  }
};

template <class T>
class kernel_of<spec::sort, T> final : public queued<spec::sort> {
  std::size_t scratch() const override {
    return kept_ * rows_ == 0 ? 0 : 4 * word_bytes() + stream::sort_room(rows_ * n_);
  }
  void ready() override {
    sort::ready();
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    if (rows_ * n_ > most)
      fail(errc::unimplemented, "[sort] on GPUs takes up to ", most, " elements, and got ",
           rows_ * n_);
  }
  void queue(const kernel_call& c, stream& s) override {
    if (kept_ * rows_ == 0) return;
    const T* const x = s.in<T>(c.in[0]);
    const std::int64_t all = rows_ * n_;
    std::uint32_t *const keys = words(c, s, 0), *const sorted = words(c, s, 1);
    std::uint32_t *from = words(c, s, 2), *to = words(c, s, 3);
    const auto sort_by = [&](int bits) {
      s.sort_by_key(keys, sorted, from, to, all, bits, room(c, 4 * word_bytes()));
      std::swap(from, to);
    };
    // The lowest digits first: of keys, then rows.
    constexpr int key_bits = 8 * static_cast<int>(sizeof(T));
    for (int shift = 0; shift < key_bits; shift += 32) {
      s.launch(all, element_keys<T>{x, shift ? from : nullptr, keys, from, shift, op_.descending});
      sort_by(std::min(32, key_bits));
    }
    if (rows_ > 1) {
      s.launch(all, row_keys{from, keys, divider(n_)});
      sort_by(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows_ - 1))));
    }
    s.launch(rows_ * kept_, sorted_elements<T>{x, from, c.out[0] ? s.out<T>(c.out[0]) : nullptr,
                                               c.out[1] ? s.out<std::int64_t>(c.out[1]) : nullptr,
                                               divider(kept_), n_});
  }

  std::size_t word_bytes() const {
    return (static_cast<std::size_t>(rows_ * n_) * sizeof(std::uint32_t) + 255) / 256 * 256;
  }
  static void* room(const kernel_call& c, std::size_t at) {
    return static_cast<char*>(c.scratch) + at;
  }
  std::uint32_t* words(const kernel_call& c, stream& s, std::size_t i) const {
    return s.out<std::uint32_t>(room(c, i * word_bytes()));
  }
};

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
