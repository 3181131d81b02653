// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deft/deft.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "bernoulli is true as often as it should be") {
  placeholder<float, dyn> p("p");
  const tensor<bool, 10'000> some = bernoulli(shape<10'000>, 0.25f);
  const tensor<bool, 3> never = bernoulli(shape<3>, 0), always = bernoulli(shape<3>, 1);
  const tensor<bool, dyn> each = bernoulli(p);
  const tensor<bool, dyn, 2> sized = bernoulli(shape<dyn, 2>, {size_of(p)}, 1);
  session s;
  const auto [a, b, c, d, e] = s.run(some, never, always, each, sized, p = {0, 1, 1, 0});
  std::int64_t n = 0;
  for (bool v : a) n += v;
  CHECK(std::abs(static_cast<double>(n) / 10'000 - 0.25) < 0.02);
  CHECK(b == ndarray<bool, 3>{false, false, false});
  CHECK(c == ndarray<bool, 3>{true, true, true});
  CHECK(d == ndarray<bool, dyn>{false, true, true, false});
  CHECK(e.extents() == dims{4, 2});
}
