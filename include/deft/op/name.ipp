// SPDX-License-Identifier: Apache-2.0
// deft/op/name.ipp: a further name for a tensor.
#pragma once
#include <deft/core/printable.hpp>
#include <deft/op/name.hpp>

namespace deft {

namespace detail {

void add_alias(const output& o, std::string_view alias, source_location w) {
  const scope_ref& s = current_scope();
  std::string full = (s ? s->name_prefix : std::string()) + std::string(alias);
  if (alias.empty()) throw error(errc::invalid_argument, "[name] expects a name", {}, w);
  try {
    graph::of(*o.node).alias(origin_of(o).node, full);
  } catch (const error& e) {
    throw error(e.code(), e.message(), printable(full), w);
  }
}

}  // namespace detail
}  // namespace deft
