// SPDX-License-Identifier: Apache-2.0
#include <deft/core/log.hpp>
#include <deft/plan/place.hpp>

#include "planning.hpp"

using namespace deft;
using namespace deft::ext;
using testing::device_at;
using testing::first;
using testing::flat;
using testing::made_up;
using testing::named;
using testing::own_graph;

namespace {

/// Two tasks; the worker's GPUs lack some kernels.
const std::vector<device_info>& devices() {
  static const std::vector<device_info> list{
      made_up("/job:ps/replica:0/task:0/cpu:0"),
      made_up("/job:worker/replica:0/task:1/cpu:0"),
      made_up("/job:worker/replica:0/task:1/cpu:1"),
      made_up("/job:worker/replica:0/task:1/gpu:0", {"gather", "assign_sub", "constant"}),
      made_up("/job:worker/replica:0/task:1/gpu:1", {"gather"}),
      made_up("/job:worker/replica:0/task:1/null:0", {"matmul"}),
  };
  return list;
}

graph_def placed(flat_graph f, bool soft = false) {
  plan::place(f.graph, f.fetches, devices(), {device_at("/job:worker/replica:0/task:1"), soft});
  validate(f.graph);
  for (const auto& n : f.graph.nodes) REQUIRE(n.device);
  return std::move(f.graph);
}
std::string where_is(const node_def& n) { return to_string(*n.device); }
const std::string worker = "/job:worker/replica:0/task:1", ps = "/job:ps/replica:0/task:0";

}  // namespace

TEST_CASE_FIXTURE(own_graph,
                  "by default a node goes to the first GPU that has a kernel, else to the CPU") {
  placeholder<float, 4, 4> x("x");
  any_tensor ax(x);
  graph_def g = placed(flat({gather(matmul(ax, ax), any_tensor(constant({1, 2})))}, {x}));
  CHECK(where_is(first(g, "matmul")) == worker + "/gpu:0");
  CHECK(where_is(first(g, "gather")) == worker + "/cpu:0");
}

TEST_CASE_FIXTURE(own_graph, "a feed and a constant without request go to their first user") {
  placeholder<float, 2> x("x");
  any_tensor c(constant({1.f, 2.f})), other(constant({3.f, 4.f}));
  any_tensor a = on(device("/cpu:1"), [&] { return any_tensor(x) + c; });
  any_tensor b = on(device("/gpu:0"), [&] { return a * c + other; });
  graph_def g = placed(flat({b}, {x}));
  CHECK(where_is(named(g, name_of(c))) == worker + "/cpu:1");
  CHECK(where_is(named(g, "x")) == worker + "/cpu:1");
  // gpu:0 has no kernel for constants.
  CHECK(where_is(named(g, name_of(other))) == worker + "/gpu:1");
  any_tensor alone = any_tensor(constant({5.f, 6.f}));
  CHECK(where_is(placed(flat({alone})).nodes[0]) == worker + "/gpu:1");
}

TEST_CASE_FIXTURE(own_graph, "a constant is on each task that uses it") {
  placeholder<float, 2> x("x");
  any_tensor c = on(device("/job:ps"), [&] { return any_tensor(constant({1.f, 2.f})); });
  any_tensor a = on(device("/cpu:1"), [&] { return any_tensor(x) + c; });
  any_tensor b = on(device("/gpu:1"), [&] { return a * c - c; });
  any_tensor d = on(device("/gpu:0"), [&] { return b * c; });
  const auto where_constants_are = [](const graph_def& g) {
    std::string where;
    for (const auto& n : g.nodes)
      if (n.op->name == "constant") where += where_is(n) + " ";
    return where;
  };
  const std::string at_ps = ps + "/cpu:0 ", at_cpu = worker + "/cpu:1 ",
                    at_gpu = worker + "/gpu:1 ";
  // Nobody uses it where it was to be.
  const graph_def g = placed(flat({b}, {x}));
  CHECK(where_constants_are(g) == at_cpu + at_gpu);
  for (const auto& n : g.nodes)
    for (const auto e : n.inputs)
      if (g.nodes[e.node].op->name == "constant") CHECK(g.nodes[e.node].device == n.device);
  CHECK(where_constants_are(placed(flat({b, c}, {x}))) == at_ps + at_cpu + at_gpu);
  // gpu:0 has no kernel for constants.
  CHECK(where_constants_are(placed(flat({d}, {x}))) == at_ps + at_cpu + at_gpu);
  any_tensor near = on(device("/cpu:0"), [&] { return any_tensor(constant({1.f, 2.f})); });
  any_tensor sum = on(device("/cpu:1"), [&] { return any_tensor(x) + near; });
  CHECK(where_constants_are(placed(flat({sum}, {x}))) == worker + "/cpu:0 ");
}

