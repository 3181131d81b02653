// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/fault.hpp: errors that only device code sees, and how they reach the host.
#pragma once
#include <atomic>
#include <cstdint>
#include <deft/core/config.hpp>
#include <deft/core/error.hpp>

namespace deft::ext::gpu {

enum class fault_kind : std::uint32_t {
  none,
  divided,             ///< [div] by zero
  remainder,           ///< [mod] by zero
  gathered,            ///< an index, and the rows there are
  scattered,           ///< likewise, of scatter_add
  summed,              ///< of sum_rows
  subtracted,          ///< of scatter_sub
  replaced,            ///< of scatter_update
  labelled,            ///< a class, and the classes there are
  maximized,           ///< of scatter_max
  replaced_of_value,   ///< of scatter
  maximized_of_value,  ///< of scatter_maximum
};

/// The first fault of a run, in memory that the device and the host see.
struct fault_record {
  std::uint32_t taken;  ///< 0: none
  std::uint32_t item;
  fault_kind kind;
  std::int64_t value, limit, row;
  fault_record* mirror;  ///< where the host reads it, if not here
};

/// What device code reports faults to. A run's first one counts.
struct fault_report {
  fault_record* record;
  std::uint32_t item;

  DEFT_HD void operator()(fault_kind kind, std::int64_t value = 0, std::int64_t limit = 0,
                          std::int64_t row = 0) const {
#ifdef __CUDA_ARCH__
    const bool first = atomicCAS(&record->taken, 0u, 1u) == 0;
#else
    const bool first = std::atomic_ref(record->taken).exchange(1) == 0;
#endif
    if (!first) return;
    fault_record* const to = record->mirror ? record->mirror : record;
    to->item = item;
    to->kind = kind;
    to->value = value;
    to->limit = limit;
    to->row = row;
    if (to != record) to->taken = 1;
  }
};

/// The error that a record stands for, as the processor's kernels word it.
error error_of(const fault_record& r);

}  // namespace deft::ext::gpu
