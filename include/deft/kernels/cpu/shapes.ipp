// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/shapes.ipp: operations that move elements and compute nothing: broadcast_to,
// transpose, concat and its parts, slice and updates by it, pad; and size_of and arange.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/kernels/cpu/kernel_base.hpp>
#include <deft/kernels/cpu/packet.hpp>
#include <deft/kernels/spec/shapes.hpp>
#include <deft/kernels/team.hpp>
#include <deft/op/add.hpp>
#include <deft/op/sub.hpp>
#include <deft/plan/thresholds.hpp>

namespace deft::ext::cpu {
namespace {

/// Estimated nanoseconds to read and write so many bytes.
double moving_cost(std::int64_t bytes) { return 20 + static_cast<double>(bytes) / 20; }
double moving_cost(const tensor_type& t) { return moving_cost(spec::byte_runs(t, 0).bytes); }

using thresholds::moved_bytes;

template <>
class kernel_of<spec::broadcast_to> final : public spec::broadcast_to {
  void ready() override {
    broadcast_to::ready();
    size_ = static_cast<std::int64_t>(size_of_dtype(type()));
    cost_ = moving_cost(layout_.elements() * size_) +
            5 * static_cast<double>(layout_.rows() * layout_.planes());
  }
  void run(const kernel_call& c) override {
    if (layout_.elements() == 0) return;
    visit_size(size_of_dtype(type()), [&]<class T>() { fill<T>(c.in, static_cast<T*>(c.out[0])); });
  }

  /// Rows are shared out, or pieces of one long row.
  template <class T>
  void fill(const void* const* in, T* out) const {
    const std::int64_t n = layout_.n(), rows = layout_.rows(), all = rows * layout_.planes();
    const std::int64_t piece = all == 1 ? std::max<std::int64_t>(1, moved_bytes / size_) : n;
    const std::int64_t pieces = (n + piece - 1) / piece;
    const std::int64_t some = std::max<std::int64_t>(1, moved_bytes / size_ / piece);
    parallel_chunks((all * pieces + some - 1) / some, cost_, [&](std::int64_t p) {
      const std::int64_t last = std::min(all * pieces, (p + 1) * some);
      for (std::int64_t i = p * some; i < last;) {
        const std::int64_t r = i / pieces, begin = i % pieces * piece;
        // Rows of one plane at once; of a row in pieces, one of these.
        const std::int64_t count = pieces > 1 ? 1 : std::min(last - i, rows - r % rows);
        const char* at = nullptr;
        layout_.addresses(r / rows, in, &at);
        at += r % rows * layout_.rise(0) + begin * layout_.step(0);
        T* to = out + r * n + begin;
        for (std::int64_t k = 0; k < count; ++k, at += layout_.rise(0), to += n)
          copy(reinterpret_cast<const T*>(at), to, std::min(piece, n - begin));
        i += count;
      }
    });
  }
  template <class T>
  void copy(const T* from, T* to, std::int64_t n) const {
    if (layout_.step(0) != 0)
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
    else
      std::fill(to, to + n, *from);
  }

  std::int64_t size_ = 1;
};

template <>
class kernel_of<spec::transpose> final : public spec::transpose {
  void ready() override {
    transpose::ready();
    size_ = static_cast<std::int64_t>(size_of_dtype(type()));
    elements_ = out().elements();
    cost_ = 2 * moving_cost(elements_ * size_);
  }
  void run(const kernel_call& c) override {
    if (elements_ == 0) return;
    visit_size(size_of_dtype(type()),
               [&]<class T>() { move(static_cast<const T*>(c.in[0]), static_cast<T*>(c.out[0])); });
  }

