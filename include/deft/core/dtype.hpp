// SPDX-License-Identifier: Apache-2.0
// deft/core/dtype.hpp: element types.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deft/core/error.hpp>
#include <initializer_list>
#include <iosfwd>
#include <string_view>
#include <type_traits>
#include <utility>

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
};

namespace ext {

inline constexpr int dtype_count = 7;

}  // namespace ext

namespace detail {
template <class T>
inline constexpr dtype dtype_of_v = dtype::none;
template <>
inline constexpr dtype dtype_of_v<float> = dtype::float32;
template <>
inline constexpr dtype dtype_of_v<double> = dtype::float64;
template <>
inline constexpr dtype dtype_of_v<std::int32_t> = dtype::int32;
template <>
inline constexpr dtype dtype_of_v<std::int64_t> = dtype::int64;
template <>
inline constexpr dtype dtype_of_v<std::uint8_t> = dtype::uint8;
template <>
inline constexpr dtype dtype_of_v<bool> = dtype::boolean;
}  // namespace detail

/// The dtype of a C++ type: `dtype_of<float>` is dtype::float32. none for a type that no tensor
/// holds, such as long long where std::int64_t is long.
template <class T>
inline constexpr dtype dtype_of = detail::dtype_of_v<std::remove_cv_t<T>>;

namespace ext {

/// A type that a tensor can hold.
template <class T>
concept element = dtype_of<T>
!= dtype::none;

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

constexpr bool is_floating(dtype t) { return t == dtype::float32 || t == dtype::float64; }
constexpr bool is_integer(dtype t) {
  return t == dtype::int32 || t == dtype::int64 || t == dtype::uint8;
}
constexpr bool is_numeric(dtype t) { return is_floating(t) || is_integer(t); }
constexpr bool is_valid(dtype t) { return t > dtype::none && t <= dtype::boolean; }

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
  friend bool operator==(dtype_set, dtype_set) = default;
};
inline constexpr dtype_set floating_dtypes{dtype::float32, dtype::float64};
inline constexpr dtype_set index_dtypes{dtype::int32, dtype::int64};
inline constexpr dtype_set numeric_dtypes =
    floating_dtypes | index_dtypes | dtype_set{dtype::uint8};
inline constexpr dtype_set all_dtypes = numeric_dtypes | dtype_set{dtype::boolean};

/// Bytes of one element; 0 for none.
constexpr std::size_t size_of_dtype(dtype t) {
  switch (t) {
    case dtype::float32:
    case dtype::int32:
      return 4;
    case dtype::float64:
    case dtype::int64:
      return 8;
    case dtype::uint8:
    case dtype::boolean:
      return 1;
    case dtype::none:
      break;
  }
  return 0;
}

}  // namespace ext

/// TensorFlow's names: "float", "double", "int32", "int64", "uint8", "bool".
constexpr std::string_view to_string(dtype t) {
  switch (t) {
    case dtype::float32:
      return "float";
    case dtype::float64:
      return "double";
    case dtype::int32:
      return "int32";
    case dtype::int64:
      return "int64";
    case dtype::uint8:
      return "uint8";
    case dtype::boolean:
      return "bool";
    case dtype::none:
      break;
  }
  return "none";
}
/// Prints the name that to_string yields.
template <std::derived_from<std::ios_base> Stream>
Stream& operator<<(Stream& s, dtype t) {
  s << to_string(t);
  return s;
}

namespace ext {

/// Calls `f.template operator()<T>()` with the C++ type of `t`.
/// Throws internal for dtype::none.
template <class F>
constexpr decltype(auto) visit_dtype(dtype t, F&& f) {
  switch (t) {
    case dtype::float32:
      return f.template operator()<float>();
    case dtype::float64:
      return f.template operator()<double>();
    case dtype::int32:
      return f.template operator()<std::int32_t>();
    case dtype::int64:
      return f.template operator()<std::int64_t>();
    case dtype::uint8:
      return f.template operator()<std::uint8_t>();
    case dtype::boolean:
      return f.template operator()<bool>();
    case dtype::none:
      break;
  }
  fail(errc::internal, "a value without a dtype");
}

}  // namespace ext

}  // namespace deft
