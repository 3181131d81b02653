// SPDX-License-Identifier: Apache-2.0
// deft/op/group.hpp: several operations as one; control dependencies.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <tuple>

namespace deft::op {
struct group {
  static constexpr std::string_view name = "group";
  static constexpr int arity = 0;
  static constexpr op_role role = op_role::order;
  static constexpr op_traits traits = op_traits::effect | op_traits::no_value;

  void infer(std::span<const tensor_type>) const {}
};
}  // namespace deft::op

namespace deft {

namespace detail {
/// The node of an operation, or the one that computes a tensor.
template <expression X, class K = kernels_for<X>>
node_ref node_of(const X& x) {
  if constexpr (std::derived_from<X, operation>)
    return x.handle();
  else
    return any_tensor(x).handle().node;
}
operation make_group(std::vector<node_ref> nodes, source_location w);
}  // namespace detail

/// An operation that is done when all of `ops` are: operations, assignments or tensors. Throws
/// invalid_argument if they are of different graphs.
template <ext::expression... X, class K = ext::kernels_for<std::tuple<X...>>>
operation group(const X&... ops) {
  return detail::make_group({detail::node_of<X, K>(ops)...}, {});
}
/// The same for a number of operations known only at run time.
operation group(std::span<const operation> ops, ext::source_location w = ext::here());

/// Nodes written while the returned scope lives run after `ops`, and variables used there are read
/// after them: `auto after = control_dependencies(v.assign_add(1));`.
template <ext::expression... X, class K = ext::kernels_for<std::tuple<X...>>>
ext::control_scope control_dependencies(const X&... ops) {
  return ext::control_scope({detail::node_of<X, K>(ops)...});
}
/// @cond refused
template <std::size_t N>
detail::refused group(const detail::listed (&)[N]) {
  static_assert(detail::takes<op::group, detail::listed[N]>,
                "[group] expects operations and tensors without braces, as in group(a, b)");
  return {};
}
template <std::size_t N>
detail::refused control_dependencies(const detail::listed (&)[N]) {
  static_assert(detail::takes<op::group, detail::listed[N]>,
                "[control_dependencies] expects operations and tensors without braces, as in "
                "control_dependencies(a, b)");
  return {};
}
/// @endcond

}  // namespace deft
