// SPDX-License-Identifier: Apache-2.0
// deft/session/master/master.hpp: plans for the tasks of a cluster, and steps through all of them.
#pragma once
#include <deft/session/engine.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <memory>

namespace deft {

class worker;

/// A session's engine on task `self`, which alone runs everything if `cluster` is null.
/// Holds the task, not the other way round.
std::shared_ptr<engine> make_master(std::shared_ptr<task_runtime> self,
                                    std::shared_ptr<worker> cluster, session_options options);

}  // namespace deft
