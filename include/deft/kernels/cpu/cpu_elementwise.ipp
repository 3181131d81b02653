// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/cpu_elementwise.ipp: the rows of the catalog's elementwise operations, compiled
// next to cpu.ipp.
#pragma once
#include <deft/kernels/cpu/narrow_row.ipp>
#include <deft/kernels/cpu/rows.ipp>
