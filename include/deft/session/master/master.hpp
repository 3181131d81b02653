// SPDX-License-Identifier: Apache-2.0
// deft/session/master/master.hpp: makes plans for the tasks of a cluster, and runs steps on them.
#pragma once
#include <deft/session/engine.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <memory>

namespace deft {

class worker;

/// Makes the engine of a session on task `self`. If `cluster` is null, this task runs everything.
/// The engine keeps the task alive, not the other way round. Throws failed_precondition in a forked
/// process.
std::shared_ptr<engine> make_master(std::shared_ptr<task_runtime> self,
                                    std::shared_ptr<worker> cluster, session_options options);

}  // namespace deft
