// SPDX-License-Identifier: Apache-2.0
#include <deft/session/server/server.hpp>

#include "testing.hpp"

using namespace deft;

TEST_CASE("a server has to know the ports of the other tasks") {
  const cluster_spec both{{"ps", {"localhost:0"}}, {"worker", {"Somewhere:0"}}};
  const std::string e = testing::error_of([&] { server(both, "ps", 0); });
  CHECK(e.find("/job:worker/task:0 at Somewhere:0") != e.npos);
  CHECK(e.find("/job:ps/task:0") == e.npos);
}
