// SPDX-License-Identifier: Apache-2.0
// Runs on asynchronous devices (delayed_device.hpp) that fail, are cancelled, or whose session is
// closed.
#include <deft/session/session.hpp>
#include <thread>

#include "delayed_device.hpp"

using namespace deft;
using testing::simulated_gpus;
using testing::with_slow_devices;

TEST_CASE_FIXTURE(with_slow_devices, "an error detected on the device fails only its own step") {
  placeholder<std::int32_t, 2> index("index");
  auto [picked, step, w] = on(device("/slow:0"), [&] {
    variable<float, 4, 2> v("v", ones());
    tensor<float, 2, 2> p = gather(v, index);
    name(p, "picked");
    return std::tuple(p, v.assign_sub(broadcast_to(sum(p), shape<4, 2>)), v);
  });
  session s;
  s.run(initialize_all());
  for (int i = 0; i < 3; ++i) {
    std::string e = testing::error_of([&] { s.run(step, picked, index = {0, 9}); });
    INFO(e);
    CHECK(e.starts_with("out_of_range: [gather] "));
    CHECK(e.find("node \"gather\" at test_asynchronous_errors.cpp:") != std::string::npos);
    CHECK(e.find("/slow:0") != std::string::npos);
    CHECK(s.run(w)(3, 1) == 1.f);  // unchanged
    CHECK(s.run(picked, index = {0, 3})(1, 1) == 1.f);
  }
  s.run(step, index = {0, 3});
  CHECK(s.run(w)(0, 0) == -3.f);
}

TEST_CASE_FIXTURE(with_slow_devices, "a step that fails on its device changes no variable") {
  simulated_gpus().longest_us = 50;
  placeholder<std::int32_t, 2> index("index");
  auto scope = on(device("/slow:0"));
  variable<float, 2, 2> source("source", ones()), set("set", zeros()), held("held", zeros());
  variable<float, 2, 2> fresh("fresh", zeros());
  ndarray<float, dyn, 2> sevens(1);
  sevens(0, 0) = sevens(0, 1) = 7;
  variable<float, dyn, 2> sized("sized", sevens);
  tensor<float, 2, 2> picked = gather(source, index);  // fails for 9
  auto init = initialize_all();
  auto assign = set.assign(picked + 1.f);
  auto add = held.assign_add(picked);
  auto give = fresh.assign(picked * 5.f);
  auto resize = sized.assign(concat(axis<0>, picked, picked));
  auto is = [](const auto& a, float v) {
    return std::all_of(a.data(), a.data() + a.size(), [v](float x) { return x == v; });
  };
  session s;
  s.run(init);
  for (int i = 0; i < 3; ++i) {
    // An update does not overwrite a buffer that a fetch holds.
    const std::string e = testing::error_of([&] {
      s.run(held, set, sized, assign, add, give, resize, index = {0, 9});
    });
    CHECK(e.starts_with("out_of_range: [gather] "));
    CHECK(is(s.run(set), 0));
    CHECK(is(s.run(held), 0));
    CHECK(is(s.run(fresh), 0));
    CHECK(is(s.run(sized), 7));
  }
  s.run(assign, add, give, resize, index = {0, 1});
  CHECK(s.run(set)(1, 1) == 2.f);
  CHECK(s.run(held)(1, 1) == 1.f);
  CHECK(s.run(fresh)(1, 1) == 5.f);
  CHECK(s.run(sized).size() == 8);
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "a variable stays uninitialized if the step that initializes it fails") {
  placeholder<std::int32_t, 2> index("index");
  auto scope = on(device("/slow:0"));
  variable<float, 2> v("v", ones());
  auto set = v.assign(gather(constant(ndarray<float, 2>{1, 2}), index));
  session s;
  CHECK(testing::error_of([&] { s.run(set, index = {0, 9}); }).starts_with("out_of_range"));
  CHECK(testing::error_of([&] { s.run(v); }).starts_with("failed_precondition"));
  s.run(set, index = {0, 1});
  CHECK(s.run(v)(1) == 2.f);
}

TEST_CASE_FIXTURE(with_slow_devices, "a cancelled run leaves no work that uses its memory") {
  placeholder<float, dyn> x("x");
  any_tensor y = on(device("/slow:0"), [&] { return any_tensor(exp(x) + 1); });
  session s;
  s.run(y, x = ndarray<float, dyn>(8));
  for (int i = 0; i < 20; ++i) {
    cancel_source cancel;
    simulated_gpus().hold();
    std::thread other([&] {
      // The feed's memory is freed when the run has ended, not earlier.
      const std::string e = testing::error_of([&] {
        ndarray<float, dyn> batch(1000 + i);
        s.run(run_options{.cancel = cancel.token()}, y, x = batch);
      });
      CHECK((e.empty() || e.starts_with("cancelled")));
    });
    cancel.cancel();
    simulated_gpus().go_on();
    other.join();
  }
  CHECK(s.run(y, x = ndarray<float, dyn>(3)).elements() == 3);
}

TEST_CASE_FIXTURE(with_slow_devices, "a close with work in flight frees nothing early") {
  placeholder<float, dyn> x("x");
  any_tensor y = on(device("/slow:0"), [&] { return any_tensor(exp(x) + 1); });
  for (int i = 0; i < 20; ++i) {
    auto s = std::make_unique<session>();
    s->run(y, x = ndarray<float, dyn>(8));
    simulated_gpus().hold();
    std::atomic<bool> begun = false;
    std::thread other([&] {
      ndarray<float, dyn> batch(1000 + i);
      begun = true;
      begun.notify_all();
      const std::string e = testing::error_of([&] { s->run(y, x = batch); });
      INFO(e);
      CHECK((e.empty() || e.find("closed") != std::string::npos));
    });
    begun.wait(false);
    s->close();
    simulated_gpus().go_on();
    other.join();
    if (i % 2) s = nullptr;  // the devices' work may still go on
  }
}
