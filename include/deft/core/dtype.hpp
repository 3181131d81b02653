// SPDX-License-Identifier: Apache-2.0
// deft/core/dtype.hpp: element types.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deft/core/element_type.hpp>
#include <deft/core/error.hpp>
#include <initializer_list>
#include <iosfwd>
#include <string_view>
#include <type_traits>
#include <utility>

namespace deft {

/// The dtype of a C++ type: `dtype_of<float>` is dtype::float32. none for a type that no tensor
/// holds, such as long long where std::int64_t is long.
template <class T>
inline constexpr dtype dtype_of = ext::element_type<std::remove_cv_t<T>>::tag;

namespace ext {

/// A type that a tensor can hold.
template <class T>
concept element = (dtype_of<T> != dtype::none);

/// The same but std::string: its elements are in memory one behind the other.
template <class T>
concept plain_element = element<T> && element_type<std::remove_cv_t<T>>::kind != element_kind::text;

}  // namespace ext

namespace detail {
/// The condition of assertions that explain a wrong use: false, and compilers print its arguments,
/// the operation or class and what it got, as `takes<op::add, tensor<float, 3>,
/// tensor<float, 4>>`.
template <class What, class... Got>
inline constexpr bool takes = false;
/// Named for what compilers print: `is_element_type<long long>`.
template <class T>
inline constexpr bool is_element_type = element<T>;
}  // namespace detail

namespace ext {

/// What is known of a dtype at run time.
struct dtype_traits {
  element_kind kind = element_kind::none;
  std::uint8_t size = 0;  ///< of an element, in bytes; 0 if each has its own
  element_names names{"none", {}, {}, {}};
  dtype computing = dtype::none;  ///< that of computing_type
};

}  // namespace ext

namespace detail {
/// By the number of the dtype. Numbers may be missing.
inline constexpr auto traits_of_dtypes = []<class... T>(type_sequence<T...>) {
  std::array<dtype_traits, std::max({static_cast<std::size_t>(element_type<T>::tag)...}) + 1> all{};
  ((all[static_cast<std::size_t>(element_type<T>::tag)] = {element_type<T>::kind,
                                                           plain_element<T> ? sizeof(T) : 0,
                                                           element_type<T>::names,
                                                           dtype_of<computing_type<T>>}),
   ...);
  return all;
}(element_types());
}  // namespace detail

namespace ext {

/// Numbers of dtypes are below it.
inline constexpr int dtype_count = static_cast<int>(detail::traits_of_dtypes.size());

/// All dtypes but none.
inline constexpr auto every_dtype = []<class... T>(type_sequence<T...>) {
  return std::array{element_type<T>::tag...};
}(element_types());
/// Those of plain_dtypes.
inline constexpr auto every_plain_dtype = []<class... T>(type_sequence<T...>) {
  return std::array{element_type<T>::tag...};
}(plain_element_types());

/// Those of none for what is not valid.
constexpr const dtype_traits& traits_of(dtype t) {
  return detail::traits_of_dtypes[static_cast<int>(t) < dtype_count ? static_cast<std::size_t>(t)
                                                                    : 0];
}
constexpr bool is_valid(dtype t) { return traits_of(t).kind != element_kind::none; }
/// The dtype of a number that was read; none if there is none.
constexpr dtype dtype_of_number(std::int64_t n) {
  const auto t = n > 0 && n < dtype_count ? static_cast<dtype>(n) : dtype::none;
  return is_valid(t) ? t : dtype::none;
}
/// The dtype of that name, as in `dtype_named(&element_names::numpy, "f4")`; none if there is none.
constexpr dtype dtype_named(std::string_view element_names::*format, std::string_view name) {
  if (name.empty()) return dtype::none;  // of those that the format does not have
  for (int i = 1; i < dtype_count; ++i)
    if (const auto t = static_cast<dtype>(i); is_valid(t) && traits_of(t).names.*format == name)
      return t;
  return dtype::none;
}
constexpr bool is_floating(dtype t) { return traits_of(t).kind == element_kind::floating; }
constexpr bool is_integer(dtype t) { return traits_of(t).kind == element_kind::integer; }
constexpr bool is_numeric(dtype t) { return is_floating(t) || is_integer(t); }
/// What kernels compute with for elements of `t`, as computing_type has it.
constexpr dtype computing_dtype(dtype t) { return traits_of(t).computing; }
constexpr bool is_narrow(dtype t) { return computing_dtype(t) != t; }
/// As is_half_type.
constexpr bool is_half(dtype t) { return is_narrow(t) && is_floating(t); }

/// A set of dtypes.
struct dtype_set {
  std::uint32_t bits = 0;  ///< bit number of the dtype; part of the wire format

