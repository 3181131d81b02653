// SPDX-License-Identifier: Apache-2.0
// deft/op/triu.ipp: a choice of elements by their position.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/arange.hpp>
#include <deft/op/expand_dims.hpp>
#include <deft/op/fill.hpp>
#include <deft/op/greater_equal.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/triu.hpp>
#include <deft/op/where.hpp>

namespace deft {

any_tensor detail::add_triu(const any_tensor& x, std::int64_t diagonal, ext::source_location w) {
  if (x.rank() < 2)
    refuse_call(x, ext::str("[triu] expects two axes or more, and got ", x.shape()), w);
  const ext::location_scope on_behalf(w);
  const any_tensor row = expand_dims(arange(size_of(x, axes{-2})), axis<1>),
                   column = arange(size_of(x, axes{-1}));
  return where(column >= row + diagonal, x, zeros_like(x));
}

}  // namespace deft
