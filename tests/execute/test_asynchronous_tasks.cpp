// SPDX-License-Identifier: Apache-2.0
// Asynchronous devices (delayed_device.hpp) on several tasks.
#include <deft/session/launch/local_cluster.hpp>
#include <deft/session/session.hpp>
#include <thread>

#include "delayed_device.hpp"

using namespace deft;
using testing::simulated_gpus;
using testing::with_slow_devices;

TEST_CASE_FIXTURE(with_slow_devices,
                  "a step that fails on its device sends nothing to other tasks") {
  simulated_gpus().longest_us = 100;
  local_cluster c{{"worker", 2}};
  placeholder<std::int32_t, 2> index("index");
  tensor<float, 2> picked;
  if (auto here = on(device("/job:worker/task:0/slow:0")))
    picked = gather(tensor<float, 4>(constant(ndarray<float, 4>{1, 2, 3, 4})), index);
  auto there = on(device("/job:worker/task:1/cpu:0"));
  variable<float, 2> w("w", zeros());
  auto add = w.assign_add(picked);
  session s(c.target("worker", 0));
  s.run(initialize_all());
  for (int i = 1; i <= 5; ++i) {
    CHECK(testing::error_of([&] {
            s.run(add, index = {0, 9});
          }).starts_with("out_of_range: [gather]"));
    s.run(add, index = {0, 3});
    CHECK(s.run(w) == ndarray<float, 2>{1.f * static_cast<float>(i), 4.f * static_cast<float>(i)});
  }
}

TEST_CASE_FIXTURE(with_slow_devices, "a task that is stopped waits for the work of its devices") {
  placeholder<float, dyn> x("x");
  const any_tensor y =
      on(device("/job:worker/task:1/slow:0"), [&] { return exp(any_tensor(x)) * 2 + 1; });
  for (int i = 0; i < 5; ++i) {
    local_cluster c{{"worker", 2}};
    session s(c.target("worker", 0));
    CHECK(s.run(y, x = ndarray<float, dyn>(8)).elements() == 8);
    simulated_gpus().reset_counts();
    simulated_gpus().hold();
    std::string e;
    std::thread other(
        [&] { e = testing::error_of([&] { s.run(y, x = ndarray<float, dyn>(8)); }); });
    while (simulated_gpus().copies_out == 0) std::this_thread::yield();
    std::thread stops([&] { c.kill("worker", 1); });
    other.join();
    CHECK(e.starts_with("unavailable: "));
    simulated_gpus().go_on();
    stops.join();
  }
}

TEST_CASE_FIXTURE(with_slow_devices, "values are sent between slow devices of two tasks") {
  simulated_gpus().longest_us = 100;
  local_cluster c{{"worker", 2}};
  placeholder<float, 4> x("x");
  tensor<float, 4> y, z;
  if (auto there = on(device("/job:worker/task:1/slow:0"))) y = x * 2.f;
  if (auto back = on(device("/job:worker/task:0/slow:1"))) z = y + 1.f;
  session s(c.target("worker", 0));
  for (int i = 0; i < 10; ++i) {
    const auto f = static_cast<float>(i);
    CHECK(s.run(z, x = {f, 2, 3, 4}) == ndarray<float, 4>{2 * f + 1, 5, 7, 9});
  }
}
