// SPDX-License-Identifier: Apache-2.0
#include <deft/op/all_reduce.hpp>
#include <deft/session/session.hpp>

#include <cstring>

#include "modeling.hpp"
#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::error_of;
using testing::maker;
using testing::own_graph;
using testing::type_of;

namespace {

/// A tensor on each of the devices: different numbers, sums of which depend on their order.
std::vector<any_tensor> written_on(const std::vector<std::string>& devices, const dims& shape,
                                   dtype type = dtype::float32) {
  std::vector<any_tensor> all;
  for (const auto& d : devices) {
    const auto there = on(device(d));
    all.push_back(cast(random_uniform(shape, -100, 100), type));
  }
  return all;
}
bool same_bits(const any_array& a, const any_array& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}
/// Checks that the sums and means on all of the devices are those of one device, bit for bit.
void check_on(session& s, const std::vector<std::string>& devices, const dims& shape,
              dtype type = dtype::float32) {
  CAPTURE(shape);
  CAPTURE(type);
  const std::vector<any_tensor> x = written_on(devices, shape, type);
  const std::vector<any_tensor> sums = all_reduce(x);
  std::vector<any_tensor> fetches = sums;
  if (is_floating(type))
    for (const auto& m : all_reduce_mean(x)) fetches.push_back(m);
  any_tensor expected = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) expected = expected + x[i];
  fetches.push_back(expected);
  if (is_floating(type)) fetches.push_back(expected / static_cast<double>(x.size()));
  for (int run = 0; run < 2; ++run) {
    const std::vector<any_array> v = s.run(fetches);
    REQUIRE(v.size() == fetches.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(i);
      CHECK(v[i].shape() == shape);
      CHECK(same_bits(v[i], v[is_floating(type) ? 2 * x.size() : x.size()]));
      if (is_floating(type)) CHECK(same_bits(v[x.size() + i], v.back()));
    }
  }
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "all_reduce has the type of its operands") {
  placeholder<float, dyn, 3> a("a");
  placeholder<float, 4, 3> b("b");
  static_assert(std::is_same_v<decltype(all_reduce(b, b * 2)), std::array<tensor<float, 4, 3>, 2>>);
  static_assert(
      std::is_same_v<decltype(all_reduce_mean(a, a, a)), std::array<tensor<float, dyn, 3>, 3>>);
  // What one of them knows is true of all.
  static_assert(std::is_same_v<decltype(all_reduce(a, b)), std::array<tensor<float, 4, 3>, 2>>);
  static_assert(
      std::is_same_v<decltype(all_reduce(std::vector{b, b})), std::vector<tensor<float, 4, 3>>>);
  const std::vector<any_tensor> parts{a, b};
  for (const any_tensor& t : all_reduce(parts)) CHECK(type_of(t) == "float(4,3)");
  CHECK(type_of(all_reduce(a, any_tensor(a))[1]) == "float(?,3)");
  auto [first, second] = all_reduce(a, b);
  CHECK(same(first, all_reduce(parts)[0]));
  CHECK_FALSE(same(first, second));
  // One tensor is its own sum.
  CHECK(same(all_reduce(b)[0], b));
  CHECK(same(all_reduce_mean(std::vector<any_tensor>{a})[0], a));
}

