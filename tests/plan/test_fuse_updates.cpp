// SPDX-License-Identifier: Apache-2.0
// Updates of variables are joined into one pass.
#include <deft/op/catalog.hpp>
#include <deft/plan/plan_shape.hpp>
#include <deft/session/session.hpp>
#include <thread>

#include "fusing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::flat;
using testing::fused;
using testing::names;
using testing::ops_of;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "an update takes in the nodes that only it needs") {
  placeholder<float, 3> g("g");
  variable<float, 3> w("w", zeros()), acc("acc", zeros());
  auto sgd = w.assign_sub(g * 0.1f);
  flat_graph f = fused(flat({any_tensor(sgd.value())}));
  CHECK(ops_of(f.graph) == names{"placeholder", "fused_update"});
  auto o = decode<op::fused_update>(f.graph.nodes[1].attributes);
  CHECK(o.program->signature == "t0=mul(i1:float,k0:float):float t1=sub(i0:float,t0):float");
  CHECK(o.names == strings{"w"});
  // The old value is read in place if the variable has no other update.
  auto decayed = w.assign_sub((g + w * 0.01f) * 0.1f);
  f = fused(flat({any_tensor(decayed.value())}));
  CHECK(ops_of(f.graph) == names{"placeholder", "fused_update"});
  CHECK(f.graph.nodes[1].inputs.size() == 1);
  // It takes in no node that others need, and leaves a plain update as it is.
  tensor<float, 3> step = g * 0.1f;
  f = fused(flat({any_tensor(w.assign_sub(step).value()), any_tensor(step)}));
  CHECK(ops_of(f.graph) == names{"placeholder", "fused", "assign_sub"});
  CHECK(ops_of(fused(flat({any_tensor(w.assign_add(g).value())})).graph) ==
        names{"placeholder", "assign_add"});
}

TEST_CASE_FIXTURE(own_graph, "an assignment computed from the old value becomes an update") {
  placeholder<float, 3> g("g");
  variable<float, 3> w("w", zeros()), m("m", zeros());
  flat_graph f = fused(flat({any_tensor(w.assign(w * 0.9f + g).value())}));
  REQUIRE(ops_of(f.graph) == names{"placeholder", "fused_update"});
  CHECK(decode<op::fused_update>(f.graph.nodes[1].attributes).program->signature ==
        "t0=mul(i0:float,k0:float):float t1=add(t0,i1:float):float");
  // It may have several nodes, and be part of another update.
  const any_tensor kept = any_tensor(m) * 0.9f;
  auto moved = m.assign(any_tensor(kept + g));
  f = fused(flat({any_tensor(w.assign_sub(moved.value() * 0.1f).value())}));
  REQUIRE(ops_of(f.graph) == names{"placeholder", "fused_update"});
  CHECK(decode<op::fused_update>(f.graph.nodes[1].attributes).names == strings{"w", "m"});
  // It does not if the variable may have no value yet, or if others need the new value.
  CHECK(ops_of(fused(flat({any_tensor(w.assign(g * 2.f).value())})).graph) ==
        names{"placeholder", "fused", "assign"});
  const tensor<float, 3> shared = w * 0.9f + g;
  CHECK(ops_of(fused(flat({any_tensor(w.assign(shared).value()), any_tensor(shared)})).graph) ==
        names{"variable", "placeholder", "fused", "assign"});
  variable<int, 3> n("n", zeros());
  CHECK(std::ranges::count(ops_of(fused(flat({any_tensor(n.assign(n / 2).value())})).graph),
                           "assign") == 1);

  session s, unfused({.fuse = false});
  ndarray<float, 3> expected{0, 0, 0};
  for (session* each : {&s, &unfused}) {
    each->run(initialize_all());
    for (int i = 0; i < 3; ++i) each->run(w.assign_sub(moved.value() * 0.1f), g = {1.f, 2.f, 3.f});
    const auto got = each->run(w);
    if (each == &s)
      expected = got;
    else
      CHECK(got == expected);
  }
  CHECK(expected(0) == doctest::Approx(-0.1 * (1 + 1.9 + 2.71)));
}

