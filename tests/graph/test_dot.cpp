// SPDX-License-Identifier: Apache-2.0
#include <deft/graph/dot.hpp>

#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::own_graph;

namespace {
graph_def flat(std::vector<output> fetches) { return flatten(fetches, {}).graph; }
}  // namespace

TEST_CASE_FIXTURE(own_graph,
                  "DOT has a box for each node, a colour for a device, tasks as clusters") {
  placeholder<float, dyn, 3> x("x");
  any_tensor y = on(device("/job:a/task:0/gpu:1"), [&] { return exp(any_tensor(x)); });
  any_tensor z = [&] {
    auto after = control_dependencies(y);
    return tanh(any_tensor(x));
  }();
  const std::string dot = to_dot(flat({z.handle()}));
  INFO(dot);
  auto has = [&](std::string_view line) { return dot.find(line) != std::string::npos; };
  CHECK(dot.starts_with("digraph deft {\n"));
  CHECK(dot.ends_with("}\n"));
  CHECK(has("n0 [label=\"x\\nplaceholder\\nfloat(?,3)\", fillcolor=\"#ffffff\"];"));
  CHECK(has("subgraph cluster_0 {\n    label=\"/job:a/task:0\";"));
  CHECK(has("n1 [label=\"exp\\nexp(x)\\nfloat(?,3)\", fillcolor=\"#d6e6f5\"];"));
  CHECK(has("n0 -> n1 [penwidth=2, label=\"? bytes\"];"));  // an extent is known only at run time
  CHECK(has("n0 -> n2;"));
  CHECK(has("n1 -> n2 [style=dashed"));
}

TEST_CASE_FIXTURE(own_graph,
                  "DOT shows bytes between devices, draws variables, and escapes names") {
  variable<float, 2, 2> v("v", zeros());
  any_tensor y = on(device("/cpu:1"), [&] { return exp(any_tensor(v)); });
  graph_def g = flat({y.handle()});
  g.nodes[0].name = "a\"b\\c";
  const std::string dot = to_dot(g);
  INFO(dot);
  CHECK(dot.find("label=\"a\\\"b\\\\c\\nvariable\\nfloat(2,2)\"") != dot.npos);
  CHECK(dot.find("shape=cylinder") != dot.npos);
  g.nodes[0].name = "f\xfcr";  // Graphviz reads UTF-8 alone
  CHECK(is_utf8(to_dot(g)));
  CHECK(to_dot(g).find("label=\"f\\\\xfcr\\nvariable") != dot.npos);
  CHECK(dot.find("label=\"16 bytes\"") != dot.npos);
}
