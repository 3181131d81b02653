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

template <int L, int Size>
void finish_row(const row_call& c, std::int64_t done, const row_shape& s, const char** at,
                char (*padded)[std::size_t{L * (Size ? Size : 8)}]) {
  const auto size_of = [&s](int k) { return Size ? Size : int{s.sizes[k]}; };
  for (int k = 0; k < s.operands; ++k) {
    at[k] = static_cast<const char*>(c.in[k]);
    if (k < s.inputs) at[k] += done * size_of(k) & static_cast<std::int64_t>(c.mask[k]);
  }
  const std::size_t result_size = Size ? Size : s.result_size;
  char* out = static_cast<char*>(c.out) + static_cast<std::size_t>(done) * result_size;
  std::int64_t left = c.n - done;
  int u = 0;
  for (; left >= L; left -= L, out += L * result_size) s.single(out, at, u++);
  if (left == 0) return;
  for (int k = 0; k < s.operands; ++k) {
    const bool dense = k < s.inputs && c.mask[k] != 0;
    if (!dense && left > 1) continue;  // is there `span` times
    const char* const from = dense ? at[k] + u * L * size_of(k) : at[k];
    if constexpr (Size != 0)
      pad<Size, L>(from, padded[k], left);
    else
      visit_size(s.sizes[k], [&]<class U>() { pad<sizeof(U), L>(from, padded[k], left); });
    at[k] = padded[k];
  }
  char* const result = padded[s.operands];
  s.single(result, at, 0);
  if constexpr (Size != 0) {
    using U = integer_of<Size>;
    if (left > 1)
      return store_some(reinterpret_cast<U*>(out), load<U, L>(reinterpret_cast<const U*>(result)),
                        left);
  }
  std::memcpy(out, result, static_cast<std::size_t>(left) * result_size);
}

template <int L, int Size>
using finish = decltype(finish_row<L, Size>);
template finish<register_bytes, 1> finish_row<register_bytes, 1>;
template finish<register_bytes / 2, 2> finish_row<register_bytes / 2, 2>;
template finish<register_bytes / 2, 0> finish_row<register_bytes / 2, 0>;
template finish<register_bytes / 4, 4> finish_row<register_bytes / 4, 4>;
template finish<register_bytes / 8, 8> finish_row<register_bytes / 8, 8>;
template finish<register_bytes / 4, 0> finish_row<register_bytes / 4, 0>;
template finish<register_bytes / 8, 0> finish_row<register_bytes / 8, 0>;

}  // namespace deft::ext::cpu
