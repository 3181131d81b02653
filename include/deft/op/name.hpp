// SPDX-License-Identifier: Apache-2.0
// deft/op/name.hpp: a further name for a tensor.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft {

namespace detail {
void add_alias(const output& o, std::string_view alias, source_place w);
}

/// Gives x another name, under the name scopes in force here, by which its graph finds it:
/// `name(logits, "layer1/logits")`. Returns x, as a tensor if it was an unnamed expression.
/// Throws already_exists if another node has the name.
template <expression X, class K = kernels_for<X>>
auto name(const X& x, std::string_view alias, source_place w = here()) {
  if constexpr (typed_expression<X>) {
    tensor_of<value_type_of<X>, shape_type_of<X>> t(lower<K>(x, w));
    detail::add_alias(t.handle(), alias, w);
    return t;
  } else {
    detail::add_alias(x.handle(), alias, w);
    return x;
  }
}

}  // namespace deft
