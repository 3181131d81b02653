// SPDX-License-Identifier: Apache-2.0
#include <deft/op/outer.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::any;
using testing::own_graph;
using testing::type_of;

TEST_CASE_FIXTURE(own_graph, "outer multiplies all pairs of elements") {
  placeholder<std::int64_t, dyn> x("x");
  placeholder<std::int64_t, 2> y("y");
  const tensor<std::int64_t, dyn, 2> z = outer(x, y);
  CHECK(type_of(outer(any_tensor(x), y)) == "int64(?,2)");
  session s;
  CHECK(s.run(z, x = {1, 2, 3}, y = {4, -5}) ==
        ndarray<std::int64_t, dyn, 2>{{4, -5}, {8, -10}, {12, -15}});
  CHECK(testing::error_of([&] {
          outer(any(dtype::float64, {}), any(dtype::float64, {3}));
        }).starts_with("invalid_argument: [outer] expects two vectors, and got () and (3)"));
}