TEST_CASE_FIXTURE(own_graph, "a group is where it waits for something of its task") {
  auto at = [&](const char* one, const char* other) {
    auto constant_on = [](const char* w) {
      return on(device(w), [] { return constant({1.f, 2.f}); });
    };
    return where_is(placed(flat(group(constant_on(one), constant_on(other)))).nodes.back());
  };
  CHECK(at("/cpu:1", "/gpu:1") == worker + "/cpu:1");
  CHECK(at("/gpu:1", "/cpu:1") == worker + "/gpu:1");
  CHECK(at("/job:ps", "/gpu:1") == worker + "/gpu:1");
  CHECK(at("/job:ps", "/job:ps") == worker + "/gpu:0");
}

TEST_CASE_FIXTURE(own_graph, "requests are met field by field") {
  placeholder<float, 2> x("x");
  auto at = [&](const char* request) {
    any_tensor y = on(device(request), [&] { return exp(any_tensor(x)); });
    return where_is(first(placed(flat({y}, {x})), "exp"));
  };
  CHECK(at("/cpu:1") == worker + "/cpu:1");
  CHECK(at("/gpu:1") == worker + "/gpu:1");
  CHECK(at("/cpu") == worker + "/cpu:0");
  CHECK(at("/job:ps") == ps + "/cpu:0");
  CHECK(at("/job:ps/task:0/cpu:0") == ps + "/cpu:0");
  CHECK(at("/job:worker") == worker + "/gpu:0");
  CHECK(at("/task:1") == worker + "/gpu:0");
  CHECK(at("/null:0") == worker + "/null:0");
}

TEST_CASE_FIXTURE(own_graph, "operations on a variable go to its device") {
  auto scope = on(device("/job:ps"));
  variable<float, 2> v("v", zeros());
  any_tensor up = on(device("/gpu:1"), [&] {
    return on(device("/job:worker"), [&] { return any_tensor(v.assign_sub(v * 0.5f).value()); });
  });
  any_tensor later = [&] {
    auto after = control_dependencies(up);
    auto there = on(device("/job:worker/cpu:1"));
    return any_tensor(v.read());
  }();
  graph_def g = placed(flat({later, up}));
  CHECK(where_is(first(g, "variable")) == ps + "/cpu:0");
  CHECK(where_is(first(g, "read_variable")) == ps + "/cpu:0");
  CHECK(where_is(first(g, "assign_sub")) == ps + "/cpu:0");
  CHECK(where_is(g.nodes[first(g, "assign_sub").inputs[0].node]) == worker + "/gpu:1");
}

TEST_CASE_FIXTURE(own_graph,
                  "a variable goes to a device that has kernels for all its operations") {
  // gpu:0 has no assign_sub: a run that only reads must find the variable where updates put it.
  variable<float, 2> v("v", zeros());
  for (const any_tensor& run : {any_tensor(v), any_tensor(v.assign(constant({1.f, 2.f})).value()),
                                any_tensor(v.assign_sub(1.f).value())}) {
    graph_def g = placed(flat({run}));
    for (const auto& n : g.nodes)
      if (!resources_of(n).empty()) CHECK(where_is(n) == worker + "/gpu:1");
  }
  variable<bool> flag("flag", false);
  CHECK(where_is(placed(flat({flag})).nodes[0]) == worker + "/gpu:0");
}

