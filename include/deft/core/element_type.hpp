// SPDX-License-Identifier: Apache-2.0
// deft/core/element_type.hpp: what is known of each type that a tensor can hold. A new one is a
// number in dtype, a specialization here, and an entry of plain_element_types; names, sizes, sets
// and tables follow from these. Messages name it as DEFT_ELEMENT_TYPES does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deft/core/config.hpp>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace deft {

/// Element type. The numbers are part of the wire format; 7 and 8 are those of bfloat16 and
/// float16, 10 to 13 those of int16, uint16, uint32 and uint64.
enum class dtype : std::uint8_t {
  none = 0,  ///< no value, as of an operation
  float32 = 1,
  float64 = 2,
  int32 = 3,
  int64 = 4,
  uint8 = 5,
  boolean = 6,
  int8 = 9,
  string = 14,  ///< bytes, of any number in each element; on the host only
};

namespace ext {

enum class element_kind : std::uint8_t { none, boolean, integer, floating, text };

/// What a type is called in other places; none has a byte order.
struct element_names {
  std::string_view tensorflow;  ///< and in messages
  std::string_view safetensors, numpy;
  std::string_view cuda;  ///< in CUDA C++, without headers
};

/// Of a C++ type. The general one: no tensor holds it.
template <class T>
struct element_type {
  static constexpr dtype tag = dtype::none;
  static constexpr element_kind kind = element_kind::none;
};

}  // namespace ext

namespace detail {

/// What arithmetic types have in common.
template <class T, dtype Tag, element_kind Kind, class Computing = T>
struct arithmetic_element {
  static constexpr dtype tag = Tag;
  static constexpr element_kind kind = Kind;
  using computing = Computing;  ///< what kernels compute with, see computing_type
  static constexpr bool is_signed = std::numeric_limits<T>::is_signed;
  /// All values are at least `least` and at most `greatest`: infinities, where it has some.
  static constexpr T least = Kind == element_kind::floating ? -std::numeric_limits<T>::infinity()
                                                            : std::numeric_limits<T>::lowest();
  static constexpr T greatest = Kind == element_kind::floating ? std::numeric_limits<T>::infinity()
                                                               : std::numeric_limits<T>::max();
};
template <class T, dtype Tag>
using floating_element = arithmetic_element<T, Tag, element_kind::floating>;
template <class T, dtype Tag, class Computing = T>
using integer_element = arithmetic_element<T, Tag, element_kind::integer, Computing>;

}  // namespace detail

namespace ext {

template <>
struct element_type<float> : detail::floating_element<float, dtype::float32> {
  static constexpr element_names names{"float", "F32", "f4", "float"};
};
template <>
struct element_type<double> : detail::floating_element<double, dtype::float64> {
  static constexpr element_names names{"double", "F64", "f8", "double"};
};
template <>
struct element_type<std::int32_t> : detail::integer_element<std::int32_t, dtype::int32> {
  static constexpr element_names names{"int32", "I32", "i4", "int"};
};
template <>
struct element_type<std::int64_t> : detail::integer_element<std::int64_t, dtype::int64> {
  static constexpr element_names names{"int64", "I64", "i8", "long long"};
};
template <>
struct element_type<std::uint8_t> : detail::integer_element<std::uint8_t, dtype::uint8> {
  static constexpr element_names names{"uint8", "U8", "u1", "unsigned char"};
};
template <>
struct element_type<bool>
    : detail::arithmetic_element<bool, dtype::boolean, element_kind::boolean> {
  static constexpr element_names names{"bool", "BOOL", "b1", "bool"};
};

template <>
struct element_type<std::int8_t> : detail::integer_element<std::int8_t, dtype::int8, std::int32_t> {
  static constexpr element_names names{"int8", "I8", "i1", "signed char"};
};

/// An array of them is laid out as core/string_span.hpp says, and its elements are read as
/// std::string_view.
template <>
struct element_type<std::string> {
  static constexpr dtype tag = dtype::string;
  static constexpr element_kind kind = element_kind::text;
  using computing = std::string;
  static constexpr element_names names{"string", {}, {}, {}};
};

template <class... T>
struct type_sequence {};
/// Those whose elements have a size, by the number of their dtype: what kernels are compiled for.
using plain_element_types =
    type_sequence<float, double, std::int32_t, std::int64_t, std::uint8_t, bool, std::int8_t>;
/// All of them.
using element_types = type_sequence<float, double, std::int32_t, std::int64_t, std::uint8_t, bool,
                                    std::int8_t, std::string>;
/// The same in messages of the compiler, which takes literals alone.
#define DEFT_ELEMENT_TYPES \
  "float, double, std::int32_t, std::int64_t, std::uint8_t, bool, std::int8_t and std::string"

/// What kernels compute with for elements of T. It is T, or where T is narrow, a wider type of the
/// same kind that has all values of T, and in which each operation of the catalog gives what it
/// gives in T once the result is converted. Narrow types have no kernels of their own but those
/// that convert: kernels of the wider type do their work.
/// @{
template <class T>
using computing_type = typename element_type<T>::computing;
template <class T>
inline constexpr bool is_narrow_type = !std::is_same_v<computing_type<T>, T>;
/// @}

/// Not what the standard library knows of T: a class can be an element type, too.
/// @{
template <class T>
inline constexpr bool is_floating_type = element_type<T>::kind == element_kind::floating;
template <class T>
inline constexpr bool is_integer_type = element_type<T>::kind == element_kind::integer;
/// What no value is below, and none above: the maximum and the minimum of nothing.
template <class T>
inline constexpr T least_of = element_type<T>::least;
template <class T>
inline constexpr T greatest_of = element_type<T>::greatest;
/// The greatest finite one.
template <class T>
inline constexpr T highest_of = std::numeric_limits<T>::max();
/// The smallest above 0 that has all its digits.
template <class T>
inline constexpr T smallest_normal = std::numeric_limits<T>::min();
template <class T>
inline constexpr T not_a_number = std::numeric_limits<T>::quiet_NaN();
/// @}

}  // namespace ext

namespace detail {

template <std::size_t... Size, class... T>
constexpr bool has_no_other_size(ext::type_sequence<T...>) {
  return ([](std::size_t s) { return ((s == Size) || ...); }(sizeof(T)) && ...);
}

}  // namespace detail

namespace ext {

/// Whether elements have no other size than these: asserted where a list of sizes ends.
template <std::size_t... Size>
inline constexpr bool all_sizes_are = detail::has_no_other_size<Size...>(plain_element_types());

}  // namespace ext
}  // namespace deft
