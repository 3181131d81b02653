// SPDX-License-Identifier: Apache-2.0
#include <deft/train/replicas/accumulator.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

float only(const std::vector<any_array>& gradient) {
  REQUIRE(gradient.size() == 1);
  return *gradient[0].data<float>();
}

}  // namespace

TEST_CASE("an accumulator keeps the newest gradient of each session until it is taken") {
  accumulator all;
  auto a = all.join(1);
  const auto b = all.join(2);
  CHECK(all.join(2) == b);
  CHECK(all.empty());
  all.apply(a, 1, {any_array::scalar(1.f)});
  all.apply(a, 2, {any_array::scalar(2.f)});
  all.apply(b, 1, {any_array::scalar(3.f)});
  all.apply(a, 1, {any_array::scalar(4.f)});  // of a step that began before
  CHECK(all.bytes() == 8);
  CHECK(all.describe() == "2 gradients");
  a.reset();
  const std::uint64_t sessions[] = {1};
  const auto taken = all.take(sessions);
  REQUIRE(taken);
  REQUIRE(taken->size() == 1);
  CHECK(only(taken->at(0)) == 2);
  CHECK(all.bytes() == 4);
  CHECK_FALSE(all.take(sessions));
  all.apply(b, 1, {any_array::scalar(5.f)});  // again, of the same step
  all.clear();
  CHECK(all.empty());
}

TEST_CASE("an accumulator gives the gradients in the order asked for, all of them or none") {
  accumulator all;
  const auto a = all.join(1), b = all.join(2);
  all.apply(a, 1, {any_array::scalar(1.f)});
  all.apply(b, 1, {any_array::scalar(2.f)});
  for (const auto& asked : {std::vector<std::uint64_t>{2, 1, 3}, {1, 2, 1}}) {
    CHECK_FALSE(all.take(asked));
    CHECK(all.bytes() == 8);
  }
  const std::uint64_t both[] = {2, 1};
  const auto taken = all.take(both);
  REQUIRE(taken);
  CHECK(only(taken->at(0)) == 2);
  CHECK(only(taken->at(1)) == 1);
  CHECK(all.empty());
}
