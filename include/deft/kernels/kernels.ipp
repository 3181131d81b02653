// SPDX-License-Identifier: Apache-2.0
// deft/kernels/kernels.ipp: umbrella of kernels/, but for those of cpu/ and gpu/.
#pragma once
#include <deft/kernels/arena.ipp>
#include <deft/kernels/device.ipp>
#include <deft/kernels/resources.ipp>
#include <deft/kernels/spec/region_extents.ipp>
#include <deft/kernels/user_op.ipp>
#include <deft/kernels/wait_list.ipp>
#include <deft/kernels/widened_kernel.ipp>
