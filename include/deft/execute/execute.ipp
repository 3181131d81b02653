// SPDX-License-Identifier: Apache-2.0
// deft/execute/execute.ipp: umbrella of execute/, but for the kernels of cpu/.
#pragma once
#include <deft/execute/arena.ipp>
#include <deft/execute/device.ipp>
#include <deft/execute/executor.ipp>
#include <deft/execute/items.ipp>
#include <deft/execute/lanes.ipp>
#include <deft/execute/memory_plan.ipp>
#include <deft/execute/region_extents.ipp>
#include <deft/execute/resources.ipp>
#include <deft/execute/run_end.ipp>
#include <deft/execute/schedule.ipp>
#include <deft/execute/segments.ipp>
#include <deft/execute/task_kernels.ipp>
#include <deft/execute/trace_recorder.ipp>
#include <deft/execute/transfers.ipp>
