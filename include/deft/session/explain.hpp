// SPDX-License-Identifier: Apache-2.0
// deft/session/explain.hpp: a plan in words, before it runs.
#pragma once
#include <deft/session/engine.hpp>
#include <string>

namespace deft {

/// Of `explain`; goes first: `explain(s, explain_options{.max_nodes = 50}, loss)`.
struct explain_options {
  /// Of a larger graph the nodes of a name scope are one line, and lines beyond are counted.
  std::size_t max_nodes = 200;
};

namespace ext {

/// How many nodes passes left; then each node in the order in which it runs: what it computes of
/// its inputs, its type, its device, the line that wrote it, and the bytes of each value that comes
/// from another device; what could not be fused, and why; and for each device how many bytes of
/// values live there at a time. Values with extents known only at run time are counted, not summed.
std::string explain_plan(const plan_description& p, const explain_options& options = {});

/// The node of `p` that stands for the one named `name`: where that was folded or fused, the last.
const node_def& node_for(const plan_description& p, const std::string& name);

}  // namespace ext

}  // namespace deft
