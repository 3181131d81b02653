// SPDX-License-Identifier: Apache-2.0
// deft/execute/execute.ipp: umbrella of execute/, but for the kernels of cpu/.
#pragma once
#include <deft/execute/device.ipp>
#include <deft/execute/executor.ipp>
#include <deft/execute/schedule.ipp>
#include <deft/execute/variables.ipp>
