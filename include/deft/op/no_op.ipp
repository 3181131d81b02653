// SPDX-License-Identifier: Apache-2.0
// deft/op/no_op.ipp: the node of no_op.
#pragma once
#include <deft/op/no_op.hpp>

namespace deft {

operation no_op(ext::source_place w) {
  ext::node_request r;
  r.def = &ext::record_of<op::no_op>;
  r.place = w;
  return operation(current_graph().add(std::move(r)));
}

}  // namespace deft
