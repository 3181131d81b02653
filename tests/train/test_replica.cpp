// SPDX-License-Identifier: Apache-2.0
#include <deft/op/variable.hpp>
#include <deft/train/monitored_session.hpp>
#include <deft/train/replica.hpp>
#include <mutex>

#include "training.hpp"

using namespace deft;
using namespace deft::ext;
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

TEST_CASE("between-graph training of a line converges with 1 ps and 2 workers") {
  testing::threaded_job job(1, 2);
  std::mutex guard;
  std::vector<std::pair<float, float>> found;
  std::vector<std::string> places;
  auto codes = job.run([&](task& self) {
    placeholder<float, dyn> x("x"), y("y");
    auto scope = on(replica_device(self.cluster(), self.device()));
    variable<float> slope("slope", 0.f), offset("offset", 0.f);
    auto loss = mean(square(x * slope + offset - y));
    auto step = global_step();
    operation train = sgd(0.1).minimize(loss, step);
    monitored_session s(self, {.hooks = {stop_at_step(600), stop_on_nan(loss)}});
    // y = 3 x - 1, with different points on each worker.
    float from = self.is_chief() ? -1.f : 0.f;
    std::vector<float> xs, ys;
    for (int i = 0; i < 16; ++i) {
      xs.push_back(from + static_cast<float>(i) / 16);
      ys.push_back(3 * xs.back() - 1);
    }
    while (!s.should_stop()) s.run(train, x = xs, y = ys);
    auto [a, b] = s.session().run(slope, offset);
    std::lock_guard lock(guard);
    found.emplace_back(a, b);
    places.push_back(s.device_of(slope));
    CHECK(s.session().run(step) >= 600);
  });
  CHECK(codes == std::vector<int>{0, 0, 0});
  REQUIRE(found.size() == 2);
  for (auto [a, b] : found) {
    CHECK(a == doctest::Approx(3).epsilon(0.02));
    CHECK(b == doctest::Approx(-1).epsilon(0.02));
  }
  for (const auto& p : places) CHECK(p == "/job:ps/replica:0/task:0/" + testing::usual_device());
}
