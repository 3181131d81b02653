// SPDX-License-Identifier: Apache-2.0
#include <deft/graph/node_text.hpp>

#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::own_graph;

namespace {
/// The text of the last node of the graph that `t` needs.
std::string text_of(const any_tensor& t) {
  const graph_def g = flatten(std::vector{t.handle()}, {}).graph;
  return expression_text(g, g.nodes.back());
}
std::string text_of(const operation& o) {
  const graph_def g = flatten(std::vector{output{o.handle(), run_only}}, {}).graph;
  return expression_text(g, g.nodes.back());
}
}  // namespace

TEST_CASE_FIXTURE(own_graph, "an expression is printed with the parentheses that it needs") {
  placeholder<float, 4> a("a"), b("b"), c("c");
  placeholder<bool, 4> p("p"), q("q");
  CHECK(text_of(a + b) == "a + b");
  CHECK(text_of(relu(a + b)) == "relu(a + b)");
  CHECK(text_of((a + b) * c) == "(a + b) * c");
  CHECK(text_of(a + b * c) == "a + b * c");
  CHECK(text_of(a - (b - c)) == "a - (b - c)");
  CHECK(text_of((a - b) - c) == "a - b - c");
  CHECK(text_of(-(a + b) / 2.f) == "-(a + b) / 2.0");
  CHECK(text_of(where(((a < b) && p) || !q, a, 0.5f)) == "where(a < b && p || !q, a, 0.5)");
  CHECK(text_of(cast<std::int32_t>(a * 2.f) + 1) == "cast<int32>(a * 2.0) + 1");
  CHECK(text_of(max(any_tensor(a))).starts_with("max(a"));
}

TEST_CASE_FIXTURE(own_graph, "sources, updates and attributes are named") {
  placeholder<float, 2, 3> x("x");
  variable<float, 2, 3> v("v", zeros());
  CHECK(text_of(x) == "placeholder");
  CHECK(text_of(v) == "variable");
  CHECK(text_of(constant(3)) == "constant(value = 3)");
  CHECK(text_of(constant({{1.f, 2.f}, {3.f, 4.f}})) == "constant(value = [[1. 2.] [3. 4.]])");
  CHECK(text_of(sum(x, axis<1>)) == "sum(x, axes = [1])");
  CHECK(text_of(v.assign(x)) == "v = x");
  CHECK(text_of(v.assign_add(x)) == "v += x");
  CHECK(text_of(v.assign_sub(x)) == "v -= x");
}

TEST_CASE_FIXTURE(own_graph, "long texts are cut") {
  std::vector<any_tensor> many;
  for (int i = 0; i < 20; ++i) many.push_back(any(dtype::float32, {2}));
  const std::string inputs = text_of(concat(axes{0}, many));
  INFO(inputs);
  CHECK(inputs.find("… 8 more") != inputs.npos);
  auto name = name_scope(std::string(200, 'x'));
  placeholder<float, 2> a("a"), b("b");
  const std::string names = text_of(a + b);
  CHECK(names.size() <= 303);
  CHECK(names.ends_with("…"));
}
