// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deft/op/base/random.hpp>

#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::maker;

namespace {
template <class Op, class T>
Op attributes(const T& t) {
  return decode<Op>(maker(t).attributes);
}
}  // namespace

TEST_CASE_FIXTURE(testing::own_graph, "random tensors have a type and parameters") {
  auto u = random_uniform(shape<3, 4>, -1, 1);
  auto n = random_normal<double>(shape<5>, 1, 0.5);
  auto t = truncated_normal(shape<784, 128>, 0.05f);
  static_assert(std::is_same_v<decltype(u), tensor<float, 3, 4>>);
  static_assert(std::is_same_v<decltype(n), tensor<double, 5>>);
  static_assert(std::is_same_v<decltype(t), tensor<float, 784, 128>>);
  CHECK(attributes<op::random_uniform>(u).low == -1);
  CHECK(attributes<op::random_normal>(n).stddev == 0.5);
  CHECK(attributes<op::truncated_normal>(t).shape == dims{784, 128});
  CHECK(attributes<op::truncated_normal>(t).every_step);
  CHECK(testing::type_of(random_normal(dims{2}, 0, 1, dtype::float64)) == "double(2)");
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "each call draws different numbers, and a second run of the program the same") {
  auto keys = [] {
    graph g;
    auto in = as_default(g);
    set_seed(42);
    auto a = random_uniform(shape<2>), b = random_uniform(shape<2>);
    CHECK_FALSE(same(a, b));
    auto fixed = random_uniform(shape<2>, 0, 1, {.seed = 0});
    auto again = random_uniform(shape<2>, 0, 1, {.seed = 0});
    CHECK_FALSE(same(fixed, again));
    CHECK(attributes<op::random_uniform>(fixed).key == attributes<op::random_uniform>(again).key);
    return std::vector{attributes<op::random_uniform>(a).key, attributes<op::random_uniform>(b).key,
                       attributes<op::random_uniform>(fixed).key};
  };
  auto first = keys();
  CHECK(first == keys());
  CHECK(first[0] != first[1]);
  CHECK(first[0] != first[2]);
  set_seed(43);
  CHECK(attributes<op::random_uniform>(random_uniform(shape<2>)).key != first[0]);
}

TEST_CASE_FIXTURE(testing::own_graph, "random tensors refuse invalid parameters") {
  auto check = [](auto f, std::string_view text) {
    std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + std::string(text)));
  };
  check([] { random_uniform(shape<2>, 1, 0); }, "[random_uniform] the range [1, 0) is empty");
  check([] { random_uniform(dims{2}, -3e38, 3e38); },
        "[random_uniform] the range [-3e+38, 3e+38) is wider than the largest float");
  CHECK_NOTHROW(random_uniform(dims{2}, -3e38, 3e38, dtype::float64));
  check([] { random_normal(shape<2>, 0, -1); },
        "[random_normal] the standard deviation -1 is negative");
  check([] { random_normal(shape<2>, 0, NAN); }, "[random_normal] nan is not finite");
  check([] { truncated_normal(dims{dyn}, 1); },
        "[truncated_normal] (?) is not a valid shape: every extent must be known");
  check([] { random_uniform(dims{2}, 0, 1, dtype::int32); },
        "[random_uniform] is not defined for int32");
}
