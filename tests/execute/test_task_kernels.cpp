// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/host_tables.hpp>

#include <deft/op/save.hpp>

#include "executing.hpp"
#include "null_device.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

/// Has memory for one copy.
struct one_copy_device final : testing::null_device {
  using null_device::null_device;
  event_ptr copy_out(void*, const void*, std::size_t, buffer) override {
    if (copies++ > 0) fail(errc::resource_exhausted, "no memory for a copy");
    return std::make_shared<testing::null_event>();
  }
  int copies = 0;
};

struct no_call final : value_call {
  std::size_t inputs() const override { return 0; }
  any_array input(std::size_t) const override { return {}; }
  void output(std::size_t, any_array) override { ++outputs; }
  const step_context& step() const override { return testing::first_step; }
  waker make_waker() const override { return {}; }
  wait_list::ticket& ticket() override { return place; }
  std::any& state() override { return kept; }
  int outputs = 0;
  wait_list::ticket place;
  std::any kept;
};

}  // namespace

TEST_CASE("a snapshot that fails waits for the copies that have begun") {
  testing::small_task t;
  t.devices.push_back(std::make_unique<one_copy_device>(testing::task_name(), 0));
  const tensor_type type{{4}, dtype::float32};
  op::snapshot_variables o;
  for (const char* name : {"a", "b"}) {
    o.containers.push_back("");
    o.variables.push_back(name);
    o.types.push_back(type);
    find_variable(t.store, {"variable", "", name}, type)->value =
        any_array(type.type, type.shape, buffer(t.devices.back()->space().allocate(16)));
  }
  node_def n;
  n.op = &record_of<op::snapshot_variables>;
  n.attributes = encode(o);
  std::vector<transfer> none;
  const kernel_table all = task_kernels();
  const auto entry = std::ranges::find(all, n.op->name, &kernel_entry::op);
  REQUIRE(entry != all.end());
  const auto kernel = entry->make_value({n, t.store, none, none, 0, "", t.devices});
  no_call call;
  testing::null_traffic().reset();
  const std::string failed = testing::error_of([&] { kernel->run(call); });
  CHECK(failed.starts_with("resource_exhausted: "));
  CHECK(testing::null_traffic().synchronized == 1);
  CHECK(call.outputs == 0);
}
