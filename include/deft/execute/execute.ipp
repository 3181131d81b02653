// SPDX-License-Identifier: Apache-2.0
// deft/execute/execute.ipp: umbrella of execute/.
#pragma once
#include <deft/execute/calls.ipp>
#include <deft/execute/executor.ipp>
#include <deft/execute/items.ipp>
#include <deft/execute/lanes.ipp>
#include <deft/execute/memory_plan.ipp>
#include <deft/execute/run_end.ipp>
#include <deft/execute/schedule.ipp>
#include <deft/execute/segments.ipp>
#include <deft/execute/task_kernels.ipp>
#include <deft/execute/trace_recorder.ipp>
#include <deft/execute/transfers.ipp>
