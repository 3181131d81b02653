// SPDX-License-Identifier: Apache-2.0
// deft/op/global_step.hpp: the variable that counts training steps.
#pragma once
#include <deft/op/variable.hpp>

namespace deft {
/// The number of training steps done: the graph's variable "global_step", an int64 scalar that is
/// not trainable and ignores name scopes; made at the first call. Throws invalid_argument if the
/// graph has a variable of that name with another dtype or shape.
variable<std::int64_t> global_step(ext::source_location w = ext::here());

namespace detail {
/// The current graph's global step. Throws failed_precondition, with the name of `asker` and what
/// to do, if there is none.
variable<std::int64_t> expect_global_step(std::string_view asker);
}  // namespace detail
}  // namespace deft
