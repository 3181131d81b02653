// SPDX-License-Identifier: Apache-2.0
#include <deft/op/scatter.hpp>
#include <deft/train/clip.hpp>
#include <deft/train/optimizers.hpp>
#include <functional>
#include <random>

#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;
using testing::own_graph;

namespace {

ndarray<float, 6, 2> rows_of_table() {
  ndarray<float, 6, 2> t;
  for (std::int64_t i = 0; i < 12; ++i) t.data()[i] = 0.25f * static_cast<float>(i) - 1;
  return t;
}

/// A table, and a loss of some of its rows, gathered in two places.
template <std::int64_t Rows = 6>
struct embedded {
  variable<float, Rows, 2> table{"table", rows_of_table()};
  placeholder<std::int32_t, dyn> ids{"ids"};
  tensor<float, dyn, 2> first = gather(table, ids);
  tensor<float, 2, 2> second = gather(table, constant({1, 5}));
  any_tensor loss = sum(square(first)) + sum(second * second * second);
};

std::vector<gradient_of_variable> as_whole(std::vector<gradient_of_variable> g) {
  for (auto& [v, d] : g) d = identity(d);
  return g;
}

using updating = std::function<operation(std::vector<gradient_of_variable>)>;
/// The table after some steps. It has so many rows, or any number.
template <std::int64_t Rows = 6>
any_array trained(bool whole, const ndarray<std::int32_t, dyn>& ids, const updating& apply) {
  graph g;
  auto in_graph = as_default(g);
  embedded<Rows> m;
  REQUIRE(any_variable(m.table).shape() == dims{Rows, 2});
  auto gradients = sgd(0.1).compute_gradients(m.loss);
  REQUIRE(gradients.size() == 1);
  CHECK(detail::slices_of(gradients[0].gradient).has_value());
  if (whole) gradients = as_whole(gradients);
  const operation step = apply(gradients);
  session s;
  s.run(initialize_all());
  for (int i = 0; i < 4; ++i) s.run(step, m.ids = ids);
  return s.run(any_tensor(m.table));
}

void check_near(const any_array& a, const any_array& b) {
  REQUIRE(a.shape() == b.shape());
  for (std::int64_t i = 0; i < a.elements(); ++i)
    CHECK(a.data<float>()[i] == doctest::Approx(b.data<float>()[i]).epsilon(1e-5));
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "the gradient of gathered rows is made of them") {
  embedded<> m;
  const auto g = plan::gradients(m.loss, std::vector<any_tensor>{m.table});
  const auto slices = detail::slices_of(g[0]);
  REQUIRE(slices);
  session s;
  s.run(initialize_all());
  const ndarray<std::int32_t, dyn> ids{3, 1, 3};
  CHECK(s.run(slices->indices, m.ids = ids) == ndarray<std::int32_t, 5>{1, 5, 3, 1, 3}.array());
  const any_array whole = s.run(g[0], m.ids = ids);
  const ndarray<float, 6, 2> t = rows_of_table();
  for (std::int64_t c = 0; c < 2; ++c) {
    CHECK(whole.data<float>()[c] == 0);
    CHECK(whole.data<float>()[6 + c] == doctest::Approx(4 * t(3, c)));
    CHECK(whole.data<float>()[2 + c] == doctest::Approx(2 * t(1, c) + 3 * t(1, c) * t(1, c)));
  }
}

TEST_CASE("every optimizer updates rows as it updates the whole, where all have gradients") {
  const std::pair<const char*, std::function<std::unique_ptr<optimizer>()>> optimizers[] = {
      {"sgd", [] { return std::make_unique<sgd>(0.1); }},
      {"momentum", [] { return std::make_unique<momentum>(0.1, 0.9); }},
      {"nesterov", [] { return std::make_unique<momentum>(0.1, 0.9, momentum_options{true}); }},
      {"adagrad", [] { return std::make_unique<adagrad>(0.1); }},
      {"adadelta", [] { return std::make_unique<adadelta>(1.0); }},
      {"rmsprop", [] { return std::make_unique<rmsprop>(0.01); }},
      {"centered",
       [] {
         return std::make_unique<rmsprop>(0.01, rmsprop_options{.momentum = 0.5, .centered = true});
       }},
      {"adam", [] { return std::make_unique<adam>(0.01); }},
      {"adamw", [] { return std::make_unique<adamw>(0.01); }},
      {"ftrl", [] { return std::make_unique<ftrl>(0.1, ftrl_options{.l1 = 0.01}); }},
  };
  const ndarray<std::int32_t, dyn> all{5, 4, 3, 2, 2, 1, 0, 5}, some{4, 4, 0};
  for (const auto& [name, make] : optimizers) {
    CAPTURE(std::string(name));
    const updating apply = [&](const auto& g) { return make()->apply_gradients(g); };
    const any_array whole = trained(true, all, apply);
    check_near(trained(false, all, apply), whole);
    check_near(trained<dyn>(false, all, apply), whole);
    check_near(trained<dyn>(true, all, apply), whole);
    const any_array few = trained(false, some, apply);
    CHECK(trained<dyn>(false, some, apply) == few);
    for (const int untouched : {2, 3})
      for (int c = 0; c < 2; ++c)
        CHECK(few.data<float>()[2 * untouched + c] == rows_of_table()(untouched, c));
    for (const int touched : {0, 1, 4, 5})
      CHECK(few.data<float>()[2 * touched] != rows_of_table()(touched, 0));
  }
}

TEST_CASE_FIXTURE(own_graph,
                  "a table that is gathered by int32 and int64 ids keeps its other rows") {
  variable<float, 4> t("t", zeros());
  placeholder<std::int32_t, dyn> a("a");
  placeholder<std::int64_t, dyn> b("b");
  const auto step = momentum(1, 0.5).minimize(sum(gather(t, a)) + sum(gather(t, b)));
  const momentum o(1, 0.5);
  variable<float, 4> u("u", zeros());
  const auto averaged =
      o.apply_gradients(average_gradients({o.compute_gradients(sum(gather(u, a)) * 2.f, {u}),
                                           o.compute_gradients(sum(gather(u, b)) * 2.f, {u})}));
  session s;
  s.run(initialize_all());
  using ids = ndarray<std::int32_t, dyn>;
  using long_ids = ndarray<std::int64_t, dyn>;
  for (const auto& [step_of, trained] : {std::pair(step, t), std::pair(averaged, u)}) {
    s.run(step_of, a = ids{0}, b = long_ids{1});
    s.run(step_of, a = ids{2}, b = long_ids{2});
    CHECK(s.run(trained) == ndarray<float, 4>{-1, -1, -2, 0});
  }
}

TEST_CASE("slices are clipped and averaged as the whole gradient is") {
  const std::pair<const char*, updating> ways[] = {
      {"value", [](auto g) { return sgd(0.1).apply_gradients(clip_by_value(g, -0.5, 0.4)); }},
      {"norm", [](auto g) { return sgd(0.1).apply_gradients(clip_by_norm(g, 0.7)); }},
      {"global norm", [](auto g) { return sgd(0.1).apply_gradients(clip_by_global_norm(g, 0.7)); }},
      {"average",
       [](auto g) {
         return sgd(0.1).apply_gradients(average_gradients({g, g, g}));
       }},
  };
  const ndarray<std::int32_t, dyn> ids{2, 2, 1, 5, 2};
  for (const auto& [name, apply] : ways) {
    CAPTURE(std::string(name));
    check_near(trained(false, ids, apply), trained(true, ids, apply));
    check_near(trained<dyn>(false, ids, apply), trained(true, ids, apply));
  }
}

TEST_CASE_TEMPLATE("updates of rows run on simulated GPUs, too", Table, variable<float, 6, 2>,
                   variable<float, dyn, 2>, variable<float, dyn, dyn>) {
  const auto run = [](const char* where, auto update) {
    graph g;
    auto in_graph = as_default(g);
    auto there = on(device(where));
    Table v("v", rows_of_table());
    placeholder<std::int64_t, dyn> ids("ids");
    placeholder<float, dyn, 2> rows("rows");
    const operation changed = update(any_variable(v), any_tensor(ids), any_tensor(rows));
    const any_tensor sums = sum_rows(rows, ids), firsts = sum_rows(rows, ids, false);
    session s({.simulated_gpus = 1});
    s.run(initialize_all());
    const ndarray<std::int64_t, dyn> at{4, 0, 4, 4, 1};
    const ndarray<float, 5, 2> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    s.run(changed, ids = at, rows = values);
    auto [a, b] = s.run(sums, firsts, ids = at, rows = values);
    CHECK(a == any_array(ndarray<float, 5, 2>{13, 16, 3, 4, 13, 16, 13, 16, 9, 10}.array()));
    CHECK(b == any_array(ndarray<float, 5, 2>{13, 16, 3, 4, 0, 0, 0, 0, 9, 10}.array()));
    const any_array before = s.run(any_tensor(v));
    CHECK(error_of([&] {
            s.run(changed, ids = ndarray<std::int64_t, dyn>{1, 6},
                  rows = ndarray<float, 2, 2>{1, 1, 1, 1});
          })
              .starts_with(str("out_of_range: [", changed.handle()->def->name,
                               "] the index 6 is out of range for 6 rows")));
    CHECK(s.run(any_tensor(v)) == before);
    if (!any_variable(v).shape().is_static()) {
      // It may have other extents later.
      ndarray<float, 7, 2> seven;
      std::ranges::fill(seven, 1.f);
      s.run(any_variable(v).assign(seven));
      s.run(changed, ids = ndarray<std::int64_t, dyn>{6}, rows = ndarray<float, 1, 2>{1, 1});
      CHECK(s.run(any_tensor(v)).shape() == dims{7, 2});
      if (any_variable(v).shape()[1] == dyn) {
        ndarray<float, 5, 3> wider;
        std::ranges::fill(wider, 1.f);
        s.run(any_variable(v).assign(wider));
        CHECK(error_of([&] {
                s.run(changed, ids = at, rows = values);
              }).find("does not hold rows of variable \"v\", float(5,3)") != std::string::npos);
        CHECK(s.run(any_tensor(v)) == wider.array());
      }
    }
    return before;
  };
  const auto subtract = [](auto v, auto ids, auto rows) { return scatter_sub(v, ids, rows); };
  const auto replace = [](auto v, auto ids, auto rows) { return scatter_update(v, ids, rows); };
  const any_array less = run("/cpu:0", subtract), other = run("/cpu:0", replace);
  CHECK(less.data<float>()[8] == rows_of_table()(4, 0) - 13);
  CHECK(less.data<float>()[4] == rows_of_table()(2, 0));
  CHECK(other.data<float>()[8] == 7);
  CHECK(other.data<float>()[2] == 9);
  CHECK(run("/gpu:0", subtract) == less);
  CHECK(run("/gpu:0", replace) == other);
}

TEST_CASE_TEMPLATE("many rows are subtracted, replaced and summed as by a loop", Id, std::int32_t,
                   std::int64_t) {
  constexpr std::int64_t rows = 300;
  // Half of the indices are below the first, half below the second.
  constexpr std::pair<unsigned, unsigned> spread{3, rows}, hot{1, rows}, equal{1, 1};
  struct {
    std::int64_t count;
    std::pair<unsigned, unsigned> below;
  } const cases[] = {{1, spread}, {64, equal},   {65, spread}, {65, equal},   {4096, equal},
                     {4097, hot}, {4161, equal}, {5000, hot},  {5000, equal}, {5000, spread}};
  std::minstd_rand random(7);
  for (const std::int64_t width : {1, 7, 128})
    for (const auto& [count, below] : cases) {
      INFO(count, " indices, half of them below ", below.first, ", half below ", below.second,
           ", rows of ", width);
      graph g;
      auto in_graph = as_default(g);
      any_variable less("less", {rows, width}, 0.f), other("other", {rows, width}, 0.f);
      placeholder<Id, dyn> ids("ids");
      placeholder<float, dyn, dyn> values("values");
      const operation subtract = scatter_sub(less, ids, values),
                      replace = scatter_update(other, ids, values);
      const any_tensor sums = sum_rows(values, ids);
      ndarray<Id, dyn> at(count);
      ndarray<float, dyn, dyn> x(count, width);
      for (auto& i : at)
        i = static_cast<Id>(random() % (random() % 2 ? below.first : below.second));
      for (auto& e : x) e = static_cast<float>(static_cast<int>(random() % 17) - 8);  // exact sums
      std::vector<float> total(rows * width), last(rows * width);
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t c = 0; c < width; ++c) {
          total[static_cast<std::size_t>(at(i) * width + c)] += x(i, c);
          last[static_cast<std::size_t>(at(i) * width + c)] = x(i, c);
        }
      session s({.cpu_devices = 1});
      s.run(initialize_all());
      const any_array summed = s.run(sums, subtract, replace, ids = at, values = x);
      const any_array l = s.run(any_tensor(less)), o = s.run(any_tensor(other));
      std::int64_t wrong = 0;
      for (std::int64_t k = 0; k < rows * width; ++k) {
        wrong += l.data<float>()[k] != -total[static_cast<std::size_t>(k)];
        wrong += o.data<float>()[k] != last[static_cast<std::size_t>(k)];
      }
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t c = 0; c < width; ++c)
          wrong += summed.data<float>()[i * width + c] !=
                   total[static_cast<std::size_t>(at(i) * width + c)];
      CHECK(wrong == 0);
    }
}

