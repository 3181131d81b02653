// SPDX-License-Identifier: Apache-2.0
// deft/core/hash.hpp: 64-bit hashes, the same on every platform.
#pragma once
#include <cstdint>
#include <string_view>

namespace deft {

/// Mixes `v` into `seed`: a round of wyhash's multiply-and-fold.
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t v) {
  __extension__ using wide = unsigned __int128;
  wide m = static_cast<wide>(seed ^ 0x9e3779b97f4a7c15u) * (v ^ 0xe7037ed1a0b428dbu);
  return static_cast<std::uint64_t>(m) ^ static_cast<std::uint64_t>(m >> 64);
}

/// FNV-1a, finished by a mixing round.
constexpr std::uint64_t hash_text(std::string_view s) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (char c : s) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix(h, s.size());
}

}  // namespace deft
