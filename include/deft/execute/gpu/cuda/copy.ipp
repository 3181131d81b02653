// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/cuda/copy.ipp: copies that an update makes.
#pragma once
#include <deft/execute/gpu/cuda/launch.hpp>
#include <deft/execute/gpu/cuda/tables.hpp>

namespace deft::gpu::cuda {
namespace {

struct alignas(16) copied_words {
  std::uint32_t words[4];
};
template <class T>
struct copied {
  const T* from;
  T* to;
  DEFT_HD void operator()(std::int64_t i) const { to[i] = from[i]; }
};

}  // namespace

void copy_unless_failed(stream& s, void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t width = sizeof(copied_words);
  const auto places = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  const std::size_t wide = places % width == 0 ? bytes / width : 0, done = wide * width;
  s.launch(static_cast<std::int64_t>(wide),
           copied<copied_words>{s.in<copied_words>(from), s.out<copied_words>(to)});
  s.launch(static_cast<std::int64_t>(bytes - done),
           copied<std::uint8_t>{s.in<std::uint8_t>(from) + done, s.out<std::uint8_t>(to) + done});
}

}  // namespace deft::gpu::cuda
