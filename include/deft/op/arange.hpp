// SPDX-License-Identifier: Apache-2.0
// deft/op/arange.hpp: numbers that follow each other.
#pragma once
#include <deft/op/extents.hpp>

namespace deft::op {
/// 0, 1, 2, …
struct arange {
  static constexpr std::string_view name = "arange";
  static constexpr int arity = 0;
  static constexpr int max_arity = 1;  ///< what says a `dyn` extent, as op::extents yields it
  dims shape;                          ///< of one axis
  dtype type = dtype::int64;
  static constexpr auto fields =
      field_list(field{"shape", &arange::shape}, field{"dtype", &arange::type});

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N&, any_tensor) {
    return any_tensor();
  }
};
}  // namespace deft::op

namespace deft {

namespace detail {
any_tensor add_arange(const dims& declared, const size_argument& n, dtype type, source_location w);
/// The number of steps from `begin` to before `end`; none where they lead away from it.
std::int64_t steps_between(std::int64_t begin, std::int64_t end, std::int64_t step);
std::int64_t steps_between(double begin, double end, double step);
any_tensor steps_between(const any_tensor& begin, const any_tensor& end, const any_tensor& step,
                         source_location w);
any_tensor arange_from(const any_tensor& begin, const any_tensor& step, const size_argument& n,
                       source_location w);
template <class T>
using arange_number = std::conditional_t<is_floating_type<T>, double, std::int64_t>;

/// The dtype of arange(begin, end, step): that of its tensors, or of its numbers together.
template <class T, class... A>
struct arange_type {
  using type = T;
};
template <class A>
struct arange_value {
  using type = void;
};
template <typed_expression A>
struct arange_value<A> {
  using type = value_type_of<A>;
};
template <class... A>
struct arange_type<void, A...> {
  template <class U, class...>
  struct first {
    using type = U;
  };
  template <class... Rest>
  struct first<void, Rest...> {
    using type = typename first<Rest...>::type;
  };
  /// Integers are int64.
  using numbers =
      std::conditional_t<(std::floating_point<A> || ...),
                         std::conditional_t<(std::is_same_v<A, double> || ...), double, float>,
                         std::int64_t>;
  using type = typename first<typename arange_value<A>::type..., numbers>::type;
};
/// `wanted`: the dtype, or none for that of the tensors.
any_tensor arange_any(dtype wanted, const any_argument& begin, const any_argument& end,
                      const any_argument& step, source_location w);
template <class A>
inline constexpr bool is_any_tensor = expression<A> && !typed_expression<A>;
template <class T, class A>
any_tensor arange_operand(const A& a, source_location w) {
  if constexpr (scalar<A>)
    return literal_like(literal_of(a), dtype_of<T>, w);
  else
    return any_tensor(a);
}
template <class T, class A>
inline constexpr bool is_operand_of = [] {
  if constexpr (typed_expression<A>)
    return std::is_same_v<value_type_of<A>, T>;
  else
    return std::integral<A> || is_floating_type<T>;
}();
template <class T>
inline constexpr dtype dtype_or_none = dtype_of<T>;
template <>
inline constexpr dtype dtype_or_none<void> = dtype::none;

}  // namespace detail

/// The numbers 0, 1, … up to the extent: `arange(shape<5>)`, `arange<float>(shape<5>)`.
template <ext::element T = std::int64_t, std::int64_t N>
auto arange(shape_t<N>, ext::source_location w = ext::here()) {
  if constexpr (!ext::is_numeric(dtype_of<T>) || N == dyn) {
    static_assert(detail::takes<op::arange, T, shape_t<N>>,
                  "[arange] expects a dtype of numbers, and a shape without dyn: use arange(n)");
    return detail::refused();
  } else
    return tensor<T, N>(detail::add_arange({N}, N, dtype_of<T>, w).handle());
}
/// The numbers 0, 1, … up to before n, a number or an int32 or int64 scalar: `arange(size_of(x))`,
/// `arange<float>(n)`. Throws invalid_argument, in the run for what only that knows, if n is
/// negative.
template <ext::element T = std::int64_t, ext::operand N>
auto arange(const N& n, ext::source_location w = ext::here()) {
  if constexpr (!ext::is_numeric(dtype_of<T>)) {
    static_assert(detail::takes<op::arange, T>, "[arange] expects a dtype of numbers");
    return detail::refused();
  } else if constexpr (ext::scalar<N> && !std::integral<N>) {
    static_assert(
        detail::takes<op::arange, N>,
        "[arange] expects a number of elements, and got a floating number: arange(0, end, "
        "step)");
    return detail::refused();
  } else
    return tensor<T, dyn>(
        detail::add_arange({dyn}, detail::size_argument(n), dtype_of<T>, w).handle());
}
/// The numbers begin, begin + step, … up to before end, as in NumPy: each is begin + i * step. They
/// are numbers, or scalar tensors of one dtype, which is the result's; that of numbers alone is
/// int64, float or double. Throws invalid_argument for a step of 0, in the run if
/// only that knows it.
template <class T = void, ext::operand B, ext::operand E, ext::operand S = std::int64_t>
auto arange(const B& begin, const E& end, const S& step = 1, ext::source_location w = ext::here()) {
  using V = typename detail::arange_type<T, B, E, S>::type;
  if constexpr (detail::is_any_tensor<B> || detail::is_any_tensor<E> || detail::is_any_tensor<S>) {
    return detail::arange_any(detail::dtype_or_none<T>, detail::any_argument_of(begin),
                              detail::any_argument_of(end), detail::any_argument_of(step), w);
  } else if constexpr (!(detail::is_scalar_expression<B> && detail::is_scalar_expression<E> &&
                         detail::is_scalar_expression<S>)) {
    static_assert(detail::takes<op::arange, detail::got<B>, detail::got<E>, detail::got<S>>,
                  "[arange] expects scalars, and got another tensor");
    return detail::refused();
  } else if constexpr (!(detail::is_operand_of<V, B> && detail::is_operand_of<V, E> &&
                         detail::is_operand_of<V, S>)) {
    static_assert(detail::takes<op::arange, detail::got<B>, detail::got<E>, detail::got<S>>,
                  "[arange] expects scalars of one dtype, and got several: use cast");
    return detail::refused();
  } else if constexpr (ext::scalar<B> && ext::scalar<E> && ext::scalar<S>) {
    using C = detail::arange_number<V>;
    const std::int64_t n =
        detail::steps_between(static_cast<C>(begin), static_cast<C>(end), static_cast<C>(step));
    return tensor<V, dyn>(detail::arange_from(detail::arange_operand<V>(begin, w),
                                              detail::arange_operand<V>(step, w), n, w)
                              .handle());
  } else {
    const any_tensor from = detail::arange_operand<V>(begin, w),
                     by = detail::arange_operand<V>(step, w);
    const any_tensor n = detail::steps_between(from, detail::arange_operand<V>(end, w), by, w);
    return tensor<V, dyn>(detail::arange_from(from, by, n, w).handle());
  }
}

}  // namespace deft