TEST_CASE_FIXTURE(own_graph, "errors of all_reduce") {
  const any_tensor a = any(dtype::float32, {4, 3}), b = any(dtype::float32, {4, 2}),
                   i = any(dtype::int32, {4, 3}), t = any(dtype::boolean, {2});
  auto check = [](auto f, std::string_view text) {
    const std::string e = error_of(f);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + std::string(text)));
    CHECK(e.find("test_all_reduce.cpp:") != std::string::npos);
  };
  check(
      [&] {
        all_reduce(std::vector{a, b});
      },
      "[all_reduce] expects tensors of one dtype and shape, and got float(4,3) float(4,2)");
  check(
      [&] {
        all_reduce(std::vector{a, a, i});
      },
      "[all_reduce] expects tensors of one dtype and shape, and got float(4,3) float(4,3) "
      "int32(4,3)");
  check([&] { all_reduce(std::vector<any_tensor>()); },
        "[all_reduce] expects one tensor at least, and got none");
  check([&] { all_reduce(std::vector{t, t}); }, "[all_reduce] expects numbers, and got bool");
  check(
      [&] {
        all_reduce_mean(std::vector{i, i});
      },
      "[all_reduce] expects a floating dtype, and got int32");
  check([&] { all_reduce_mean(std::vector{i}); },
        "[all_reduce] expects a floating dtype, and got int32");
  CHECK(error_of([&] {
          all_reduce(std::vector{a, any_tensor()});
        }).find("operand 2") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "all_reduce gives every device the sum, with the same bits") {
  session s({.cpu_devices = 4});
  const std::vector<std::string> devices{"/cpu:2", "/cpu:0", "/cpu:3", "/cpu:1"};
  for (const dims& shape : {dims{}, dims{0}, dims{7}, dims{3, 5}, dims{300, 251}, dims{1 << 17}})
    check_on(s, devices, shape);
  check_on(s, devices, {100'003}, dtype::float64);
  check_on(s, devices, {100'003}, dtype::int32);
  check_on(s, devices, {400'001}, dtype::uint8);
  check_on(s, {"/cpu:1", "/cpu:0"}, {100'003});
  // Several on one device.
  check_on(s, {"/cpu:1", "/cpu:0", "/cpu:1"}, {100'003});
  check_on(s, {"/cpu:1", "/cpu:1", "/cpu:1"}, {100'003});
}

TEST_CASE_FIXTURE(own_graph, "each result of all_reduce is where its operand is") {
  session s({.cpu_devices = 4});
  for (const dims& shape : {dims{3}, dims{100'003}}) {
    const auto there = on(device("/cpu:3"));  // says nothing about the results
    const auto sums = all_reduce(written_on({"/cpu:2", "/cpu:0", "/cpu:1"}, shape));
    CHECK(s.device_of(sums[0]).ends_with("/cpu:2"));
    CHECK(s.device_of(sums[1]).ends_with("/cpu:0"));
    CHECK(s.device_of(sums[2]).ends_with("/cpu:1"));
  }
}

TEST_CASE_FIXTURE(own_graph, "operands of all_reduce may be fed, constant, or variables") {
  placeholder<float, 2> x = on(device("/cpu:1"), [] { return placeholder<float, 2>("x"); });
  variable<float, 2> v = on(device("/cpu:0"), [] { return variable<float, 2>("v", ones()); });
  auto [a, b, c] = all_reduce(x, v, constant({0.25f, 0.5f}));
  auto [only, same_again] = all_reduce(constant({1.f}), constant({2.f}));
  session s({.cpu_devices = 2});
  s.run(initialize_all());
  const ndarray<float, 2> sum{11.25f, 21.5f};
  CHECK(bool(s.run(a, b, c, x = {10, 20}) == std::tuple(sum, sum, sum)));
  CHECK(s.run(only)(0) == 3);
  CHECK(s.run(same_again)(0) == 3);
}

TEST_CASE_FIXTURE(own_graph, "extents known only at run time have to agree") {
  placeholder<float, dyn, 2> x("x"), y("y");
  auto [a, b] = all_reduce(x, y);
  session s;
  const ndarray<float, dyn, 2> sum{11, 22, 33, 44};
  CHECK(bool(s.run(a, x = {{1, 2}, {3, 4}}, y = {{10, 20}, {30, 40}}) == sum));
  CHECK(s.run(b, x = ndarray<float, 0, 2>(), y = ndarray<float, 0, 2>()).extent(0) == 0);
  // A row is not broadcast.
  const std::string e = error_of([&] { s.run(b, x = {{1, 2}}, y = {{10, 20}, {30, 40}}); });
  INFO(e);
  CHECK(
      e.starts_with("invalid_argument: [all_reduce] expects tensors of one dtype and shape, and "
                    "got float(1,2) float(2,2)"));
  CHECK(e.find("test_all_reduce.cpp:") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "the gradient of all_reduce is the sum of those of its results") {
  placeholder<double, 3> x("x"), y("y");
  auto [a, b] = all_reduce(x, y);
  auto [dx, dy] = gradients(sum(a * 2.0) + sum(b * b), x, y);
  auto [dm] = gradients(sum(all_reduce_mean(x, y)[0] * 2.0), y);
  session s;
  const ndarray<double, 3> at{1, 2, 3}, more{10, 20, 30}, expected{24, 46, 68}, halves{1, 1, 1};
  CHECK(bool(s.run(dx, dy, x = at, y = more) == std::tuple(expected, expected)));
  CHECK(bool(s.run(dm) == halves));
}

TEST_CASE_FIXTURE(own_graph, "all_reduce between tasks") {
  local_cluster c{{"worker", 2}};
  session s(c.target("worker", 0));
  const std::vector<std::string> devices{"/job:worker/task:1", "/job:worker/task:0"};
  for (const dims& shape : {dims{5}, dims{200'003}}) check_on(s, devices, shape);
  const auto sums = all_reduce(written_on(devices, {3}));
  CHECK(s.device_of(sums[0]).find("task:1") != std::string::npos);
  CHECK(s.device_of(sums[1]).find("task:0") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "all_reduce between GPUs, and between those and processors") {
  session s({.simulated_gpus = 4});
  for (const dims& shape : {dims{5}, dims{100'003}}) {
    check_on(s, {"/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3"}, shape);
    check_on(s, {"/gpu:1", "/cpu:0", "/gpu:0"}, shape);
  }
}
