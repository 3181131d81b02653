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
}
