// SPDX-License-Identifier: Apache-2.0
// deft/op/name.hpp: a further name for a tensor.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft {

namespace detail {
void add_alias(const output& o, std::string_view alias, source_location w);
}

/// Gives x another name, under the name scopes in force here, by which its graph finds it:
/// `name(logits, "layer1/logits")`. Returns x, as a tensor if it was an unnamed expression.
/// Throws already_exists if another node has the name.
template <ext::expression X, class K = ext::kernels_for<X>>
auto name(const X& x, std::string_view alias, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>> t(ext::lower<K>(x, w));
    detail::add_alias(t.handle(), alias, w);
    return t;
  } else {
    detail::add_alias(x.handle(), alias, w);
    return x;
  }
}

}  // namespace deft
