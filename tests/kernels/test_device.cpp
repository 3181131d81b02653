// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/device.hpp>
#include <deft/op/gradients.hpp>
#include <deft/session/launch/local_cluster.hpp>
#include <deft/session/session.hpp>
#include <deft/session/worker/task_runtime.hpp>

#include "execute/null_device.hpp"
#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::null_traffic;

namespace {

/// Sessions made from here on have /null:0 and /null:1, which only explicit requests use.
struct with_null_devices : testing::own_graph {
  with_null_devices() {
    [[maybe_unused]] static const registered_device_kind once = testing::null_kind;
  }
};

template <class F>
auto on_null(F&& f, const char* device_name = "/null:0") {
  return on(device(device_name), std::forward<F>(f));
}

}  // namespace

TEST_CASE_FIXTURE(with_null_devices,
                  "registered devices are part of every task that is made afterwards") {
  session s;
  std::vector<std::string> names;
  for (const auto& d : list_devices(s)) names.push_back(to_string(*d.name));
  CHECK(std::ranges::count(names, "/job:localhost/replica:0/task:0/null:0") == 1);
  CHECK(std::ranges::count(names, "/job:localhost/replica:0/task:0/null:1") == 1);
  CHECK(names.front() == "/job:localhost/replica:0/task:0/cpu:0");
}

TEST_CASE_FIXTURE(with_null_devices,
                  "every value is copied once in each direction, and is counted") {
  placeholder<float, dyn> x("x");
  tensor<float, dyn> here = x * 2;
  auto there = on_null([&] { return std::vector{any_tensor(exp(here)), any_tensor(here + here)}; });
  any_tensor back = there[0] + there[1];
  session s;
  CHECK(s.device_of(there[0]) == "/job:localhost/replica:0/task:0/null:0");
  CHECK(s.device_of(back) == "/job:localhost/replica:0/task:0/cpu:0");
  null_traffic().reset();
  ndarray<float, 3> zero;
  any_array r = s.run(back, x = zero);
  CHECK(to_string(r) == to_string(ndarray<float, 3>{1, 1, 1}));
  CHECK(null_traffic().in == 3 * 4);
  CHECK(null_traffic().out == 2 * 3 * 4);
  CHECK(null_traffic().between == 0);
  CHECK(null_traffic().launches == 2);
  null_traffic().reset();
  s.run(back, x = ndarray<float, 100>());
  CHECK(null_traffic().in == 400);
  CHECK(null_traffic().out == 800);
}

TEST_CASE_FIXTURE(with_null_devices, "a value is sent from one task's device to another's") {
  local_cluster c{{"worker", 2}};
  placeholder<float, 4> x("x");
  tensor<float, 4> y, z;
  if (auto there = on(device("/job:worker/task:1/null:0"))) y = x * 2.f;
  if (auto back = on(device("/job:worker/task:0/null:1"))) z = y + 1.f;
  auto v = on(device("/job:worker/task:1/null:1"), [] { return variable<float, 4>("v", ones()); });
  session s(c.target("worker", 0));
  s.run(initialize_all());
  s.run(z, x = {0, 0, 0, 0});  // makes the plan
  null_traffic().reset();
  CHECK(s.run(z, x = {1, 2, 3, 4}) == ndarray<float, 4>{3, 5, 7, 9});
  CHECK(null_traffic().in == 2 * 16);
  CHECK(null_traffic().out == 2 * 16);
  CHECK(null_traffic().between == 0);
  s.run(v.assign_add(z), x = {1, 2, 3, 4});
  CHECK(s.run(v) == ndarray<float, 4>{4, 6, 8, 10});
}

TEST_CASE_FIXTURE(with_null_devices,
                  "values are copied between devices of one kind without the host") {
  placeholder<float, 4> x("x");
  any_tensor a = on_null([&] { return any_tensor(exp(x)); });
  any_tensor b = on_null([&] { return a + a; }, "/null:1");
  session s;
  null_traffic().reset();
  any_array r = s.run(b, x = ndarray<float, 4>());
  CHECK(r.data<float>()[3] == 2.f);
  CHECK(null_traffic().in == 16);  // the feed is copied directly to its user
  CHECK(null_traffic().between == 16);
  CHECK(null_traffic().recorded > 0);
  CHECK(null_traffic().out == 16);
}

TEST_CASE_FIXTURE(with_null_devices, "constants are copied once, when the plan is made") {
  placeholder<float, 4> x("x");
  any_tensor y = on_null([&] { return any_tensor(x + constant({1.f, 2.f, 3.f, 4.f})); });
  session s;
  s.run(y, x = ndarray<float, 4>());
  null_traffic().reset();
  any_array r = s.run(y, x = ndarray<float, 4>());
  CHECK(r.data<float>()[3] == 4.f);
  CHECK(null_traffic().in == 16);
}

