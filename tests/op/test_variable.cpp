// SPDX-License-Identifier: Apache-2.0
#include <deft/op/gradients.hpp>
#include <deft/op/variable.hpp>
#include <deft/session/session.hpp>
#include <deft/train/optimizers.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::maker;

namespace {
const op::variable state_of(const any_tensor& v) {
  return decode<op::variable>(maker(v).attributes);
}
}  // namespace

TEST_CASE_FIXTURE(testing::own_graph, "a variable's name includes its scopes") {
  auto scope = name_scope("layer1");
  variable<float, 784, 10> w("w", truncated_normal(0.05), {.container = "mine"});
  op::variable s = state_of(w);
  CHECK(s.variable_name == "layer1/w");
  CHECK(s.container == "mine");
  CHECK(s.shape == dims{784, 10});
  CHECK(name_of(w) == "layer1/w");
  CHECK(g.find_variable("layer1/w") == w.handle().node);
  CHECK(maker(w).variable()->trainable);
  CHECK(testing::error_of([] {
          variable<float> bad("my var", 0.f);
        }).find("[variable] \"my var\" is not a valid name: it may have letters") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "a second variable of the same name is an error that names both lines") {
  variable<float> v("v", 0.f);
  unsigned first = __LINE__ - 1, second = __LINE__ + 1;
  std::string e = testing::error_of([] { variable<float> w("v", 0.f); });
  INFO(e);
  CHECK(e.starts_with(
      "already_exists: [variable] a variable named \"v\" exists already: it was made at "
      "test_variable.cpp:" +
      std::to_string(first) + ", node \"v\" at test_variable.cpp:" + std::to_string(second)));
  placeholder<float> x("x");
  CHECK(testing::error_of([] {
          variable<float> w("x", 0.f);
        }).starts_with("already_exists: [variable] the name \"x\" is taken by the placeholder"));
}

TEST_CASE_FIXTURE(testing::own_graph, "a name is free again once its variable is gone") {
  { variable<float> v("v", 0.f); }
  CHECK(testing::error_of([] { variable<double, 2> v("v", zeros()); }).empty());
  CHECK(g.size() == 0);
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "updates run on the variable's device, their values where written") {
  std::optional<variable<float, 2>> made;
  if (auto ps = on(device("/job:ps"))) made.emplace("v", zeros());
  variable<float, 2>& v = *made;
  auto scope = on(device("/job:worker"));
  auto update = v.assign_sub(v * 0.1f);
  static_assert(std::derived_from<decltype(update), operation>);
  static_assert(std::is_same_v<decltype(update.value()), tensor<float, 2>>);
  const node& n = *update.handle();
  CHECK(n.def->name == "assign_sub");
  CHECK(n.device() == maker(v).device());
  CHECK(to_string(*n.inputs()[0].node->device()) == "/job:worker");
  CHECK(n.attributes.size() == 5);
  CHECK(n.def->is(op_traits::effect));
  operation op = update;
  CHECK(op.handle() == update.handle());
  CHECK(update.value().handle().node == update.handle());
  CHECK_FALSE(same(v.assign_add(1).value(), v.assign_add(1).value()));
  CHECK(maker(v.assign_add(1).value()).inputs()[0].type().shape == dims{2});
}

TEST_CASE_FIXTURE(testing::own_graph, "an update keeps its variable alive") {
  operation up = [] {
    variable<std::int64_t> counter("counter", 0);
    return operation(counter.assign_add(1));
  }();
  CHECK(g.variables().size() == 1);
  up = {};
  CHECK(g.size() == 0);
}

TEST_CASE_FIXTURE(testing::own_graph, "a read under control dependencies is a new read") {
  variable<float> v("v", 1.f);
  tensor<float> plain = v;
  CHECK(same(plain, v));
  CHECK(same(v.read(), v));
  auto up = v.assign_add(1);
  auto after = control_dependencies(up);
  tensor<float> later = v, again = v, assigned;
  assigned = v;
  tensor<float> doubled = v * 2;
  CHECK(maker(later).def->name == "read_variable");
  CHECK(maker(later).controls()[0] == up.handle());
  CHECK(same(later, again));
  CHECK(same(later, assigned));
  CHECK(same(later, v.read()));
  CHECK(maker(doubled).inputs()[0] == later.handle());
  CHECK(any_tensor(v).handle() == later.handle());
}

TEST_CASE_FIXTURE(testing::own_graph, "initialize_all covers the live variables") {
  variable<float> a("a", 1.f);
  auto b = std::make_unique<variable<float, 2>>("b", zeros());
  CHECK(initialize_all().handle()->controls().size() == 2);
  b.reset();
  operation init = initialize_all();
  REQUIRE(init.handle()->controls().size() == 1);
  const node& assign = *init.handle()->controls()[0];
  CHECK(assign.def->name == "assign");
  CHECK(assign.inputs()[0] == maker(a).variable()->initial);
  auto nodes = g.size();
  for (int i = 0; i < 100; ++i) (void)initialize_all();
  CHECK(g.size() == nodes);
  CHECK(a.initializer().handle()->inputs()[0] == maker(a).variable()->initial);
}

TEST_CASE_FIXTURE(testing::own_graph, "there is one global_step in a graph") {
  auto scope = name_scope("train");
  auto a = global_step(), b = global_step();
  CHECK(same(a, b));
  CHECK(name_of(a) == "global_step");
  CHECK_FALSE(maker(a).variable()->trainable);
  graph other;
  auto in = as_default(other);
  CHECK_FALSE(same(a, global_step()));
}

TEST_CASE_FIXTURE(testing::own_graph, "variables are found and updated at run time") {
  variable<float, 2> v("v", zeros());
  any_tensor x(v);
  any_tensor up = assign_add(x, x * 2).value();
  CHECK(maker(up).def->name == "assign_add");
  variable<float, 2> found(g.find_variable("v"));
  CHECK(same(found, v));
  auto check = [](auto f, std::string_view text) {
    std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with(text));
  };
  check(
      [&] {
        assign(x, any_tensor(constant({1, 2})));
      },
      "invalid_argument: [assign] int32(2) does not fit variable \"v\", which is float(2)");
  check([&] { assign(x * 2, x); }, "invalid_argument: [assign] expects a variable");
  check([&] { variable<float, 3>(g.find_variable("v")); },
        "invalid_argument: [variable] expects a variable of float(3), and got float(2)");
  check([&] { variable<float, 3>(g.find_variable("w")); },
        "not_found: [variable] expects a variable of a graph, and got none: the graph has no "
        "variable "
        "of that name");
  auto after = control_dependencies(up);
  CHECK(maker(assign(any_tensor(v), x).value()).def->name == "assign");
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "a variable of run-time extents is updated by its value's shape") {
  any_array first(dtype::float32, {2, 3});
  for (int i = 0; i < 6; ++i) first.mutable_data<float>()[i] = static_cast<float>(i);
  variable<float, dyn, dyn> w("w", first);
  auto step = w.assign_sub(w * 0.5f);
  session s;
  s.run(initialize_all());
  s.run(step);
  CHECK(s.run(w)(1, 2) == 2.5f);
  auto [dw] = gradients(sum(square(w)), w);
  s.run(w.assign_sub(dw * 0.5f));
  CHECK(s.run(w)(1, 2) == 0.f);
  // Updates by a scalar, and by an optimizer that has slots.
  s.run(w.assign_add(3.f));
  CHECK(s.run(w)(1, 2) == 3.f);
  auto train = adagrad(1.f, 0.25f).minimize(sum(square(w)));
  s.run(initialize_all());
  s.run(train);
  CHECK(s.run(w)(1, 2) == doctest::Approx(5 - 10 / std::sqrt(0.25 + 100)));
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "an update's value is not broadcast, with static or run-time extents") {
  variable<float, 2, 3> fixed("fixed", ones());
  variable<float, dyn, dyn> open("open", ndarray<float, dyn, dyn>(2, 3));
  placeholder<float, dyn, dyn> x("x");
  const any_tensor row(constant({{1.f, 2.f, 3.f}})), column(constant({{1.f}, {2.f}}));
  const any_tensor flat(constant({1.f, 2.f, 3.f})), one(constant(1.f));
  session s;
  s.run(initialize_all());
  for (auto update : {&assign_add, &assign_sub}) {
    for (const any_tensor& value : {row, column, flat, one}) {
      const std::string e = testing::error_of([&] { update(any_tensor(fixed), value, here()); });
      INFO(e);
      CHECK(e.find(" does not fit variable \"fixed\", which is float(2,3)") != std::string::npos);
    }
    // A wrong rank is detected when the node is made, wrong extents when it runs.
    for (const any_tensor& value : {flat, one}) {
      const std::string e = testing::error_of([&] { update(any_tensor(open), value, here()); });
      INFO(e);
      CHECK(e.find(" does not fit variable \"open\", which is float(?,?)") != std::string::npos);
    }
    for (const any_tensor& value : {row, column, any_tensor(x)}) {
      const operation step = update(any_tensor(open), value, here());
      const std::string e = testing::error_of([&] {
        if (same(value, any_tensor(x)))
          s.run(step, x = ndarray<float, 1, 1>{1});
        else
          s.run(step);
      });
      INFO(e);
      CHECK(e.starts_with("invalid_argument: [assign_"));
      CHECK(e.find(" does not fit variable \"open\", which is float(2,3), node \"assign_") !=
            std::string::npos);
      CHECK(e.find(" at test_variable.cpp:") != std::string::npos);
    }
  }
  s.run(assign_add(any_tensor(open), broadcast_to(row, any_tensor(open))));
  CHECK(s.run(open)(1, 2) == 3.f);
}

