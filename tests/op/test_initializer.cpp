// SPDX-License-Identifier: Apache-2.0
#include <deft/op/variable.hpp>
#include <deft/session/session.hpp>
#include <deft/train/optimizers.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::maker;

namespace {
std::uint64_t initial_key(const any_tensor& v) {
  return decode<op::truncated_normal>(maker(v).variable()->initial.node->attributes).key;
}
}  // namespace

TEST_CASE_FIXTURE(testing::own_graph, "initial values may be given in every form") {
  ndarray<float, 3> array{1, 2, 3};
  variable<float, 3> a("a", zeros()), b("b", ones()), c("c", 0.5), d("d", array),
      e("e", constant({1.f, 2.f, 3.f})), f("f", random_uniform(-1, 1)), h("h", random_normal(0, 1)),
      i("i", constant(2.f)), j("j", 1);
  variable<float, dyn> k("k", array);
  variable<std::int64_t> n("n", 5);
  for (const auto& v : g.variables()) {
    CAPTURE(name_of(*v));
    const output& initial = v->variable()->initial;
    CHECK(initial.type().type == v->outputs[0].type);
    CHECK(may_equal(initial.type().shape, v->outputs[0].shape));
    CHECK(initial.type().shape.is_static());
  }
  CHECK(testing::error_of([] { variable<float, 3> v("v", any_array(dtype::float32, dims{4})); })
            .starts_with("invalid_argument: [variable] expects an initial value of float(3), and "
                         "got float(4), node \"v\" at test_initializer.cpp:"));
  CHECK(testing::error_of([] {
          variable<float, 3> v("", zeros());
        }).starts_with("invalid_argument: [variable] expects a name"));
  CHECK(testing::error_of([] {
          variable<float> v("v", 1e300);
        }).starts_with("invalid_argument: the literal 1e+300 does not fit float"));
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "an initial value may be a list, rows of lists, or a vector") {
  const std::vector<float> elements{1, 2};
  variable<float, 2> a("a", {1, 2}), b("b", elements);
  variable<int, 2, 2> c("c", {{1, 2}, {3, 4}}), d("d", {1, 2, 3, 4});
  variable<double, 1, 2, 2> e("e", {{{1, 2}, {3, 4}}}, {.trainable = false});
  variable<float, dyn> f("f", elements);
  any_variable h("h", {2}, elements);
  session s;
  s.run(initialize_all());
  for (const auto& v : {any_variable(a), any_variable(b), any_variable(f), h})
    CHECK(s.run(v) == ndarray<float, 2>{1, 2}.array());
  for (const auto& m : {c, d}) CHECK(s.run(m) == ndarray<int, 2, 2>{1, 2, 3, 4});
  CHECK(s.run(e) == ndarray<double, 1, 2, 2>{1, 2, 3, 4});
  CHECK_FALSE(e.handle().node->variable()->trainable);
  CHECK(testing::error_of([] {
          variable<std::uint8_t, 2> v("v", {1, 300});
        })
            .starts_with("invalid_argument: the literal 300 does not fit uint8, node \"v\" at "
                         "test_initializer.cpp:"));
}

TEST_CASE("random initial values depend on name and seed, not on the order of creation") {
  auto keys = [](bool turned, std::uint64_t seed) {
    graph g;
    auto in = as_default(g);
    set_seed(seed);
    std::optional<variable<float, 2>> a, b;
    if (turned) {
      b.emplace("b", truncated_normal(1));
      auto unrelated = random_uniform(shape<2>);
    }
    a.emplace("a", truncated_normal(1));
    if (!turned) b.emplace("b", truncated_normal(1));
    return std::pair(initial_key(*a), initial_key(*b));
  };
  CHECK(keys(false, 1) == keys(true, 1));
  CHECK(keys(false, 1) != keys(false, 2));
  CHECK(keys(false, 1).first != keys(false, 1).second);
}

TEST_CASE_FIXTURE(testing::own_graph, "an initial value may use another variable's") {
  variable<float, 2> a("a", truncated_normal(1));
  variable<float, 2> b("b", a * 2 + 1), c("c", a), d("d", a.initial_value());
  const output& first = maker(a).variable()->initial;
  CHECK(maker(b).variable()->initial.node->inputs()[0] == first);
  CHECK(maker(c).variable()->initial == first);
  CHECK(maker(d).variable()->initial == first);
  CHECK(maker(b).variable()->initial.node->location() == maker(b).location());
  const auto updated = [&] { variable<float, 2> e("e", a.assign(a * 2).value() + 1); };
  CHECK(testing::error_of(updated).starts_with("invalid_argument: [variable] an initial value "));
}

TEST_CASE_FIXTURE(testing::own_graph, "the first value is computed on the variable's device") {
  int asked = 0;
  auto scope = on(device([&](const node_info& n) {
    const bool is_variable = n.role == op_role::variable;
    asked += is_variable;
    CHECK((n.op == "variable") == is_variable);
    return std::string(is_variable ? "/job:ps" : "/job:worker");
  }));
  variable<float, 2> v("v", truncated_normal(1));
  CHECK(asked == 1);
  REQUIRE(maker(v).device());
  CHECK(to_string(*maker(v).device()) == "/job:ps");
  CHECK(maker(v).variable()->initial.node->device() == maker(v).device());
  tensor<float, 2> y = v + 1;
  CHECK(to_string(*maker(y).device()) == "/job:worker");
}

TEST_CASE_FIXTURE(testing::own_graph, "extents may be given at run time, with any initializer") {
  const std::int64_t in = 3, out = 2;
  session s;
  const initializer all[] = {zeros(),
                             ones(),
                             truncated_normal(0.1),
                             random_normal(0, 1),
                             random_uniform(1, 2),
                             initializer(7.f),
                             initializer(ndarray<float, dyn, dyn>(in, out))};
  int number = 0;
  for (const auto& first : all) {
    variable<float, dyn, dyn> v(str("v", ++number), {in, out}, first);
    any_variable w(str("w", number), {in, out}, first);
    any_variable d(str("d", number), {in}, 0.5, dtype::float64, {.trainable = false});
    CHECK(any_tensor(v).shape() == dims{in, out});
    CHECK(w.shape() == dims{in, out});
    CHECK(d.type() == dtype::float64);
    CHECK_FALSE(d.handle().node->variable()->trainable);
    const auto train = adagrad(0.1f).minimize(sum(square(v)) + sum(square(w)));
    s.run(initialize_all());
    const auto before = s.run(sum(square(w)));
    CHECK(s.run(v).extents() == dims{in, out});
    s.run(train);
    if (const float b = before.data<float>()[0]; b > 0)
      CHECK(s.run(sum(square(w))).data<float>()[0] < b);
  }
  CHECK(testing::error_of([&] {
          variable<float, dyn, 4>("v", {in, out}, zeros());
        })
            .starts_with(
                "invalid_argument: [variable] expects extents (?,4), and got (3,2), node \"v\""));
  CHECK(testing::error_of([&] {
          any_variable("w", {in, dyn}, zeros());
        }).starts_with("invalid_argument: [variable] expects known extents, and got (3,?)"));
}
