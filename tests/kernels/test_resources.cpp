// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <deft/kernels/resources.hpp>

#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;

namespace {
resource_key key(const char* container, const char* name) { return {"variable", container, name}; }
class box final : public resource {
 public:
  int value = 7;
  void clear() override { value = 0; }
  std::size_t bytes() const override { return sizeof value; }
  std::string describe() const override { return "box"; }
};
}  // namespace

TEST_CASE("a variable has one dtype and shape on a task") {
  resource_store store;
  auto v = find_variable(store, key("", "v"), {dims{2}, dtype::float32});
  auto w = find_variable(store, key("other", "v"), {dims{3}, dtype::float64});
  CHECK(find_variable(store, key("", "v"), {dims{2}, dtype::float32}) == v);
  CHECK(w != v);
  v->value = any_array(dtype::float32, dims{2});
  CHECK(testing::error_of([&] {
          find_variable(store, key("", "v"), {dims{3}, dtype::float32});
        }) == "invalid_argument: variable \"v\" is float(2) on this task, not float(3)");
  CHECK(store.list() == std::vector<std::string>{"v double(3)", "v float(2)"});
  CHECK(store.bytes() == 8);
}

TEST_CASE("reset empties resources that are held, and removes the others") {
  resource_store store;
  auto v = find_variable(store, key("", "v"), {dims{2}, dtype::float32});
  static_cast<void>(find_variable(store, key("", "gone"), {dims{2}, dtype::float32}));
  auto kept = find_variable(store, key("other", "v"), {dims{2}, dtype::float32});
  v->value = kept->value = any_array(dtype::float32, dims{2});
  store.clear("");
  CHECK_FALSE(v->value.valid());
  CHECK(kept->value.valid());
  CHECK(store.list() == std::vector<std::string>{"v float(2)", "v float(2)"});
  CHECK(find_variable(store, key("", "v"), {dims{2}, dtype::float32}) == v);
  // An empty variable may have another type.
  CHECK(find_variable(store, key("", "v"), {dims{5}, dtype::int32}) == v);
  CHECK(v->describe() == "int32(5)");
}

TEST_CASE("variables that never had a value are forgotten once nothing uses them") {
  resource_store store;
  const tensor_type scalar{dims{}, dtype::float32};
  auto held = find_variable(store, key("", "held"), scalar);
  find_variable(store, key("", "has a value"), scalar)->value = any_array::scalar(1.f);
  for (int i = 0; i < 100'000; ++i)
    static_cast<void>(find_variable(store, key("", str("v", i).c_str()), scalar));
  CHECK(store.list().size() < 2'000);
  CHECK(find_variable(store, key("", "held"), scalar) == held);
  CHECK(find_variable(store, key("", "has a value"), scalar)->value.valid());
}

TEST_CASE("resources of different kinds may share a name, those of one kind have one type") {
  resource_store store;
  auto make = [] { return std::make_shared<box>(); };
  auto b = store.get<box>({"box", "", "v"}, make);
  CHECK(store.get<box>({"box", "", "v"}, make) == b);
  CHECK_NOTHROW(find_variable(store, key("", "v"), {dims{}, dtype::float32}));
  CHECK(testing::error_of([&] {
          find_variable(store, {"box", "", "v"}, {dims{}, dtype::float32});
        }) == "invalid_argument: \"v\" is a box of another type on this task");
  store.clear("");
  CHECK(b->value == 0);
}
