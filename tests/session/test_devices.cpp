// SPDX-License-Identifier: Apache-2.0
// On which devices nodes are placed, and how a session reports that.
#include <algorithm>

#include "session/together.hpp"

using namespace deft;
using namespace deft::ext;
using testing::log_lines;
using testing::outcome_of;
using testing::own_graph;
using testing::usual_device;

TEST_CASE_FIXTURE(own_graph, "device_of is a full name, requested_device what was asked for") {
  session s({.cpu_devices = 4});
  tensor<float> a, b;
  if (auto there = on(device("/cpu:2"))) a = constant(2.f);
  if (auto there = on(device("/job:localhost/CPU:1"))) b = a + 1.f;
  tensor<float> c = a * 2.f;
  CHECK(s.run(b) == 3);
  CHECK(s.device_of(a) == "/job:localhost/replica:0/task:0/cpu:2");
  CHECK(s.device_of(b) == "/job:localhost/replica:0/task:0/cpu:1");
  CHECK(s.device_of(c) == "/job:localhost/replica:0/task:0/" + usual_device());
  CHECK(requested_device(a) == "/cpu:2");
  CHECK(requested_device(b) == "/job:localhost/cpu:1");
  CHECK(requested_device(c) == "");
}

TEST_CASE_FIXTURE(own_graph, "list_devices names every device of the process") {
  session s({.cpu_devices = 3});
  auto all = list_devices(s);
  REQUIRE(all.size() >= 3);
  std::vector<std::string> names;
  for (const auto& d : all) names.push_back(to_string(*d.name));
  for (int i = 0; i < 3; ++i)
    CHECK(std::ranges::count(names, str("/job:localhost/replica:0/task:0/cpu:", i)) == 1);
  CHECK(all[0].memory > 0);
  CHECK(!all[0].description.empty());
  for (const int n : {-1, 1'000'000})
    CHECK(outcome_of([&] {
            session s({.intra_op_threads = n});
          }).says(str("intra_op_threads must be 0 to 1024, not ", n)));
  CHECK(outcome_of([] { session s({.timeout = std::chrono::seconds(-1)}); }).code ==
        errc::invalid_argument);
  auto o = outcome_of([] { session none({.cpu_devices = 0}); });
  CHECK(o.code == errc::invalid_argument);
}

TEST_CASE_FIXTURE(own_graph, "log_device_placement writes TensorFlow's lines") {
  session s({.log_device_placement = true, .fold = false, .cpu_devices = 2});
  tensor<float, 2, 2> a, b;
  if (auto there = on(device("/cpu:1"))) a = constant({{1.f, 2.f}, {3.f, 4.f}});
  b = matmul(a, a);
  log_lines log;
  s.run(b);
  auto lines = log.take();
  auto has = [&](const std::string& l) { return std::ranges::count(lines, l) == 1; };
  INFO(join(lines, "\n"));
  CHECK(has("matmul: (matmul): /job:localhost/replica:0/task:0/" + usual_device()));
  CHECK(has("constant: (constant): /job:localhost/replica:0/task:0/cpu:1"));
  s.run(b);
  CHECK(log.take().empty());  // a plan is logged once
}

TEST_CASE_FIXTURE(own_graph, "explain says what will run where, and what is transferred") {
  session s({.cpu_devices = 2});
  placeholder<float, 4> x("x");
  tensor<float, 4> far;
  const unsigned line = __LINE__ + 1;
  if (auto there = on(device("/cpu:1"))) far = exp(x) + 1.f;
  auto near = sum(far);
  std::string e = explain(s, near, x = ndarray<float, 4>{});
  INFO(e);
  CHECK(e.starts_with("3 nodes as written\n"));
  CHECK(e.find(str("  add = exp(x) + 1.0 -> float(4) on /job:localhost/replica:0/task:0/cpu:1, at "
                   "test_devices.cpp:",
                   line)) != e.npos);
  CHECK(e.find("\n    add: 16 bytes from /job:localhost/replica:0/task:0/cpu:1\n") != e.npos);
}

