// SPDX-License-Identifier: Apache-2.0
// deft/core/dims.hpp: shapes as run-time values, and as types.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <deft/core/config.hpp>
#include <deft/core/error.hpp>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

namespace deft {

/// A short list of integers: a shape (extents, `dyn` where unknown), axes, or a permutation.
/// Structural and constexpr, so that one shape rule serves compile time and run time.
struct dims {
  // Public: a structural type may have no private members.
  std::int64_t e[max_rank] = {};  ///< the numbers; only the first `n` count
  int n = 0;                      ///< how many there are, at most max_rank

  /// None: the shape of a scalar.
  constexpr dims() = default;
  ///@{
  /// These numbers, in order. Throws invalid_argument if there are more than max_rank.
  constexpr dims(std::initializer_list<std::int64_t> extents) {
    for (auto v : extents) push_back(v);
  }
  explicit constexpr dims(std::span<const std::int64_t> extents) {
    for (auto v : extents) push_back(v);
  }
  ///@}
  /// `rank` extents, all of them `value`. Throws invalid_argument for a rank above max_rank.
  static constexpr dims filled(int rank, std::int64_t value) {
    dims d;
    for (int i = 0; i < rank; ++i) d.push_back(value);
    return d;
  }

  ///@{
  /// How many numbers there are.
  constexpr int rank() const { return n; }
  constexpr int size() const { return n; }
  ///@}
  /// Whether there are none: as a shape, that of a scalar, not of an array without elements.
  constexpr bool empty() const { return n == 0; }
  ///@{
  /// Number i, from 0. Not checked.
  constexpr std::int64_t& operator[](int i) { return e[i]; }
  constexpr std::int64_t operator[](int i) const { return e[i]; }
  ///@}
  /// The last number. There must be one.
  constexpr std::int64_t back() const { return e[n - 1]; }
  ///@{
  /// For loops: `for (auto e : shape)`.
  constexpr const std::int64_t* begin() const { return e; }
  constexpr const std::int64_t* end() const { return e + n; }
  constexpr std::int64_t* begin() { return e; }
  constexpr std::int64_t* end() { return e + n; }
  ///@}

  /// Appends a number. Throws invalid_argument beyond max_rank.
  constexpr void push_back(std::int64_t v) {
    if (n == max_rank)
      ext::fail(errc::invalid_argument, "a rank above ", max_rank, " is not supported");
    e[n++] = v;
  }
  /// Whether one of the numbers is v.
  constexpr bool contains(std::int64_t v) const {
    for (int i = 0; i < n; ++i)
      if (e[i] == v) return true;
    return false;
  }

  /// Whether no extent is `dyn`.
  constexpr bool is_static() const { return !contains(dyn); }
  /// Number of elements; `dyn` if an extent is.
  constexpr std::int64_t elements() const {
    std::int64_t p = 1;
    for (int i = 0; i < n; ++i) {
      if (e[i] == dyn) return dyn;
      p *= e[i];
    }
    return p;
  }

  friend constexpr bool operator==(const dims& a, const dims& b) {
    if (a.n != b.n) return false;
    for (int i = 0; i < a.n; ++i)
      if (a.e[i] != b.e[i]) return false;
    return true;
  }
};

/// "(100,784)", "(?,10)", "()".
std::string to_string(const dims& d);

namespace ext {

/// "(0,-1)": numbers that are not extents, as axes are.
std::string list_text(const dims& d);

}  // namespace ext

/// Prints the shape as to_string does.
template <std::derived_from<std::ios_base> Stream>
Stream& operator<<(Stream& s, const dims& d) {
  s << to_string(d);
  return s;
}

namespace ext {

/// Whether `actual` matches the declared shape, in which `dyn` matches any extent.
constexpr bool fits(const dims& declared, const dims& actual) {
  if (declared.n != actual.n) return false;
  for (int i = 0; i < declared.n; ++i)
    if (declared.e[i] != dyn && declared.e[i] != actual.e[i]) return false;
  return true;
}

/// Whether two shapes could be the same once every `dyn` is known.
constexpr bool may_equal(const dims& a, const dims& b) {
  if (a.n != b.n) return false;
  for (int i = 0; i < a.n; ++i)
    if (a.e[i] != b.e[i] && a.e[i] != dyn && b.e[i] != dyn) return false;
  return true;
}

/// NumPy's broadcasting. `dyn` with a static n > 1 gives n, `dyn` with 1 gives `dyn`.
/// False if the shapes cannot be broadcast together.
constexpr bool broadcast(const dims& a, const dims& b, dims& out) {
  int r = a.n > b.n ? a.n : b.n;
  out = dims::filled(r, 1);
  for (int i = 1; i <= r; ++i) {
    std::int64_t x = i <= a.n ? a.e[a.n - i] : 1, y = i <= b.n ? b.e[b.n - i] : 1;
    std::int64_t z = 0;
    if (x == y || y == 1)
      z = x;
    else if (x == 1)
      z = y;
    else if (x == dyn)
      z = y;
    else if (y == dyn)
      z = x;
    else
      return false;
    out.e[r - i] = z;
  }
  return true;
}

/// Maximum number of elements of a tensor, so that numbers of elements and bytes never overflow.
inline constexpr std::int64_t max_elements = std::int64_t{1} << 48;

/// Whether every extent is a size or `dyn`, and the product of the sizes other than 0 is at most
/// max_elements.
constexpr bool is_sound(const dims& d) {
  std::int64_t p = 1;
  for (auto e : d) {
    if (e < 0 && e != dyn) return false;
    if (e > 1) {
      if (e > max_elements / p) return false;
      p *= e;
    }
  }
  return true;
}

/// `axis` counted from the front; negative ones count from the back. -1 if out of range.
constexpr int normalize_axis(std::int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? static_cast<int>(axis) : -1;
}

}  // namespace ext

/// The type of `shape<E…>`.
template <std::int64_t... E>
struct shape_t {
  static_assert(sizeof...(E) <= max_rank, "a tensor's rank is at most 8");
  static_assert(((E >= 0 || E == dyn) && ...), "an extent is a size, or dyn");
  static constexpr dims value{E...};  ///< the extents
};
/// A shape known at compile time, of rank 8 or less, with `dyn` for an extent known only at run
/// time: `reshape(x, shape<dyn, 784>)`.
template <std::int64_t... E>
inline constexpr shape_t<E...> shape{};

/// The type of `axis<A…>`.
template <int... A>
struct axis_t {
  static constexpr dims value{A...};  ///< the axes
};
/// Axes known at compile time: `sum(x, axis<0, 2>)`. Negative ones count from the back.
template <int... A>
inline constexpr axis_t<A...> axis{};

/// The type of `perm<P…>`.
template <int... P>
struct perm_t {
  static constexpr dims value{P...};  ///< the permutation
};
/// A permutation of axes known at compile time: `transpose(x, perm<1, 0>)`. Axis i of the result
/// is axis P[i] of x.
template <int... P>
inline constexpr perm_t<P...> perm{};

/// Axes known only at run time: `sum(x, axes{0, 2})`. Negative ones count from the back.
struct axes {
  dims value;  ///< as they were given
  ///@{
  /// These axes. A braced list throws invalid_argument if it has more than max_rank.
  constexpr axes(std::initializer_list<std::int64_t> a) : value(a) {}
  explicit constexpr axes(const dims& d) : value(d) {}
  ///@}
};

/// The type of `keepdims`.
struct keepdims_t {};
/// Keeps reduced axes with extent 1: `max(x, axis<1>, keepdims)`.
inline constexpr keepdims_t keepdims{};

}  // namespace deft
