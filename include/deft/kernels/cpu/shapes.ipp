// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/shapes.ipp: operations that move elements and compute nothing: broadcast_to,
// transpose, concat and its parts, slice, pad; and size_of and arange.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/kernels/cpu/kernel_base.hpp>
#include <deft/kernels/cpu/tables.hpp>
#include <deft/kernels/spec/row_layout.hpp>
#include <deft/kernels/spec/strided_copy.hpp>
#include <deft/kernels/team.hpp>
#include <deft/op/arange.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/pad.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/transpose.hpp>

namespace deft::ext::cpu {
namespace moving {
namespace {

using deft::ext::moving::byte_runs, deft::ext::moving::pad_bits, deft::ext::moving::part_runs,
    deft::ext::moving::positions, deft::ext::moving::transpose_levels;

/// Estimated nanoseconds to read and write so many bytes.
double moving_cost(std::int64_t bytes) { return 20 + static_cast<double>(bytes) / 20; }

constexpr std::int64_t chunk_bytes = 1 << 17;

class broadcast_kernel final : public typed_kernel {
 public:
  void ready() override {
    layout_ = row_layout({in_.data(), 1}, out_[0]);
    size_ = static_cast<std::int64_t>(size_of_dtype(type()));
    cost_ = moving_cost(layout_.elements() * size_) +
            5 * static_cast<double>(layout_.rows() * layout_.planes());
  }
  void run(const kernel_call& c) override {
    if (layout_.elements() == 0) return;
    visit_size(size_of_dtype(type()), [&]<class T>() { fill<T>(c.in, static_cast<T*>(c.out[0])); });
  }