TEST_CASE_FIXTURE(own_graph, "explain counts nodes after each pass, and bytes on each device") {
  session s;
  placeholder<float, 1000> x("x");
  placeholder<float, dyn> some("some");
  any_tensor a(x), constants = any_tensor(constant(1.f)) + any_tensor(constant(2.f));
  any_tensor b = exp(a * constants);  // with the feed two values of its size
  std::string e = explain(s, argmax(b, axes{0}), x = ndarray<float, 1000>{});
  INFO(e);
  CHECK(e.starts_with("7 nodes as written, 5 after folding, 3 after fusion\n"));
  CHECK(e.find("/job:localhost/replica:0/task:0/" + usual_device() +
               ": 3 nodes, at most 8000 bytes of values at a time\n") != e.npos);
  // What others need of a small region is computed by itself, and said to be.
  e = explain(s, sum(b), b, x = ndarray<float, 1000>{});
  INFO(e);
  CHECK(e.find("not fused into sum: exp, as others need its value, which is small\n") != e.npos);
  e = explain(s, sum(some), some = ndarray<float, dyn>(3));
  INFO(e);
  CHECK(e.find(", and 1 value with extents known only at run time\n") != e.npos);
}

TEST_CASE_FIXTURE(own_graph, "explain says what a region folds and gives") {
  session s;
  placeholder<float, dyn, 8> x("x");
  any_tensor m = mean(x, axis<1>, keepdims), d = any_tensor(x) - m;
  const std::string e = explain(s, sum(square(d), axis<1>), d, x = ndarray<float, dyn, 8>(2));
  INFO(e);
  CHECK(e.find("sum = t1 = x - row_mean(x); row_sum(square(t1)), t1 -> float(?), float(?,8) on ") !=
        e.npos);
  // Of what is folded along other axes, too, and what could not be part of it.
  any_tensor a(x);
  const std::string both =
      explain(s, sum(a, axes{0}), mean(a, axes{1}), max(exp(a)), x = ndarray<float, dyn, 8>(2));
  INFO(both);
  CHECK(both.find("column_sum(x)") != both.npos);
  CHECK(both.find("row_mean(x)") != both.npos);
  CHECK(both.find("as one of them folds all axes, and one does not") != both.npos);
}

TEST_CASE_FIXTURE(own_graph, "an update is one pass, whatever dtypes it computes with") {
  session s;
  placeholder<float, 8> g("g");
  variable<float, 8> w("w", zeros());
  any_tensor a(g);  // whose operations are joined one by one
  auto clipped = w.assign_sub(where(a > 1.f, a * 0.5f, a));
  const std::string e = explain(s, clipped, g = ndarray<float, 8>());
  INFO(e);
  CHECK(e.find(" = w = w - where(g > 1.0, g * 0.5, g) -> ") != e.npos);
}

TEST_CASE_FIXTURE(own_graph, "explain says the same about a plan on a cluster") {
  local_cluster c{{"worker", 2}};
  tensor<float> y;
  if (auto there = on(device("/job:worker/task:1"))) y = random_uniform(shape<>) * 2.f;
  session s(c.target("worker", 0));
  std::string e = explain(s, y);
  INFO(e);
  CHECK(e.find("/job:worker/replica:0/task:1/" + usual_device() + ": ") != e.npos);
  CHECK(e.starts_with("2 nodes as written"));
}

