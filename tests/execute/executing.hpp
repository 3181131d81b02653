// SPDX-License-Identifier: Apache-2.0
// tests/execute/executing.hpp: runs parts of a graph without a session.
#pragma once
#include <deft/execute/executor.hpp>
#include <deft/kernels/cpu/device.hpp>
#include <deft/plan/order.hpp>

#include "op/modeling.hpp"

namespace testing {

inline const deft::device_name& task_name() {
  static const auto& n =
      *new deft::device_name(deft::parse_device("/job:localhost/replica:0/task:0"));
  return n;
}

/// A task without a session.
struct small_task {
  std::vector<std::unique_ptr<deft::ext::device_runtime>> devices;
  deft::ext::resource_store store;

  small_task() {
    for (int i = 0; i < 2; ++i) devices.push_back(deft::ext::make_cpu_device(task_name(), i));
  }
  deft::ext::task_resources resources() { return {devices, &store}; }
};

/// Runs only the pass for variables. Nodes are on the first processor, or where the scopes ask.
inline std::vector<deft::ext::plan::part> parts_for(
    std::initializer_list<deft::any_tensor> fetches,
    std::initializer_list<deft::any_tensor> feeds = {}) {
  std::vector<deft::ext::output> f, d;
  for (const auto& t : fetches) f.push_back(t.handle());
  for (const auto& t : feeds) d.push_back(t.handle());
  deft::ext::flat_graph flat = deft::ext::flatten(f, d);
  deft::ext::plan::order_variables(flat.graph, flat.fetches);
  for (auto& n : flat.graph.nodes)
    n.device = deft::ext::intern(
        deft::ext::merge(deft::ext::merge(task_name(), deft::parse_device("/cpu:0")),
                         n.requested ? *n.requested : deft::device_name()));
  return deft::ext::plan::cut(flat.graph, flat.fetches);
}
inline deft::ext::plan::part part_for(std::initializer_list<deft::any_tensor> fetches,
                                      std::initializer_list<deft::any_tensor> feeds = {}) {
  std::vector<deft::ext::plan::part> parts = parts_for(fetches, feeds);
  REQUIRE(parts.size() == 1);
  return std::move(parts[0]);
}

template <class T, std::int64_t... E>
deft::ext::feed_ref fed(const deft::ndarray<T, E...>& a) {
  return {a.data(), a.extents(), deft::dtype_of<T>, {}};
}
inline constexpr std::span<const deft::ext::feed_ref> nothing{};
inline float first_of(const deft::any_array& a) { return a.data<float>()[0]; }
/// The variable "v" in a task's store.
inline deft::ext::variable_slot& slot_of(small_task& t, const deft::ext::tensor_type& type) {
  return *deft::ext::find_variable(t.store, {"variable", "", "v"}, type);
}
inline const deft::ext::step_context first_step{.step = 1};
inline void start(deft::ext::executable::frame& f, std::span<const deft::ext::feed_ref> feeds) {
  f.run(feeds, first_step);
}

}  // namespace testing
