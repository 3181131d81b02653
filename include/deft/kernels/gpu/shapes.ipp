// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/shapes.ipp: operations that move elements and compute nothing: broadcast_to,
// transpose, concat and its parts, slice, pad; and size_of and arange.
#pragma once
#include <deft/kernels/gpu/groups.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/gpu/strided_index.hpp>
#include <deft/kernels/spec/strided_copy.hpp>
#include <deft/op/arange.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/pad.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/transpose.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace moving {
namespace {

using deft::ext::moving::byte_runs, deft::ext::moving::pad_bits, deft::ext::moving::part_runs,
    deft::ext::moving::positions, deft::ext::moving::transpose_levels;

/// N elements of the result that follow each other, from where `path` leads: N that follow each
/// other as well, or one for all. One of one if its innermost level does neither.
template <class T, int N>
struct moved {
  walk path;
  const T* from;
  T* to;
  std::int64_t count;
  bool repeated;

  DEFT_HD void operator()(std::int64_t number) const {
    const std::int64_t first = number * N, left = count - first;
    const T* const at = from + path.offset(first);
    if (left < N) {
      for (int u = 0; u < left; ++u) to[first + u] = at[repeated ? 0 : u];
      return;
    }
    group<T, N> g;
    if (N == 1 || repeated) {
      const T one = *at;
      for (int u = 0; u < N; ++u) g.v[u] = one;
    } else {
      g = *reinterpret_cast<const group<T, N>*>(at);
    }
    *reinterpret_cast<group<T, N>*>(to + first) = g;
  }
};

/// The elements of the result in order, from where `path_` leads after `first_` elements.
class moving_kernel : public queued_kernel {
 public:
  void queue(const kernel_call& c, stream& s) override {
    if (out().elements() == 0) return;
    visit_size(size_of_dtype(type()), [&]<class T>() {
      constexpr int N = widest / sizeof(T);
      wide<N>(c) ? queue_groups<T, N>(c, s) : queue_groups<T, 1>(c, s);
    });
  }

 protected:
  walk path_;
  std::int64_t first_ = 0;

 private:
  bool repeated() const { return path_.count > 0 && path_.stride[0] == 0; }
  /// Whether groups of N lie within rows, and are aligned.
  template <int N>
  bool wide(const kernel_call& c) const {
    if (path_.count == 0 || path_.stride[0] > 1) return false;
    if (path_.count > 1 && path_.extent[0].by() % N != 0) return false;
    if (!is_aligned(c.out[0], widest)) return false;
    if (repeated()) return true;
    for (int l = 1; l < path_.count; ++l)
      if (path_.stride[l] % N != 0) return false;
    return first_ % N == 0 && is_aligned(c.in[0], widest);
  }
  template <class T, int N>
  void queue_groups(const kernel_call& c, stream& s) const {
    const std::int64_t n = out().elements();
    s.launch((n + N - 1) / N,
             moved<T, N>{path_, s.in<T>(c.in[0]) + first_, s.out<T>(c.out[0]), n, repeated()});
  }
};

class broadcast_kernel final : public moving_kernel {
  void ready() override {
    path_ = {};
    if (out().elements() == 0) return;
    const row_layout l({in_.data(), 1}, out_[0]);
    const auto size = static_cast<std::int64_t>(size_of_dtype(type()));
    for (std::size_t i = l.extents().size(); i-- > 0;)
      if (l.extents()[i] != 1) path_.add(l.extents()[i], l.steps(0)[i] / size);
  }
};

/// A square of N rows of N elements, which become its columns. Neighbouring threads take squares
/// beside each other, eight along the rows of the result and four along those of the input, so that
/// what a warp reads and writes are whole sectors.
template <class T, int N>
struct turned_square {
  const group<T, N>* from;
  group<T, N>* to;
  std::int64_t wide, high;          ///< squares along a row of the result, and of the input
  std::int64_t from_step, to_step;  ///< groups from a row to the next
  divider wide_blocks, high_blocks;
  walk from_outer, to_outer;  ///< in groups, too

  static constexpr std::int64_t block_width = 8, block_height = 4;
  std::int64_t threads() const {
    return wide_blocks.by() * high_blocks.by() * from_outer.size() * block_width * block_height;
  }

