// SPDX-License-Identifier: Apache-2.0
#include <deft/expr.hpp>
#include <deft/op/gradients.hpp>

#include "graph/edit.hpp"
#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::edit;
using testing::own_graph;

namespace {

std::vector<output> outputs(std::initializer_list<any_tensor> list) {
  std::vector<output> all;
  for (const auto& t : list) all.push_back(t.handle());
  return all;
}
flat_graph flat(std::initializer_list<any_tensor> fetches,
                std::initializer_list<any_tensor> feeds = {}) {
  return flatten(outputs(fetches), outputs(feeds));
}
std::vector<std::string_view> ops_of(const flat_graph& f) {
  std::vector<std::string_view> names;
  for (const auto& n : f.graph.nodes) names.push_back(n.op->name);
  return names;
}
using names = std::vector<std::string_view>;

}  // namespace

TEST_CASE_FIXTURE(own_graph, "flatten copies what the fetches need, inputs first") {
  placeholder<float, 2> x("x");
  any_tensor a(x), b = exp(a), c = log(b) + b, unused = tanh(a);
  flat_graph f = flat({c, b});
  CHECK(ops_of(f) == names{"placeholder", "exp", "log", "add"});
  CHECK(f.fetches == std::vector<edge_def>{{3, 0}, {1, 0}});
  CHECK(f.graph.nodes[3].inputs == std::vector<edge_def>{{2, 0}, {1, 0}});
  CHECK(f.graph.nodes[3].name == "add");
  CHECK(f.graph.nodes[1].outputs == std::vector<tensor_type>{{dims{2}, dtype::float32}});
  CHECK(f.graph.nodes[1].name.origin() == b.handle().node.get());
  CHECK_NOTHROW(validate(f.graph));
}

TEST_CASE_FIXTURE(own_graph,
                  "a feed prunes the nodes that computed the value, side effects included") {
  placeholder<float> x("x");
  variable<float> v("v", 0.f);
  any_tensor up = v.assign(x * 2).value(), y = exp(up);
  CHECK(flat({y}).graph.nodes.size() == 4);
  flat_graph f = flat({y}, {up});
  CHECK(ops_of(f) == names{"feed", "exp"});
  CHECK(f.feeds == std::vector<std::uint32_t>{0});
  CHECK(f.graph.nodes[0].outputs[0] == up.handle().type());
  CHECK_NOTHROW(validate(f.graph));
}

TEST_CASE_FIXTURE(own_graph, "fetching a fed tensor returns the feed") {
  placeholder<float> x("x");
  flat_graph f = flat({x}, {x});
  CHECK(ops_of(f) == names{"feed"});
  CHECK(f.fetches == std::vector<edge_def>{{0, 0}});
}

TEST_CASE_FIXTURE(own_graph, "a control dependency on a fed tensor waits for the feed alone") {
  placeholder<float> x("x");
  variable<float> v("v", 0.f);
  any_tensor up = v.assign(any_tensor(x)).value();
  any_tensor after = [&] {
    auto later = control_dependencies(up);
    return identity(any_tensor(constant(1.f)));
  }();
  flat_graph f = flat({after}, {up});
  for (auto op : ops_of(f)) CHECK(op != "assign");
  CHECK_NOTHROW(validate(f.graph));
  operation both = group(x, v.assign(2.f));
  const output fetch{both.handle(), run_only};
  const output feed = x.handle();
  f = flatten({&fetch, 1}, {&feed, 1});
  for (auto op : ops_of(f)) CHECK(op != "placeholder");
}

