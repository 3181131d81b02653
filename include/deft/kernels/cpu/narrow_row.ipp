// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/narrow_row.ipp: a row of narrow types in blocks.
#pragma once
#include <deft/kernels/cpu/narrow_row.hpp>
#include <deft/plan/thresholds.hpp>

namespace deft::ext::cpu {

void run_narrow(const row_call& c, const narrow_call& how) {
  // Few enough to stay in the first-level cache; a broadcast operand may have to stand there
  // `span` times.
  constexpr std::int64_t block = thresholds::widened_block;
  alignas(64) char wide[4][block * 8];
  const std::uintptr_t dense = ~std::uintptr_t{0};
  const void* in[3];
  for (std::size_t k = 0; k < how.inputs; ++k) {
    in[k] = c.in[k];
    const narrow_operand& o = how.in[k];
    if (c.mask[k] || !o.convert) continue;
    o.convert({&c.in[k], &dense, wide[k], 1});
    const auto size = static_cast<std::size_t>(o.wide_size);
    for (int copy = 1; copy < how.row.span; ++copy)
      std::memcpy(wide[k] + static_cast<std::size_t>(copy) * size, wide[k], size);
    in[k] = wide[k];
  }
  for (std::int64_t done = 0; done < c.n; done += block) {
    const std::int64_t n = std::min(block, c.n - done);
    for (std::size_t k = 0; k < how.inputs; ++k) {
      if (!c.mask[k]) continue;
      const narrow_operand& o = how.in[k];
      const void* const from = static_cast<const char*>(c.in[k]) + done * o.size;
      if (o.convert) o.convert({&from, &dense, wide[k], n});
      in[k] = o.convert ? wide[k] : from;
    }
    void* const to = static_cast<char*>(c.out) + done * how.out.size;
    if (!how.out.convert) {
      how.row.run({in, c.mask, to, n});
      continue;
    }
    how.row.run({in, c.mask, wide[3], n});
    const void* const results = wide[3];
    how.out.convert({&results, &dense, to, n});
  }
}

}  // namespace deft::ext::cpu
