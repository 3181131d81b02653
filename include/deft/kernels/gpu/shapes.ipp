// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/shapes.ipp: operations that move elements and compute nothing: broadcast_to,
// transpose, concat and its parts, slice and updates by it, pad; and size_of and arange.
#pragma once
#include <deft/core/num_lane.hpp>
#include <deft/kernels/gpu/groups.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/gpu/strided_index.hpp>
#include <deft/kernels/spec/shapes.hpp>
#include <deft/op/add.hpp>
#include <deft/op/sub.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

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

/// The elements of the result in order, from where `levels` lead after `first` elements.
class moved_elements {
 public:
  walk levels;
  std::int64_t first = 0;

  void queue(const kernel_call& c, stream& s, const tensor_type& out) const {
    if (out.shape.elements() == 0) return;
    visit_size(size_of_dtype(out.type), [&]<class T>() {
      constexpr int N = widest / sizeof(T);
      wide<N>(c) ? queue_groups<T, N>(c, s, out) : queue_groups<T, 1>(c, s, out);
    });
  }

 private:
  bool repeated() const { return levels.count > 0 && levels.stride[0] == 0; }
  /// Whether groups of N lie within rows, and are aligned.
  template <int N>
  bool wide(const kernel_call& c) const {
    if (levels.count == 0 || (levels.stride[0] != 0 && levels.stride[0] != 1)) return false;
    if (levels.count > 1 && levels.extent[0].by() % N != 0) return false;
    if (!is_aligned(c.out[0], widest)) return false;
    if (repeated()) return true;
    for (int l = 1; l < levels.count; ++l)
      if (levels.stride[l] % N != 0) return false;
    return first % N == 0 && is_aligned(c.in[0], widest);
  }
  template <class T, int N>
  void queue_groups(const kernel_call& c, stream& s, const tensor_type& out) const {
    const std::int64_t n = out.shape.elements();
    s.launch((n + N - 1) / N,
             moved<T, N>{levels, s.in<T>(c.in[0]) + first, s.out<T>(c.out[0]), n, repeated()});
  }
};

template <>
class kernel_of<spec::broadcast_to> final : public queued<spec::broadcast_to> {
  void ready() override {
    broadcast_to::ready();
    moved_ = {};
    if (out().elements() == 0) return;
    const auto size = static_cast<std::int64_t>(size_of_dtype(type()));
    const auto extents = layout_.extents(), steps = layout_.steps(0);
    for (std::size_t i = extents.size(); i-- > 0;)
      if (extents[i] != 1) moved_.levels.add(extents[i], steps[i] / size);
  }
  void queue(const kernel_call& c, stream& s) override { moved_.queue(c, s, out_[0]); }

  moved_elements moved_;
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
    const std::int64_t cell = thread % in_block;
    std::int64_t block = thread / in_block;
    const std::int64_t x = wide_blocks.cut(block) * block_width + cell % block_width;
    const std::int64_t y = high_blocks.cut(block) * block_height + cell / block_width;
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

template <>
class kernel_of<spec::transpose> final : public queued<spec::transpose> {
  void ready() override {
    transpose::ready();
    moved_ = {};
    if (out().elements() == 0) return;
    for (int l = levels_.count; l-- > 0;) moved_.levels.add(levels_.extent[l], levels_.from[l]);
  }
  void queue(const kernel_call& c, stream& s) override {
    const bool turned = out().elements() != 0 && visit_size(size_of_dtype(type()), [&]<class T>() {
                          constexpr int N = sizeof(T) == 1 ? 8 : widest / sizeof(T);
                          return queue_squares<T, N>(c, s);
                        });
    if (!turned) moved_.queue(c, s, out_[0]);
  }
  /// False, and nothing is queued, unless the array consists of squares.
  template <class T, int N>
  bool queue_squares(const kernel_call& c, stream& s) const {
    const spec::transpose_levels& v = levels_;
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

  moved_elements moved_;
};

template <>
class kernel_of<spec::concat> final : public queued<spec::concat> {
  void queue(const kernel_call& c, stream& s) override {
    each_input(c, [&](auto... run) { copied_runs{run...}.queue(s); });
  }
};

template <>
class kernel_of<spec::concat_part> final : public queued<spec::concat_part> {
  void queue(const kernel_call& c, stream& s) override {
    take_part(c, [&](auto... run) { copied_runs{run...}.queue(s); });
  }
};

template <>
class kernel_of<spec::slice> final : public queued<spec::slice> {
  void ready() override {
    slice::ready();
    moved_ = {};
    if (out().elements() == 0) return;
    if (op_.step.empty()) {
      moved_.first = runs_.first;
      moved_.levels.add(runs_.run, 1);
      for (int l = 0; l < runs_.count; ++l) moved_.levels.add(runs_.extent[l], runs_.stride[l]);
    } else {
      moved_.first = levels_.first_from;
      for (int l = 0; l < levels_.count; ++l) moved_.levels.add(levels_.extent[l], levels_.from[l]);
    }
  }
  void queue(const kernel_call& c, stream& s) override { moved_.queue(c, s, out_[0]); }

