// SPDX-License-Identifier: Apache-2.0
// deft/op/global_step.hpp: the variable that counts training steps.
#pragma once
#include <deft/op/variable.hpp>

namespace deft {
/// The number of training steps done: one variable "global_step" a graph, int64, not trainable,
/// outside all name scopes. Throws invalid_argument if there is one of another dtype or shape.
variable<std::int64_t> global_step(source_place w = here());

namespace detail {
/// The one that the current graph has. Throws failed_precondition with the name of `asker`, and
/// what to do, where it has none.
variable<std::int64_t> expect_global_step(std::string_view asker);
}  // namespace detail
}  // namespace deft
