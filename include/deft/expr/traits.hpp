// SPDX-License-Identifier: Apache-2.0
// deft/expr/traits.hpp: what an expression may contain, its element type and extents.
#pragma once
#include <cmath>
#include <concepts>
#include <deft/core/dims.hpp>
#include <deft/core/dtype.hpp>
#include <deft/core/error.hpp>
#include <type_traits>
#include <utility>
#include <variant>

namespace deft {

template <class T, std::int64_t... E>
class tensor;

namespace ext {

template <class Op, class... Args>
class call;

}  // namespace ext

class any_tensor;

namespace ext {

/// A C++ scalar inside an expression.
template <plain_element T>
struct literal {
  T value;
};

/// The kernel hook of files that include deft/expr.hpp only: their expressions run as portable
/// programs, or with the kernels of files that see deft/deft.hpp.
struct no_kernels {
  template <class X>
  static void use() {}
  /// `Op`: the reduction of X.
  template <class X, class Op>
  static void use_fold() {}
};
/// The second argument of kernel_choice, which lets argument-dependent lookup see this namespace
/// whatever X is; the choice of deft.hpp takes a compiled_or_none, which is the better match.
struct no_choice {};
struct compiled_or_none : no_choice {};
template <class X>
no_kernels kernel_choice(const X*, no_choice);

/// The hook in force where it is named. Found by argument-dependent lookup, so that deft.hpp's
/// choice is used in files that include it; always a template parameter, so that the two kinds of
/// file instantiate different functions.
template <class X>
using kernels_for = decltype(kernel_choice(static_cast<const std::remove_cvref_t<X>*>(nullptr),
                                           compiled_or_none()));

}  // namespace ext

namespace detail {

/// The hook of operations that are not in the catalog: Op is used on operands of T, of any dtype if
/// that is void. Naming it is enough: in files that include deft/deft.hpp, before or after,
/// kernels/cpu/kernel_hook.hpp defines it, and it registers kernels before main. It is never
/// called, and in other files it is not defined.
template <class Op, class T>
void compile_user_op();

struct refused;
struct element_access;  // `x[i]` and `for (auto e : x)` as messages name them

/// The iterator of a range-based for over an expression. (It refuses the loop, not begin(), which
/// is instantiated by every test whether an expression is a range, as in std::span.)
template <class R>
struct no_elements {
  bool operator!=(const no_elements&) const {
    static_assert(takes<element_access, R>,
                  "for (auto e : x): a tensor has no elements to read while the graph is written: "
                  "loop over s.run(x)");
    return false;
  }
  no_elements& operator++();
  R operator*() const;
};

/// Base of everything that is an expression, so that operators find their operands. Operations
/// that only values support are refused here, once for all types.
struct expression_base {
  template <class Index, class R = refused>
  R operator[](const Index&) const {
    static_assert(takes<element_access, Index>,
                  "x[i]: subscripts are in parentheses: x(i), x(range(2, 5), all); s.run(x) yields "
                  "an ndarray, which is indexed v(i)");
    return R();
  }
  template <class R = refused>
  no_elements<R> begin() const {
    return {};
  }
  template <class R = refused>
  no_elements<R> end() const {
    return {};
  }
};
/// Of those whose element type and extents are known at compile time.
struct typed_base : expression_base {};

template <class T, class Shape,
          class Index = std::make_index_sequence<static_cast<std::size_t>(Shape::value.n)>>
struct tensor_from;
template <class T, class Shape, std::size_t... Index>
struct tensor_from<T, Shape, std::index_sequence<Index...>> {
  using type = tensor<T, Shape::value.e[Index]...>;
};

}  // namespace detail

namespace ext {

/// The tensor type of element type T and the extents `Shape::value`, as shape_t has them. (Shapes
/// are passed as types: g++ 12 mishandles values of class type as dependent template arguments.)
template <class T, class Shape>
using tensor_of = typename detail::tensor_from<T, Shape>::type;

/// A tensor, a placeholder, a variable, an unnamed expression or an any_tensor.
template <class X>
concept expression = std::derived_from<std::remove_cvref_t<X>, detail::expression_base>;

/// An expression whose element type and rank are known at compile time.
template <class X>
concept typed_expression = std::derived_from<std::remove_cvref_t<X>, detail::typed_base>;

/// What an operator takes besides expressions: C++ scalars, bfloat16 and float16.
template <class X>
concept scalar = is_number_type<std::remove_cvref_t<X>>;
template <class X>
concept operand = expression<X> || scalar<X>;

template <class X>
using value_type_of = typename std::remove_cvref_t<X>::value_type;
template <class X>
using shape_type_of = typename std::remove_cvref_t<X>::shape_type;
template <class X>
inline constexpr dims extents_of = shape_type_of<X>::value;

}  // namespace ext

namespace detail {

/// Whether x(s) may be written for an S: op/subscript.hpp adds ranges and tags.
template <class S>
inline constexpr bool is_subscript =
    (std::integral<S> && !std::same_as<S, bool>) || ext::expression<S>;
template <class... S>
concept subscripts = sizeof...(S) > 0 && (is_subscript<S> && ...);

}  // namespace detail

namespace ext {

/// Two operands of an operator, one of them an expression.
template <class X, class Y>
concept operands = operand<X> && operand<Y> &&(expression<X> || expression<Y>);

}  // namespace ext

namespace detail {

template <class X>
struct got_of {
  using type = X;
};
template <typed_expression X>
struct got_of<X> {
  using type = tensor_of<value_type_of<X>, shape_type_of<X>>;
};
/// An operand as messages name it: an expression as the tensor that it would be.
template <class X>
using got = typename got_of<std::remove_cvref_t<X>>::type;

/// Whether a literal keeps its value as dtype T: an integer exactly; a floating one may be rounded,
/// but not to infinity.
template <class T, class S>
bool survives(S s) {
  const T t = static_cast<T>(s);
  if constexpr (std::integral<S> && !is_floating_type<T>)
    return static_cast<S>(t) == s && (t < T{}) == (s < S{});
  else if constexpr (std::integral<S>)  // every integer of 64 bits is a long double
    return static_cast<long double>(t) == static_cast<long double>(s);
  else
    return std::isinf(static_cast<lane_type<T>>(t)) == std::isinf(static_cast<lane_type<S>>(s));
}
/// A literal as it was written.
using literal = std::variant<std::int64_t, std::uint64_t, float, double>;
template <class S>
literal literal_of(S s) {
  if constexpr (is_half_type<S>)
    return static_cast<float>(s);
  else if constexpr (std::floating_point<S>)
    return static_cast<std::conditional_t<std::is_same_v<S, float>, float, double>>(s);
  else
    return static_cast<std::conditional_t<std::signed_integral<S>, std::int64_t, std::uint64_t>>(s);
}

/// Throws invalid_argument: `v` does not fit `type`; `node` and `w` are the operation or tensor
/// that it was written for, and its source location.
[[noreturn]] void refuse_literal(const literal& v, dtype type, std::string node = {},
                                 source_location w = {});
/// A literal as dtype T. Throws invalid_argument if T cannot represent it.
template <class T, class S>
T survive(S s) {
  if constexpr (!std::is_same_v<T, S>)
    if (!survives<T>(s)) refuse_literal(literal_of(s), dtype_of<T>);
  return static_cast<T>(s);
}

template <class T, class S>
inline constexpr bool literal_fits = plain_element<T>&& std::is_same_v<T, bool> ==
                                         std::is_same_v<S, bool> &&
                                     (is_floating_type<T> || std::integral<S>);

}  // namespace detail

}  // namespace deft
