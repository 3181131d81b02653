// SPDX-License-Identifier: Apache-2.0
#include <deft/op/variable.hpp>
#include <deft/train/replica.hpp>

#include "training.hpp"

using namespace deft;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "replica_device places variables on the parameter servers in turn") {
  cluster_spec c{{"ps", {"a:1", "b:1"}}, {"worker", {"c:1", "d:1"}}};
  auto scope = on(replica_device(c, "/job:worker/task:1"));
  variable<float> v0("v0", 0.f), v1("v1", 0.f);
  if (auto inner = on(device("/job:worker/task:0"))) {
    variable<float> mine("mine", 0.f);
    CHECK(requested_device(mine) == "/job:worker/task:0");
  }
  if (auto inner = on(device("/job:ps/task:1"))) {
    variable<float> there("there", 0.f);
    CHECK(requested_device(there) == "/job:ps/task:1");
  }
  variable<float> v2("v2", 0.f);
  if (auto inner = on(device("/job:ps/cpu:0"))) {
    variable<float> v3("v3", 0.f), v4("v4", 0.f);
    CHECK(requested_device(v3) == "/job:ps/task:1/cpu:0");
    CHECK(requested_device(v4) == "/job:ps/task:0/cpu:0");
  }
  CHECK(requested_device(v0) == "/job:ps/task:0");
  CHECK(requested_device(v1) == "/job:ps/task:1");
  CHECK(requested_device(v2) == "/job:ps/task:0");
  tensor<float> sum = v0 + v1;
  CHECK(requested_device(sum) == "/job:worker/task:1");

  // The role of an operation decides, not its name.
  CHECK(to_string(*resolve_device(current_scope(), {"own_state", "s", dtype::float32,
                                                    op_role::variable})) == "/job:ps/task:1");
  CHECK(to_string(*resolve_device(current_scope(), {"variable", "v", dtype::float32,
                                                    op_role::compute})) == "/job:worker/task:1");

  graph other;
  auto in = as_default(other);
  cluster_spec without{{"worker", {"c:1"}}};
  auto alone = on(replica_device(without, "/job:worker/task:0"));
  variable<float> w("w", 0.f);
  CHECK(requested_device(w) == "/job:worker/task:0");
}
