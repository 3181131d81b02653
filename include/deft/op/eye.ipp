// SPDX-License-Identifier: Apache-2.0
// deft/op/eye.ipp: a comparison of positions.
#pragma once
#include <deft/op/arange.hpp>
#include <deft/op/cast.hpp>
#include <deft/op/equal.hpp>
#include <deft/op/expand_dims.hpp>
#include <deft/op/eye.hpp>

namespace deft {

any_tensor eye(std::int64_t rows, std::int64_t columns, dtype type, ext::source_location w) {
  const ext::location_scope on_behalf(w);
  return cast(any_tensor(expand_dims(arange(rows), axis<1>) == arange(columns)), type);
}

}  // namespace deft
