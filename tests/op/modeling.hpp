// SPDX-License-Identifier: Apache-2.0
// tests/op/modeling.hpp: helpers of the tests of operations.
#pragma once
#include <deft/expr.hpp>
#include <string>
#include <type_traits>

#include "testing.hpp"

namespace testing {

/// A separate graph for the test.
struct own_graph {
  deft::graph g;
  deft::ext::graph_scope in = deft::as_default(g);
};

/// A tensor with a dtype and shape known only at run time.
inline deft::any_tensor any(deft::dtype type, const deft::dims& shape) {
  return deft::make_placeholder("any", type, shape);
}

/// The node that computes a tensor.
inline const deft::ext::node& maker(const deft::any_tensor& t) { return *t.handle().node; }
inline std::string type_of(const deft::any_tensor& t) { return to_string(t.handle().type()); }

}  // namespace testing
