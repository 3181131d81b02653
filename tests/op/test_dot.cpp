// SPDX-License-Identifier: Apache-2.0
#include <deft/op/dot.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::any;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "dot is the scalar product of two vectors") {
  placeholder<double, dyn> x("x"), y("y");
  static_assert(std::is_same_v<decltype(dot(x, y)), tensor<double>>);
  CHECK(same(any_tensor(dot(x, y)), dot(any_tensor(x), y)));
  session s;
  CHECK(s.run(dot(x, y), x = {1, 2, 3}, y = {4, -5, 6}) == 12);
  CHECK(s.run(dot(x * 2, y), x = {1}, y = {4}) == 8);
  CHECK(testing::error_of([&] {
          s.run(dot(x, y), x = {1, 2, 3}, y = {4, -5});
        }).starts_with("invalid_argument: [matmul] inner extents differ: (1,3) x (2,1)"));
  CHECK(testing::error_of([&] {
          dot(any(dtype::float64, {3}), any(dtype::float64, {3, 1}));
        }).starts_with("invalid_argument: [dot] expects two vectors, and got (3) and (3,1)"));
}
