// SPDX-License-Identifier: Apache-2.0
// deft/core/element_type.hpp: what is known of each type that a tensor can hold. A new one is a
// number in dtype, a specialization here, and an entry of plain_element_types; names, sizes, sets
// and tables follow from these. Messages name it as DEFT_ELEMENT_TYPES does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deft/core/config.hpp>
#include <deft/core/half.hpp>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace deft {

/// Element type. The numbers are part of the wire format.
enum class dtype : std::uint8_t {
  none = 0,  ///< no value, as of an operation
  float32 = 1,
  float64 = 2,
  int32 = 3,
  int64 = 4,
  uint8 = 5,
  boolean = 6,
  bfloat16 = 7,
  float16 = 8,
  int8 = 9,
  int16 = 10,
  uint16 = 11,
  uint32 = 12,
  uint64 = 13,
  string = 14,  ///< bytes, of any number in each element; on the host only
};

/// The upper half of a float: its exponents, and 8 bits of precision. Arithmetic on it is that of
/// float, to which it converts.
using bfloat16 = detail::half<detail::bfloat16_rules>;
/// IEEE 754 binary16: 11 bits of precision, and values up to 65504. Arithmetic on it is that of
/// float, to which it converts.
using float16 = detail::half<detail::float16_rules>;

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

template <class T>
struct infinities {
  static constexpr T least() { return -std::numeric_limits<T>::infinity(); }
  static constexpr T greatest() { return std::numeric_limits<T>::infinity(); }
};
template <class T>
struct finite {
  static constexpr T least() { return std::numeric_limits<T>::lowest(); }
  static constexpr T greatest() { return std::numeric_limits<T>::max(); }
};
/// What arithmetic types have in common.
template <class T, dtype Tag, element_kind Kind, class Computing = T>
struct arithmetic_element {
  static constexpr dtype tag = Tag;
  static constexpr element_kind kind = Kind;
  using computing = Computing;  ///< what kernels compute with, see computing_type
  static constexpr bool is_signed = std::numeric_limits<T>::is_signed;
  /// All values are at least `least` and at most `greatest`: infinities, where it has some.
  static constexpr T greatest =
      std::conditional_t<Kind == element_kind::floating, infinities<T>, finite<T>>::greatest();
  static constexpr T least =
      std::conditional_t<Kind == element_kind::floating, infinities<T>, finite<T>>::least();
};
template <class T, dtype Tag, class Computing = T>
using floating_element = arithmetic_element<T, Tag, element_kind::floating, Computing>;
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
struct element_type<std::uint64_t> : detail::integer_element<std::uint64_t, dtype::uint64> {
  static constexpr element_names names{"uint64", "U64", "u8", "unsigned long long"};
};

template <>
struct element_type<bfloat16> : detail::floating_element<bfloat16, dtype::bfloat16, float> {
  static constexpr element_names names{"bfloat16", "BF16", {}, "bfloat16"};
};
template <>
struct element_type<float16> : detail::floating_element<float16, dtype::float16, float> {
  static constexpr element_names names{"half", "F16", "f2", "float16"};
};
template <>
struct element_type<std::int8_t> : detail::integer_element<std::int8_t, dtype::int8, std::int32_t> {
  static constexpr element_names names{"int8", "I8", "i1", "signed char"};
};
template <>
struct element_type<std::int16_t>
    : detail::integer_element<std::int16_t, dtype::int16, std::int32_t> {
  static constexpr element_names names{"int16", "I16", "i2", "short"};
};
template <>
struct element_type<std::uint16_t>
    : detail::integer_element<std::uint16_t, dtype::uint16, std::int32_t> {
  static constexpr element_names names{"uint16", "U16", "u2", "unsigned short"};
};
template <>
struct element_type<std::uint32_t>
    : detail::integer_element<std::uint32_t, dtype::uint32, std::int64_t> {
  static constexpr element_names names{"uint32", "U32", "u4", "unsigned int"};
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
    type_sequence<float, double, std::int32_t, std::int64_t, std::uint8_t, bool, bfloat16, float16,
                  std::int8_t, std::int16_t, std::uint16_t, std::uint32_t, std::uint64_t>;
/// All of them.
using element_types = type_sequence<float, double, std::int32_t, std::int64_t, std::uint8_t, bool,
                                    bfloat16, float16, std::int8_t, std::int16_t, std::uint16_t,
                                    std::uint32_t, std::uint64_t, std::string>;
/// The same in messages of the compiler, which takes literals alone.
#define DEFT_ELEMENT_TYPES                                                                         \
  "float, double, std::int32_t, std::int64_t, std::uint8_t, bool, deft::bfloat16, deft::float16, " \
  "std::int8_t, std::int16_t, std::uint16_t, std::uint32_t, std::uint64_t and std::string"

/// What kernels compute with for elements of T. It is T, or where T is narrow, a wider type of the
/// same kind that has all values of T. The result of each operation is converted to T, which is how
/// an operation on T is defined: integers wrap, and what is floating is rounded once. Narrow types
/// have no kernels of their own but those that convert: kernels of the wider type do their work.
/// @{
template <class T>
using computing_type = typename element_type<T>::computing;
template <class T>
inline constexpr bool is_narrow_type = !std::is_same_v<computing_type<T>, T>;
/// @}
/// What lanes and packs hold of elements of T: narrow integers wrap in themselves, too.
template <class T>
using lane_type = std::conditional_t<is_half_type<T>, float, T>;

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