TEST_CASE_FIXTURE(own_graph, "a feed that no fetch needs is an error that names it") {
  placeholder<float> x("x"), unused("unused");
  any_tensor y = exp(any_tensor(x));
  std::string e = testing::error_of([&] { flat({y}, {x, unused}); });
  CHECK(
      e.starts_with("invalid_argument: no fetch needs the tensor that is fed, node \"unused\" at "
                    "test_graph_def.cpp:"));
  CHECK(testing::error_of([&] { flat({y}, {y, x}); }).find("node \"x\"") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "control dependencies are flattened too") {
  placeholder<float> x("x");
  variable<float> v("v", 0.f);
  auto up = v.assign(1.f);
  any_tensor y = [&] {
    auto after = control_dependencies(up);
    return exp(any_tensor(x));
  }();
  flat_graph f = flat({y});
  REQUIRE(f.graph.nodes.back().controls.size() == 1);
  CHECK(f.graph.nodes[f.graph.nodes.back().controls[0]].op->name == "assign");
  CHECK_NOTHROW(validate(f.graph));
}

TEST_CASE_FIXTURE(own_graph, "one of several outputs can be fed") {
  placeholder<float, dyn, 3> logits("logits");
  placeholder<std::int32_t, dyn> label("label");
  placeholder<float> dz("dz");
  const output in[] = {logits.handle(), label.handle(), dz.handle()};
  any_tensor gradient = deft::detail::apply_any(op::softmax_cross_entropy_grad(), in, {});
  any_tensor loss(output{gradient.handle().node, 1});
  any_tensor y = sum(gradient) + sum(loss);
  CHECK(ops_of(flat({y}, {logits, label, dz})) ==
        names{"feed", "feed", "feed", "softmax_cross_entropy_grad", "sum", "sum", "add"});
  flat_graph f = flat({y}, {loss, logits, label, dz});
  CHECK(f.graph.nodes.size() == 8);
  CHECK_NOTHROW(validate(f.graph));
  f = flat({y}, {gradient, loss});
  CHECK(ops_of(f) == names{"feed", "sum", "feed", "sum", "add"});
  CHECK_NOTHROW(validate(f.graph));
}

TEST_CASE_FIXTURE(own_graph, "an invalid graph is refused by naming the node") {
  placeholder<float, 2, 3> x("x");
  placeholder<float, 3, 4> w("w");
  any_tensor y = exp(matmul(any_tensor(x), any_tensor(w)));
  const graph_def valid = flat({y}).graph;  // x, w, matmul, exp
  REQUIRE(valid.nodes.size() == 4);
  auto refused = [&](auto damage) {
    graph_def g = valid;
    damage(g);
    return testing::error_of([&] { validate(g); });
  };
  CHECK(refused([](graph_def&) {}).empty());
  auto says = [](const std::string& error, std::string_view text, std::string_view node) {
    INFO(error);
    CHECK(error.starts_with("invalid_argument: " + std::string(text)));
    CHECK(error.find(", node \"" + std::string(node) + "\"") != std::string::npos);
  };
  says(refused([](graph_def& g) { g.nodes[3].op = nullptr; }), "a node without an operation",
       "exp");
  says(refused([](graph_def& g) { g.nodes[2].inputs[1].node = 3; }),
       "[matmul] input 3 comes after its use", "matmul");
  says(refused([](graph_def& g) { g.nodes[2].inputs[1].node = 2; }),
       "[matmul] input 2 comes after its use", "matmul");
  says(refused([](graph_def& g) { g.nodes[2].inputs[1].node = ~0u; }), "[matmul] input", "matmul");
  says(refused([](graph_def& g) { g.nodes[3].inputs[0].port = 1; }), "[exp] node 2 has no output 1",
       "exp");
  says(refused([](graph_def& g) { g.nodes[2].controls = {2}; }),
       "[matmul] control 2 comes after its use", "matmul");
  says(refused([](graph_def& g) { g.nodes[2].inputs.pop_back(); }),
       "[matmul] takes 2 inputs, not 1", "matmul");
  says(refused([](graph_def& g) { edit(g.nodes[2].attributes, [](auto& a) { a.pop_back(); }); }),
       "[matmul] has 2 attributes, not 1", "matmul");
  says(refused([](graph_def& g) {
         edit(g.nodes[2].attributes, [](auto& a) { a[0] = std::int64_t{2}; });
       }),
       "[matmul] attribute \"transpose_a\" is not sound", "matmul");
  says(refused([](graph_def& g) { edit(g.nodes[2].attributes, [](auto& a) { a[0] = 1.0; }); }),
       "[matmul] attribute \"transpose_a\" is not sound", "matmul");
  says(refused([](graph_def& g) {
         edit(g.nodes[2].attributes, [](auto& a) { a[0] = std::int64_t{1}; });
       }),
       "[matmul] inner extents differ", "matmul");
  says(refused([](graph_def& g) { g.nodes[3].outputs = {}; }), "[exp] has 1 outputs, not 0", "exp");
  says(refused([](graph_def& g) {
         edit(g.nodes[3].outputs, [](auto& o) { o[0].type = dtype::float64; });
       }),
       "[exp] output 0 is float(2,4), not double(2,4)", "exp");
  says(refused([](graph_def& g) {
         edit(g.nodes[3].outputs, [](auto& o) { o[0].shape = {2, 5}; });
       }),
       "[exp] output 0 is float(2,4), not float(2,5)", "exp");
  CHECK(refused([](graph_def& g) {
          edit(g.nodes[3].outputs, [](auto& o) { o[0].shape = {dyn, 4}; });
        }).empty());
}

TEST_CASE("a chain of a million nodes is built, flattened, differentiated and freed") {
  constexpr int length = 1'000'000;
  graph g;
  auto in = as_default(g);
  placeholder<float> x("x");
  any_tensor y(x);
  for (int i = 0; i < length; ++i) y = sigmoid(y);
  CHECK(g.size() == length + 1);
  {
    flat_graph f = flat({y}, {x});
    CHECK(f.graph.nodes.size() == length + 1);
    CHECK_NOTHROW(validate(f.graph));
  }
  {
    auto [dx] = gradients(y, any_tensor(x));
    CHECK(g.size() > 3 * length);
  }
  y = {};
  CHECK(g.size() == 1);
}
