// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deft/op/all_reduce.hpp>
#include <deft/plan/collectives.hpp>

#include "planning.hpp"

using namespace deft;
using namespace deft::ext;
using testing::device_at;
using testing::flat;
using testing::made_up;
using testing::ops_of;
using testing::own_graph;

namespace {

const std::string task = "/job:localhost/replica:0/task:0";

/// all_reduce of a tensor on each of the devices, expanded.
flat_graph expanded(const std::vector<std::string>& devices, const dims& shape, bool mean = false) {
  std::vector<any_tensor> x;
  for (const auto& d : devices) {
    const auto there = on(device(d));
    x.push_back(testing::any(dtype::float32, shape));
  }
  std::vector<output> fetches;
  for (const auto& t : mean ? all_reduce_mean(x) : all_reduce(x)) fetches.push_back(t.handle());
  flat_graph f = flatten(fetches, {});
  std::vector<device_info> all;
  for (int i = 0; i < 4; ++i) all.push_back(made_up(str(task, "/gpu:", i)));
  plan::place(f.graph, f.fetches, all, {device_at(task)});
  plan::expand_collectives(f.graph, f.fetches);
  validate(f.graph);
  validate(f.graph, f.fetches);
  return f;
}
auto count(const flat_graph& f, std::string_view op) {
  return std::ranges::count(ops_of(f.graph), op);
}
std::string device_of(const flat_graph& f, std::size_t fetch) {
  return to_string(*f.graph.nodes[f.fetches[fetch].node].device).substr(task.size());
}
/// Bytes that other devices take, of each edge between two.
std::int64_t bytes_moved(const flat_graph& f) {
  std::int64_t bytes = 0;
  for (const auto& n : f.graph.nodes)
    for (auto e : n.inputs) {
      const node_def& from = f.graph.nodes[e.node];
      if (from.device != n.device) bytes += from.outputs[e.port].shape.elements() * 4;
    }
  return bytes;
}

constexpr std::int64_t large = 1 << 20;

}  // namespace

TEST_CASE_FIXTURE(own_graph, "small tensors are added on one device") {
  const flat_graph f = expanded({"/gpu:1", "/gpu:0", "/gpu:2"}, {10, 10});
  CHECK(count(f, "all_reduce") == 0);
  CHECK(count(f, "add") == 2);
  CHECK(count(f, "slice") == 0);
  CHECK(count(f, "identity") == 3);
  CHECK(device_of(f, 0) == "/gpu:1");
  CHECK(device_of(f, 1) == "/gpu:0");
  CHECK(device_of(f, 2) == "/gpu:2");
  CHECK(bytes_moved(f) == 4 * 400);
}

TEST_CASE_FIXTURE(own_graph, "large tensors are added in slices, one on each device") {
  const flat_graph f = expanded({"/gpu:1", "/gpu:0", "/gpu:3", "/gpu:2"}, {large / 2, 2});
  CHECK(count(f, "slice") == 16);
  CHECK(count(f, "add") == 12);
  CHECK(count(f, "concat") == 4);
  // Each device sends and takes three quarters twice.
  CHECK(bytes_moved(f) == 4 * 2 * 3 * large);
  std::vector<std::string> where;
  for (const auto& n : f.graph.nodes)
    if (n.op->name == "add") where.push_back(to_string(*n.device));
  std::ranges::sort(where);
  CHECK(std::unique(where.begin(), where.end()) - where.begin() == 4);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(f.graph.nodes[f.fetches[i].node].outputs[0] ==
          tensor_type{{large / 2, 2}, dtype::float32});
}

TEST_CASE_FIXTURE(own_graph, "slices make up the tensor, whatever its number of elements") {
  for (std::int64_t n : {large, large + 1, large - 1, std::int64_t{3 * 16384}}) {
    CAPTURE(n);
    const flat_graph f = expanded({"/gpu:0", "/gpu:1", "/gpu:2"}, {n}, true);
    CHECK(count(f, "div") == 3);
    for (const auto& node : f.graph.nodes)
      if (node.op->name == "concat") CHECK(node.outputs[0].shape == dims{n});
  }
}

TEST_CASE_FIXTURE(own_graph, "what is on one device is not cut into slices") {
  const flat_graph f = expanded({"/gpu:1", "/gpu:1"}, {large});
  CHECK(count(f, "slice") == 0);
  CHECK(bytes_moved(f) == 0);
}

TEST_CASE_FIXTURE(own_graph, "extents known only at run time are compared there") {
  const flat_graph f = expanded({"/gpu:0", "/gpu:1"}, {dyn, large});
  CHECK(count(f, "slice") == 0);
  CHECK(count(f, "agree") == 1);
}