TEST_CASE_FIXTURE(own_graph, "an assignment may need the old value only through other operations") {
  variable<float, 3, 3> v("v", ndarray<float, 3, 3>{1, 2, 0, 0, 1, 3, 1, 0, 1});
  const auto next = v.assign(relu(matmul(v, v)) * 0.5f - 1.f);
  const flat_graph f = fused(flat({any_tensor(next.value())}));
  REQUIRE(ops_of(f.graph) == names{"variable", "matmul", "fused_update"});
  session s, unfused({.fuse = false}), gpu({.simulated_gpus = 1});
  ndarray<float, 3, 3> results[3];
  session* const sessions[] = {&s, &unfused, &gpu};
  for (int i = 0; i < 3; ++i) {
    CHECK(testing::error_of([&] { sessions[i]->run(next); }).find("not initialized") !=
          std::string::npos);
    sessions[i]->run(initialize_all());
    const auto before = sessions[i]->run(v);  // is not written
    for (int n = 0; n < 4; ++n) results[i] = sessions[i]->run(next.value());
    CHECK(results[i] == sessions[i]->run(v));
    CHECK(before(1, 2) == 3);
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
}

TEST_CASE_FIXTURE(own_graph, "an update takes in an expression whose literals come with each run") {
  placeholder<float, 3> g("g");
  variable<float, 3> w("w", zeros());
  auto sgd = [&](float rate) { return any_tensor(w.assign_sub(g * rate + 1.f).value()); };
  flat_graph f = flat({sgd(0.1f)});
  plan::feed_literals(f, {true}, 0);
  f = fused(std::move(f));
  CHECK(ops_of(f.graph) == names{"feed", "feed", "placeholder", "fused_update"});
  auto o = decode<op::fused_update>(f.graph.nodes[3].attributes);
  CHECK(o.program->signature ==
        "t0=mul(i1:float,i2:float):float t1=add(t0,i3:float):float t2=sub(i0:float,t1):float");
  CHECK(o.program->pieces.empty());
  // So do reductions and named values.
  tensor<float, 3> scaled = g * 3.f;
  f = flat({sum(scaled * g)});
  plan::feed_literals(f, {true}, 0);
  CHECK(ops_of(fused(std::move(f)).graph) == names{"feed", "placeholder", "fused"});
  session s;
  s.run(initialize_all());
  for (float rate : {0.5f, 2.f, 4.f}) s.run(sgd(rate), g = {1.f, 2.f, 3.f});
  CHECK(s.run(w) == ndarray<float, 3>{-9.5f, -16.f, -22.5f});
}

TEST_CASE_FIXTURE(own_graph, "an update takes in the updates that it needs") {
  placeholder<float, 3> g("g");
  variable<float, 3> w("w", zeros()), m("m", zeros()), v("v", zeros());
  auto moved = m.assign_add(g * 0.1f - m * 0.2f);
  auto squares = v.assign_add((square(g) - v) * 0.3f);
  auto adam = w.assign_sub(moved.value() / sqrt(squares.value()));
  flat_graph f = fused(flat({any_tensor(adam.value())}));
  REQUIRE(ops_of(f.graph) == names{"placeholder", "fused_update"});
  auto o = decode<op::fused_update>(f.graph.nodes[1].attributes);
  CHECK(o.names == strings{"w", "v", "m"});
  CHECK(f.graph.nodes[1].inputs.size() == 1);
  CHECK(f.graph.nodes[1].outputs.size() == 3);
  // A fetch of such an update gives the new value.
  f = fused(flat({any_tensor(adam.value()), any_tensor(moved.value())}));
  REQUIRE(ops_of(f.graph) == names{"placeholder", "fused_update"});
  CHECK(f.fetches[0] == edge_def{1, 0});
  CHECK(f.fetches[1] == edge_def{1, 2});
  // An old value that is needed after the new one was written has a separate read.
  auto both = w.assign_sub(moved.value() * m);
  f = fused(flat({any_tensor(both.value())}));
  CHECK(ops_of(f.graph) == names{"placeholder", "variable", "fused_update"});
  // Updates that others wait for, of other extents, or of the same variable stay separate.
  tensor<float, 3> doubled = moved.value() * 2.f;
  flat_graph kept = [&] {
    control_scope after({moved.handle()});
    return fused(flat({any_tensor(w.assign_sub(doubled).value())}));
  }();
  CHECK(std::ranges::count(ops_of(kept.graph), "fused_update") == 2);
  variable<float, 1> small("small", zeros());
  auto sum = small.assign_add(1.f);
  auto wide = w.assign_sub(sum.value() * g);
  CHECK(std::ranges::count(ops_of(fused(flat({any_tensor(wide.value())})).graph), "fused_update") ==
        1);
  auto first = w.assign_add(g * 2.f);
  auto second = w.assign_sub(first.value() * 0.5f);
  CHECK(ops_of(fused(flat({any_tensor(second.value())})).graph) ==
        names{"placeholder", "fused_update", "fused_update"});
}

TEST_CASE_FIXTURE(own_graph, "an update of several variables is one, or none") {
  placeholder<double, 700> g("g");
  variable<double, 700> w("w", ones()), s("s", 2.);
  auto squares = s.assign_add(square(g));
  auto step = w.assign_sub(g / sqrt(squares.value()));
  session one, other({.fuse = false});
  one.run(w.initializer());
  ndarray<double, 700> gs;
  for (std::int64_t i = 0; i < 700; ++i) gs(i) = static_cast<double>(i % 7);
  CHECK(testing::error_of([&] { one.run(step, g = gs); }).find("\"s\" is not initialized") !=
        std::string::npos);
  CHECK(one.run(w)(3) == 1);
  one.run(s.initializer());
  other.run(initialize_all());
  for (int i = 0; i < 3; ++i) {
    const auto held = one.run(s);  // is not overwritten
    const auto copy = held;
    CHECK(one.run(squares.value(), step, g = gs) == other.run(squares.value(), step, g = gs));
    CHECK(held == copy);
  }
  CHECK(one.run(w) == other.run(w));
  CHECK(one.run(s) == other.run(s));
}

TEST_CASE_FIXTURE(own_graph, "two updates of the same variables wait for each other") {
  variable<double, 64> a("a", zeros()), b("b", zeros());
  auto there = b.assign_add(a.assign_add(constant(ndarray<double, 64>()) + 1.).value() * 1.);
  auto back = a.assign_add(b.assign_add(constant(ndarray<double, 64>()) + 1.).value() * 1.);
  session s;
  s.run(initialize_all());
  auto first = s.prepare(there), second = s.prepare(back);
  constexpr int times = 200;
  std::thread other([&] {
    for (int i = 0; i < times; ++i) second();
  });
  for (int i = 0; i < times; ++i) first();
  other.join();
  for (int i = 0; i < 64; ++i) CHECK(s.run(a)(i) == s.run(a)(0));
  CHECK(s.run(a)(0) > times);
}

TEST_CASE_FIXTURE(own_graph, "an update that fails has changed nothing") {
  placeholder<std::int32_t, 5000> by("by");
  variable<std::int32_t, 5000> n("n", ones());
  auto divided = n.assign_add(n * 6 / by);
  session s;
  s.run(initialize_all());
  ndarray<std::int32_t, 5000> d;
  for (auto& e : d) e = 2;
  d(4000) = 0;
  CHECK(testing::error_of([&] { s.run(divided, by = d); }).starts_with("invalid_argument"));
  for (auto e : s.run(n)) CHECK(e == 1);
  d(4000) = 3;
  s.run(divided, by = d);
  CHECK(s.run(n)(0) == 4);
  CHECK(s.run(n)(4000) == 3);
}

TEST_CASE_FIXTURE(own_graph, "updates have the same bits in one pass and in several") {
  placeholder<float, 40, 7> g("g");
  placeholder<float, 7> row("row");
  auto run = [&](bool fuse, bool old_too) {
    variable<float, 40, 7> w("w", random_uniform(-1, 1)), acc("acc", ones());
    variable<std::int32_t, 5> n("n", ones());
    tensor<float, 40, 7> grad = g * row + w * 0.01f;
    auto sum = acc.assign_add(square(grad));
    auto step = w.assign_sub(grad * 0.1f / (sqrt(sum.value()) + 1e-6f));
    auto count = n.assign_add(n * 3 - 1);
    session s({.fuse = fuse});
    s.run(initialize_all());
    ndarray<float, 40, 7> gs;
    ndarray<float, 7> rs{1, -2, .5f, 3, 0, -1, 2};
    for (int i = 0; i < 4; ++i) {
      int k = i;
      for (auto& e : gs) e = static_cast<float>((k++ * 37) % 101 - 50) / 64;
      // An old value that a fetch holds is not overwritten.
      if (old_too) {
        const auto before = s.run(w);
        const auto [old] = std::tuple(std::get<0>(s.run(w, acc, step, count, g = gs, row = rs)));
        CHECK(old == before);
      } else {
        s.run(step, count, g = gs, row = rs);
      }
    }
    return std::tuple(s.run(w), s.run(acc), s.run(n));
  };
  const auto expected = run(false, false);
  CHECK(run(true, false) == expected);
  CHECK(run(true, true) == expected);
  CHECK(std::get<2>(expected)(0) == 171);
}

TEST_CASE_FIXTURE(own_graph, "updates that need one value take it in together") {
  placeholder<float, 3> g("g");
  variable<float, 3> w("w", zeros()), d("d", zeros());
  tensor<float, 3> step = sqrt(d + 1.f) * g;
  auto average = d.assign(d * 0.5f + square(step) * 0.25f);
  auto moved = w.assign_sub(step * 0.5f);
  flat_graph f = fused(flat({any_tensor(moved.value()), any_tensor(average.value())}));
  REQUIRE(ops_of(f.graph) == names{"placeholder", "fused_update"});
  CHECK(f.graph.nodes[1].inputs.size() == 1);
  CHECK(f.graph.nodes[1].outputs.size() == 2);
  CHECK(f.fetches[0].port + f.fetches[1].port == 1);
  // What waits for both waits for the region, once.
  flat_graph grouped = fused(flat(group(moved, average)));
  REQUIRE(ops_of(grouped.graph) == names{"placeholder", "fused_update", "group"});
  CHECK(grouped.graph.nodes[2].controls.size() == 1);
  auto updates = [&](const flat_graph& kept) {
    return std::ranges::count_if(kept.graph.nodes, [](const node_def& n) {
      return n.op->role == op_role::update || n.op->role == op_role::assign;
    });
  };
  // Not where it, or what they make of it, is needed by something else,
  CHECK(updates(fused(flat(
            {any_tensor(moved.value()), any_tensor(average.value()), any_tensor(step)}))) == 2);
  CHECK(updates(fused(flat({any_tensor(moved.value()), any_tensor(average.value()),
                            any_tensor(sum(step))}))) == 2);
  {
    // one of them needs what waits for the other,
    variable<float, 3> u("u", zeros());
    tensor<float, 3> after_average;
    if (auto after = control_dependencies(average)) after_average = identity(u);
    auto needs = w.assign_sub(step * after_average);
    CHECK(updates(fused(flat(group(needs, average)))) == 2);
  }
  // or where one of them has to come before the other.
  control_scope after({average.handle()});
  auto later = w.assign_sub(step * 2.f);
  CHECK(updates(fused(flat({any_tensor(later.value())}))) == 2);
}

TEST_CASE_FIXTURE(own_graph, "updates of run-time sized variables are one where extents are kept") {
  placeholder<float, dyn> g("g");
  variable<float, dyn> w("w", ndarray<float, 3>{1, 2, 3}), m("m", ndarray<float, 3>{0, 0, 0}),
      v("v", ndarray<float, 3>{0, 0, 0});
  REQUIRE(any_variable(m).shape() == dims{dyn});
  auto ops = [&](auto... updates) {
    return ops_of(fused(flat({any_tensor(updates.value())...})).graph);
  };
  const names one{"placeholder", "fused_update"},
      two{"placeholder", "fused_update", "fused_update"};
  const auto keeping = [](const any_variable& x, const any_tensor& value, std::string_view like) {
    return assigned<any_tensor>(
        detail::update(record_of<op::assign>, x.handle(), value.handle(), {}, like));
  };
  CHECK(ops(w.assign_sub(g * 0.1f)) == one);
  // An assignment may give the variable other extents, unless it says that it does not.
  CHECK(ops(w.assign(w * 0.9f + g)) == names{"variable", "placeholder", "fused", "assign"});
  const auto longer = w.assign(w + constant({1.f, 2.f, 3.f}));
  CHECK(std::ranges::count(ops(longer), "assign") == 1);
  CHECK(ops(keeping(w, w * 0.9f + g, "w")) == one);
  auto slot = keeping(m, m * 0.5f + g, "w");
  CHECK(ops(w.assign_sub(slot.value() * 0.1f)) == one);
  CHECK(ops(v.assign_sub(slot.value() * 0.1f)) == two);
  auto sum = m.assign_add(g);
  CHECK(ops(w.assign_sub(sum.value() * 0.1f)) ==
        names{"placeholder", "assign_add", "fused_update"});

  auto train = w.assign_sub(slot.value() * 0.5f);
  session s, unfused({.fuse = false});
  for (session* each : {&s, &unfused}) {
    each->run(initialize_all());
    each->run(train, g = ndarray<float, 3>{2, 4, 6});
    CHECK(each->run(w) == ndarray<float, dyn>{0, 0, 0});
    // What would be repeated is refused, and changes nothing.
    for (const operation& refused : {operation(train), operation(w.assign_sub(g * 0.5f)),
                                     operation(keeping(w, w * 0.5f + g, "w"))}) {
      const std::string e = testing::error_of([&] {
        each->run(refused, g = ndarray<float, 4>{1, 1, 1, 1});
      });
      CAPTURE(e);
      CHECK(e.starts_with("invalid_argument"));
    }
    const std::string e =
        testing::error_of([&] { each->run(w.assign_sub(g * 0.5f), g = ndarray<float, 1>{1}); });
    CAPTURE(e);
    CHECK(e.find("] float(1) does not fit variable \"w\", which is float(3)") != std::string::npos);
    CHECK(each->run(w) == ndarray<float, dyn>{0, 0, 0});
    CHECK(each->run(m) == ndarray<float, dyn>{2, 4, 6});
    // Other extents from one run to the next, with the same feeds.
    const auto half = w.assign_sub(w * 0.5f);
    each->run(half);
    each->run(w.assign(ndarray<float, 2>{4, 8}), m.assign(ndarray<float, 2>{2, 2}));
    each->run(half);
    CHECK(each->run(w) == ndarray<float, dyn>{2, 4});
    each->run(train, g = ndarray<float, 2>{1, 1});
    CHECK(each->run(w) == ndarray<float, dyn>{1, 3});
    each->run(w.assign(ndarray<float, 1>{1}));
    each->run(longer);
    CHECK(each->run(w) == ndarray<float, dyn>{2, 3, 4});
    each->run(w.assign(ndarray<float, 2>{1, 3}));
    each->run(m.assign(ndarray<float, 1>{2}));
    CHECK(testing::error_of([&] { each->run(train, g = ndarray<float, 2>{1, 1}); }) != "");
    CHECK(each->run(w) == ndarray<float, dyn>{1, 3});
  }
  const std::string e = testing::error_of([&] { s.run(train, g = ndarray<float, 2>{1, 1}); });
  CAPTURE(e);
  CHECK(e.find("variables \"w\", float(2), and \"m\", float(1), are to be updated together") !=
        std::string::npos);
}
