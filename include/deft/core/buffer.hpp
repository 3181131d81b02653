// SPDX-License-Identifier: Apache-2.0
// deft/core/buffer.hpp: reference-counted blocks of memory, on the host or on a device.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deft/core/config.hpp>
#include <memory>
#include <utility>

namespace deft {

namespace ext {

struct block;

/// An allocator of blocks: the host's memory, or that of one device. It must outlive its blocks.
class memory {
 public:
  virtual ~memory() = default;
  /// A block of at least `bytes` bytes with one reference.
  /// Throws resource_exhausted if they cannot be allocated.
  virtual block* allocate(std::size_t bytes) = 0;
  virtual void release(block* b) noexcept = 0;
  /// Whether the processor may read and write it.
  virtual bool on_host() const { return true; }
};

/// What a buffer refers to.
struct block {
  std::atomic<std::uint32_t> references{1};
  void* data = nullptr;
  std::size_t capacity = 0;  ///< bytes
  memory* home = nullptr;
  bool read_only = false;  ///< whoever has the only reference may not write it either
};

/// The host's memory. Blocks are aligned to 64 bytes. Those of 2 MB and more are aligned to 2 MB,
/// use huge pages where the system has them, and are recycled, up to `host_memory_cache_limit`
/// bytes; smaller ones of 1 KB and more are recycled, too, up to 64 MB.
memory& host_memory();
inline constexpr std::size_t host_memory_cache_limit = std::size_t{1} << 30;

}  // namespace ext

/// Returns recycled blocks to the system, as a server does when its last peer has disconnected.
void trim_host_memory();

namespace ext {

/// Bytes of the free blocks that are kept for reuse.
std::size_t recycled_host_memory();

}  // namespace ext

/// Limits blocks of 2 MB and more to `bytes` bytes in total; 0: the memory of the machine or the
/// container. Beyond it allocation throws resource_exhausted, where otherwise the system would kill
/// the process once the pages are written.
void set_host_memory_limit(std::size_t bytes);

namespace ext {

/// Bytes of memory that this machine, or container, has.
std::size_t physical_memory();

/// A counted reference to a block.
class buffer {
 public:
  buffer() = default;
  /// Takes over one reference.
  explicit buffer(block* b) : block_(b) {}
  buffer(const buffer& o) : block_(o.block_) {
    if (block_) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  buffer(buffer&& o) noexcept : block_(std::exchange(o.block_, nullptr)) {}
  buffer& operator=(buffer o) noexcept {
    std::swap(block_, o.block_);
    return *this;
  }
  ~buffer() { reset(); }

  /// `bytes` bytes of host memory, not initialized.
  static buffer host(std::size_t bytes) { return buffer(host_memory().allocate(bytes)); }
  /// Memory of the caller, which must outlive every copy of the buffer.
  static buffer borrow(const void* data, std::size_t bytes);
  /// Memory that is only read, and that `owner` keeps as long as there are copies of the buffer.
  static buffer kept_by(std::shared_ptr<const void> owner, const void* data, std::size_t bytes);

  void reset() noexcept {
    if (block_ && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      block_->home->release(block_);
    block_ = nullptr;
  }

  /// Hands the reference to the caller.
  block* release() { return std::exchange(block_, nullptr); }

  void* data() const { return block_ ? block_->data : nullptr; }
  std::size_t capacity() const { return block_ ? block_->capacity : 0; }
  memory* home() const { return block_ ? block_->home : nullptr; }
  explicit operator bool() const { return block_ != nullptr; }
  /// Whether this is the only reference to the block, which may be written then.
  bool unique() const {
    return block_ && block_->references.load(std::memory_order_acquire) == 1 && !block_->read_only;
  }
  bool is_borrowed() const;
  friend bool operator==(const buffer& a, const buffer& b) { return a.block_ == b.block_; }

 private:
  block* block_ = nullptr;
};

}  // namespace ext

}  // namespace deft