  moved_elements moved_;
};

/// The elements of a part of a variable, in order.
template <class T, class Op>
struct updated_part {
  walk from_levels, to_levels;
  const T* from;
  T* to;

  DEFT_HD void operator()(std::int64_t number) const {
    const T by = from[from_levels.offset(number)];
    T& element = to[to_levels.offset(number)];
    if constexpr (std::is_void_v<Op>) {
      element = by;
    } else {
      using C = num::lane<computing_type<T>>;
      element = static_cast<T>(
          Op()(C(static_cast<computing_type<T>>(element)), C(static_cast<computing_type<T>>(by)))
              .v);
    }
  }
};

template <class Op>
class kernel_of<spec::slice_update<Op>> final : public queued<spec::slice_update<Op>> {
  void ready() override {
    spec::slice_update<Op>::ready();
    from_ = to_ = {};
    const spec::matched_levels& l = this->levels_;
    if (this->elements_ == 0) return;
    for (int i = 0; i < l.count; ++i)
      from_.add(l.extent[i], l.from[i]), to_.add(l.extent[i], l.to[i]);
  }
  void queue(const kernel_call& c, stream& s) override {
    if (c.in[0] != c.out[0])
      visit_size(size_of_dtype(this->type()), [&]<class T>() {
        s.launch(this->out().elements(), copied_elements<T>{s.in<T>(c.in[0]), s.out<T>(c.out[0])});
      });
    if constexpr (std::is_same_v<Op, op::assign_slice>)
      visit_size(size_of_dtype(this->type()), [&]<class T>() { update<T, void>(c, s); });
    else
      visit_dtype_in<numeric_dtypes>(this->type(),
                                     [&]<class T>() { update<T, typename Op::combines>(c, s); });
  }
  template <class T, class Joined>
  void update(const kernel_call& c, stream& s) const {
    const spec::matched_levels& l = this->levels_;
    s.launch(this->elements_, updated_part<T, Joined>{from_, to_, s.in<T>(c.in[1]) + l.first_from,
                                                      s.out<T>(c.out[0]) + l.first_to});
  }

  walk from_, to_;
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

template <>
class kernel_of<spec::pad> final : public queued<spec::pad> {
  void queue(const kernel_call& c, stream& s) override {
    const dims &whole = out(), &part = in(0);
    if (whole.elements() == 0) return;
    visit_size(size_of_dtype(type()), [&]<class T>() {
      padded<T> f{};
      f.from = s.in<T>(c.in[0]), f.to = s.out<T>(c.out[0]);
      f.value = spec::pad_bits<T>(type(), op_.value);
      // Axes that are as long as the input's belong to the level outside them.
      std::int64_t dense = 1, step = 1;
      for (int i = whole.rank(); i-- > 0;) {
        if (whole[i] == part[i] && i > 0) {
          dense *= whole[i];
          continue;
        }
        f.extent[f.levels] = divider(dense * whole[i]);
        f.begin[f.levels] = dense * before_[i];
        f.size[f.levels] = dense * part[i];
        f.stride[f.levels++] = step;
        step *= dense * part[i];
        dense = 1;
      }
      s.launch(whole.elements(), f);
    });
  }
};

struct stored_size {
  std::int64_t* to;
  std::int64_t size;
  DEFT_HD void operator()(std::int64_t) const { *to = size; }
};

template <>
class kernel_of<spec::size_of> final : public queued<spec::size_of> {
  void queue(const kernel_call& c, stream& s) override {
    s.launch(1, stored_size{s.out<std::int64_t>(c.out[0]), size_});
  }
};

template <class T>
struct own_number {
  T* to;
  DEFT_HD void operator()(std::int64_t i) const { to[i] = static_cast<T>(i); }
};

template <class T>
class kernel_of<spec::arange, T> final : public queued<spec::arange> {
  void queue(const kernel_call& c, stream& s) override {
    s.launch(out().elements(), own_number<T>{s.out<T>(c.out[0])});
  }
};

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
