// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/compiled.ipp: how the rows of all expressions end.
#pragma once
#include <deft/kernels/cpu/compiled.hpp>

namespace deft::ext::cpu {
namespace {

/// `left` elements of `Size` bytes, then copies of the first one.
template <int Size, int L>
void pad(const char* from, char* to, std::int64_t left) {
  using U = integer_of<Size>;
  const U* const elements = reinterpret_cast<const U*>(from);
  U first;
  std::memcpy(&first, from, Size);
  store(reinterpret_cast<U*>(to),
        left > 1 ? load_some<L>(elements, left, first) : broadcast<U, L>(first));
}

}  // namespace

template <int L>
void finish_row(const row_call& c, std::int64_t done, const row_shape& s, const char** at,
                char (*padded)[std::size_t{L * 8}]) {
  for (int k = 0; k < s.operands; ++k) {
    at[k] = static_cast<const char*>(c.in[k]);
    if (k < s.inputs) at[k] += static_cast<std::uintptr_t>(done) * s.sizes[k] & c.mask[k];
  }
  char* out = static_cast<char*>(c.out) + static_cast<std::size_t>(done) * s.result_size;
  std::int64_t left = c.n - done;
  for (; left >= L; left -= L, out += L * s.result_size) {
    s.single(out, at);
    for (int k = 0; k < s.inputs; ++k) at[k] += c.mask[k] & std::uintptr_t{L} * s.sizes[k];
  }
  if (left == 0) return;
  for (int k = 0; k < s.operands; ++k) {
    // A broadcast input and a literal are there `span` times.
    const bool dense = k < s.inputs && c.mask[k] != 0;
    if (!dense && left > 1) continue;
    visit_size(s.sizes[k], [&]<class U>() { pad<sizeof(U), L>(at[k], padded[k], left); });
    at[k] = padded[k];
  }
  char* const result = padded[s.operands];
  s.single(result, at);
  std::memcpy(out, result, static_cast<std::size_t>(left) * s.result_size);
}

template void finish_row<register_bytes / 4>(const row_call&, std::int64_t, const row_shape&,
                                             const char**, char (*)[register_bytes * 2]);
template void finish_row<register_bytes / 8>(const row_call&, std::int64_t, const row_shape&,
                                             const char**, char (*)[register_bytes]);
template void finish_row<register_bytes>(const row_call&, std::int64_t, const row_shape&,
                                         const char**, char (*)[register_bytes * 8]);

}  // namespace deft::ext::cpu