  DEFT_HD void operator()(std::int64_t thread) const {
    constexpr std::int64_t in_block = block_width * block_height;
    const std::int64_t place = thread % in_block;
    std::int64_t block = thread / in_block;
    const std::int64_t x = wide_blocks.cut(block) * block_width + place % block_width;
    const std::int64_t y = high_blocks.cut(block) * block_height + place / block_width;
    if (x >= wide || y >= high) return;
    const auto* const rows = from + from_outer.offset(block) + x * N * from_step + y;
    auto* const columns = to + to_outer.offset(block) + y * N * to_step + x;
    group<T, N> square[N];
    for (int i = 0; i < N; ++i) square[i] = rows[i * from_step];
    for (int j = 0; j < N; ++j) {
      group<T, N> column;
      for (int i = 0; i < N; ++i) column.v[i] = square[i].v[j];
      columns[j * to_step] = column;
    }
  }
};

class transpose_kernel final : public moving_kernel {
 public:
  explicit transpose_kernel(const dims& perm) : perm_(perm) {}

  void queue(const kernel_call& c, stream& s) override {
    const bool turned = out().elements() != 0 && visit_size(size_of_dtype(type()), [&]<class T>() {
                          constexpr int N = sizeof(T) == 1 ? 8 : widest / sizeof(T);
                          return queue_squares<T, N>(c, s);
                        });
    if (!turned) moving_kernel::queue(c, s);
  }

 private:
  void ready() override {
    path_ = {};
    if (out().elements() == 0) return;
    levels_ = transpose_levels(in(0), perm_);
    for (int l = levels_.count; l-- > 0;) path_.add(levels_.extent[l], levels_.from[l]);
  }
  /// False, and nothing is queued, unless the array consists of squares.
  template <class T, int N>
  bool queue_squares(const kernel_call& c, stream& s) const {
    const transpose_levels& v = levels_;
    const int last = v.last(), across = v.across;
    if (v.rows() || v.extent[last] % N != 0 || v.extent[across] % N != 0 ||
        !is_aligned(c.in[0], sizeof(group<T, N>)) || !is_aligned(c.out[0], sizeof(group<T, N>)))
      return false;
    turned_square<T, N> f{};
    f.from = s.in<group<T, N>>(c.in[0]);
    f.to = s.out<group<T, N>>(c.out[0]);
    f.wide = v.extent[last] / N;
    f.high = v.extent[across] / N;
    f.from_step = v.from[last] / N;
    f.to_step = v.to[across] / N;
    f.wide_blocks = divider((f.wide + f.block_width - 1) / f.block_width);
    f.high_blocks = divider((f.high + f.block_height - 1) / f.block_height);
    for (int l = last; l-- > 0;)
      if (l != across) {
        f.from_outer.add(v.extent[l], v.from[l] / N);
        f.to_outer.add(v.extent[l], v.to[l] / N);
      }
    s.launch(f.threads(), f);
    return true;
  }

  dims perm_;
  transpose_levels levels_;
};

class concat_kernel final : public queued_kernel {
 public:
  explicit concat_kernel(std::int64_t axis) : axis_(axis) {}

  void queue(const kernel_call& c, stream& s) override {
    if (out().elements() == 0) return;
    const byte_runs whole(out_[0], axis_);
    char* to = static_cast<char*>(c.out[0]);
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const byte_runs part(in_[i], axis_);
      copied_runs{
          static_cast<const char*>(c.in[i]), part.bytes, to, whole.bytes, part.bytes, part.count}
          .queue(s);
      to += part.bytes;
    }
  }

 private:
  std::int64_t axis_;
};

class concat_part_kernel final : public queued_kernel {
 public:
  explicit concat_part_kernel(const op::concat_part& o) : op_(o) {}

  void queue(const kernel_call& c, stream& s) override {
    if (out().elements() == 0) return;
    const byte_runs whole(in_[0], op_.axis), part(out_[0], op_.axis);
    const char* from = static_cast<const char*>(c.in[0]);
    for (std::int64_t i = 0; i < op_.part; ++i)
      from += byte_runs(in_[static_cast<std::size_t>(i) + 1], op_.axis).bytes;
    copied_runs{from, whole.bytes, static_cast<char*>(c.out[0]), part.bytes, part.bytes, part.count}
        .queue(s);
  }

 private:
  op::concat_part op_;
};

class slice_kernel final : public moving_kernel {
 public:
  explicit slice_kernel(const dims& begin) : begin_(begin) {}

 private:
  void ready() override {
    path_ = {};
    first_ = 0;
    if (out().elements() == 0) return;
    const part_runs r(in(0), positions(op::slice::name, begin_, in_), out());
    first_ = r.first;
    path_.add(r.run, 1);
    for (int l = 0; l < r.count; ++l) path_.add(r.extent[l], r.stride[l]);
  }

  dims begin_;
};

