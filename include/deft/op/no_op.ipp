// SPDX-License-Identifier: Apache-2.0
// deft/op/no_op.ipp: the node of no_op.
#pragma once
#include <deft/op/no_op.hpp>

namespace deft {

operation no_op(ext::source_location w) {
  return operation(ext::add_node(current_graph(), op::no_op(), {.location = w}));
}

}  // namespace deft
