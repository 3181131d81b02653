// SPDX-License-Identifier: Apache-2.0
#include <deft/execute/trace_recorder.hpp>
#include <deft/graph/op_def.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {
node_label labelled(const char* name) {
  return {catalog_ops().front(), node_name(name), {}, nullptr};
}
}  // namespace

TEST_CASE("a trace has each node once, also one that waited, in the lanes' order") {
  const node_label a = labelled("a"), b = labelled("b"), c = labelled("c");
  trace_recorder r;
  r.begin(a, 0);
  r.end(a, 0);
  r.begin(b, 0);  // waits
  r.end(b, 0);
  r.begin(c, 3);
  r.end(c, 3);
  r.begin(b, 0);  // goes on
  r.end(b, 0);
  const std::vector<trace_event> all = r.take();
  REQUIRE(all.size() == 3);
  CHECK(all[0].node == "a");
  CHECK(all[0].lane == 0);
  CHECK(all[1].node == "b");
  CHECK(all[2].node == "c");
  CHECK(all[2].lane == 3);
  CHECK(all[0].begin <= all[0].end);
  CHECK(all[0].end <= all[1].begin);
  CHECK(all[1].begin <= all[2].begin);
  CHECK(all[2].end <= all[1].end);  // the wait and the rest are one
}
