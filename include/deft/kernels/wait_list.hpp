// SPDX-License-Identifier: Apache-2.0
// deft/kernels/wait_list.hpp: those who wait for a resource, in the order in which they came.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deft/kernels/context.hpp>
#include <memory>
#include <mutex>
#include <utility>

namespace deft::ext {

/// The steps that wait for something, such as an element of a queue. Thread-safe.
///
/// The state that they wait for has a lock of its own. A step that waits checks it and adds its
/// ticket under that lock; whoever changes it does so under that lock and wakes without it, as a
/// waker may run the step at once. So no wake-up is lost:
///
///     std::lock_guard lock(guard_);                  wake_at_end woken(waiting_);
///     if (values_.empty())                           std::lock_guard lock(guard_);
///       return waiting_.add(ticket, waker), false;   values_.push_back(v);
///                                                    woken.next();
class wait_list {
 public:
  class ticket;

  wait_list() = default;
  wait_list(const wait_list&) = delete;
  /// Those that still wait are removed, and not woken.
  ~wait_list();

  /// Adds one that waits, `w` wakes it. One that waits already, or was woken and waits again in the
  /// same run, keeps its place. Never allocates. A ticket waits in one list at a time: it leaves
  /// the one before, and what that list woke it for is not passed on.
  void add(ticket& t, waker w);
  /// Removes the `n` oldest, or all if there are fewer, and wakes them. If the run of one of them
  /// is over, or ends before its kernel is done, the next one is woken in its place.
  void wake_next(std::size_t n = 1);
  /// Removes and wakes all that wait now.
  void wake_all();
  /// How many wait.
  std::size_t size() const { return core_->size.load(); }

 private:
  struct chain {
    ticket *first = nullptr, *last = nullptr;

    void insert(ticket* after, ticket& t);
    void remove(ticket& t);
  };
  /// Outlives the list as long as tickets refer to it.
  struct core {
    std::mutex guard;
    chain waiting;  ///< by arrival
    chain chosen;   ///< to be woken, by one of the threads that are at it
    std::uint64_t arrivals = 0;
    std::atomic<std::size_t> size{0};  ///< of both
  };
  static void wake(std::shared_ptr<core> c, std::size_t n, bool passed_on);

  const std::shared_ptr<core> core_ = std::make_shared<core>();
};

/// The place of one that waits; it must not be moved meanwhile. Used by one thread at a time, apart
/// from what the list does.
class wait_list::ticket {
 public:
  ticket() = default;
  ticket(const ticket&) = delete;
  ~ticket() { leave(); }

  /// Waits no longer. If wake_next() has woken it, the next one is woken in its place.
  void leave() {
    if (core_) end(true);
  }
  /// The same, once it has got what it waited for.
  void served() {
    if (core_) end(false);
  }

 private:
  friend class wait_list;

  void end(bool pass_on);

  std::shared_ptr<core> core_;  ///< null: it has not been in a list since it left one
  // Guarded by the list:
  std::uint64_t arrival_ = 0;
  chain* in_ = nullptr;
  ticket *before_ = nullptr, *after_ = nullptr;
  bool passes_on_ = false;  ///< it was woken for something that the next one would get
  waker wake_;
};

/// Wakes those of a list at its own end: declared before the lock under which is known how many.
class wake_at_end {
 public:
  explicit wake_at_end(wait_list& l) : list_(l) {}
  wake_at_end(const wake_at_end&) = delete;
  ~wake_at_end() {
    if (all_)
      list_.wake_all();
    else if (next_)
      list_.wake_next(next_);
  }
  void next(std::size_t n = 1) { next_ += n; }
  void all() { all_ = true; }

 private:
  wait_list& list_;
  std::size_t next_ = 0;
  bool all_ = false;
};

}  // namespace deft::ext
