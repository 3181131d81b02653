// SPDX-License-Identifier: Apache-2.0
// deft/op/cumsum.hpp: sums of the elements up to each, along an axis.
#pragma once
#include <deft/op/argmax.hpp>

namespace deft::op {
struct cumsum {
  static constexpr std::string_view name = "cumsum";
  static constexpr int arity = 1;
  static constexpr op_traits traits = op_traits::keeps_axes;
  std::int64_t axis = 0;
  bool exclusive = false, reverse = false;
  static constexpr auto fields =
      field_list(field{"axis", &cumsum::axis}, field{"exclusive", &cumsum::exclusive},
                 field{"reverse", &cumsum::reverse});

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

/// Options of cumsum.
struct cumsum_options {
  bool exclusive = false;  ///< without the element itself: the first sum is 0
  bool reverse = false;    ///< from the end of the axis
};

namespace detail {
any_tensor add_cumsum(const any_tensor& x, const dims& given, const cumsum_options& options,
                      source_location w);
}  // namespace detail

/// For each number the sum of those up to it along an axis: `cumsum(x, axis<0>)`, `cumsum(x,
/// axis<1>, {.reverse = true})`. Integers wrap. A sum of n floating numbers is within 5 log2(n)
/// units in the last place of the sum of their magnitudes. Throws invalid_argument for an axis out
/// of range.
template <ext::expression X, int A, class K = ext::kernels_for<X>>
auto cumsum(const X& x, axis_t<A> a, const cumsum_options& options = {},
            ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    if constexpr (!detail::is_numeric_expression<X>) {
      static_assert(detail::takes<op::cumsum, detail::got<X>>,
                    "[cumsum] expects a tensor of numbers, and got bool or "
                    "strings: use cast<std::int64_t>(x) of bool");
      return detail::refused();
    } else if constexpr (!detail::axis_in_range<ext::shape_type_of<X>, A>) {
      static_assert(detail::takes<op::cumsum, detail::got<X>, axis_t<A>>,
                    "[cumsum] expects an axis within the tensor's rank, and got another");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
          detail::add_cumsum(any_tensor(detail::any_lower<K>(x, w)), a.value, options, w).handle());
  } else
    return detail::add_cumsum(any_tensor(x), a.value, options, w);
}
/// The same with an axis known only at run time.
/// Throws invalid_argument unless `a` holds exactly one axis, in range.
template <ext::expression X>
any_tensor cumsum(const X& x, const axes& a, const cumsum_options& options = {},
                  ext::source_location w = ext::here()) {
  return detail::add_cumsum(any_tensor(x), a.value, options, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || sizeof...(Given) == 0 ||
         detail::starts_with_number<Given...>) detail::refused cumsum(const X&, const Given&...) {
  static_assert(detail::takes<op::cumsum, detail::got<X>, detail::got<Given>...>,
                "[cumsum] expects an axis, and got none, or a number: cumsum(x, axis<1>), or "
                "cumsum(x, axes{1}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft

template <class N>
auto deft::op::cumsum::grad(const N& n, any_tensor dz) {
  auto o = n.attr();
  o.reverse = !o.reverse;
  const output in[] = {dz.handle()};
  return detail::apply_any(o, in, {});
}
