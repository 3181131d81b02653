// SPDX-License-Identifier: Apache-2.0
#include <deft/device/info.hpp>
// its own header comes first, to check that it is self-contained
#include <doctest/doctest.h>

using namespace deft;
using namespace deft::ext;

TEST_CASE("kernel sets with the same entries have the same hash, in whatever order they came") {
  const dtype_set floats{dtype::float32, dtype::float64}, one{dtype::float32},
      other{dtype::float64};
  kernel_set a, b;
  CHECK(a.hash() == 0);
  a.add("add", floats);
  a.add("matmul", one);
  b.add("matmul", one);
  b.add("add", one);
  CHECK(a.hash() != b.hash());
  b.add("add", other);
  CHECK(a.hash() == b.hash());
  b.add("cumsum", floats);
  CHECK(a.hash() != b.hash());
  b.remove("cumsum");
  b.remove("never added");
  CHECK(a.hash() == b.hash());
  CHECK(a.entries() == b.entries());
}
