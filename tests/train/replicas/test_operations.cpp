// SPDX-License-Identifier: Apache-2.0
#include <deft/train/replicas/operations.hpp>

#include "op/hostile.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("operations of rounds are known, and none of the catalog") {
  op::replica_operations::each([]<class Op>() {
    CAPTURE(Op::name);
    CHECK(find_op(Op::name) == &record_of<Op>);
    CHECK_FALSE(op::catalog::has<Op>);
  });
}

TEST_CASE("shape rules of rounds refuse hostile attributes and inputs") {
  const auto [passed, refused] = testing::check_hostile(op::replica_operations());
  CHECK(passed > 1'000);
  CHECK(refused > 1'000);
}