 private:
  /// Rows are shared out, or pieces of one long row.
  template <class T>
  void fill(const void* const* in, T* out) const {
    const std::int64_t n = layout_.n(), rows = layout_.rows(), all = rows * layout_.planes();
    const std::int64_t piece = all == 1 ? std::max<std::int64_t>(1, chunk_bytes / size_) : n;
    const std::int64_t pieces = (n + piece - 1) / piece;
    const std::int64_t some = std::max<std::int64_t>(1, chunk_bytes / size_ / piece);
    parallel_chunks((all * pieces + some - 1) / some, cost_, [&](std::int64_t p) {
      for (std::int64_t i = p * some; i < std::min(all * pieces, (p + 1) * some); ++i) {
        const std::int64_t r = i / pieces, begin = i % pieces * piece;
        const char* at = nullptr;
        layout_.place(r / rows, in, &at);
        at += r % rows * layout_.rise(0) + begin * layout_.step(0);
        copy(reinterpret_cast<const T*>(at), out + r * n + begin, std::min(piece, n - begin));
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

  row_layout layout_;
  std::int64_t size_ = 1;
};

class transpose_kernel final : public typed_kernel {
 public:
  explicit transpose_kernel(const dims& perm) : perm_(perm) {}

  void ready() override {
    size_ = static_cast<std::int64_t>(size_of_dtype(type()));
    elements_ = out().elements();
    cost_ = 2 * moving_cost(elements_ * size_);
    levels_ = transpose_levels(in(0), perm_);
  }
  void run(const kernel_call& c) override {
    if (elements_ == 0) return;
    visit_size(size_of_dtype(type()),
               [&]<class T>() { move(static_cast<const T*>(c.in[0]), static_cast<T*>(c.out[0])); });
  }

 private:
  /// The result's last level against the one that is dense in the input, for all others' indices.
  template <class T>
  void move(const T* x, T* to) const {
    const transpose_levels& v = levels_;
    const int last = v.last(), across = v.across;
    const bool rows = v.rows();
    const std::int64_t n = v.extent[last], m = rows ? 1 : v.extent[across];
    const std::int64_t planes = elements_ / (n * m);
    const std::int64_t strip = rows ? 1 : tile;
    const std::int64_t strips = (m + strip - 1) / strip;
    const std::int64_t some = std::max<std::int64_t>(1, chunk_bytes / (size_ * n * strip));
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

  static constexpr std::int64_t tile = 16;
  dims perm_;
  transpose_levels levels_;
  std::int64_t size_ = 1, elements_ = 0;
};

/// Copies `count` runs of `bytes` bytes that are `from_step` and `to_step` bytes apart.
void copy_runs(const char* from, std::int64_t from_step, char* to, std::int64_t to_step,
               std::int64_t bytes, std::int64_t count) {
  if (bytes == 0) return;
  const std::int64_t some = std::max<std::int64_t>(1, chunk_bytes / bytes);
  parallel_chunks((count + some - 1) / some, moving_cost(bytes * count), [&](std::int64_t p) {
    for (std::int64_t i = p * some; i < std::min(count, (p + 1) * some); ++i)
      std::memcpy(to + i * to_step, from + i * from_step, static_cast<std::size_t>(bytes));
  });
}

class concat_kernel final : public typed_kernel {
 public:
  explicit concat_kernel(std::int64_t axis) : axis_(axis) {}
  void ready() override { cost_ = moving_cost(byte_runs(out_[0], 0).bytes); }
  void run(const kernel_call& c) override {
    char* to = static_cast<char*>(c.out[0]);
    const byte_runs whole(out_[0], axis_);
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const byte_runs part(in_[i], axis_);
      copy_runs(static_cast<const char*>(c.in[i]), part.bytes, to, whole.bytes, part.bytes,
                part.count);
      to += part.bytes;
    }
  }

 private:
  std::int64_t axis_;
};

class concat_part_kernel final : public typed_kernel {
 public:
  explicit concat_part_kernel(const op::concat_part& o) : op_(o) {}
  void ready() override { cost_ = moving_cost(byte_runs(out_[0], 0).bytes); }
  void run(const kernel_call& c) override {
    const byte_runs whole(in_[0], op_.axis), part(out_[0], op_.axis);
    const char* from = static_cast<const char*>(c.in[0]);
    for (std::int64_t i = 0; i < op_.part; ++i)
      from += byte_runs(in_[static_cast<std::size_t>(i) + 1], op_.axis).bytes;
    copy_runs(from, whole.bytes, static_cast<char*>(c.out[0]), part.bytes, part.bytes, part.count);
  }

 private:
  op::concat_part op_;
};

/// Calls f(first, last) with the numbers of some runs at a time.
template <class F>
void some_runs(const part_runs& r, std::int64_t bytes, double cost, const F& f) {
  const std::int64_t some =
      std::max<std::int64_t>(1, chunk_bytes / std::max<std::int64_t>(1, bytes));
  parallel_chunks((r.runs + some - 1) / some, cost,
                  [&](std::int64_t p) { f(p * some, std::min(r.runs, (p + 1) * some)); });
}

class slice_kernel final : public typed_kernel {
 public:
  explicit slice_kernel(const dims& begin) : begin_(begin) {}
  void ready() override {
    runs_ = {in(0), positions(op::slice::name, begin_, in_), out()};
    size_ = static_cast<std::int64_t>(size_of_dtype(type()));
    cost_ = moving_cost(out().elements() * size_) + 2 * static_cast<double>(runs_.runs);
  }
  void run(const kernel_call& c) override {
    if (out().elements() == 0) return;
    const char* from = static_cast<const char*>(c.in[0]);
    char* to = static_cast<char*>(c.out[0]);
    const std::int64_t bytes = runs_.run * size_;
    some_runs(runs_, bytes, cost_, [&](std::int64_t i, std::int64_t last) {
      for (; i < last; ++i)
        std::memcpy(to + i * bytes, from + runs_.offset(i) * size_,
                    static_cast<std::size_t>(bytes));
    });
  }

 private:
  dims begin_;
  part_runs runs_;
  std::int64_t size_ = 1;
};

class pad_kernel final : public typed_kernel {
 public:
  explicit pad_kernel(const op::pad& o) : op_(o) {}
  void ready() override {
    runs_ = {out(), positions(op::pad::name, op_.before, in_), in(0)};
    cost_ = moving_cost(out().elements() * static_cast<std::int64_t>(size_of_dtype(type()))) +
            2 * static_cast<double>(runs_.runs);
  }
  void run(const kernel_call& c) override {
    visit_size(size_of_dtype(type()), [&]<class T>() {
      pad(static_cast<const T*>(c.in[0]), static_cast<T*>(c.out[0]),
          pad_bits<T>(type(), op_.value));
    });
  }

 private:
  /// What is between the runs belongs to the run behind it, and the rest to the last.
  template <class T>
  void pad(const T* from, T* to, T value) const {
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

  op::pad op_;
  part_runs runs_;
};

class size_kernel final : public typed_kernel {
 public:
  explicit size_kernel(const dims& axes) : axes_(axes) {}
  void ready() override {
    size_ = 1;
    for (auto a : axes_) size_ *= in(0)[static_cast<int>(a)];
    cost_ = 5;
  }
  void run(const kernel_call& c) override { *static_cast<std::int64_t*>(c.out[0]) = size_; }

 private:
  dims axes_;
  std::int64_t size_ = 1;
};

template <class T>
class arange_kernel final : public typed_kernel {
 public:
  void ready() override {
    cost_ = moving_cost(out().elements() * static_cast<std::int64_t>(size_of_dtype(type())));
  }
  void run(const kernel_call& c) override {
    constexpr std::int64_t some = chunk_bytes / sizeof(T);
    T* const to = static_cast<T*>(c.out[0]);
    const std::int64_t n = out().elements();
    parallel_chunks((n + some - 1) / some, cost_, [&](std::int64_t p) {
      for (std::int64_t i = p * some; i < std::min(n, (p + 1) * some); ++i)
        to[i] = static_cast<T>(i);
    });
  }
};

}  // namespace
}  // namespace moving

kernel_ptr make_broadcast_to(const node_def&, std::span<const tensor_type>) {
  return std::make_unique<moving::broadcast_kernel>();
}
kernel_ptr make_transpose(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<moving::transpose_kernel>(decode<op::transpose>(n.attributes).perm);
}
kernel_ptr make_concat(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<moving::concat_kernel>(decode<op::concat>(n.attributes).axis);
}
kernel_ptr make_concat_part(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<moving::concat_part_kernel>(decode<op::concat_part>(n.attributes));
}
kernel_ptr make_slice(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<moving::slice_kernel>(decode<op::slice>(n.attributes).begin);
}
kernel_ptr make_pad(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<moving::pad_kernel>(decode<op::pad>(n.attributes));
}
kernel_ptr make_size_of(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<moving::size_kernel>(decode<op::size_of>(n.attributes).axes);
}
kernel_ptr make_arange(const node_def& n, std::span<const tensor_type>) {
  return kernel_for<numeric_dtypes>(n, n.outputs.at(0).type, []<class T>() {
    return std::make_unique<moving::arange_kernel<T>>();
  });
}

kernel_table shape_kernels() {
  static constexpr kernel_entry table[] = {
      {op::broadcast_to::name, plain_dtypes, &make_broadcast_to},
      {op::transpose::name, plain_dtypes, &make_transpose},
      {op::concat::name, plain_dtypes, &make_concat},
      {op::concat_part::name, plain_dtypes, &make_concat_part},
      {op::slice::name, plain_dtypes, &make_slice},
      {op::pad::name, plain_dtypes, &make_pad},
      {op::size_of::name, all_dtypes, &make_size_of},
      {op::arange::name, numeric_dtypes, &make_arange},
  };
  return table;
}

}  // namespace deft::ext::cpu
