// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/groups.hpp: elements that are read or written at once, and where they may be.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deft/core/dtype.hpp>
#include <deft/kernels/gpu/divider.hpp>
#include <deft/kernels/kernel.hpp>
#include <deft/kernels/spec/row_layout.hpp>

namespace deft::ext::gpu {

/// Bytes that a thread reads or writes at once, at most.
inline constexpr std::int64_t widest = 16;

/// N elements that are read or written at once, 16 bytes at a time.
template <class T, int N>
struct alignas(std::min<std::size_t>(widest, sizeof(T) * N)) group {
  T v[N];
};
using sixteen_bytes = group<std::uint64_t, 2>;

/// An array as another.
template <class T>
struct copied_elements {
  const T* from;
  T* to;
  DEFT_HD void operator()(std::int64_t i) const { to[i] = from[i]; }
};

inline bool is_aligned(const void* p, std::int64_t to) {
  return reinterpret_cast<std::uintptr_t>(p) % static_cast<std::uintptr_t>(to) == 0;
}

/// Whether every operand of an elementwise run, and every result, can be read or written in groups
/// of n elements of a row; but operands that have one element a row.
inline bool has_groups(int n, const row_layout& l, const kernel_call& c,
                       std::span<const tensor_type> in, std::span<const tensor_type> out) {
  if (l.levels() > 1 && l.n() % n != 0) return false;
  auto fits = [&](const void* p, dtype t) {
    return is_aligned(p, std::min<std::int64_t>(widest, n * std::int64_t(size_of_dtype(t))));
  };
  for (std::size_t k = 0; k < in.size(); ++k)
    if (l.step(k) != 0 && !fits(c.in[k], in[k].type)) return false;
  for (std::size_t o = 0; o < out.size(); ++o)
    if (!fits(c.out[o], out[o].type)) return false;
  return true;
}

/// Units of runs that are `from_step` and `to_step` units apart.
template <class Unit>
struct run_of_units {
  const Unit* from;
  Unit* to;
  divider run;
  std::int64_t from_step, to_step;

  DEFT_HD void operator()(std::int64_t i) const {
    const std::int64_t column = run.cut(i);
    to[i * to_step + column] = from[i * from_step + column];
  }
};

/// Copies `count` runs of `bytes` bytes that are `from_step` and `to_step` bytes apart.
struct copied_runs {
  const char* from;
  std::int64_t from_step;
  char* to;
  std::int64_t to_step, bytes, count;

  template <class Stream>
  void queue(Stream& s) const {
    if (bytes == 0 || count == 0) return;
    if (count > 1 && from_step == bytes && to_step == bytes)
      return copied_runs{from, bytes, to, bytes, bytes * count, 1}.queue(s);
    if (count == 1 && bytes > widest && bytes % widest != 0) {  // the last few by themselves
      const std::int64_t most = bytes - bytes % widest;
      copied_runs{from, most, to, most, most, 1}.queue(s);
      return copied_runs{from + most, 0, to + most, 0, bytes - most, 1}.queue(s);
    }
    if (fits(widest))
      in_units<sixteen_bytes>(s);
    else if (fits(8))
      in_units<std::uint64_t>(s);
    else if (fits(4))
      in_units<std::uint32_t>(s);
    else
      in_units<std::uint8_t>(s);
  }

 private:
  bool fits(std::int64_t unit) const {
    if (count > 1 && (from_step % unit != 0 || to_step % unit != 0)) return false;
    return bytes % unit == 0 && is_aligned(from, unit) && is_aligned(to, unit);
  }
  template <class Unit, class Stream>
  void in_units(Stream& s) const {
    constexpr auto size = static_cast<std::int64_t>(sizeof(Unit));
    s.launch(bytes / size * count,
             run_of_units<Unit>{s.template in<Unit>(from), s.template out<Unit>(to),
                                divider(bytes / size), from_step / size, to_step / size});
  }
};
/// Copies bytes between places that do not overlap.
template <class Stream>
void queue_copy(Stream& s, void* to, const void* from, std::size_t bytes) {
  copied_runs{static_cast<const char*>(from),   0, static_cast<char*>(to), 0,
              static_cast<std::int64_t>(bytes), 1}
      .queue(s);
}

}  // namespace deft::ext::gpu
