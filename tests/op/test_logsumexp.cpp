// SPDX-License-Identifier: Apache-2.0
#include <deft/deft.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::own_graph;

namespace {

/// Nodes that a kernel computes.
template <class Y, class Feed>
int kernels(session& s, const Y& y, Feed feed) {
  int n = 0;
  for (const ext::node_def& d : s.describe(y, feed).placed.nodes)
    n += d.op->role == op_role::compute;
  return n;
}

}  // namespace

TEST_CASE_FIXTURE(own_graph,
                  "variances are one pass over rows, and other reductions end in small ones") {
  placeholder<float, 8, 100> x("x");
  static_assert(std::is_same_v<decltype(logsumexp(x, axis<-1>)), tensor<float, 8>>);
  static_assert(std::is_same_v<decltype(variance(x, axis<0>, keepdims)), tensor<float, 1, 100>>);
  static_assert(std::is_same_v<decltype(reduce_any(x > 0)), tensor<bool>>);
  session s;
  const ndarray<float, 8, 100> v(any_array(dtype::float32, {8, 100}));
  CHECK(kernels(s, variance(x, axis<-1>), x = v) == 1);
  CHECK(kernels(s, standard_deviation(x, axis<-1>), x = v) == 2);  // the root
  CHECK(kernels(s, reduce_all(x > 0.5f, axis<-1>), x = v) == 2);   // a comparison
  CHECK(kernels(s, logsumexp(x, axis<-1>), x = v) <= 4);           // what depends on the maximum
}
