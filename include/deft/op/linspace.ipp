// SPDX-License-Identifier: Apache-2.0
// deft/op/linspace.ipp: numbers at equal distances, by their number.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/arange.hpp>
#include <deft/op/cast.hpp>
#include <deft/op/equal.hpp>
#include <deft/op/linspace.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/where.hpp>

namespace deft {

any_tensor detail::add_linspace(double begin, double end, std::int64_t n, dtype type,
                                ext::source_location w) {
  if (n < 0)
    ext::fail(errc::invalid_argument, "[linspace] expects a number of elements, and got ", n);
  const ext::location_scope on_behalf(w);
  const any_tensor i = arange<double>(n);
  const auto steps = static_cast<double>(n - 1);
  if (n < 2) return cast(any_tensor(i + begin), type);
  return cast(any_tensor(where(i == steps, end, i * ((end - begin) / steps) + begin)), type);
}

}  // namespace deft
