// SPDX-License-Identifier: Apache-2.0
// deft/train/losses.ipp: losses are a collection of the graph.
#pragma once
#include <deft/op/add.hpp>
#include <deft/train/losses.hpp>

namespace deft {

void detail::collect_loss(const any_tensor& loss, ext::source_location w) {
  if (loss.rank() != 0 || !ext::is_floating(loss.type()))
    throw error(errc::invalid_argument,
                ext::str("[add_loss] expects a floating scalar, and got ", loss.handle().type(),
                         ": use mean(loss), or sum(loss)"),
                name_of(loss), w);
  const ext::scope_ref& s = ext::current_scope();
  graph_of(loss).collect("losses", s ? std::string_view(s->name_prefix) : std::string_view(),
                         loss.handle());
}

std::vector<any_tensor> losses(std::string_view scope, graph g) {
  std::string prefix(scope);
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  std::vector<any_tensor> all;
  for (const ext::output& o : g.collected("losses", prefix)) all.emplace_back(o);
  return all;
}

any_tensor total_loss(std::string_view scope, ext::source_location w) {
  const ext::location_scope on_behalf(w);
  any_tensor total;
  for (const any_tensor& l : losses(scope)) total = total.valid() ? total + l : l;
  if (!total.valid())
    throw error(errc::not_found,
                scope.empty() ? std::string("[total_loss] the graph has no losses: see add_loss")
                              : ext::str("[total_loss] no losses were added in the name scope \"",
                                         scope, "\""),
                {}, w);
  return total;
}

}  // namespace deft
