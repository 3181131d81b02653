// SPDX-License-Identifier: Apache-2.0
// deft/op/global_step.ipp: the variable that counts training steps.
#pragma once
#include <deft/op/global_step.hpp>

namespace deft {

variable<std::int64_t> global_step(ext::source_location w) {
  if (ext::node_ref there = current_graph().find_variable("global_step"))
    return variable<std::int64_t>(there);
  auto top = name_scope("");
  return variable<std::int64_t>("global_step", 0, {.trainable = false}, w);
}

variable<std::int64_t> detail::expect_global_step(std::string_view asker) {
  if (ext::node_ref there = current_graph().find_variable("global_step"))
    return variable<std::int64_t>(there);
  ext::fail(errc::failed_precondition, "[", asker,
            "] the current graph has no global step: count the steps of training, as in "
            "minimize(loss, global_step())");
}

}  // namespace deft
