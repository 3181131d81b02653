// SPDX-License-Identifier: Apache-2.0
// deft/op/pad.hpp: a tensor with elements of one value before and after it along its axes.
#pragma once
#include <deft/op/extents.hpp>
#include <vector>

namespace deft::op {
struct pad {
  static constexpr std::string_view name = "pad";
  static constexpr int arity = 1;
  /// x; a tensor of the result's shape; numbers of elements, as op::extents yields them.
  static constexpr int max_arity = 3;
  dims before;  ///< of each axis, the number of elements in front; `dyn`: the last input says it
  dims after;   ///< and behind; empty where a second input has the shape
  double value = 0;  ///< of the added elements
  static constexpr auto fields = field_list(
      field{"before", &pad::before}, field{"after", &pad::after}, field{"value", &pad::value});

  /// The shape rule; false if there is not one number for each axis, or one is negative.
  constexpr bool shape(const dims& x, dims& out) const {
    out = {};
    if (before.n != x.n || after.n != x.n) return false;
    for (int i = 0; i < x.n; ++i) {
      const std::int64_t b = before.e[i], a = after.e[i];
      if (b < 0 || a < 0 || b > max_elements || a > max_elements) return false;
      out.push_back(x.e[i] == dyn ? dyn : x.e[i] + b + a);
    }
    return is_sound(out);
  }

  /// Whether an element of that dtype can be `value`.
  bool value_fits(dtype type) const;
  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

/// How many elements `pad` adds in front of each axis, as a type; see before.
template <std::int64_t... N>
struct before_t {
  static constexpr dims value{N...};  ///< one number for each axis
};
/// The numbers of elements that `pad` adds in front of each axis, known at compile time: `pad(x,
/// before<1, 0>, after<1, 2>)` of (4,4) is (6,6).
template <std::int64_t... N>
inline constexpr before_t<N...> before{};
/// How many elements `pad` adds behind each axis, as a type; see after.
template <std::int64_t... N>
struct after_t {
  static constexpr dims value{N...};  ///< one number for each axis
};
/// The numbers of elements that it adds behind each axis; an example is at before.
template <std::int64_t... N>
inline constexpr after_t<N...> after{};

namespace detail {
template <class From, class Before, class After>
struct padded : typed_shape<padded<From, Before, After>> {
  static constexpr bool make(dims& out) {
    return op::pad{Before::value, After::value}.shape(From::value, out);
  }
};
template <class From, class Before, class After>
inline constexpr bool can_pad = padded<From, Before, After>::possible;

/// Zeros around `part`, which is `slice{begin, size}` of something of the shape of `x`. `x` need
/// not be computed where its extents, or that a part goes up to its end, say as much. `at`:
/// op::extents' value, where only that says `begin`.
any_tensor pad_to(const any_tensor& part, const dims& begin, const dims& size, const any_tensor& x,
                  const any_tensor& at);

/// The sum of tensors of one shape. Those that are zeros around parts, as gradients of slices are,
/// and whose parts follow each other along an axis, are concatenated instead of added.
any_tensor sum_of(std::vector<any_tensor> terms);
}  // namespace detail

/// x with `before[i]` elements in front of it and `after[i]` behind it along each axis i, all of
/// that value, which is a double: an integer is exact up to 2^53. Throws invalid_argument unless
/// both have a number for each axis, none negative, and the value is within the range of x's dtype,
/// and an integer if that is one.
any_tensor pad(const any_tensor& x, const dims& before, const dims& after, double value = 0,
               ext::source_location w = ext::here());

/// The same, known at compile time: for x of (?,3), `pad(x, before<0, 1>, after<0, 2>)` is (?,6).
template <ext::expression X, std::int64_t... B, std::int64_t... A, class K = ext::kernels_for<X>>
auto pad(const X& x, before_t<B...> before, after_t<A...> after, double value = 0,
         ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using From = ext::shape_type_of<X>;
    if constexpr (!detail::can_pad<From, before_t<B...>, after_t<A...>>) {
      static_assert(detail::takes<op::pad, detail::got<X>, before_t<B...>, after_t<A...>>,
                    "[pad] expects a number of elements before and after each axis, and got "
                    "others");
      return detail::refused();
    } else
      return detail::apply_typed<ext::value_type_of<X>,
                                 detail::padded<From, before_t<B...>, after_t<A...>>, K>(
          op::pad{before.value, after.value, value}, w, x);
  } else
    return pad(any_tensor(x), before.value, after.value, value, w);
}
/// What `pad` takes the added elements from, where they are not of one value.
enum class pad_mode : std::uint8_t {
  reflect,  ///< what lies on the other side of the first and the last element: {3, 2, 1, 2, 3, 2,
            ///< 1}
  edge,     ///< the first and the last element: {1, 1, 1, 2, 3, 3, 3}
};
/// x with elements in front of it and behind it along each axis that are its own, as numpy.pad with
/// this mode: `pad(x, {2}, {2}, pad_mode::reflect)` of {1, 2, 3} is {3, 2, 1, 2, 3, 2, 1}.
/// Throws invalid_argument as above, and, in the run for extents that only that knows, where there
/// are fewer elements than are to be added: reflected ones do not include the first and the last.
any_tensor pad(const any_tensor& x, const dims& before, const dims& after, pad_mode mode,
               ext::source_location w = ext::here());
/// The same, known at compile time.
template <ext::expression X, std::int64_t... B, std::int64_t... A, class K = ext::kernels_for<X>>
auto pad(const X& x, before_t<B...> before, after_t<A...> after, pad_mode mode,
         ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using From = ext::shape_type_of<X>;
    if constexpr (!detail::can_pad<From, before_t<B...>, after_t<A...>>) {
      static_assert(detail::takes<op::pad, detail::got<X>, before_t<B...>, after_t<A...>>,
                    "[pad] expects a number of elements before and after each axis, and got "
                    "others");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>,
                            detail::padded<From, before_t<B...>, after_t<A...>>>(
          pad(any_tensor(detail::any_lower<K>(x, w)), before.value, after.value, mode, w).handle());
  } else
    return pad(any_tensor(x), before.value, after.value, mode, w);
}
/// @cond refused
template <ext::expression X, class... Given>
requires(sizeof...(Given) < 2 || detail::starts_with_number<Given...>) detail::refused
    pad(const X&, const Given&...) {
  static_assert(
      detail::takes<op::pad, detail::got<X>, detail::got<Given>...>,
      "[pad] expects the numbers of elements before and after each axis: pad(x, before<1, 0>, "
      "after<1, 2>), or pad(x, {1, 0}, {1, 2}) where they are known only at run time");
  return {};
}
template <ext::expression X, std::size_t N>
detail::refused pad(const X&, const std::int64_t (&)[N][2], double = 0) {
  static_assert(
      detail::takes<op::pad, detail::got<X>>,
      "[pad] expects the numbers of elements before and after each axis: pad(x, before<1, 0>, "
      "after<1, 2>), or pad(x, {1, 0}, {1, 2}) where they are known only at run time");
  return {};
}
/// @endcond

}  // namespace deft

#include <deft/op/slice.hpp>
template <class N>
auto deft::op::pad::grad(const N& n, any_tensor dz) {
  const auto o = n.attr();
  const any_tensor before = o.before.contains(dyn) ? n.in(n.inputs() - 1) : any_tensor();
  return detail::slice_of(dz, o.before, o.after, n.template in<0>(), before);
}