TEST_CASE_FIXTURE(own_graph, "explain stays readable for a large graph") {
  placeholder<float, 2> x("x");
  any_tensor y(x);
  for (int layer = 0; layer < 10; ++layer) {
    auto names = name_scope(str("layer", layer));
    for (int i = 0; i < 100; ++i) y = i % 2 ? any_tensor(tanh(y)) : any_tensor(exp(y));
  }
  session s({.fuse = false});
  const ndarray<float, 2> fed{0, 0};
  const std::string e = explain(s, y, x = fed);
  INFO(e);
  CHECK(e.starts_with("1001 nodes as written\n"));
  CHECK(e.find("  layer7/: 100 nodes (exp 50, tanh 50) on /job:localhost/replica:0/task:0/") !=
        e.npos);
  CHECK(std::ranges::count(e, '\n') < 20);
  const std::string few = explain(s, explain_options{.max_nodes = 4}, y, x = fed);
  INFO(few);
  CHECK(few.find("  layer2/: ") != few.npos);
  CHECK(few.find("  layer3/: ") == few.npos);
  CHECK(few.find("  … and 700 more nodes (exp 350, tanh 350); explain_options.max_nodes") !=
        few.npos);
  CHECK(std::ranges::count(explain(s, explain_options{.max_nodes = 2000}, y, x = fed), '\n') >
        1000);
}

TEST_CASE_FIXTURE(own_graph, "placements and DOT of a plan name the devices that run it") {
  session s({.cpu_devices = 2});
  placeholder<float, 4> x("x");
  tensor<float, 4> far;
  if (auto there = on(device("/cpu:1"))) far = exp(x) + 1.f;
  variable<float, 4> weights("weights", zeros());
  const std::string task = "/job:localhost/replica:0/task:0/";
  CHECK(placements(s, weights, far) ==
        "weights " + task + usual_device() + "\nadd     " + task + "cpu:1\n");
  const std::string dot = to_dot(s, sum(far), x = ndarray<float, 4>{});
  INFO(dot);
  CHECK(dot.find("add\\nexp(x) + 1.0\\nfloat(4)") != dot.npos);
  CHECK(dot.find("label=\"16 bytes\"") != dot.npos);
  const std::string written = to_dot(sum(far));
  INFO(written);
  CHECK(written.find("x\\nplaceholder\\nfloat(4)") != written.npos);
  CHECK(written.find("bytes") != written.npos);  // to the CPU that it asks for
}

TEST_CASE_FIXTURE(own_graph, "explain refuses what a run refuses") {
  placeholder<float> x("x");
  session s;
  CHECK(outcome_of([&] { explain(s, x * 2.f, x = 1.f, x = 2.f); }).says("fed twice"));
  s.close();
  CHECK(outcome_of([&] { explain(s, x * 2.f, x = 1.f); }).code == errc::failed_precondition);
}

TEST_CASE_FIXTURE(own_graph,
                  "a request that cannot be met names the node, the request and the devices") {
  tensor<float> a;
  if (auto there = on(device("/cpu:7"))) a = exp(constant(1.f));
  session s({.fold = false, .cpu_devices = 2});
  auto o = outcome_of([&] { s.run(a); });
  CAPTURE(o);
  CHECK(o.code == errc::invalid_argument);
  CHECK(!o.node.empty());
  CHECK(o.says("cannot be placed on"));
  CHECK(o.says("/job:localhost/replica:0/task:0/cpu:1"));
  CHECK(o.says("/cpu:7"));

  session soft({.allow_soft_placement = true, .fold = false});
  CHECK(soft.run(a) == doctest::Approx(2.7182818));
  CHECK(soft.device_of(a) == "/job:localhost/replica:0/task:0/cpu:0");
}

TEST_CASE_FIXTURE(own_graph, "variables and their updates stay together on their device") {
  session s({.cpu_devices = 2});
  auto v = on(device("/cpu:1"), [] { return variable<float>("v", 1.f); });
  auto more = v.assign_add(2.f);
  s.run(initialize_all());
  s.run(more);
  CHECK(s.run(v) == 3);
  CHECK(s.device_of(v) == "/job:localhost/replica:0/task:0/cpu:1");
}

TEST_CASE_FIXTURE(own_graph, "all tasks are asked for their devices, and reset, at the same time") {
  testing::answering_together tasks("worker", 3);
  session s(tasks.here().target());
  for (const auto& d : list_devices(s))
    CHECK(to_string(*d.name).starts_with("/job:worker/replica:0/task:0/"));
  s.reset();
}
