// SPDX-License-Identifier: Apache-2.0
// deft/core/shared_ref.hpp: shared ownership in one pointer.
#pragma once
#include <atomic>
#include <cstdint>
#include <deft/core/config.hpp>
#include <utility>

namespace deft::ext {

/// A reference-counted immutable object. std::shared_ptr is twice as large, which matters for a
/// graph of a million nodes.
template <class T>
class shared_ref {
 public:
  shared_ref() = default;
  /// Makes a T of `args`.
  template <class... Args>
  static shared_ref make(Args&&... args) {
    shared_ref r;
    r.block_ = new block{T{std::forward<Args>(args)...}};
    return r;
  }
  shared_ref(const shared_ref& o) : block_(o.block_) {
    if (block_) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  shared_ref(shared_ref&& o) noexcept : block_(std::exchange(o.block_, nullptr)) {}
  shared_ref& operator=(shared_ref o) noexcept {
    std::swap(block_, o.block_);
    return *this;
  }
  ~shared_ref() {
    if (block_ && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete block_;
  }

  explicit operator bool() const { return block_ != nullptr; }
  const T& operator*() const { return block_->value; }
  const T* operator->() const { return &block_->value; }
  /// The same object, not an equal one.
  friend bool operator==(const shared_ref& a, const shared_ref& b) { return a.block_ == b.block_; }

 private:
  struct block {
    T value;
    std::atomic<std::uint32_t> references{1};
  };
  block* block_ = nullptr;
};

}  // namespace deft::ext
