// SPDX-License-Identifier: Apache-2.0
// deft/core/registry.hpp: what the files of a program register before main: lists to which objects
// with static storage add themselves.
#pragma once
#include <atomic>
#include <deft/core/config.hpp>

namespace deft::ext {

/// All entries of one kind, which live as long as the process.
///
/// The rule of static initialization: an entry's constructor keeps its arguments, which are
/// addresses and constants, and adds the entry to its list. It touches nothing that is not
/// constant-initialized, as the list is, so the order of a program's files does not matter. Names,
/// signatures and tables are made from the entries at a look-up, after main has begun; one that is
/// to know libraries loaded later asks each_new() every time.
///
/// `struct entry : registry<entry>::link { static registry<entry> all; … };`, and in one file
/// `constinit registry<entry> entry::all;`.
template <class Entry>
class registry {
 public:
  /// The base of an entry.
  class link {
   public:
    link() = default;
    link(const link&) = delete;

   private:
    friend registry;
    const Entry* next_ = nullptr;
  };
  class iterator {
   public:
    explicit iterator(const Entry* at) : at_(at) {}
    const Entry& operator*() const { return *at_; }
    iterator& operator++() {
      at_ = after(at_);
      return *this;
    }
    friend bool operator==(iterator, iterator) = default;

   private:
    const Entry* at_;
  };

  /// Adds `e`, which is complete: the last statement of its constructor. Lock-free.
  void add(Entry& e) {
    const Entry*& next = static_cast<link&>(e).next_;
    next = newest_.load(std::memory_order_relaxed);
    while (!newest_.compare_exchange_weak(next, &e, std::memory_order_release)) {
    }
  }

  /// From the newest entry to the oldest.
  iterator begin() const { return iterator(newest_.load(std::memory_order_acquire)); }
  iterator end() const { return iterator(nullptr); }
  /// Calls f for those added since the last call with this `seen`, which begins as nullptr. If f
  /// throws, none of them counts as seen.
  template <class F>
  void each_new(const Entry*& seen, F f) const {
    const Entry* const newest = newest_.load(std::memory_order_acquire);
    for (auto* e = newest; e != seen; e = after(e)) f(*e);
    seen = newest;
  }

 private:
  static const Entry* after(const Entry* e) { return static_cast<const link*>(e)->next_; }

  std::atomic<const Entry*> newest_{nullptr};
};

}  // namespace deft::ext
