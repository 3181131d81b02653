// SPDX-License-Identifier: Apache-2.0
// deft/op/size_of.hpp: the number of elements along axes with extents known only at run time.
#pragma once
#include <deft/op/base/reduction.hpp>

namespace deft::op {
struct size_of {
  static constexpr std::string_view name = "size_of";
  static constexpr int arity = 1;
  dims axes;  ///< counted from the front, ascending
  static constexpr auto fields = field_list(field{"axes", &size_of::axes});

  tensor_type infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op

namespace deft {
namespace detail {
/// A constant where the extents are known.
any_tensor size_along(const any_tensor& x, const axes* given, source_location w);
}  // namespace detail

/// The number of elements of x, or of x along the given axes, as an int64 scalar. A constant where
/// the extents are known. Throws invalid_argument for axes out of range or given twice.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          class K = ext::kernels_for<X>>
auto size_of(const X& x, const A& a = {}, ext::source_location w = ext::here()) {
  static_assert(!std::integral<A>, "[size_of] expects axes, and got a number: size_of(x, axis<0>)");
  static_assert(!std::same_as<A, keepdims_t>, "[size_of] has no keepdims");
  if constexpr (ext::typed_expression<X> && detail::is_axis_type<A>)
    static_assert(detail::axes_in_range<ext::shape_type_of<X>, A>,
                  "[size_of] expects axes within the tensor's rank, each once");
  any_tensor n;
  if constexpr (std::same_as<A, axes>)
    n = detail::size_along(any_tensor(x), &a, w);
  else if constexpr (detail::is_axis_type<A>) {
    const axes given(A::value);
    n = detail::size_along(any_tensor(x), &given, w);
  } else
    n = detail::size_along(any_tensor(x), nullptr, w);
  return tensor<std::int64_t>(n.handle());
}
}  // namespace deft
