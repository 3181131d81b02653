// SPDX-License-Identifier: Apache-2.0
// deft/core/hash.hpp: 64-bit hashes: of values and texts the same on every platform, of bytes
// different in each process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deft/core/config.hpp>
#include <string_view>

namespace deft::ext {

/// Mixes `v` into `seed`: splitmix64's finalizer over a linear combination. One to one in each
/// argument, so that no value of one cancels the other.
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t v) {
  std::uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u + v;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace deft::ext

namespace deft::detail {
/// The halves of a product of 128 bits, folded: wyhash's step.
constexpr std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using wide = unsigned __int128;
  const wide m = static_cast<wide>(a) * b;
  return static_cast<std::uint64_t>(m) ^ static_cast<std::uint64_t>(m >> 64);
}
}  // namespace deft::detail

namespace deft::ext {

/// FNV-1a, finished by a folded product. For names only: anyone can construct collisions.
constexpr std::uint64_t hash_text(std::string_view s) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (char c : s) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return detail::fold_product(h ^ 0x9e3779b97f4a7c15u, s.size() ^ 0xe7037ed1a0b428dbu);
}

/// For contents that a peer may choose: eight bytes at a time, with a random seed for each process.
std::uint64_t hash_bytes(const void* data, std::size_t bytes);

}  // namespace deft::ext