  /// The result's last level against the one that is dense in the input, for all others' indices.
  template <class T>
  void move(const T* x, T* to) const {
    const spec::transpose_levels& v = levels_;
    const int last = v.last(), across = v.across;
    const bool rows = v.rows();
    const std::int64_t n = v.extent[last], m = rows ? 1 : v.extent[across];
    const std::int64_t planes = elements_ / (n * m);
    const std::int64_t strip = rows ? 1 : tile;
    const std::int64_t strips = (m + strip - 1) / strip;
    const std::int64_t some = std::max<std::int64_t>(1, moved_bytes / (size_ * n * strip));
    parallel_chunks((planes * strips + some - 1) / some, cost_, [&](std::int64_t p) {
      for (std::int64_t i = p * some; i < std::min(planes * strips, (p + 1) * some); ++i) {
        std::int64_t plane = i / strips, at = 0, out = 0;
        for (int l = last; l-- > 0;) {
          if (l == across) continue;
          at += plane % v.extent[l] * v.from[l];
          out += plane % v.extent[l] * v.to[l];
          plane /= v.extent[l];
        }
        if (rows) {
          std::memcpy(to + out, x + at, static_cast<std::size_t>(n) * sizeof(T));
        } else {
          const std::int64_t begin = i % strips * tile;
          turn(x + at + begin, v.from[last], to + out + begin * v.to[across], v.to[across], n,
               std::min(tile, m - begin));
        }
      }
    });
  }

  /// to[j][i] = x[i][j] for n rows of m <= tile elements; `rise` and `drop` apart in x and to.
  template <class T>
  static void turn(const T* x, std::int64_t rise, T* to, std::int64_t drop, std::int64_t n,
                   std::int64_t m) {
    for (std::int64_t i = 0; i < n; i += tile) {
      const std::int64_t rows = std::min(tile, n - i);
      const T* from = x + i * rise;
      if (rows == tile && m == tile) {
        T square[tile][tile];
        for (std::int64_t r = 0; r < tile; ++r)
          for (std::int64_t c = 0; c < tile; ++c) square[c][r] = from[r * rise + c];
        for (std::int64_t c = 0; c < tile; ++c)
          std::memcpy(to + c * drop + i, square[c], sizeof square[c]);
      } else {
        for (std::int64_t c = 0; c < m; ++c)
          for (std::int64_t r = 0; r < rows; ++r) to[c * drop + i + r] = from[r * rise + c];
      }
    }
  }

  static constexpr std::int64_t tile = thresholds::transposed_square;
  std::int64_t size_ = 1, elements_ = 0;
};

/// Copies `count` runs of `bytes` bytes that are `from_step` and `to_step` bytes apart.
void copy_apart(const char* from, std::int64_t from_step, char* to, std::int64_t to_step,
                std::int64_t bytes, std::int64_t count) {
  const auto copy = [&](auto size) DEFT_INLINED {
    for (; count > 0; --count, from += from_step, to += to_step)
      std::memcpy(to, from, static_cast<std::size_t>(size));
  };
  switch (bytes) {  // short ones without a call
    case 1:
      return copy(std::integral_constant<std::size_t, 1>());
    case 2:
      return copy(std::integral_constant<std::size_t, 2>());
    case 4:
      return copy(std::integral_constant<std::size_t, 4>());
    case 8:
      return copy(std::integral_constant<std::size_t, 8>());
    case 12:
      return copy(std::integral_constant<std::size_t, 12>());
    case 16:
      return copy(std::integral_constant<std::size_t, 16>());
    case 32:
      return copy(std::integral_constant<std::size_t, 32>());
    default:
      return copy(bytes);
  }
}
/// Copies past the caches: what is written would not stay in them until it is read.
void copy_past_caches(char* to, const char* from, std::int64_t bytes) {
#ifdef __SSE2__
  constexpr std::int64_t line = sizeof(__m128i);
  const std::int64_t before = std::min(bytes, -reinterpret_cast<std::intptr_t>(to) & (line - 1));
  std::memcpy(to, from, static_cast<std::size_t>(before));
  std::int64_t i = before;
  for (; i + line <= bytes; i += line) {
    __m128i v;
    std::memcpy(&v, from + i, sizeof v);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), v);
  }
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
#else
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
#endif
}
/// What copy_apart copies, on the team: some runs at once, or pieces of long ones. Many bytes in
/// runs that are not short go past the caches.
void copy_runs(const char* from, std::int64_t from_step, char* to, std::int64_t to_step,
               std::int64_t bytes, std::int64_t count) {
  if (bytes == 0) return;
  const bool past =
      bytes >= thresholds::uncached_run && bytes * count >= thresholds::uncached_bytes;
  const std::int64_t some = std::max<std::int64_t>(1, moved_bytes / bytes);
  const std::int64_t pieces = (bytes + moved_bytes - 1) / moved_bytes;
  const std::int64_t piece = (bytes + pieces - 1) / pieces;
  parallel_chunks(
      (count + some - 1) / some * pieces, moving_cost(bytes * count), [&](std::int64_t p) {
        const std::int64_t run = p / pieces * some, n = std::min(some, count - run);
        const std::int64_t begin = p % pieces * piece, size = std::min(piece, bytes - begin);
        const char* const x = from + run * from_step + begin;
        char* const y = to + run * to_step + begin;
        if (!past) return copy_apart(x, from_step, y, to_step, size, n);
        for (std::int64_t i = 0; i < n; ++i)
          copy_past_caches(y + i * to_step, x + i * from_step, size);
#ifdef __SSE2__
        _mm_sfence();  // before others read it
#endif
      });
}