TEST_CASE("after a reset a variable has the type of the plan that sets it") {
  session s;
  auto make = [](auto v) { return std::pair(v, v.initializer()); };
  graph one, two;
  auto [small, set_small] = [&] {
    auto in = as_default(one);
    return make(variable<float, 2>("w", zeros()));
  }();
  auto [large, set_large] = [&] {
    auto in = as_default(two);
    return make(variable<float, 3>("w", ones()));
  }();
  s.run(set_small);
  CHECK(testing::error_of([&s, &w = large] {
          s.run(w);
        }).find("is float(2) on this task, not float(3)") != std::string::npos);
  s.reset();
  CHECK(testing::error_of([&s, &w = large] { s.run(w); }).find("not initialized") !=
        std::string::npos);
  s.run(set_small);  // a plan made before the reset
  CHECK(s.run(small + 0.f) == ndarray<float, 2>{0.f, 0.f});
  CHECK(testing::error_of([&s, &set = set_large] {
          s.run(set);
        }).find("float(2) on this task, not float(3)") != std::string::npos);
  // A variable with dyn extents may change them after its first value.
  graph three;
  auto in = as_default(three);
  variable<float, dyn> open("w", constant({1.f}));
  auto assign_three = open.assign(constant({1.f, 2.f, 3.f}));
  s.reset();
  s.run(assign_three);
  s.reset();
  {
    auto in_one = as_default(one);
    s.run(small.assign(constant({1.f, 1.f})));  // a plan made after the reset
  }
  s.reset();
  s.run(assign_three);
  s.run(open.assign(constant({5.f, 6.f})));
  CHECK(s.run(open) == ndarray<float, dyn>{5.f, 6.f});
}