TEST_CASE_FIXTURE(with_null_devices, "a variable lives on its device, and is updated there") {
  auto [v, up] = on_null([&] {
    variable<float, 256> w("on_null", zeros());
    return std::pair(w, w.assign_add(w * 0.5f + 1));
  });
  session s;
  s.run(initialize_all());
  null_traffic().reset();
  for (int i = 0; i < 3; ++i) s.run(up);
  CHECK(null_traffic().in + null_traffic().out + null_traffic().between == 0);
  ndarray<float, 256> value = s.run(v);
  CHECK(value(255) == 4.75f);
  CHECK(null_traffic().out == 1024);
  CHECK(s.device_of(up.value()) == "/job:localhost/replica:0/task:0/null:0");
}

TEST_CASE_FIXTURE(with_null_devices, "a model is trained with its parameters on a device") {
  placeholder<float, dyn, 3> x("x");
  auto w = on_null([&] { return variable<float, 3>("w", constant({1.f, 2.f, 3.f})); });
  auto loss = sum(x * w * w);
  auto [dw] = gradients(loss, w);
  auto step = w.assign_sub(dw * 0.25f);
  session s;
  s.run(initialize_all());
  ndarray<float, 1, 3> one{1, 1, 1};
  CHECK(s.run(loss, x = one) == 14.f);
  s.run(step, x = one);
  CHECK(s.run(loss, x = one) == 3.5f);
}

TEST_CASE_FIXTURE(with_null_devices,
                  "aliases and feeds of a device's values are fetched by copies") {
  placeholder<float, 2, 2> x("x");
  any_tensor flat = on_null([&] { return reshape(identity(any_tensor(x)), dims{4}); });
  any_tensor other = on_null([&] { return any_tensor(exp(x)); });
  session s;
  auto [a, b, c] = s.run(flat, other, x, x = ndarray<float, 2, 2>{1, 2, 3, 4});
  CHECK(to_string(a) == to_string(ndarray<float, 4>{1, 2, 3, 4}));
  CHECK(b.data<float>()[0] == doctest::Approx(2.718282));
  CHECK(c == ndarray<float, 2, 2>{1, 2, 3, 4});
  a = s.run(flat, feed(flat, ndarray<float, 4>{5, 6, 7, 8}));
  CHECK(a.data<float>()[3] == 8.f);
}

TEST_CASE_FIXTURE(with_null_devices, "a device reports operations that it has no kernel for") {
  placeholder<float, 2, 2> x("x");
  any_tensor y = on_null([&] { return any_tensor(matmul(x, x)); });
  session s, soft({.allow_soft_placement = true});
  ndarray<float, 2, 2> v{1, 0, 0, 1};
  std::string e = testing::error_of([&] { s.run(y, x = v); });
  INFO(e);
  CHECK(e.starts_with("invalid_argument: [matmul] cannot be placed on \"/null:0\""));
  CHECK(e.find("it has kernels for cpu") != std::string::npos);
  CHECK(e.find(", node \"matmul\" at test_device.cpp:") != std::string::npos);
  CHECK(soft.run(y, x = v).data<float>()[0] == 1.f);
}

TEST_CASE_FIXTURE(with_null_devices,
                  "a variable that another session keeps on another device is read correctly") {
  std::shared_ptr<engine> shared;
  auto runtime = std::make_shared<task_runtime>(local_task_name());
  variable_slot& slot =
      *find_variable(runtime->store(), {"variable", "", "v"}, {dims{2}, dtype::float32});
  auto part = [&](const char* where) {
    graph mine;
    auto in = as_default(mine);
    variable<float, 2> v = on(device(where), [] { return variable<float, 2>("v", zeros()); });
    const output fetches[] = {any_tensor(v).handle()};
    flat_graph f = flatten(fetches, {});
    for (auto& n : f.graph.nodes) n.device = intern(merge(local_task_name(), parse_device(where)));
    return plan::part{intern(local_task_name()), std::move(f.graph), f.fetches, {0}};
  };
  slot.value = any_array(dtype::float32, dims{2});
  slot.device = intern(merge(local_task_name(), parse_device("/cpu:0")));
  executable there(part("/null:0"), runtime->resources());
  auto frame = there.make_frame();
  std::string e = testing::error_of([&] { frame->run({}, {.step = 1}); });
  INFO(e);
  CHECK(
      e.starts_with("failed_precondition: variable \"v\" lives on "
                    "/job:localhost/replica:0/task:0/cpu:0, and cannot be used on "
                    "/job:localhost/replica:0/task:0/null:0"));
}

TEST_CASE("a device's memory is freed") {
  {
    with_null_devices own;
    placeholder<float, dyn> x("x");
    any_tensor y = on_null([&] { return any_tensor(exp(x * 2) + 1); });
    session s;
    for (int n : {1, 100, 10}) s.run(y, x = ndarray<float, dyn>(n));
    CHECK(null_traffic().blocks > 0);
  }
  CHECK(null_traffic().blocks == 0);
}
