// SPDX-License-Identifier: Apache-2.0
// deft/execute/row_parts.hpp: the order in which rows that have the same index are added, on every
// device.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>

namespace deft::ext {

/// Rows that are added one after the other: a part. So many parts are one of the next level, added
/// in the same way, and so on. Up to this many rows are added in order.
inline constexpr std::int64_t rows_together = 64;

}  // namespace deft::ext
