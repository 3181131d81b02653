// SPDX-License-Identifier: Apache-2.0
// deft/session/explain.hpp: a plan in words, before it runs.
#pragma once
#include <deft/session/engine.hpp>
#include <string>

namespace deft {

/// The number of nodes after each pass; each node with its device and what crosses to it; for each
/// device how many bytes of values live there at a time. Values whose extents only run time knows
/// are counted, not summed.
std::string explain_plan(const plan_description& p);

}  // namespace deft
