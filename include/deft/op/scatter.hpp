// SPDX-License-Identifier: Apache-2.0
// deft/op/scatter.hpp: updates of some rows of a tensor or a variable; sums of rows with one index.
#pragma once
#include <deft/op/gather.hpp>
#include <deft/op/variable.hpp>
#include <optional>
#include <tuple>

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

/// Of the variable's and these rows, the greatest elements count.
struct scatter_max : row_update {
  static constexpr std::string_view name = "scatter_max";
  tensor_type infer(std::span<const tensor_type> in) const { return checked_rows(name, in); }
};

/// A tensor, the first input, whose rows at the indices in the third are changed by those in the
/// second.
struct changed_rows {
  static constexpr int arity = 3;

 protected:
  static tensor_type checked_rows(std::string_view name, std::span<const tensor_type> in);
};
/// As scatter_update does.
struct scatter : changed_rows {
  static constexpr std::string_view name = "scatter";
  tensor_type infer(std::span<const tensor_type> in) const { return checked_rows(name, in); }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
/// As scatter_max does.
struct scatter_maximum : changed_rows {
  static constexpr std::string_view name = "scatter_maximum";
  tensor_type infer(std::span<const tensor_type> in) const { return checked_rows(name, in); }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
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

/// Adds `rows` to those of `v` at `indices`. As scatter_sub otherwise.
ext::assigned<any_tensor> scatter_add(const any_variable& v, const any_tensor& indices,
                                      const any_tensor& rows, ext::source_location w = ext::here());
/// Each element of the rows of `v` at `indices` becomes the greatest of itself and those of `rows`;
/// NaN is greater than any number. As scatter_sub otherwise.
ext::assigned<any_tensor> scatter_max(const any_variable& v, const any_tensor& indices,
                                      const any_tensor& rows, ext::source_location w = ext::here());

namespace detail {
/// Whether X is a tensor and no variable, which the overloads above change.
template <class X>
concept only_a_value = expression<X> && !std::convertible_to<const X&, any_variable>;

any_tensor scatter_rows(const any_tensor& x, const any_tensor& indices, const any_tensor& rows,
                        source_location w);
any_tensor scatter_add_rows(const any_tensor& x, const any_tensor& indices, const any_tensor& rows,
                            source_location w);
any_tensor scatter_max_rows(const any_tensor& x, const any_tensor& indices, const any_tensor& rows,
                            source_location w);
/// What `dz` passes on to the tensor and to the rows, of which the last of each index counts.
std::tuple<any_tensor, any_tensor> scatter_gradient(const any_tensor& indices,
                                                    const any_tensor& rows, const any_tensor& dz);
std::tuple<any_tensor, any_tensor> scatter_max_gradient(const any_tensor& x, const any_tensor& rows,
                                                        const any_tensor& indices,
                                                        const any_tensor& z, const any_tensor& dz);

template <class X, class Indices, class Rows>
inline constexpr bool can_scatter = [] {
  using P = shape_type_of<X>;
  if constexpr (!can_gather<P, shape_type_of<Indices>>)
    return false;
  else
    return std::is_same_v<value_type_of<X>, value_type_of<Rows>> && is_numeric_expression<X> &&
           gathers_by<Indices> &&
           may_equal(gathered<P, shape_type_of<Indices>>::value, shape_type_of<Rows>::value);
}();
template <class Op, class X, class Indices, class Rows, class F>
auto scatter_by(F f, const X& x, const Indices& indices, const Rows& rows, source_location w) {
  const auto made = [&] { return f(any_tensor(x), any_tensor(indices), any_tensor(rows), w); };
  if constexpr (typed_expression<X> && typed_expression<Indices> && typed_expression<Rows>) {
    if constexpr (!can_scatter<X, Indices, Rows>) {
      if constexpr (Op::name == "scatter")
        static_assert(takes<Op, got<X>, got<Indices>, got<Rows>>,
                      "[scatter] expects numbers, int32 or int64 indices of rows of them, and "
                      "these rows: of the same dtype, and of the shape that gather yields");
      else if constexpr (Op::name == "scatter_add")
        static_assert(takes<Op, got<X>, got<Indices>, got<Rows>>,
                      "[scatter_add] expects numbers, int32 or int64 indices of rows of them, and "
                      "these rows: of the same dtype, and of the shape that gather yields");
      else
        static_assert(takes<Op, got<X>, got<Indices>, got<Rows>>,
                      "[scatter_max] expects numbers, int32 or int64 indices of rows of them, and "
                      "these rows: of the same dtype, and of the shape that gather yields");
      return refused();
    } else
      return tensor_of<value_type_of<X>, shape_type_of<X>>(made().handle());
  } else
    return made();
}
}  // namespace detail

/// x (V,D) with the rows at `indices` (B,L), int32 or int64, replaced by `rows` (B,L,D). Of rows
/// with one index, the last counts. An index out of range makes the run throw out_of_range. Throws
/// invalid_argument if shapes do not fit.
template <detail::only_a_value X, ext::expression Indices, ext::expression Rows>
auto scatter(const X& x, const Indices& indices, const Rows& rows,
             ext::source_location w = ext::here()) {
  return detail::scatter_by<op::scatter>(&detail::scatter_rows, x, indices, rows, w);
}
/// x with `rows` added to those at `indices`. As scatter otherwise. Of a variable, which is
/// changed, it is an update.
template <detail::only_a_value X, ext::expression Indices, ext::expression Rows>
auto scatter_add(const X& x, const Indices& indices, const Rows& rows,
                 ext::source_location w = ext::here()) {
  return detail::scatter_by<op::scatter_add>(&detail::scatter_add_rows, x, indices, rows, w);
}
/// x, in which the elements of the rows at `indices` become the greatest of themselves and of those
/// of `rows`; NaN is greater than any number. The gradient goes to x where that is the greatest,
/// and else in equal parts to those that are. As scatter otherwise. Of a variable, which is
/// changed, it is an update.
template <detail::only_a_value X, ext::expression Indices, ext::expression Rows>
auto scatter_max(const X& x, const Indices& indices, const Rows& rows,
                 ext::source_location w = ext::here()) {
  return detail::scatter_by<op::scatter_max>(&detail::scatter_max_rows, x, indices, rows, w);
}

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

template <class N>
auto deft::op::scatter::grad(const N& n, any_tensor dz) {
  auto [dx, drows] = detail::scatter_gradient(n.template in<2>(), n.template in<1>(), dz);
  return std::tuple{dx, drows, any_tensor()};
}
template <class N>
auto deft::op::scatter_maximum::grad(const N& n, any_tensor dz) {
  auto [dx, drows] = detail::scatter_max_gradient(n.template in<0>(), n.template in<1>(),
                                                  n.template in<2>(), n.out(), dz);
  return std::tuple{dx, drows, any_tensor()};
}
