// SPDX-License-Identifier: Apache-2.0
// deft/op/base/shapes.hpp: what the shape rules of several operations share.
#pragma once
#include <deft/expr/tensor.hpp>
#include <span>
#include <string_view>

namespace deft::op {

/// `axes` counted from the front, ascending; false if one is out of range or given twice.
constexpr bool normalize_axes(const dims& axes, int rank, dims& out) {
  out = {};
  for (int a = 0; a < rank; ++a)
    for (auto given : axes)
      if (normalize_axis(given, rank) == a) out.push_back(a);
  if (out.n != axes.n) return false;
  for (int i = 1; i < out.n; ++i)
    if (out.e[i] == out.e[i - 1]) return false;
  return true;
}

/// All axes of a tensor of that rank.
constexpr dims all_axes_of(int rank) {
  dims d;
  for (int i = 0; i < rank; ++i) d.push_back(i);
  return d;
}

/// The shape that both `a` and `b` describe, as far as it is known; false if they contradict.
constexpr bool unify(const dims& a, const dims& b, dims& out) {
  out = a;
  for (int i = 0; i < a.n && i < b.n; ++i)
    if (a.e[i] == dyn) out.e[i] = b.e[i];
  return may_equal(a, b);
}

/// `d` with the axes `axes` (ascending, in range of the result) of extent 1 added.
constexpr dims with_axes(const dims& d, const dims& axes) {
  dims out;
  for (int i = 0, k = 0; i < d.n + axes.n; ++i) out.push_back(axes.contains(i) ? 1 : d.e[k++]);
  return out;
}

/// `d` without one axis.
constexpr dims without_axis(const dims& d, std::int64_t axis) {
  dims out;
  for (int i = 0; i < d.n; ++i)
    if (i != axis) out.push_back(d.e[i]);
  return out;
}

/// Throws invalid_argument unless every extent is a size, or `dyn` where that is allowed.
void expect_extents(std::string_view op, const dims& shape, bool dynamic);

}  // namespace deft::op

namespace deft::detail {

/// Throws invalid_argument: an operation that was called at `w` does not take `x`. Where `w` is not
/// known, the error says near what made x.
[[noreturn]] void refuse_call(const any_tensor& x, std::string message, source_location w);

/// The one axis of x that is given, counted from the front. Throws invalid_argument, in the name
/// `of`, unless there is one, in range.
int one_axis(std::string_view of, const any_tensor& x, const dims& given, source_location w);

/// The shape that a shape rule computes from types: `value` if it is `possible`. `Rule` derives
/// from this and states `static constexpr bool make(dims& out)`.
template <class Rule>
struct typed_shape {
  static constexpr bool possible = [] {
    dims d;
    return Rule::make(d);
  }();
  static constexpr dims value = [] {
    dims d;
    (void)Rule::make(d);
    return d;
  }();
};

/// Adds the node of `o` on `x…` and types its first output, as the compile-time rule says.
template <class T, class Shape, class K, class Op, class... X>
tensor_of<T, Shape> apply_typed(const Op& o, source_location w, const X&... x) {
  return tensor_of<T, Shape>(apply<K>(o, w, x...).handle());
}

/// Whether typed expressions have one element type.
template <class X, class... Rest>
inline constexpr bool one_value_type = (std::is_same_v<value_type_of<X>, value_type_of<Rest>> &&
                                        ...);
/// True also where the dtype is known only at run time.
template <class X>
inline constexpr bool is_floating_expression = true;
template <typed_expression X>
inline constexpr bool is_floating_expression<X> = is_floating_type<value_type_of<X>>;
/// Whether an elementwise function that other operations compute takes X; a compile error in the
/// name of `Op` if not.
template <class Op, class X>
constexpr bool takes_floating() {
  if constexpr (!is_floating_expression<X>) refuse<mistake::floats, Op, got<X>>();
  return is_floating_expression<X>;
}
/// Likewise, of bool.
template <class Op, class X>
constexpr bool takes_bools() {
  if constexpr (typed_expression<X>)
    if constexpr (!std::is_same_v<value_type_of<X>, bool>) {
      refuse<mistake::bools, Op, got<X>>();
      return false;
    }
  return true;
}
/// Throws invalid_argument, in the name `of`, if x is not floating.
void expect_floating(std::string_view of, const any_tensor& x, source_location w);
template <typed_expression X>
void expect_floating(std::string_view, const X&, source_location) {}
template <class X>
inline constexpr bool is_integer_expression = true;
template <typed_expression X>
inline constexpr bool is_integer_expression<X> = is_integer(dtype_of<value_type_of<X>>);
/// True also where the rank is known only at run time.
template <class X>
inline constexpr bool is_scalar_expression = true;
template <typed_expression X>
inline constexpr bool is_scalar_expression<X> = shape_type_of<X>::value.n == 0;
template <class X>
inline constexpr bool is_numeric_expression = true;
template <typed_expression X>
inline constexpr bool is_numeric_expression<X> = is_numeric(dtype_of<value_type_of<X>>);

template <class A>
inline constexpr bool is_axis_type = false;
template <int... A>
inline constexpr bool is_axis_type<axis_t<A...>> = true;

// What refusing overloads look for: arguments as other libraries take them.

/// Where axes, a shape, a window or options belong.
template <class Given>
concept number_or_text = is_number_type<Given> ||
    (!expression<Given> && std::convertible_to<const Given&, std::string_view>);
/// Whether the first argument after the tensor is one; false if there is none.
template <class First = dims, class...>
inline constexpr bool starts_with_number = number_or_text<First>;
template <class First>
inline constexpr bool is_shape_type = std::convertible_to<const First&, dims>;
template <std::int64_t... E>
inline constexpr bool is_shape_type<shape_t<E...>> = true;
/// Whether it is neither a shape nor a tensor that has one; false if there is none.
template <class First = dims, class...>
inline constexpr bool starts_without_shape = !expression<First> && !is_shape_type<First>;
/// Tensors in braces, of one type or several.
struct listed {
  template <expression X>
  listed(const X& x);  // NOLINT: implicit on purpose
};

}  // namespace deft::detail
