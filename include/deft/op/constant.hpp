// SPDX-License-Identifier: Apache-2.0
// deft/op/constant.hpp: values of the host as part of the graph.
#pragma once
#include <array>
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct constant {
  static constexpr std::string_view name = "constant";
  static constexpr int arity = 0;
  static constexpr op_role role = op_role::constant;
  any_array value;
  static constexpr auto fields = field_list(field{"value", &constant::value});

  tensor_type infer(std::span<const tensor_type>) const;
};
}  // namespace deft::op

namespace deft {

namespace detail {
/// The element type of a list of Ts: T, or the integer of its width.
template <class T>
using list_element =
    std::conditional_t<plain_element<T> || !std::signed_integral<T>, T,
                       std::conditional_t<sizeof(T) == 8, std::int64_t,
                                          std::conditional_t<sizeof(T) == 4, std::int32_t, void>>>;
template <class T>
inline constexpr bool can_be_element = plain_element<list_element<T>>;

template <class Shape, class T>
auto constant_from(const T* first, source_location w) {
  if constexpr (!can_be_element<T>) {
    static_assert(takes<op::constant, T>,
                  "[constant] element types are " DEFT_ELEMENT_TYPES ": use static_cast");
    return refused();
  } else {
    using U = list_element<T>;
    any_array a(dtype_of<U>, Shape::value);
    U* to = a.mutable_data<U>();
    for (std::int64_t i = 0; i < Shape::value.elements(); ++i) to[i] = static_cast<U>(first[i]);
    return tensor_of<U, Shape>(add_constant(std::move(a), w).handle());
  }
}
template <class Shape, class T>
auto string_constant(const T* first, source_location w) {
  any_array a(Shape::value, texts_of(first, static_cast<std::size_t>(Shape::value.elements())));
  return tensor_of<std::string, Shape>(add_constant(std::move(a), w).handle());
}
/// A list whose length only the run of the program knows, or its type too: std::array.
template <class V>
inline constexpr std::int64_t list_extent = dyn;
template <class T, std::size_t N>
inline constexpr std::int64_t list_extent<std::array<T, N>> = std::int64_t{N};
template <class T, std::size_t N>
requires(N != std::dynamic_extent) inline constexpr std::int64_t list_extent<std::span<T, N>> =
    std::int64_t{N};
template <class V>
concept list_of_numbers =
    !expression<V> && !text<V> && !text_range<V> && (is_bool_vector<V> || contiguous<const V>);

/// `a`, or a copy if its elements are shared or borrowed.
inline any_array owned(any_array a) { return a.storage().unique() ? std::move(a) : a.clone(); }
}  // namespace detail

/// A string: `constant("text")`.
template <detail::text V>
requires(!ext::expression<V>) tensor<std::string> constant(const V& text,
                                                           ext::source_location w = ext::here()) {
  return tensor<std::string>(
      detail::add_constant(any_array::scalar(std::string_view(text)), w).handle());
}
/// A vector of strings, `constant({"a", "b"})`, or row by row a matrix, or three levels of braces.
/// @{
template <std::size_t N>
auto constant(const detail::text_item (&texts)[N], ext::source_location w = ext::here()) {
  return detail::string_constant<shape_t<std::int64_t{N}>>(texts, w);
}
template <detail::text T, std::size_t N, std::size_t M>
auto constant(const T (&texts)[N][M], ext::source_location w = ext::here()) {
  return detail::string_constant<shape_t<std::int64_t{N}, std::int64_t{M}>>(texts[0], w);
}
template <detail::text T, std::size_t N, std::size_t M, std::size_t L>
auto constant(const T (&texts)[N][M][L], ext::source_location w = ext::here()) {
  return detail::string_constant<shape_t<std::int64_t{N}, std::int64_t{M}, std::int64_t{L}>>(
      texts[0][0], w);
}
/// @}
/// The strings of a vector, array or span.
template <detail::text_range V>
requires(!ext::expression<V> &&
         !std::is_array_v<V>) auto constant(const V& texts, ext::source_location w = ext::here()) {
  return tensor<std::string, detail::list_extent<V>>(
      detail::add_constant(detail::array_of_list(texts), w).handle());
}
/// A scalar: `constant(0.5f)` is float, `constant(1)` int32.
template <class T>
requires ext::scalar<T>
auto constant(const T& value, ext::source_location w = ext::here()) {
  return detail::constant_from<shape_t<>>(&value, w);
}
/// A vector: `constant({1.f, 2.f, 3.f})`.
template <class T, std::size_t N>
requires(ext::scalar<T> &&
         !std::same_as<T, char>) auto constant(const T (&values)[N],
                                               ext::source_location w = ext::here()) {
  return detail::constant_from<shape_t<std::int64_t{N}>>(values, w);
}
/// A matrix, row by row: `constant({{1.f, 2.f}, {3.f, 4.f}})`.
template <class T, std::size_t N, std::size_t M>
requires ext::scalar<T>
auto constant(const T (&values)[N][M], ext::source_location w = ext::here()) {
  return detail::constant_from<shape_t<std::int64_t{N}, std::int64_t{M}>>(values[0], w);
}
/// Three levels of braces. For more, `constant(ndarray<…>{…})`.
template <class T, std::size_t N, std::size_t M, std::size_t L>
requires ext::scalar<T>
auto constant(const T (&values)[N][M][L], ext::source_location w = ext::here()) {
  return detail::constant_from<shape_t<std::int64_t{N}, std::int64_t{M}, std::int64_t{L}>>(
      values[0][0], w);
}
/// The elements of a vector, array or span.
template <class V>
requires(detail::list_of_numbers<V> &&
         !std::is_array_v<V>) auto constant(const V& values, ext::source_location w = ext::here()) {
  using T = std::remove_cvref_t<decltype(*std::begin(values))>;
  using U = std::conditional_t<detail::is_bool_vector<V>, bool, detail::list_element<T>>;
  if constexpr (!detail::is_bool_vector<V> && !detail::can_be_element<T>) {
    static_assert(detail::takes<op::constant, V>,
                  "[constant] element types are " DEFT_ELEMENT_TYPES ": use static_cast");
    return detail::refused();
  } else {
    any_array a(dtype_of<U>, {static_cast<std::int64_t>(std::size(values))});
    U* to = a.mutable_data<U>();
    for (const auto v : values) *to++ = static_cast<U>(v);
    return tensor<U, detail::list_extent<V>>(detail::add_constant(std::move(a), w).handle());
  }
}
/// The elements of an array; moving the array in avoids a copy.
template <ext::element T, std::int64_t... E>
tensor<T, E...> constant(ndarray<T, E...> values, ext::source_location w = ext::here()) {
  return tensor<T, E...>(
      detail::add_constant(detail::owned(std::move(values).array()), w).handle());
}
/// The same with a dtype and shape known only at run time.
any_tensor constant(any_array values, ext::source_location w = ext::here());
/// @cond refused
template <ext::scalar... Value>
requires(sizeof...(Value) > 1) detail::refused constant(Value...) {
  static_assert(detail::takes<op::constant, Value...>,
                "[constant] expects several values in braces: constant({1.f, 2.f, 3.f})");
  return {};
}
/// @endcond

}  // namespace deft
