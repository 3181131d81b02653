// SPDX-License-Identifier: Apache-2.0
// deft/kernels/arena.hpp: blocks of memory that runs borrow for their activations.
#pragma once
#include <array>
#include <atomic>
#include <deft/core/buffer.hpp>
#include <mutex>
#include <vector>

namespace deft::ext {

/// A pool of blocks of one space, last in, first out in each size class, so that repeated runs of a
/// plan get the same address. Large blocks go back to the space, which recycles them itself.
/// Thread-safe.
class arena_pool {
 public:
  /// `largest`: bytes of the largest block that the pool keeps. The default is the size from which
  /// the host's memory recycles blocks itself.
  explicit arena_pool(memory& space, std::size_t largest = std::size_t{2} << 20);
  ~arena_pool();
  arena_pool(const arena_pool&) = delete;

  /// At least `bytes` bytes, not initialized. Throws resource_exhausted.
  buffer take(std::size_t bytes);
  void give(buffer block) noexcept;
  /// Returns all blocks of the pool to the space.
  void trim() noexcept;

 private:
  static constexpr std::size_t classes = 4 * 64;
  static std::size_t class_of(std::size_t bytes);
  static std::size_t bytes_of(std::size_t size_class);

  memory& space_;
  const std::size_t largest_;
  std::array<std::atomic<block*>, classes> top_{};  ///< the usual case: one run at a time
  std::mutex guard_;
  std::vector<std::pair<std::size_t, buffer>> more_;
};

}  // namespace deft::ext
