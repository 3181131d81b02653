// SPDX-License-Identifier: Apache-2.0
// deft/op/cast.hpp: to another element type.
#pragma once
#include <deft/op/base/elementwise.hpp>
#include <deft/op/base/shapes.hpp>

namespace deft::op {

/// The node: the dtype is an attribute.
struct cast {
  static constexpr std::string_view name = "cast";
  static constexpr int arity = 1;
  static constexpr op_traits traits = op_traits::elementwise;
  dtype to = dtype::none;
  static constexpr auto fields = field_list(field{"to", &cast::to});

  tensor_type infer(std::span<const tensor_type> in) const {
    for (const dtype t : {in[0].type, to})
      if (!plain_dtypes.has(t)) fail(errc::invalid_argument, "[cast] is not defined for ", t);
    return {in[0].shape, to};
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};

/// Inside an expression the dtype is a type.
template <plain_element T>
struct cast_to : elementwise<1, typing::equality> {
  using record = cast;
  static constexpr std::string_view name = cast::name;
  template <class...>
  using result = T;
  static attr_list record_attributes() { return encode(cast{dtype_of<T>}); }

  template <num::value V>
  DEFT_HD auto operator()(V x) const {
    return num::cast<T>(x);
  }
};

}  // namespace deft::op

namespace deft {
/// Each element converted to T: `cast<float>(n)`, of the same shape. Floating point to integer
/// truncates, saturates and takes NaN to 0; integers wrap; bool is whether a value is not zero.
/// Gradients pass only between float and double.
template <ext::plain_element T, ext::expression X>
auto cast(const X& x, ext::source_location w = ext::here()) {
  if constexpr (!ext::typed_expression<X>)
    return cast(any_tensor(x), dtype_of<T>, w);
  else
    return ext::make<op::cast_to<T>>(w, x);
}
/// @cond refused
template <class T, ext::expression X>
requires(!ext::plain_element<T>) auto cast(const X&) {
  if constexpr (ext::element<T>)
    static_assert(detail::takes<op::cast, T>, "[cast] is not defined for strings");
  static_assert(detail::is_element_type<T>,
                "[cast] element types are " DEFT_ELEMENT_TYPES
                "; for long long use std::int64_t, for other integers std::int32_t");
  return detail::refused();
}
template <ext::expression X, class... Given>
requires(sizeof...(Given) == 0 || detail::starts_with_number<Given...>) detail::refused
    cast(const X&, const Given&...) {
  static_assert(detail::takes<op::cast, detail::got<X>, detail::got<Given>...>,
                "[cast] expects an element type, and got none, or text: cast<double>(x), or "
                "cast(x, dtype::float64) where it is known only at run time");
  return {};
}
/// @endcond
/// The same with a dtype known only at run time.
inline any_tensor cast(const any_tensor& x, dtype to, ext::source_location w = ext::here()) {
  if (x.type() == to) return x;
  const ext::output in[] = {x.handle()};
  return detail::add_node(ext::record_of<op::cast>, ext::encode(op::cast{to}), in, w);
}
}  // namespace deft

template <class N>
auto deft::op::cast::grad(const N& n, any_tensor dz) {
  auto x = n.template in<0>();
  if (!is_floating(x.type()) || !is_floating(dz.type())) return any_tensor();
  return deft::cast(dz, x.type());
}
