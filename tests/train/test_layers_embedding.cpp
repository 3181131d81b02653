// SPDX-License-Identifier: Apache-2.0
#include <deft/train/layers_embedding.hpp>

#include "differences.hpp"

using namespace deft;
using namespace testing;

TEST_CASE_FIXTURE(own_graph, "an embedding gathers rows of a table of its name") {
  placeholder<std::int32_t, dyn, 2> ids("ids");
  const tensor<float, dyn, 2, 3> y = embedding<5, 3>(ids, "words");
  CHECK(same(y, embedding(ids, 5, 3, "words")));
  CHECK(g.variables().size() == 1);
  const any_variable table(g.find_variable("words/table"));
  CHECK(table.shape() == dims{5, 3});
  session s;
  s.run(initialize_all());
  const any_array rows = s.run(any_tensor(table));
  const ndarray<float, dyn, 2, 3> v = s.run(y, ids = {{4, 0}});
  for (int k = 0; k < 3; ++k) {
    CHECK(v(0, 0, k) == rows.data<float>()[4 * 3 + k]);
    CHECK(v(0, 1, k) == rows.data<float>()[k]);
    CHECK(std::abs(v(0, 0, k)) <= 0.05f);
  }
}

TEST_CASE_FIXTURE(own_graph, "the gradient of an embedding touches its rows alone") {
  placeholder<std::int64_t, 2> ids("ids");
  const any_tensor y =
      embedding(ids, 4, 2, "things", {.initializer = ones(), .type = dtype::float64});
  const auto train = sgd(1).minimize(sum(y));
  session s;
  s.run(initialize_all());
  s.run(train, ids = {1, 1});
  const any_array rows = s.run(any_tensor(any_variable(g.find_variable("things/table"))));
  const std::vector<double> expected{1, 1, -1, -1, 1, 1, 1, 1};
  CHECK(std::ranges::equal(rows.span<double>(), expected));
}

TEST_CASE_FIXTURE(own_graph, "wrong embeddings are refused in their name") {
  placeholder<std::int32_t, 2> ids("ids");
  CHECK(error_of([&] { embedding(ids, 0, 3, "a"); }).find("[embedding]") != std::string::npos);
  const any_tensor y = embedding(ids, 5, 3, "b");
  CHECK(error_of([&] { embedding(ids, 5, 4, "b"); }).find("b/table") != std::string::npos);
  CHECK(error_of([&] {
          embedding<5, 3>(ids, "c", {.type = dtype::float64});
        }).find("is of float, not of double: use embedding(any_tensor(ids)") != std::string::npos);
}

TEST_CASE("what is folded is not overwritten by a gradient before") {
  constexpr int rows = 64, width = 128, count = 1024;
  constexpr float rate = .125f;  // the gradient less the rate differs from what it is of
  ndarray<float, rows, width> start;
  ndarray<std::int32_t, count> drawn;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < width; ++j) start(i, j) = static_cast<float>((i + j) % 8);
  float squares = 0, total = 0;
  for (int k = 0; k < count; ++k) {
    drawn(k) = (7 * k + 3) % rows;
    for (int j = 0; j < width; ++j) {
      squares += start(drawn(k), j) * start(drawn(k), j);
      total += start(drawn(k), j);
    }
  }
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    graph own;
    const auto in_own = as_default(own);
    const placeholder<std::int32_t, count> id("id");
    const variable<float, rows, width> table("table", start);
    const auto x = gather(table, id);
    const auto loss = sum(square(x)), plain = sum(x);
    const auto train = sgd(rate).minimize(loss);
    session s({.intra_op_threads = threads});
    s.run(initialize_all());
    CHECK(s.run(loss, train, id = drawn) == squares);
    // 16 equal ids add a gradient of 2 x each.
    constexpr float change = 1 - rate * 16 * 2;
    CHECK(s.run(table)(3, 2) == change * start(3, 2));
    const auto [l, t] = s.run(loss, plain, train, id = drawn);
    CHECK(l == change * change * squares);
    CHECK(t == change * total);
  }
}
