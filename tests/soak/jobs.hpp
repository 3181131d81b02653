// SPDX-License-Identifier: Apache-2.0
// tests/soak/jobs.hpp: training jobs that are killed, stopped, cut off and told to end.
#pragma once
#include <cstdint>
#include <deft/deft.hpp>

namespace soak {

/// Steps of a client on connections that are broken while nothing is sent on them: variables grow
/// by exactly the steps of which fate_of says so. Returns the process's exit code.
int run_cuts(double minutes, std::uint64_t seed);
/// A job that trains and saves, whose tasks are killed while they save, restore and train, stopped
/// for long, and all told to end at once: no update is lost or made twice, and every checkpoint is
/// of one moment. Returns the process's exit code.
int run_jobs(double minutes, std::uint64_t seed);

/// A task of run_jobs, which keeps its checkpoints in `folder`.
void train_job(deft::task& self, const std::string& folder);

}  // namespace soak
