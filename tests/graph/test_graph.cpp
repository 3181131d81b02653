// SPDX-License-Identifier: Apache-2.0
#include <deft/expr.hpp>
#include <optional>
#include <set>
#include <thread>

#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::maker;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "the same pure operation on the same inputs is the same node") {
  placeholder<float, 4> x("x"), y("y");
  any_tensor a(x), b(y);
  any_tensor sum = a + b;
  CHECK(same(sum, a + b));
  CHECK_FALSE(same(sum, b + a));
  CHECK_FALSE(same(sum, a - b));
  CHECK_FALSE(same(sum, a + a));
  CHECK(same(any_tensor(cast<double>(x)), any_tensor(cast<double>(x))));
  CHECK_FALSE(same(any_tensor(cast<double>(x)), any_tensor(cast<std::int32_t>(x))));
  CHECK(same(any_tensor(constant({1.f, 2.f})), any_tensor(constant({1.f, 2.f}))));
  CHECK_FALSE(same(any_tensor(constant({1.f, 2.f})), any_tensor(constant({1.f, 3.f}))));
  CHECK_FALSE(same(any_tensor(constant(0.f)), any_tensor(constant(-0.f))));
  tensor<float, 4> fused = relu(x * 2) + y, again = relu(x * 2) + y, other = relu(x * 3) + y;
  CHECK(same(fused, again));
  CHECK_FALSE(same(fused, other));
}

TEST_CASE_FIXTURE(own_graph, "stateful operations are never merged") {
  CHECK_FALSE(same(random_uniform(shape<2>), random_uniform(shape<2>)));
  placeholder<float> a("x"), b("x");
  CHECK_FALSE(same(a, b));
  CHECK(name_of(any_tensor(b)) == "x_1");
}

TEST_CASE_FIXTURE(own_graph, "device and control dependencies are part of a node's identity") {
  placeholder<float> x("x");
  any_tensor a(x), here = exp(a);
  auto first = no_op();
  {
    auto gpu = on(device("/gpu:0"));
    CHECK_FALSE(same(here, exp(a)));
    auto back = on(device(nullptr));
    CHECK(same(here, exp(a)));
  }
  {
    auto after = control_dependencies(first);
    any_tensor later = exp(a);
    CHECK_FALSE(same(here, later));
    CHECK(same(later, exp(a)));
    REQUIRE(maker(later).controls().size() == 1);
    CHECK(maker(later).controls()[0] == first.handle());
  }
  CHECK(same(here, exp(a)));
}

TEST_CASE_FIXTURE(own_graph, "source location, name scope and alias are the first writer's") {
  placeholder<float> x("x");
  any_tensor a(x);
  int line = __LINE__ + 1;
  any_tensor first = exp(a);
  {
    auto scope = name_scope("inner");
    any_tensor second = exp(a);
    CHECK(same(first, second));
    CHECK(name_of(second) == "exp");
  }
  CHECK(maker(first).location().line == line);
  name(first, "alias");
  CHECK(same(first, exp(a)));
}

TEST_CASE_FIXTURE(own_graph, "names are unique, scoped, and given when first asked for") {
  placeholder<float> x("x");
  any_tensor a(x), one = a + 1, two = a + 2, three = a + 3;
  CHECK(name_of(three) == "add");
  CHECK(name_of(one) == "add_1");
  CHECK(name_of(two) == "add_2");
  CHECK(name_of(one) == "add_1");
  auto outer = name_scope("layer1");
  auto inner = name_scope("dense");
  any_tensor scoped = a * 7;
  tensor<float> fused = relu(x * 2 + 1);
  CHECK(name_of(scoped) == "layer1/dense/mul");
  CHECK(name_of(any_tensor(fused)) == "layer1/dense/relu");
  CHECK(g.find("layer1/dense/mul") == scoped.handle().node);
  CHECK_FALSE(g.find("layer1/dense/mul_1"));
}