TEST_CASE_FIXTURE(testing::own_graph, "layers whose sizes are known at run time train") {
  const std::vector<std::int64_t> sizes{2, 8, 4, 1};
  std::vector<any_variable> weights, biases;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    weights.emplace_back(str("w", i), dims{sizes[i], sizes[i + 1]}, random_uniform(-0.5, 0.5));
    biases.emplace_back(str("b", i), dims{sizes[i + 1]}, 0.1f);
  }
  placeholder<float, dyn, 2> x("x");
  placeholder<float, dyn, 1> y("y");
  any_tensor h = x;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    h = matmul(h, weights[i]) + biases[i];
    if (i + 1 < weights.size()) h = tanh(h);
  }
  const auto loss = mean(square(h - y));
  const auto train = sgd(0.3f).minimize(loss);
  session s;
  s.run(initialize_all());
  const std::vector<feed_value> both = [&] {
    std::vector<feed_value> f;
    f.push_back(x = {{0, 0}, {0, 1}, {1, 0}, {1, 1}});
    f.push_back(y = {{0}, {1}, {1}, {1}});
    return f;
  }();
  const float before = s.run(loss, both).data<float>()[0];
  for (int i = 0; i < 300; ++i) s.run(train, both);
  CHECK(s.run(loss, both).data<float>()[0] < 0.1f * before);
}

