// SPDX-License-Identifier: Apache-2.0
// deft/core/hash.ipp: the hash of bytes, and its seed.
#pragma once
#include <sys/random.h>

#include <cstring>
#include <deft/core/error.hpp>
#include <deft/core/hash.hpp>

namespace deft::ext {

std::uint64_t hash_bytes(const void* data, std::size_t bytes) {
  struct random_words {
    std::uint64_t w[4];
    random_words() {
      if (getrandom(w, sizeof w, 0) != sizeof w)
        fail(errc::unavailable, "the system provides no random numbers");
    }
  };
  static const random_words seed;
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t h[2] = {seed.w[2], seed.w[3]};
  // Two products under way at once: each takes the last one's result.
  auto take = [&](const unsigned char* from) {
    std::uint64_t w[4];
    std::memcpy(w, from, sizeof w);
    h[0] = detail::fold_product(w[0] ^ seed.w[0], w[1] ^ h[0]);
    h[1] = detail::fold_product(w[2] ^ seed.w[1], w[3] ^ h[1]);
  };
  std::size_t left = bytes;
  for (; left >= 32; left -= 32, at += 32) take(at);
  unsigned char last[32] = {};
  if (left) std::memcpy(last, at, left);
  take(last);
  return mix(mix(h[0], h[1]), bytes);
}

}  // namespace deft::ext
