// SPDX-License-Identifier: Apache-2.0
#include <deft/op/group.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::maker;

TEST_CASE_FIXTURE(testing::own_graph, "a group depends on operations, updates and tensors") {
  variable<float> v("v", 0.f);
  placeholder<float> x("x");
  auto up = v.assign(1);
  operation nothing = no_op();
  operation all = group(up, nothing, x * 2, x, any_tensor(x));
  CHECK(all.handle()->outputs.empty());
  CHECK(all.handle()->controls().size() == 5);
  CHECK(all.handle()->location().known());
  std::vector<operation> list{up, nothing};
  CHECK(group(list).handle()->controls().size() == 2);
  CHECK(group(up, nothing).handle() == group(up, nothing).handle());
  CHECK(group().handle()->controls().empty());
}

TEST_CASE_FIXTURE(testing::own_graph, "a group can be placed on any device") {
  auto scope = on(device("/gpu:0"));
  CHECK(group(no_op()).handle()->device() == nullptr);
}

TEST_CASE_FIXTURE(testing::own_graph, "control dependencies are part of a node's identity") {
  placeholder<float> x("x");
  operation first = no_op();
  tensor<float> before = x + 1;
  {
    auto after = control_dependencies(first);
    tensor<float> inside = x + 1;
    CHECK_FALSE(same(before, inside));
    CHECK(maker(inside).controls().size() == 1);
    CHECK(no_op().handle()->controls().size() == 1);
  }
  tensor<float> later = x + 1;
  CHECK(same(before, later));
}

TEST_CASE_FIXTURE(testing::own_graph, "an operation yields no value") {
  CHECK(testing::error_of([] { group().handle(); }).empty());
  CHECK(testing::error_of([] { (void)operation().handle(); }) ==
        "failed_precondition: an empty operation is used: it was declared, but never assigned");
  graph other;
  operation elsewhere = [&] {
    auto in = as_default(other);
    return no_op();
  }();
  CHECK(testing::error_of([&] {
          group(no_op(), elsewhere);
        }).starts_with("invalid_argument: [group] the operations are of different graphs"));
}

TEST_CASE_FIXTURE(testing::own_graph, "identity and stop_gradient keep the type") {
  placeholder<float, dyn, 3> x("x");
  static_assert(std::is_same_v<decltype(identity(x)), tensor<float, dyn, 3>>);
  static_assert(std::is_same_v<decltype(stop_gradient(x * 2)), tensor<float, dyn, 3>>);
  CHECK(same(identity(x), identity(x)));
  auto scope = on(device("/cpu:1"));
  CHECK(to_string(*maker(identity(x)).device()) == "/cpu:1");
}

TEST_CASE_FIXTURE(testing::own_graph, "name adds a name") {
  placeholder<float, 3> x("x");
  auto scope = name_scope("layer1");
  auto logits = name(x * 2 + 1, "logits");
  static_assert(std::is_same_v<decltype(logits), tensor<float, 3>>);
  CHECK(g.find("layer1/logits") == logits.handle().node);
  CHECK(same(name(any_tensor(logits), "other"), any_tensor(logits)));
  CHECK(g.find("layer1/other") == logits.handle().node);
  CHECK(testing::error_of([&] { name(x, "logits"); })
            .starts_with("already_exists: [name] the name \"layer1/logits\" is taken by the node "
                         "made at test_group.cpp:"));
}