/// The elements of the result in order: from the input, or `value` where that has none.
template <class T>
struct padded {
  const T* from;
  T* to;
  T value;
  int levels;  ///< the innermost first
  divider extent[max_rank];
  std::int64_t begin[max_rank], size[max_rank], stride[max_rank];  ///< of the input

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t rest = number, at = 0;
    bool inside = true;
    for (int l = 0; l < levels; ++l) {
      const std::int64_t i = extent[l].cut(rest) - begin[l];
      inside = inside && i >= 0 && i < size[l];
      at += i * stride[l];
    }
    to[number] = inside ? from[at] : value;
  }
};

class pad_kernel final : public queued_kernel {
 public:
  explicit pad_kernel(const op::pad& o) : op_(o) {}

  void queue(const kernel_call& c, stream& s) override {
    const dims &whole = out(), &part = in(0), before = positions(op::pad::name, op_.before, in_);
    if (whole.elements() == 0) return;
    visit_size(size_of_dtype(type()), [&]<class T>() {
      padded<T> f{};
      f.from = s.in<T>(c.in[0]), f.to = s.out<T>(c.out[0]);
      f.value = pad_bits<T>(type(), op_.value);
      // Axes that are as long as the input's belong to the level outside them.
      std::int64_t dense = 1, step = 1;
      for (int i = whole.rank(); i-- > 0;) {
        if (whole[i] == part[i] && i > 0) {
          dense *= whole[i];
          continue;
        }
        f.extent[f.levels] = divider(dense * whole[i]);
        f.begin[f.levels] = dense * before[i];
        f.size[f.levels] = dense * part[i];
        f.stride[f.levels++] = step;
        step *= dense * part[i];
        dense = 1;
      }
      s.launch(whole.elements(), f);
    });
  }

 private:
  op::pad op_;
};

struct stored_size {
  std::int64_t* to;
  std::int64_t size;
  DEFT_HD void operator()(std::int64_t) const { *to = size; }
};

class size_kernel final : public queued_kernel {
 public:
  explicit size_kernel(const dims& axes) : axes_(axes) {}

  void queue(const kernel_call& c, stream& s) override {
    std::int64_t size = 1;
    for (auto a : axes_) size *= in(0)[static_cast<int>(a)];
    s.launch(1, stored_size{s.out<std::int64_t>(c.out[0]), size});
  }

 private:
  dims axes_;
};

template <class T>
struct own_number {
  T* to;
  DEFT_HD void operator()(std::int64_t i) const { to[i] = static_cast<T>(i); }
};

template <class T>
class arange_kernel final : public queued_kernel {
 public:
  void queue(const kernel_call& c, stream& s) override {
    s.launch(out().elements(), own_number<T>{s.out<T>(c.out[0])});
  }
};

kernel_ptr make_broadcast_to(const node_def&, std::span<const tensor_type>) {
  return std::make_unique<broadcast_kernel>();
}
kernel_ptr make_transpose(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<transpose_kernel>(decode<op::transpose>(n.attributes).perm);
}
kernel_ptr make_concat(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<concat_kernel>(decode<op::concat>(n.attributes).axis);
}
kernel_ptr make_concat_part(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<concat_part_kernel>(decode<op::concat_part>(n.attributes));
}
kernel_ptr make_slice(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<slice_kernel>(decode<op::slice>(n.attributes).begin);
}
kernel_ptr make_pad(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<pad_kernel>(decode<op::pad>(n.attributes));
}
kernel_ptr make_size_of(const node_def& n, std::span<const tensor_type>) {
  return std::make_unique<size_kernel>(decode<op::size_of>(n.attributes).axes);
}
kernel_ptr make_arange(const node_def& n, std::span<const tensor_type>) {
  return kernel_for<numeric_dtypes>(n, n.outputs.at(0).type, [&]<class T>() -> kernel_ptr {
    return std::make_unique<arange_kernel<T>>();
  });
}

}  // namespace
}  // namespace moving

kernel_table shape_kernels() {
  static constexpr kernel_entry table[] = {
      {op::broadcast_to::name, plain_dtypes, &moving::make_broadcast_to},
      {op::transpose::name, plain_dtypes, &moving::make_transpose},
      {op::concat::name, plain_dtypes, &moving::make_concat},
      {op::concat_part::name, plain_dtypes, &moving::make_concat_part},
      {op::slice::name, plain_dtypes, &moving::make_slice},
      {op::pad::name, plain_dtypes, &moving::make_pad},
      {op::size_of::name, plain_dtypes, &moving::make_size_of},
      {op::arange::name, numeric_dtypes, &moving::make_arange},
  };
  return table;
}

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
