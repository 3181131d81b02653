// SPDX-License-Identifier: Apache-2.0
// deft/transport/read_buffer.hpp: bytes that were read before they are needed. Internal.
#pragma once
#include <cstddef>
#include <deft/core/config.hpp>
#include <memory>
#include <span>

namespace deft::detail {

/// A queue of bytes: a read fills its space with as much as there is. Has memory only while it
/// holds bytes, or is being filled; otherwise the thread keeps the memory for the next buffer that
/// it fills. So an idle connection needs none, and a thread uses the same memory, which is in its
/// caches, for all connections.
class read_buffer {
 public:
  static constexpr std::size_t capacity = 32 * 1024;
  /// A piece of this size or more is better read straight to its destination.
  static constexpr std::size_t direct_size = 8 * 1024;

  read_buffer() = default;
  read_buffer(const read_buffer&) = delete;
  ~read_buffer() { give_back(); }

  std::size_t size() const noexcept { return end_ - begin_; }
  /// Moves up to `most` bytes to `to`; returns how many.
  std::size_t take(void* to, std::size_t most) noexcept;

  /// The space behind the bytes, which move to the front; empty if the process is out of memory.
  std::span<std::byte> space() noexcept;
  void add(std::size_t n) noexcept { end_ += n; }
  /// Gives the memory back if it holds no bytes. Called once a read has ended.
  void rest() noexcept {
    if (memory_ && begin_ == end_) give_back();
  }

 private:
  void give_back() noexcept;

  std::unique_ptr<std::byte[]> memory_;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace deft::detail
