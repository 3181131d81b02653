// SPDX-License-Identifier: Apache-2.0
// deft/execute/memory_plan.hpp: assigns memory to the values of a part.
#pragma once
#include <deft/execute/schedule.hpp>

namespace deft::ext::exec {

/// Gives every value its home: an offset in the arena where its extents are known, a slot of the
/// arena where they are not, a separate buffer where it may outlive the run. Values of one lane
/// whose lifetimes do not overlap share memory. Also determines when shared memory is released, and
/// which items always have their operands at the same offsets of the arena.
void plan_memory(executable::compiled& c);

}  // namespace deft::ext::exec
