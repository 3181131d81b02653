// SPDX-License-Identifier: Apache-2.0
// deft/execute/memory_plan.hpp: where the values of a part live during a run.
#pragma once
#include <deft/execute/schedule.hpp>

namespace deft::exec {

/// Gives every value its home: an offset in the arena where its extents are known, a slot of the
/// arena where they are not, a buffer of its own where it may outlive the run. Values whose lives
/// in one lane do not overlap share memory. Says when what is held may be dropped, and which items
/// always find their operands at the same place of the arena.
void plan_memory(executable::compiled& c);

}  // namespace deft::exec