template <>
class kernel_of<spec::concat> final : public spec::concat {
  void ready() override { cost_ = moving_cost(out_[0]); }
  void run(const kernel_call& c) override { each_input(c, &copy_runs); }
};

template <>
class kernel_of<spec::concat_part> final : public spec::concat_part {
  void ready() override { cost_ = moving_cost(out_[0]); }
  void run(const kernel_call& c) override { take_part(c, &copy_runs); }
};

/// Calls f(first, last) with the numbers of some runs at a time.
template <class F>
void some_runs(const spec::part_runs& r, std::int64_t bytes, double cost, const F& f) {
  const std::int64_t some =
      std::max<std::int64_t>(1, moved_bytes / std::max<std::int64_t>(1, bytes));
  parallel_chunks((r.runs + some - 1) / some, cost,
                  [&](std::int64_t p) { f(p * some, std::min(r.runs, (p + 1) * some)); });
}

/// Calls row(from, from_step, to, to_step, n) for rows of n elements, or pieces of one long row.
template <class T, class F>
void each_matched_row(const spec::matched_levels& l, const T* from, T* to, double cost,
                      const F& row) {
  constexpr auto together = static_cast<std::int64_t>(moved_bytes / sizeof(T));
  const std::int64_t n = l.n(), rows = l.rows();
  const std::int64_t piece = rows == 1 ? together : n;
  const std::int64_t pieces = (n + piece - 1) / piece;
  const std::int64_t some = std::max<std::int64_t>(1, together / piece);
  parallel_chunks((rows * pieces + some - 1) / some, cost, [&](std::int64_t p) {
    for (std::int64_t i = p * some; i < std::min(rows * pieces, (p + 1) * some); ++i) {
      const std::int64_t r = i / pieces, begin = i % pieces * piece;
      row(from + l.from_row(r) + begin * l.from_step(), l.from_step(),
          to + l.to_row(r) + begin * l.to_step(), l.to_step(), std::min(piece, n - begin));
    }
  });
}
/// Rows as they are.
struct copied_row {
  template <class T>
  void operator()(const T* from, std::int64_t from_step, T* to, std::int64_t to_step,
                  std::int64_t n) const {
    if (from_step == 1 && to_step == 1)
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
    else if (from_step == 0 && to_step == 1)
      std::fill(to, to + n, *from);
    else if (from_step == -1 && to_step == 1)
      std::reverse_copy(from - (n - 1), from + 1, to);
    else
      for (std::int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
};
/// Each element of `to` becomes Op of it and its partner: narrow ones are computed in their wider
/// type.
template <class Op>
struct joined_row {
  template <class T>
  void operator()(const T* from, std::int64_t from_step, T* to, std::int64_t to_step,
                  std::int64_t n) const {
    if (from_step == 1 && to_step == 1)
      for (std::int64_t i = 0; i < n; ++i) join(to[i], from[i]);
    else
      for (std::int64_t i = 0; i < n; ++i) join(to[i * to_step], from[i * from_step]);
  }
  template <class T>
  static DEFT_ALWAYS_INLINE void join(T& to, const T& by) {
    using C = num::lane<computing_type<T>>;
    to = static_cast<T>(
        Op()(C(static_cast<computing_type<T>>(to)), C(static_cast<computing_type<T>>(by))).v);
  }
};

template <>
class kernel_of<spec::slice> final : public spec::slice {
  void ready() override {
    slice::ready();
    const std::int64_t runs = op_.step.empty() ? runs_.runs : out().elements();
    cost_ = moving_cost(out_[0]) + 2 * static_cast<double>(runs);
  }
  void run(const kernel_call& c) override {
    if (out().elements() == 0) return;
    if (!op_.step.empty())
      return visit_size(size_of_dtype(type()), [&]<class T>() {
        each_matched_row(levels_, static_cast<const T*>(c.in[0]), static_cast<T*>(c.out[0]), cost_,
                         copied_row());
      });
    const char* from = static_cast<const char*>(c.in[0]);
    char* to = static_cast<char*>(c.out[0]);
    const auto size = static_cast<std::int64_t>(size_of_dtype(type()));
    const std::int64_t bytes = runs_.run * size;
    some_runs(runs_, bytes, cost_, [&](std::int64_t i, std::int64_t last) {
      while (i < last) {  // those that are equally far apart at once
        const std::int64_t some = std::min(last - i, runs_.left(i));
        copy_apart(from + runs_.offset(i) * size, runs_.step() * size, to + i * bytes, bytes, bytes,
                   some);
        i += some;
      }
    });
  }
};

template <class Op>
class kernel_of<spec::slice_update<Op>> final : public spec::slice_update<Op> {
  void ready() override {
    spec::slice_update<Op>::ready();
    this->cost_ = 30 + static_cast<double>(this->elements_ + this->levels_.rows());
  }
  void run(const kernel_call& c) override {
    if (c.out[0] != c.in[0])
      std::memcpy(c.out[0], c.in[0],
                  static_cast<std::size_t>(spec::byte_runs(this->out_[0], 0).bytes));
    if (this->elements_ == 0) return;
    const auto update = [&]<class T>(const auto& row) {
      each_matched_row(this->levels_, static_cast<const T*>(c.in[1]), static_cast<T*>(c.out[0]),
                       this->cost_, row);
    };
    if constexpr (std::is_same_v<Op, op::assign_slice>)
      visit_size(size_of_dtype(this->type()),
                 [&]<class T>() { update.template operator()<T>(copied_row()); });
    else
      visit_dtype_in<numeric_dtypes>(this->type(), [&]<class T>() {
        update.template operator()<T>(joined_row<typename Op::combines>());
      });
  }
};

template <>
class kernel_of<spec::pad> final : public spec::pad {
  void ready() override {
    pad::ready();
    runs_ = {out(), before_, in(0)};
    cost_ = moving_cost(out_[0]) + 2 * static_cast<double>(runs_.runs);
  }
  void run(const kernel_call& c) override {
    visit_size(size_of_dtype(type()), [&]<class T>() {
      fill<T>(static_cast<const T*>(c.in[0]), static_cast<T*>(c.out[0]),
              spec::pad_bits<T>(type(), op_.value));
    });
  }

  /// What is between the runs belongs to the run behind it, and the rest to the last.
  template <class T>
  void fill(const T* from, T* to, T value) const {
    const std::int64_t all = out().elements(), n = runs_.run;
    if (n * runs_.runs == 0) return std::fill(to, to + all, value), void();
    const std::int64_t bytes = all / runs_.runs * static_cast<std::int64_t>(sizeof(T));
    some_runs(runs_, bytes, cost_, [&](std::int64_t i, std::int64_t last) {
      std::int64_t done = i == 0 ? 0 : runs_.offset(i - 1) + n;
      for (; i < last; ++i) {
        const std::int64_t at = runs_.offset(i);
        std::fill(to + done, to + at, value);
        std::copy(from + i * n, from + (i + 1) * n, to + at);
        done = at + n;
      }
      if (last == runs_.runs) std::fill(to + done, to + all, value);
    });
  }

  spec::part_runs runs_;
};

template <>
class kernel_of<spec::size_of> final : public spec::size_of {
  void ready() override {
    size_of::ready();
    cost_ = 5;
  }
  void run(const kernel_call& c) override { *static_cast<std::int64_t*>(c.out[0]) = size_; }
};

template <class T>
class kernel_of<spec::arange, T> final : public spec::arange {
  void ready() override { cost_ = moving_cost(out_[0]); }
  void run(const kernel_call& c) override {
    constexpr std::int64_t some = moved_bytes / sizeof(T);
    T* const to = static_cast<T*>(c.out[0]);
    const std::int64_t n = out().elements();
    parallel_chunks((n + some - 1) / some, cost_, [&](std::int64_t p) {
      for (std::int64_t i = p * some; i < std::min(n, (p + 1) * some); ++i)
        to[i] = static_cast<T>(i);
    });
  }
};

}  // namespace
}  // namespace deft::ext::cpu