TEST_CASE_FIXTURE(own_graph, "an alias finds its node, and cannot be used twice") {
  placeholder<float> x("x");
  any_tensor a(x), y = exp(a), z = log(a);
  name(y, "logits");
  name(y, "logits");
  CHECK(g.find("logits") == y.handle().node);
  CHECK(testing::error_of([&] {
          name(z, "logits");
        }).starts_with("already_exists: [name] the name \"logits\" is taken by the node made at "));
  y = {};
  CHECK_FALSE(g.find("logits"));
  name(z, "logits");
  CHECK(g.find("logits") == z.handle().node);
}

TEST_CASE_FIXTURE(own_graph, "nodes without handles are removed from the graph") {
  placeholder<float> x("x");
  CHECK(g.size() == 1);
  {
    any_tensor y = exp(any_tensor(x) * 2) + 1;
    name(y, "y");
    CHECK(name_of(y) == "add");
    CHECK(g.size() == 6);  // x, 2, mul, exp, 1, add
  }
  CHECK(g.size() == 1);
  CHECK_FALSE(g.find("add"));
  CHECK_FALSE(g.find("y"));
  any_tensor again = any_tensor(x) + 3;
  CHECK(name_of(again) == "add");
}

TEST_CASE("a graph lives as long as any node or handle of it") {
  any_tensor kept;
  {
    graph g;
    auto in = as_default(g);
    kept = exp(any_tensor(placeholder<float>("x")));
  }
  CHECK(graph::of(*kept.handle().node).size() == 2);
  CHECK(name_of(kept) == "exp");
}

TEST_CASE_FIXTURE(own_graph, "a loop that writes the same expression adds nothing") {
  placeholder<float, dyn, 8> x("x");
  placeholder<float, 8> b("b");
  auto write = [&] {
    tensor<float, dyn, 8> h = relu(x * 2 + b);
    tensor<float, 8> s = sum(h, axis<0>);
    return any_tensor(mean(s * s));
  };
  any_tensor first = write();
  const std::size_t nodes = g.size();
  bool always = true;
  for (int i = 0; i < 100'000; ++i) always &= same(first, write());
  CHECK(always);
  CHECK(g.size() == nodes);
}

TEST_CASE_FIXTURE(own_graph, "operands of different graphs are refused") {
  placeholder<float> x("x");
  variable<float> v("v", 0.f);
  const unsigned line = __LINE__ - 1;
  graph other;
  auto in = as_default(other);
  placeholder<float> y("y");
  CHECK(graph_of(y) == other);
  CHECK(graph_of(x) == g);
  auto says = [](auto f, const std::string& text) {
    const std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + text));
    CHECK(e.find("as_default(graph_of(t))") != std::string::npos);
    CHECK(e.find("test_graph.cpp:", e.find(", node \"")) != std::string::npos);
  };
  says([&] { any_tensor(y) + any_tensor(v); },
       str("[add] the operands are of different graphs: number 2 is the variable made at "
           "test_graph.cpp:",
           line));
  says([&] { any_tensor t = y * v; }, "[mul] the operands are of different graphs: number 2");
  says([&] { v.assign(y); }, "[assign] variable and value are of different graphs");
  const auto up = v.assign_add(1.f);  // its constant is written where the variable is
  auto after = control_dependencies(up);
  says([&] { tensor<float> t = y + y; },
       "[add] a control dependency is of another graph: the assign_add made at");
}

