// SPDX-License-Identifier: Apache-2.0
// deft/op/scatter.hpp: updates of some rows of a variable; sums of rows with one index.
#pragma once
#include <deft/op/gather.hpp>
#include <deft/op/variable.hpp>
#include <optional>

namespace deft::op {

/// Rows, the first input, of which those whose indices, the second, are equal are added up in
/// order: each of them becomes the sum if `repeat` is set; otherwise the first does, and the others
/// 0.
struct sum_rows {
  static constexpr std::string_view name = "sum_rows";
  static constexpr int arity = 2;
  bool repeat = true;
  static constexpr auto fields = field_list(field{"repeat", &sum_rows::repeat});

  tensor_type infer(std::span<const tensor_type> in) const;
};

/// The first input's rows change those of a variable at the indices in the second.
struct row_update : variable_state {
  static constexpr int arity = 2;
  static constexpr op_role role = op_role::update;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect;

 protected:
  tensor_type checked_rows(std::string_view name, std::span<const tensor_type> in) const;
};
/// They are subtracted. Rows with one index are added up first.
struct scatter_sub : row_update {
  static constexpr std::string_view name = "scatter_sub";
  tensor_type infer(std::span<const tensor_type> in) const { return checked_rows(name, in); }
};
/// They replace the variable's. Of rows with one index, the last counts.
struct scatter_update : row_update {
  static constexpr std::string_view name = "scatter_update";
  tensor_type infer(std::span<const tensor_type> in) const { return checked_rows(name, in); }
};

}  // namespace deft::op

namespace deft {

namespace ext {

/// For rows (B,L,D) and indices (B,L): in place of each row the sum of all rows with its index, or,
/// if `repeat` is not set, in place of the first of them, and zeros in place of the others.
any_tensor sum_rows(const any_tensor& rows, const any_tensor& indices, bool repeat = true,
                    source_location w = here());

}  // namespace ext

/// Subtracts `rows` (B,L,D) from the rows of `v` (V,D) at `indices` (B,L), int32 or int64. The
/// update runs on the variable's device, and touches these rows alone. An index out of range makes
/// the run throw out_of_range, and changes nothing. Throws invalid_argument if shapes do not fit.
ext::assigned<any_tensor> scatter_sub(const any_variable& v, const any_tensor& indices,
                                      const any_tensor& rows, ext::source_location w = ext::here());
/// Sets the rows of `v` at `indices`. As scatter_sub otherwise.
ext::assigned<any_tensor> scatter_update(const any_variable& v, const any_tensor& indices,
                                         const any_tensor& rows,
                                         ext::source_location w = ext::here());

namespace detail {
/// A gradient with respect to the rows that were gathered, not to all: zeros of the shape of
/// `like`, to which `rows` are added at `indices`, which have one axis.
struct indexed_slices {
  any_tensor rows, indices, like;

  /// As one tensor, which computes nothing where only its slices are used.
  any_tensor tensor() const;
};
/// The slices of which `t` is made; none if it is not made of slices.
std::optional<indexed_slices> slices_of(const any_tensor& t);
/// The sum of tensors that are all made of slices, and of one shape; empty if they are not.
any_tensor sum_of_slices(std::span<const any_tensor> parts);
/// A linear function of a tensor: of its slices alone, if it is made of slices.
template <class F>
any_tensor each_value(const any_tensor& t, F f) {
  auto s = slices_of(t);
  if (!s) return f(t);
  s->rows = f(s->rows);
  return s->tensor();
}
}  // namespace detail

}  // namespace deft
