// SPDX-License-Identifier: Apache-2.0
// tests/plan/fusing.hpp: helpers for tests of fusion.
#pragma once
#include <deft/plan/fuse.hpp>

#include "planning.hpp"

namespace testing {

inline deft::ext::flat_graph fused(deft::ext::flat_graph f) {
  f = on_cpu(std::move(f));
  deft::ext::plan::fuse(f.graph, f.fetches);
  deft::ext::validate(f.graph);
  return f;
}

}  // namespace testing