TEST_CASE_FIXTURE(own_graph,
                  "a malformed device from a device function is reported with the node's line") {
  placeholder<float> x("x");
  auto scope = on(device([](const node_info&) { return "gpu"; }));
  const std::string e = testing::error_of([&] { tensor<float> t = exp(x); });
  INFO(e);
  CHECK(e.starts_with("invalid_argument: malformed device name \"gpu\""));
  CHECK(e.find("test_graph.cpp:") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "a refused node leaves the graph unchanged") {
  placeholder<float, 3> x("x");
  placeholder<float, 4> y("y");
  placeholder<float, 2, 3> m("m");
  auto nodes = g.size();
  std::string e = testing::error_of([&] { (void)(any_tensor(x) + any_tensor(y)); });
  CHECK(
      e.starts_with("invalid_argument: [add] the operands' shapes cannot be broadcast together: "
                    "(3) (4), node \"add\""));
  CHECK(testing::error_of([&] {
          auto scope = name_scope("s");
          matmul(any_tensor(m), any_tensor(m));
        }).find("node \"s/matmul\" at test_graph.cpp:") != std::string::npos);
  CHECK(g.size() == nodes);
  CHECK(x.handle().node->references == 1);
}

TEST_CASE("several threads can write into one graph") {
  graph g;
  constexpr int threads = 4, rounds = 300;
  std::vector<any_tensor> kept[threads];
  std::set<std::string> names;
  {
    auto in = as_default(g);
    placeholder<float> x("x");
    std::vector<std::thread> writers;
    for (int t = 0; t < threads; ++t)
      writers.emplace_back([&, t] {
        auto in_graph = as_default(g);
        for (int i = 0; i < rounds; ++i) {
          any_tensor y = any_tensor(x) * static_cast<float>(i % 50);
          any_tensor z = exp(y);
          (void)name_of(z);
          if (i >= rounds - 50) kept[t].push_back(z);
        }
      });
    for (auto& w : writers) w.join();
  }
  for (int t = 1; t < threads; ++t)
    for (int i = 0; i < 50; ++i) CHECK(same(kept[t][i], kept[0][i]));
  for (const auto& z : kept[0]) names.insert(name_of(z));
  CHECK(names.size() == 50);
  CHECK(g.size() == 1 + 3 * 50);
  for (auto& k : kept) k.clear();
  CHECK(g.size() == 0);
}

TEST_CASE_FIXTURE(own_graph, "each thread has a current graph") {
  graph* seen = nullptr;
  std::thread([&] { seen = &current_graph(); }).join();
  CHECK_FALSE(*seen == g);
  CHECK(current_graph() == g);
  {
    graph inner;
    auto in = as_default(inner);
    CHECK(current_graph() == inner);
  }
  CHECK(current_graph() == g);
}

TEST_CASE_FIXTURE(own_graph, "variables are listed in the order in which they were made") {
  variable<float> b("b", 0.f), a("a", 0.f);
  auto list = g.variables();
  REQUIRE(list.size() == 2);
  CHECK(name_of(*list[0]) == "b");
  CHECK(name_of(*list[1]) == "a");
  placeholder<float> x("x");
  CHECK_FALSE(g.find_variable("x"));
  CHECK_FALSE(g.find_variable("c"));
}

TEST_CASE("a collection keeps its nodes until the graph object and its copies are gone") {
  std::optional<graph> g(std::in_place), copy;
  any_tensor held;
  {
    auto in = as_default(*g);
    placeholder<float> x("x");
    held = x;
    const output a = any_tensor(exp(x)).handle(), b = any_tensor(tanh(x)).handle();
    g->collect("some", "a/", a);
    g->collect("some", "a/b/", b);
    g->collect("some", "a/b/", b);
    g->collect("some", "c/", a);
    g->collect("others", "", b);
    CHECK(g->collected("some", "") == std::vector<output>{a, b});
    CHECK(g->collected("some", "a/b/") == std::vector<output>{b});
    CHECK(g->collected("some", "c/") == std::vector<output>{a});
    CHECK(g->collected("others", "a/").empty());
  }
  copy = *g;
  g.reset();
  graph found = graph_of(held);
  CHECK(found == *copy);
  CHECK(found.size() == 3);
  CHECK(found.collected("some", "").size() == 2);
  copy.reset();
  CHECK(found.size() == 1);
  CHECK(found.collected("some", "").empty());
  CHECK(testing::error_of([&] {
          found.collect("some", "", held.handle());
        }).starts_with("failed_precondition: the graph object is gone"));
}