  constexpr dtype_set() = default;
  constexpr dtype_set(std::initializer_list<dtype> types) {
    for (auto t : types) bits |= std::uint32_t{1} << static_cast<unsigned>(t);
  }
  constexpr bool has(dtype t) const { return bits >> static_cast<unsigned>(t) & 1; }
  friend constexpr dtype_set operator|(dtype_set a, dtype_set b) {
    a.bits |= b.bits;
    return a;
  }
  friend constexpr dtype_set operator&(dtype_set a, dtype_set b) {
    a.bits &= b.bits;
    return a;
  }
  friend bool operator==(dtype_set, dtype_set) = default;
};

}  // namespace ext

namespace detail {
/// Those for which `has` is true.
template <class Has>
constexpr dtype_set dtypes_that(Has has) {
  dtype_set all;
  for (int i = 1; i < dtype_count; ++i)
    if (const auto t = static_cast<dtype>(i); is_valid(t) && has(t)) all = all | dtype_set{t};
  return all;
}
}  // namespace detail

namespace ext {

inline constexpr dtype_set floating_dtypes = detail::dtypes_that(&is_floating);
inline constexpr dtype_set integer_dtypes = detail::dtypes_that(&is_integer);
inline constexpr dtype_set index_dtypes{dtype::int32, dtype::int64};
inline constexpr dtype_set numeric_dtypes = detail::dtypes_that(&is_numeric);
/// All, also string: of what passes whole arrays on.
inline constexpr dtype_set all_dtypes = detail::dtypes_that(&is_valid);
/// Those whose elements have a size: what is in memory one behind the other, and can be moved
/// whatever it means. All but string.
inline constexpr dtype_set plain_dtypes =
    detail::dtypes_that([](dtype t) { return traits_of(t).size > 0; });
/// Those that are not narrow.
inline constexpr dtype_set computing_dtypes =
    detail::dtypes_that([](dtype t) { return plain_dtypes.has(t) && !is_narrow(t); });

/// Bytes of one element; 0 for none and for string, whose elements have sizes of their own:
/// any_array::bytes knows those of an array.
constexpr std::size_t size_of_dtype(dtype t) { return traits_of(t).size; }

}  // namespace ext

/// TensorFlow's name: dtype::float32 is "float", dtype::boolean "bool".
constexpr std::string_view to_string(dtype t) { return ext::traits_of(t).names.tensorflow; }
/// Prints the name that to_string yields.
template <std::derived_from<std::ios_base> Stream>
Stream& operator<<(Stream& s, dtype t) {
  s << to_string(t);
  return s;
}

namespace detail {
template <class F, class T, class... Rest>
constexpr decltype(auto) visit_among(type_sequence<T, Rest...>, dtype t, F& f) {
  if (t == element_type<T>::tag) return f.template operator()<T>();
  if constexpr (sizeof...(Rest) > 0)
    return visit_among<F>(type_sequence<Rest...>(), t, f);
  else if (is_valid(t))
    fail(errc::internal, "no code here for elements of ", t);
  else
    fail(errc::internal, "a value without a dtype");
}

/// Those of `Rest` whose dtypes are in `Types`, after `Chosen`.
template <dtype_set Types, class... Chosen>
constexpr auto chosen_types(type_sequence<Chosen...> chosen, type_sequence<>) {
  return chosen;
}
template <dtype_set Types, class... Chosen, class T, class... Rest>
constexpr auto chosen_types(type_sequence<Chosen...> chosen, type_sequence<T, Rest...>) {
  if constexpr (Types.has(element_type<T>::tag))
    return chosen_types<Types>(type_sequence<Chosen..., T>(), type_sequence<Rest...>());
  else
    return chosen_types<Types>(chosen, type_sequence<Rest...>());
}
}  // namespace detail

namespace ext {

/// Calls `f.template operator()<T>()` with the C++ type of `t`, one of plain_dtypes: f is not
/// compiled for std::string. Throws internal for others.
template <class F>
constexpr decltype(auto) visit_dtype(dtype t, F&& f) {
  return detail::visit_among<F>(plain_element_types(), t, f);
}
/// The same where `t` is one of `Types`, as in `visit_dtype_in<floating_dtypes>(t, f)`: f is
/// compiled for these alone. Throws internal for others.
template <dtype_set Types, class F>
constexpr decltype(auto) visit_dtype_in(dtype t, F&& f) {
  return detail::visit_among<F>(detail::chosen_types<Types>(type_sequence<>(), element_types()), t,
                                f);
}

/// Calls `f.template operator()<T>()` with the C++ type of every dtype of plain_dtypes.
template <class F>
constexpr void each_dtype(F&& f) {
  [&]<class... T>(type_sequence<T...>) {
    (f.template operator()<T>(), ...);
  }(plain_element_types());
}
/// The same for those in `Types`; f is compiled for these alone.
template <dtype_set Types, class F>
constexpr void each_dtype_in(F&& f) {
  [&]<class... T>(type_sequence<T...>) {
    (f.template operator()<T>(), ...);
  }(detail::chosen_types<Types>(type_sequence<>(), element_types()));
}

/// The integer of so many bytes: elements of one size are moved alike, whatever they mean.
template <std::size_t Size>
using integer_of = std::conditional_t<
    Size == 8, std::int64_t,
    std::conditional_t<Size == 4, std::int32_t,
                       std::conditional_t<Size == 2, std::uint16_t,
                                          std::conditional_t<Size == 1, std::uint8_t, void>>>>;
/// Calls `f.template operator()<integer_of<…>>()` for elements of `size` bytes.
template <class F>
constexpr decltype(auto) visit_size(std::size_t size, F&& f) {
  static_assert(all_sizes_are<1, 2, 4, 8>,
                "elements of another size: add it below, and to integer_of");
  if (size == 8) return f.template operator()<integer_of<8>>();
  if (size == 4) return f.template operator()<integer_of<4>>();
  if (size == 2) return f.template operator()<integer_of<2>>();
  if (size == 1) return f.template operator()<integer_of<1>>();
  fail(errc::internal, "elements of ", size, " bytes");
}

}  // namespace ext

}  // namespace deft
