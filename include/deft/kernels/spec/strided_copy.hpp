// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/strided_copy.hpp: what kernels that move elements and compute nothing share.
#pragma once
#include <cstring>
#include <deft/graph/op_def.hpp>
#include <deft/op/extents.hpp>
#include <deft/op/slice.hpp>

namespace deft::ext::spec {

/// `value` as an element of `t`: its bits, in the integer of that size.
template <class Bits>
Bits pad_bits(dtype t, double value) {
  Bits bits{};
  visit_dtype(t, [&]<class T>() {
    const T element = static_cast<T>(value);
    if constexpr (sizeof(T) == sizeof(Bits)) std::memcpy(&bits, &element, sizeof bits);
  });
  return bits;
}

/// The result of a transpose as levels, outermost first: axes that stay adjacent are merged, those
/// of extent 1 are dropped; at least one level.
struct transpose_levels {
  int count = 0;
  int across = 0;  ///< the level that is dense in the input; the last is dense in the result
  std::int64_t extent[max_rank], from[max_rank], to[max_rank];  ///< strides in elements

  transpose_levels() = default;
  /// Axis i of the result is axis perm[i] of `x`.
  transpose_levels(const dims& x, const dims& perm) {
    std::int64_t stride[max_rank], s = 1;
    for (int i = x.rank(); i-- > 0; s *= x[i]) stride[i] = s;
    for (int i = 0; i < perm.rank(); ++i) {
      const int axis = static_cast<int>(perm[i]);
      const std::int64_t e = x[axis], step = stride[axis];
      if (e == 1) continue;
      if (count > 0 && from[count - 1] == step * e)
        extent[count - 1] *= e, from[count - 1] = step;
      else
        extent[count] = e, from[count++] = step;
    }
    if (count == 0) extent[0] = from[0] = 1, count = 1;
    s = 1;
    for (int l = count; l-- > 0; s *= extent[l]) to[l] = s;
    across = count - 1;
    for (int l = 0; l < count; ++l)
      if (from[l] == 1) across = l;
  }
  int last() const { return count - 1; }
  /// The last axis stays the last.
  bool rows() const { return across == last(); }
};

/// An array as contiguous runs, one for each index of the axes before `axis`: their number, and
/// their length in bytes.
struct byte_runs {
  std::int64_t count = 1, bytes;
  byte_runs(const tensor_type& t, std::int64_t axis)
      : bytes(static_cast<std::int64_t>(size_of_dtype(t.type))) {
    for (int i = 0; i < t.shape.rank(); ++i) (i < axis ? count : bytes) *= t.shape[i];
  }
};

/// Where a part begins: `declared`, or what the last input says, as op::extents yields it.
inline dims positions(std::string_view name, const dims& declared,
                      std::span<const tensor_type> in) {
  return declared.contains(dyn) ? op::extents_in(name, in, declared.rank()) : declared;
}

/// A rectangular part of an array, as runs that are contiguous in both; lengths and offsets in
/// elements.
struct part_runs {
  std::int64_t first = 0;  ///< where the part begins in the array
  std::int64_t run = 1;    ///< length of a run
  std::int64_t runs = 1;
  int count = 0;  ///< levels of runs, the innermost first
  std::int64_t extent[max_rank], stride[max_rank];

  part_runs() = default;
  part_runs(const dims& whole, const dims& begin, const dims& part) {
    std::int64_t step = 1, inner = 0;
    bool dense = true;
    for (int i = whole.rank(); i-- > 0; step *= whole[i]) {
      first += begin[i] * step;
      if (dense)
        run *= part[i];
      else if (count > 0 && inner * extent[count - 1] == step)
        runs *= part[i], extent[count - 1] *= part[i];
      else
        runs *= part[i], extent[count] = part[i], stride[count++] = inner = step;
      dense = dense && part[i] == whole[i];
    }
  }
  /// Where run number i begins in the array.
  std::int64_t offset(std::int64_t i) const {
    std::int64_t at = first;
    for (int l = 0; l < count; i /= extent[l++]) at += i % extent[l] * stride[l];
    return at;
  }
  /// How many from run number i on are `step` apart.
  std::int64_t left(std::int64_t i) const { return count ? extent[0] - i % extent[0] : 1; }
  std::int64_t step() const { return count ? stride[0] : 0; }
};

/// The elements of an array that a slice with steps takes: the first of them, and how far apart
/// they are along each axis.
struct stepped_part {
  std::int64_t first = 0;
  std::int64_t stride[max_rank];

  stepped_part(const dims& whole, const op::slice::place& part, const dims& step) {
    std::int64_t dense = 1;
    for (int i = whole.rank(); i-- > 0; dense *= whole[i]) {
      const std::int64_t s = step.empty() ? 1 : step[i];
      first += (s < 0 ? part.begin[i] + part.size[i] - 1 : part.begin[i]) * dense;
      stride[i] = s * dense;
    }
  }
};

/// Elements of two arrays that correspond, as levels, the innermost first; strides in elements.
struct matched_levels {
  int count = 0;
  std::int64_t extent[max_rank], from[max_rank], to[max_rank];
  std::int64_t first_from = 0, first_to = 0;

  /// From the innermost axis on.
  void add(std::int64_t e, std::int64_t from_stride, std::int64_t to_stride) {
    if (e == 1) return;
    if (count > 0 && from_stride == from[count - 1] * extent[count - 1] &&
        to_stride == to[count - 1] * extent[count - 1]) {
      extent[count - 1] *= e;
      return;
    }
    extent[count] = e, from[count] = from_stride, to[count++] = to_stride;
  }
  /// Elements of a row, which is the innermost level, and rows.
  std::int64_t n() const { return count > 0 ? extent[0] : 1; }
  std::int64_t rows() const {
    std::int64_t all = 1;
    for (int l = 1; l < count; ++l) all *= extent[l];
    return all;
  }
  std::int64_t from_step() const { return count > 0 ? from[0] : 1; }
  std::int64_t to_step() const { return count > 0 ? to[0] : 1; }
  /// Where a row begins.
  std::int64_t from_row(std::int64_t row) const { return first_from + offset(from, row); }
  std::int64_t to_row(std::int64_t row) const { return first_to + offset(to, row); }

 private:
  std::int64_t offset(const std::int64_t* stride, std::int64_t row) const {
    std::int64_t at = 0;
    for (int l = 1; l < count; row /= extent[l++]) at += row % extent[l] * stride[l];
    return at;
  }
};

}  // namespace deft::ext::spec