TEST_CASE_FIXTURE(own_graph, "a GPU adds few rows of one index after each other") {
  // Added to 2^24 a 1 is lost. Of 5,000 that come together first, none is.
  constexpr std::int64_t count = 5000, few = 64;
  constexpr float large = 1 << 24;
  auto there = on(device("/gpu:0"));
  placeholder<std::int32_t, dyn> ids("ids");
  placeholder<float, dyn, 3> values("values");
  variable<float, 4, 3> less("less", zeros()), table("table", zeros()), steps("steps", zeros());
  const auto [gradient] = gradients(sum(gather(table, ids) * values), table);
  const auto loss = sum(gather(steps, ids) * values);
  const any_tensor results[] = {-scatter_sub(less, ids, values).value(), any_tensor(gradient) + 0.f,
                                sum_rows(values, ids)};
  session s({.simulated_gpus = 1});
  s.run(initialize_all());
  ndarray<std::int32_t, dyn> at(count);
  ndarray<float, dyn, 3> x(count, 3);
  std::ranges::fill(x, 1.f);
  for (std::int64_t c = 0; c < 3; ++c) x(0, c) = large;
  for (const any_tensor& t : results) {
    const any_array sums = s.run(t, ids = at, values = x);
    CAPTURE(sums.data<float>()[0]);
    for (std::int64_t c = 0; c < 3; ++c) CHECK(sums.data<float>()[c] >= large + count - few - 1);
  }
  const operation descent = sgd(1.f).minimize(loss);
  s.run(descent, ids = at, values = x);
  CHECK(-s.run(steps)(0, 0) >= large + count - few - 1);
}

TEST_CASE_FIXTURE(own_graph,
                  "rows of a variable on a parameter server are read and updated there") {
  local_cluster c{{"ps", 1}, {"worker", 1}};
  auto scope = on(replica_device(c.spec(), "/job:worker/task:0"));
  embedded<> m;
  const auto gradients = adagrad(0.1).compute_gradients(m.loss);
  const operation train = adagrad(0.1).apply_gradients(gradients);
  session s(c.target("worker", 0));
  CHECK(s.device_of(m.first).starts_with("/job:ps/replica:0/task:0/"));
  CHECK(s.device_of(m.loss).starts_with("/job:worker/replica:0/task:0/"));
  const std::string text = s.explain(train);
  CAPTURE(text);
  CHECK(text.find("scatter_update") != std::string::npos);
  CHECK(text.find("scatter_add") == std::string::npos);
  s.run(initialize_all());
  const ndarray<std::int32_t, dyn> ids{3, 3};
  const float before = s.run(m.table)(3, 0);
  s.run(train, m.ids = ids);
  CHECK(s.run(m.table)(3, 0) != before);
}
