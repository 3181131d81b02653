// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/fault.hpp: errors that only device code sees, and how they reach the host.
#pragma once
#include <atomic>
#include <cstdint>
#include <deft/core/config.hpp>
#include <deft/core/error.hpp>

namespace deft::gpu {

enum class fault_kind : std::uint32_t {
  none,
  divided,    ///< [div] by zero
  remainder,  ///< [mod] by zero
  gathered,   ///< an index, and the rows there are
  scattered,  ///< likewise
  labelled,   ///< a class, and the classes there are
};

/// The first fault of a run, in memory that the device and the host see.
struct fault_record {
  std::uint32_t taken;  ///< 0: none
  std::uint32_t item;
  fault_kind kind;
  std::int64_t value, limit, row;
};

/// What device code reports faults to. A run's first one counts.
struct fault_report {
  fault_record* record;
  std::uint32_t item;
  std::uint32_t* taken;  ///< decides who is first: the record's, or one in the device's own memory

  DEFT_HD void operator()(fault_kind kind, std::int64_t value = 0, std::int64_t limit = 0,
                          std::int64_t row = 0) const {
#ifdef __CUDA_ARCH__
    const bool first = atomicCAS(taken, 0u, 1u) == 0;
#else
    const bool first = std::atomic_ref(*taken).exchange(1) == 0;
#endif
    if (!first) return;
    record->item = item;
    record->kind = kind;
    record->value = value;
    record->limit = limit;
    record->row = row;
    if (taken != &record->taken) record->taken = 1;
  }
};

/// The error that a record stands for, as the processor's kernels word it.
error error_of(const fault_record& r);

}  // namespace deft::gpu
