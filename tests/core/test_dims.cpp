// SPDX-License-Identifier: Apache-2.0
#include <deft/core/dims.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {
constexpr std::optional<dims> together(const dims& a, const dims& b) {
  dims out;
  if (broadcast(a, b, out)) return out;
  return {};
}
}  // namespace

TEST_CASE("lists that are not shapes print their numbers") {
  CHECK(to_string(dims{dyn, 3}) == "(?,3)");
  CHECK(list_text({-1, 0, 3}) == "(-1,0,3)");
  CHECK(list_text({}) == "()");
}

TEST_CASE("shapes broadcast as in NumPy, also with dyn") {
  struct {
    dims a, b;
    std::optional<dims> result;
  } cases[] = {
      {{}, {}, dims{}},
      {{}, {3}, dims{3}},
      {{3}, {3}, dims{3}},
      {{4, 3}, {3}, dims{4, 3}},
      {{4, 1}, {3}, dims{4, 3}},
      {{8, 1, 6, 1}, {7, 1, 5}, dims{8, 7, 6, 5}},
      {{1}, {0}, dims{0}},
      {{0, 3}, {1, 3}, dims{0, 3}},
      {{4, 3}, {5}, {}},
      {{4, 3}, {4}, {}},
      {{0}, {3}, {}},
      {{dyn}, {dyn}, dims{dyn}},
      {{dyn}, {1}, dims{dyn}},
      {{dyn}, {5}, dims{5}},
      {{dyn, 10}, {10}, dims{dyn, 10}},
      {{dyn, 10}, {32, 1}, dims{32, 10}},
      {{dyn, 10}, {11}, {}},
  };
  for (auto& c : cases) {
    CAPTURE(c.a);
    CAPTURE(c.b);
    CHECK(together(c.a, c.b) == c.result);
    CHECK(together(c.b, c.a) == c.result);
  }
}

TEST_CASE("a shape rule is a constant expression") {
  static_assert(together({4, 1}, {3}) == dims{4, 3});
  static_assert(!together({4, 3}, {5}));
  static_assert(shape<dyn, 784>.value == dims{dyn, 784});
  static_assert(shape<>.value.rank() == 0);
}

TEST_CASE("shapes print with a question mark for dyn") {
  CHECK(to_string(dims{}) == "()");
  CHECK(to_string(dims{5}) == "(5)");
  CHECK(to_string(dims{100, 784}) == "(100,784)");
  CHECK(to_string(dims{dyn, 10}) == "(?,10)");
  std::ostringstream printed;
  printed << dims{dyn, 10};
  CHECK(printed.str() == "(?,10)");
}

TEST_CASE("the number of elements is the product of the extents, or dyn if one is dyn") {
  CHECK(dims{}.elements() == 1);
  CHECK(dims{4, 3}.elements() == 12);
  CHECK(dims{4, 0, 3}.elements() == 0);
  CHECK(dims{4, dyn}.elements() == dyn);
  CHECK(dims{0, dyn}.elements() == dyn);
}

TEST_CASE("fits() accepts any extent for dyn, and only the same one for a static extent") {
  struct {
    dims declared, actual;
    bool yes;
  } cases[] = {
      {{}, {}, true},
      {{dyn, 784}, {100, 784}, true},
      {{dyn, 784}, {0, 784}, true},
      {{dyn, 784}, {100, 783}, false},
      {{dyn}, {}, false},
      {{3}, {dyn}, false},
      {{dyn}, {dyn}, true},
  };
  for (auto& c : cases) {
    CAPTURE(c.declared);
    CAPTURE(c.actual);
    CHECK(fits(c.declared, c.actual) == c.yes);
  }
}

TEST_CASE("may_equal() lets dyn match anything on either side") {
  CHECK(may_equal({dyn, 3}, {4, dyn}));
  CHECK(may_equal({}, {}));
  CHECK_FALSE(may_equal({dyn, 3}, {4, 4}));
  CHECK_FALSE(may_equal({dyn}, {dyn, dyn}));
}

TEST_CASE("axes count from the front or the back") {
  for (int i = 0; i < 3; ++i) {
    CHECK(normalize_axis(i, 3) == i);
    CHECK(normalize_axis(i - 3, 3) == i);
  }
  CHECK(normalize_axis(3, 3) == -1);
  CHECK(normalize_axis(-4, 3) == -1);
  CHECK(normalize_axis(0, 0) == -1);
}

TEST_CASE("a rank above eight is refused") {
  CHECK(dims{1, 2, 3, 4, 5, 6, 7, 8}.rank() == max_rank);
  CHECK(testing::error_of([] { dims{1, 2, 3, 4, 5, 6, 7, 8, 9}; }) ==
        "invalid_argument: a rank above 8 is not supported");
  std::vector<std::int64_t> nine(9, 1);
  CHECK(testing::error_of([&] { dims d{std::span<const std::int64_t>(nine)}; }) ==
        "invalid_argument: a rank above 8 is not supported");
}

TEST_CASE("dims compare by rank and extents only") {
  dims shrunk{4, 3};
  shrunk.n = 1;  // leaves a 3 past the end
  CHECK(shrunk == dims{4});
  CHECK_FALSE(dims{4} == dims{4, 1});
  CHECK_FALSE(dims{4, 3} == dims{3, 4});
}
