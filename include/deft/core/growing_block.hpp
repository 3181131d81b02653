// SPDX-License-Identifier: Apache-2.0
// deft/core/growing_block.hpp: a large block of host memory that counts as it is filled.
#pragma once
#include <cstddef>
#include <deft/core/buffer.hpp>
#include <utility>

namespace deft::ext {

/// A block of host_memory() for elements that are yet to arrive. All of it is at its final address,
/// but only what has been claimed can be written, and counts toward the limit of the host's memory.
class growing_block {
 public:
  /// The size from which there are such blocks, in bytes.
  static constexpr std::size_t least = std::size_t{2} << 20;

  growing_block() = default;
  /// Of at least `bytes` bytes. A recycled block has been claimed already. Throws
  /// resource_exhausted if so much could not be claimed now.
  explicit growing_block(std::size_t bytes);
  growing_block(growing_block&& o) noexcept { *this = std::move(o); }
  growing_block& operator=(growing_block&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(capacity_, o.capacity_);
    std::swap(claimed_, o.claimed_);
    std::swap(whole_, o.whole_);
    return *this;
  }
  ~growing_block();

  std::byte* data() const { return data_; }
  /// Bytes that can be written.
  std::size_t claimed() const { return claimed_; }
  /// Claims the first `bytes` bytes. Throws resource_exhausted, and gives everything back, if the
  /// limit is reached; for a large block, that is a little lower, so that some memory is left for
  /// others.
  void claim(std::size_t bytes);
  /// Hands over the block, once all of it has been claimed.
  buffer take();

 private:
  void give_back() noexcept;

  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0, claimed_ = 0;
  block* whole_ = nullptr;  ///< of a recycled block
};

}  // namespace deft::ext
