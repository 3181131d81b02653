// SPDX-License-Identifier: Apache-2.0
#include <deft/deft.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "shape_of and rank_of say the extents and axes of a tensor") {
  placeholder<float, dyn, 3> x("x");
  const any_tensor y = x;
  static_assert(std::is_same_v<decltype(shape_of(x)), tensor<std::int64_t, 2>>);
  CHECK(rank_of(x) == 2);
  CHECK(rank_of(y) == 2);
  CHECK(rank_of(constant(1.f)) == 0);
  session s;
  const ndarray<std::int64_t, 2> typed = s.run(shape_of(x), x = {{1, 2, 3}, {4, 5, 6}});
  CHECK(typed == ndarray<std::int64_t, 2>{2, 3});
  const ndarray<std::int64_t, dyn> any(s.run(shape_of(y), x = {{1, 2, 3}}));
  CHECK(any == ndarray<std::int64_t, dyn>{1, 3});
  // Those that are known take no run of what they are of.
  CHECK(s.run(shape_of(zeros<float>(shape<4, 0>))) == ndarray<std::int64_t, 2>{4, 0});
  CHECK(s.run(shape_of(constant(1.f))).extents() == dims{0});
}
