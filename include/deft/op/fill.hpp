// SPDX-License-Identifier: Apache-2.0
// deft/op/fill.hpp: tensors of one value: zeros, ones, fill, and those in the shape of another.
// They are a broadcast constant: an elementwise operation repeats it without making the tensor.
#pragma once
#include <deft/op/broadcast_to.hpp>
#include <deft/op/constant.hpp>
#include <deft/op/extents.hpp>

namespace deft::op {
struct fill;        ///< broadcast_to; only messages use these names
struct zeros;       ///< likewise
struct ones;        ///< likewise
struct zeros_like;  ///< likewise
struct ones_like;   ///< likewise
}  // namespace deft::op

namespace deft {

namespace detail {
any_tensor filled(const any_tensor& value, const run_extents& e, source_location w);
any_tensor filled_like(const literal& value, const any_tensor& x, source_location w);
/// Whether numbers are where a shape belongs, or a dtype is where zeros<T> has it.
template <class First = dtype, class... More>
inline constexpr bool misfills = number_or_text<First> || (std::same_as<More, dtype> || ...);

template <class Shape, class X>
constexpr bool refuse_fill() {
  if constexpr (!is_known<Shape>)
    static_assert(takes<op::fill, Shape>,
                  "[fill] expects a shape without dyn, or its extents in braces: zeros(shape<dyn, "
                  "3>, {size_of(x, axis<0>)}), fill(shape<dyn, 3>, {size_of(x, axis<0>)}, value)");
  if constexpr (!is_scalar_expression<X>)
    static_assert(takes<op::fill, got<X>>,
                  "[fill] expects a scalar, and got another tensor: use broadcast_to(x, shape)");
  return is_known<Shape> && is_scalar_expression<X>;
}
template <class T, class Shape>
auto fill_with(const literal& v, source_location w) {
  if constexpr (refuse_fill<Shape, T>())
    return tensor_of<T, Shape>(filled(literal_like(v, dtype_of<T>, w), Shape::value, w).handle());
  else
    return refused();
}
template <class T, class Shape>
tensor_of<T, Shape> fill_sized(std::string_view of, const literal& v, const size_list& n,
                               source_location w) {
  return tensor_of<T, Shape>(filled(literal_like(v, dtype_of<T>, w),
                                    declared_extents(of, Shape::value, n, dtype_of<T>, w), w)
                                 .handle());
}
}  // namespace detail

/// A tensor of zeros, or of false: `zeros(shape<2, 3>)`, `zeros<double>(shape<3>)`. Without a
/// shape, zeros() is an initializer.
template <ext::element T = float, std::int64_t... E>
auto zeros(shape_t<E...>, ext::source_location w = ext::here()) {
  return detail::fill_with<T, shape_t<E...>>(0, w);
}
/// With extents that a run computes: `zeros(shape<dyn, 16>, {size_of(x, axis<0>)})` has a row for
/// each of x. The list gives each `dyn` extent, or all extents: numbers, and int32 or int64
/// scalars. Throws invalid_argument, in the run for what only that knows, if one is negative.
template <ext::element T = float, std::int64_t... E>
tensor<T, E...> zeros(shape_t<E...>, const detail::size_list& n,
                      ext::source_location w = ext::here()) {
  return detail::fill_sized<T, shape_t<E...>>("zeros", 0, n, w);
}
/// The same with a shape and dtype known only at run time.
any_tensor zeros(const dims& shape, dtype type = dtype::float32,
                 ext::source_location w = ext::here());
/// @cond refused
template <ext::element T = float, std::int64_t... E, class... Given>
requires(sizeof...(E) > 0 || detail::misfills<Given...>) detail::refused zeros(const Given&...) {
  static_assert(detail::takes<op::zeros, T, Given...>,
                "[zeros] expects a shape, and got numbers or a dtype: zeros(shape<2, 3>), "
                "zeros<double>(shape<2, 3>), or zeros({n, 3}) where it is known only at run time");
  return {};
}
/// @endcond

/// A tensor of ones, or of true, as zeros.
template <ext::element T = float, std::int64_t... E>
auto ones(shape_t<E...>, ext::source_location w = ext::here()) {
  return detail::fill_with<T, shape_t<E...>>(1, w);
}
/// With extents that a run computes, as zeros has them: `ones(shape<dyn>, {size_of(x)})`.
template <ext::element T = float, std::int64_t... E>
tensor<T, E...> ones(shape_t<E...>, const detail::size_list& n,
                     ext::source_location w = ext::here()) {
  return detail::fill_sized<T, shape_t<E...>>("ones", 1, n, w);
}
/// The same with a shape and dtype known only at run time.
any_tensor ones(const dims& shape, dtype type = dtype::float32,
                ext::source_location w = ext::here());
/// @cond refused
template <ext::element T = float, std::int64_t... E, class... Given>
requires(sizeof...(E) > 0 || detail::misfills<Given...>) detail::refused ones(const Given&...) {
  static_assert(detail::takes<op::ones, T, Given...>,
                "[ones] expects a shape, and got numbers or a dtype: ones(shape<2, 3>), "
                "ones<double>(shape<2, 3>), or ones({n, 3}) where it is known only at run time");
  return {};
}
/// @endcond

/// A tensor of that value, in its dtype: `fill(shape<2, 3>, 0.5f)`, `fill<double>(shape<3>, 1)`.
/// The value may be a scalar tensor.
template <class T = void, std::int64_t... E, ext::operand V>
auto fill(shape_t<E...>, const V& value, ext::source_location w = ext::here()) {
  using S = shape_t<E...>;
  if constexpr (ext::scalar<V>) {
    using U = std::conditional_t<std::is_void_v<T>, detail::list_element<V>, T>;
    static_assert(ext::element<U>,
                  "[fill] element types are " DEFT_ELEMENT_TYPES ": use fill<T>(shape, value)");
    if constexpr (ext::element<U>) return detail::fill_with<U, S>(detail::literal_of(value), w);
  } else if constexpr (ext::typed_expression<V>) {
    static_assert(std::is_void_v<T> || std::same_as<T, ext::value_type_of<V>>,
                  "[fill] a tensor has a dtype of its own: use cast<T>(value)");
    if constexpr (detail::refuse_fill<S, V>())
      return ext::tensor_of<ext::value_type_of<V>, S>(
          detail::filled(any_tensor(value), S::value, w).handle());
    else
      return detail::refused();
  } else
    return detail::filled(value, S::value, w);
}
/// With extents that a run computes, as for zeros.
template <class T = void, std::int64_t... E, ext::operand V>
auto fill(shape_t<E...>, const detail::size_list& n, const V& value,
          ext::source_location w = ext::here()) {
  using S = shape_t<E...>;
  if constexpr (ext::scalar<V>) {
    using U = std::conditional_t<std::is_void_v<T>, detail::list_element<V>, T>;
    static_assert(ext::element<U>, "[fill] element types are " DEFT_ELEMENT_TYPES
                                   ": use fill<T>(shape, sizes, value)");
    if constexpr (ext::element<U>)
      return detail::fill_sized<U, S>("fill", detail::literal_of(value), n, w);
  } else {
    const any_tensor v(value);
    const any_tensor all =
        detail::filled(v, detail::declared_extents("fill", S::value, n, v.type(), w), w);
    if constexpr (ext::typed_expression<V>)
      return ext::tensor_of<ext::value_type_of<V>, S>(all.handle());
    else
      return all;
  }
}
/// The same with a shape known only at run time; of a C++ number, in its dtype.
template <ext::operand V>
any_tensor fill(const dims& shape, const V& value, ext::source_location w = ext::here()) {
  if constexpr (ext::scalar<V>)
    return detail::filled(constant(value, w), shape, w);
  else
    return detail::filled(any_tensor(value), shape, w);
}
/// @cond refused
template <class T = void, class First, class... More>
requires(sizeof...(More) == 0 || ext::scalar<First>) detail::refused
    fill(const First&, const More&...) {
  static_assert(detail::takes<op::fill, detail::got<First>, detail::got<More>...>,
                "[fill] expects a shape and then a value: fill(shape<2, 3>, 0.5f), or fill({n, 3}, "
                "0.5f) where the shape is known only at run time");
  return {};
}
/// @endcond

/// Zeros in the dtype and shape of `x`, whose elements are not used.
template <ext::expression X>
auto zeros_like(const X& x, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>)
    return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
        detail::filled_like(0, any_tensor(x), w).handle());
  else
    return detail::filled_like(0, x, w);
}
/// Ones, likewise.
template <ext::expression X>
auto ones_like(const X& x, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>)
    return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
        detail::filled_like(1, any_tensor(x), w).handle());
  else
    return detail::filled_like(1, x, w);
}

}  // namespace deft
