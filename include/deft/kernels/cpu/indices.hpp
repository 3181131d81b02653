// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/indices.hpp: indices into rows, and work on rows that they name.
#pragma once
#include <algorithm>
#include <deft/core/error.hpp>
#include <deft/kernels/team.hpp>
#include <deft/plan/thresholds.hpp>
#include <string_view>

namespace deft::ext::cpu {
namespace {

/// Rows are found by their indices, which no processor foresees: they are prefetched so many rows
/// before they are needed.
constexpr std::int64_t rows_ahead = 4;

/// Prefetches the beginning of a row. The rest of a long one is prefetched by the processor.
inline void prefetch_row(const void* row, std::int64_t bytes) {
  constexpr std::int64_t line = 64, most = 8 * line;
  for (std::int64_t at = 0; at < std::min(bytes, most); at += line)
    __builtin_prefetch(static_cast<const char*>(row) + at);
}

/// Throws out_of_range for an index that names no row.
inline void check_index(std::string_view op, std::int64_t i, std::int64_t rows) {
  if (i < 0 || i >= rows)
    fail(errc::out_of_range, "[", op, "] the index ", i, " is out of range for ", rows, " rows");
}

/// Calls f(k) for k of 0 to n - 1, each of them work on a row of `bytes`.
template <class F>
void each_row(std::int64_t n, std::int64_t bytes, double nanoseconds, F f) {
  const std::int64_t some =
      std::max<std::int64_t>(1, thresholds::indexed_bytes / std::max<std::int64_t>(8, bytes));
  parallel_chunks((n + some - 1) / some, nanoseconds, [&](std::int64_t p) {
    for (std::int64_t k = p * some; k < std::min(n, (p + 1) * some); ++k) f(k);
  });
}

}  // namespace
}  // namespace deft::ext::cpu