TEST_CASE_FIXTURE(testing::own_graph, "a variable is assigned a host value") {
  session s;
  variable<float, 2, 2> fixed("fixed", zeros());
  any_variable open("open", {2, 2}, zeros());
  s.run(initialize_all());
  ndarray<float, 2, 2> value{1, 2, 3, 4};
  const operation set = fixed.assign(value), set_open = open.assign(value);
  value(0, 0) = 9;  // the graph has a copy
  s.run(set, set_open);
  s.run(fixed.assign_add(ndarray<float, dyn, 2>(2)));
  CHECK(s.run(fixed) == ndarray<float, 2, 2>{1, 2, 3, 4});
  CHECK(s.run(open) == s.run(fixed).array());
  s.run(fixed.assign({{5, 6}, {7, 8}}));
  CHECK(s.run(fixed) == ndarray<float, 2, 2>{5, 6, 7, 8});
  s.run(fixed.assign({1, 2, 3, 4}));
  CHECK(s.run(fixed) == ndarray<float, 2, 2>{1, 2, 3, 4});
  variable<float, 3> list("list", zeros());
  any_variable any_list("any_list", {3}, zeros());
  std::vector<float> three{1, 2, 3};
  const operation set_list = list.assign(three), set_any = any_list.assign(three);
  three[0] = 9;
  s.run(set_list, set_any);
  CHECK(s.run(list) == ndarray<float, 3>{1, 2, 3});
  CHECK(s.run(any_list) == s.run(list).array());
  CHECK(testing::error_of([&] {
          list.assign(std::vector<float>(2));
        }).starts_with("invalid_argument: [assign] float(2) does not fit variable \"list\""));
  s.run(open.assign_sub(1), fixed.assign(value.array()));
  CHECK(s.run(open).data<float>()[3] == 3);
  CHECK(s.run(fixed)(0, 0) == 9);
  CHECK(testing::error_of([&] {
          open.assign(ndarray<float, 3>());
        }).starts_with("invalid_argument: [assign] float(3) does not fit variable \"open\""));
  variable<std::uint8_t> small("small", 0);
  const unsigned at = __LINE__ + 1;
  const std::string unfit = testing::error_of([&] { small.assign(300); });
  CHECK(unfit == str("invalid_argument: the literal 300 does not fit uint8, node \"small\" at "
                     "test_variable.cpp:",
                     at));
  const tensor<float, 2, 2> empty;
  const unsigned line = __LINE__ + 1;
  const std::string refused = testing::error_of([&] { fixed.assign(empty); });
  CHECK(refused ==
        str("failed_precondition: an empty tensor is used as operand 1, node \"assign\" at "
            "test_variable.cpp:",
            line));
  CHECK(testing::error_of([&] {
          open.assign_add(any_tensor());
        }).starts_with("failed_precondition: an empty tensor is used"));
  any_variable whole("whole", {1}, 1, dtype::int32);
  CHECK(testing::error_of([&] {
          whole.assign(0.5);
        }).starts_with("invalid_argument: a floating literal with a tensor of int32"));
}

TEST_CASE_FIXTURE(testing::own_graph, "an any_variable is read after its control dependencies") {
  any_variable v("v", {}, 1.f);
  any_variable found(g.find_variable("v"));
  CHECK(found.handle() == v.handle());
  session s;
  s.run(v.initializer());
  const auto up = v.assign_add(1.f);
  auto after = control_dependencies(up);
  const any_tensor sum = v + 10.f;
  CHECK(s.run(sum).data<float>()[0] == 12);
  CHECK(s.run(v.read()).data<float>()[0] == 3);
  CHECK(testing::error_of([&] { any_variable{node_ref()}; }) ==
        "not_found: [variable] expects a variable of a graph, and got none: the graph has no "
        "variable "
        "of that name");
}

TEST_CASE_FIXTURE(testing::own_graph, "an any_variable may be declared before it is made") {
  any_variable w;
  CHECK_FALSE(w.valid());
  const std::string e = testing::error_of([&] { w * 2; });
  CHECK(e == "failed_precondition: an empty variable is used: it was declared, but never assigned");
  if (auto there = on(device("/cpu:0"))) w = any_variable("w", {2}, 3.f);
  session s;
  s.run(initialize_all());
  CHECK(ndarray<float, 2>(s.run(w * 2)) == ndarray<float, 2>{6, 6});
}