TEST_CASE_FIXTURE(own_graph, "a request that cannot be met names node, request, devices, kernels") {
  placeholder<float, 4, 4> x("x");
  auto refused = [&](const char* request, auto write) {
    any_tensor y = on(device(request), write);
    return testing::error_of([&] { placed(flat({y}, {x})); });
  };
  std::string e = refused("/gpu:7", [&] { return any_tensor(matmul(x, x)); });
  INFO(e);
  CHECK(
      e.starts_with("invalid_argument: [matmul] cannot be placed on \"/gpu:7\"; the devices "
                    "are /job:ps/replica:0/task:0/cpu:0, "));
  CHECK(e.find(worker + "/null:0; it has kernels for cpu, gpu; ") != std::string::npos);
  CHECK(e.find(", node \"matmul\" at test_place.cpp:") != std::string::npos);
  any_tensor one(constant({1}));
  e = refused("/gpu:0", [&] { return gather(x, one); });
  CHECK(e.find("kernels for cpu, null") != std::string::npos);
  e = refused("/job:chief", [&] { return exp(any_tensor(x)); });
  CHECK(e.find("cannot be placed on \"/job:chief\"") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "a request that cannot be met comes with advice") {
  placeholder<float> x("x");
  auto refused = [&](const char* request) {
    any_tensor y = on(device(request), [&] { return any_tensor(exp(x)); });
    const std::string e = testing::error_of([&] { placed(flat({y}, {x})); });
    const auto at = e.find("; ", e.find("; it has kernels") + 1);
    return at == e.npos ? e : e.substr(at + 2, e.find(", node \"exp\"") - at - 2);
  };
  CHECK(refused("/gup:0") == "did you mean /gpu:0?");
  CHECK(refused("/gup:9") == "did you mean /gpu:9? It is not there either");
  CHECK(refused("/job:pss/cpu:0") == "did you mean /job:ps/cpu:0?");
  CHECK(refused("/cpu:7") ==
        "session_options.cpu_devices says how many CPU devices this process has; "
        "session_options.allow_soft_placement would place it on " +
            worker + "/cpu:0");
  CHECK(refused("/job:ps/gpu:0") ==
        "session_options.allow_soft_placement would place it on " + ps + "/cpu:0");
}

TEST_CASE_FIXTURE(own_graph, "errors about folded and fused nodes use the user's names") {
  auto there = on(device("/gpu:9"));
  tensor<float, 2> x = constant({1.f, 2.f}) + constant({3.f, 4.f});
  graph_def g = flat({x}).graph;
  node_def& n = g.nodes.back();
  n.written = n.op;
  n.op = &record_of<op::constant>;
  n.inputs.clear();
  n.attributes = encode(op::constant{any_array(dtype::float32, {2})});
  CHECK(written_op(n) == "add");
  placeholder<float, 2> y("y");
  tensor<float, 2> z = relu(y * 2.f);
  CHECK(written_op(flat({z}, {y}).graph.nodes.back()) == "relu");
}

TEST_CASE_FIXTURE(own_graph, "soft placement takes another device, and logs") {
  placeholder<float, 4, 4> x("x");
  static std::string* logged = nullptr;
  std::string lines;
  logged = &lines;
  auto old_level = logging::threshold();
  logging::set_level(logging::level::info);
  logging::set_sink([](logging::level, const std::string& line) { *logged += line; });
  auto soft = [&](const char* request, auto write, std::string_view op) {
    any_tensor y = on(device(request), write);
    return where_is(first(placed(flat({y}, {x}), true), op));
  };
  auto product = [&] { return any_tensor(matmul(x, x)); };
  CHECK(soft("/gpu:7", product, "matmul") == worker + "/gpu:0");
  CHECK(soft("/null:0", product, "matmul") == worker + "/gpu:0");
  CHECK(soft("/job:chief/task:3", product, "matmul") == worker + "/gpu:0");
  CHECK(soft(
            "/gpu:1", [&] { return any_tensor(gather(x, constant({1}))); }, "gather") ==
        worker + "/cpu:0");
  logging::set_sink(nullptr);
  logging::set_level(old_level);
  CHECK(lines.find("node \"matmul\" asks for /gpu:7 and is placed on " + worker + "/gpu:0") !=
        std::string::npos);
}

TEST_CASE("devices print with their memory") {
  device_info d = made_up("/job:a/replica:0/task:0/gpu:0");
  d.description = "simulated";
  CHECK(to_string(d) == "/job:a/replica:0/task:0/gpu:0 (simulated)");
  d.memory = 25'200'000'000;
  d.bus_id = "0000:3b:00.0";
  CHECK(to_string(d) == "/job:a/replica:0/task:0/gpu:0 (simulated, 25.2 GB, 0000:3b:00.0)");
}
