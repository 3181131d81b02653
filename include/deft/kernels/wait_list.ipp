// SPDX-License-Identifier: Apache-2.0
// deft/kernels/wait_list.ipp: tickets in the order of their arrival.
#pragma once
#include <deft/kernels/wait_list.hpp>

namespace deft::ext {
namespace {

constexpr std::size_t all_waiting = ~std::size_t{0};

}  // namespace

/// Null: as the first one.
void wait_list::chain::insert(ticket* after, ticket& t) {
  t.in_ = this;
  t.before_ = after;
  t.after_ = after ? after->after_ : first;
  (t.before_ ? t.before_->after_ : first) = &t;
  (t.after_ ? t.after_->before_ : last) = &t;
}

void wait_list::chain::remove(ticket& t) {
  (t.before_ ? t.before_->after_ : first) = t.after_;
  (t.after_ ? t.after_->before_ : last) = t.before_;
  t.in_ = nullptr;
}

// What a waker refers to may own a ticket: wakers are dropped without the lock.

wait_list::~wait_list() {
  for (;;) {
    waker dropped;
    std::lock_guard lock(core_->guard);
    chain& all = core_->waiting.first ? core_->waiting : core_->chosen;
    ticket* const t = all.first;
    if (!t) return;
    all.remove(*t);
    --core_->size;
    std::swap(dropped, t->wake_);
  }
}

void wait_list::add(ticket& t, waker w) {
  if (t.core_ != core_) {
    t.served();
    t.core_ = core_;
  }
  std::lock_guard lock(core_->guard);
  std::swap(t.wake_, w);
  if (t.in_) return;  // one that is about to be woken looks again after that
  t.passes_on_ = false;
  if (!t.arrival_) t.arrival_ = ++core_->arrivals;
  chain& all = core_->waiting;
  ticket* after = all.last;
  if (all.first && t.arrival_ < all.first->arrival_) after = nullptr;
  while (after && after->arrival_ > t.arrival_) after = after->before_;
  all.insert(after, t);
  ++core_->size;
}

/// Chosen ones are in a chain of their own, so that one that waits again at once is not woken again
/// and one that leaves meanwhile is not woken at all.
void wait_list::wake(std::shared_ptr<core> c, std::size_t n, bool passed_on) {
  std::unique_lock lock(c->guard);
  const auto choose = [&c](std::size_t most, bool passes_on) {
    for (; most > 0 && c->waiting.first; --most) {
      ticket& t = *c->waiting.first;
      c->waiting.remove(t);
      c->chosen.insert(c->chosen.last, t);
      t.passes_on_ = passes_on;
    }
  };
  choose(n, passed_on);
  while (ticket* const t = c->chosen.first) {
    c->chosen.remove(*t);
    --c->size;
    const bool passes_on = t->passes_on_;
    waker w = std::exchange(t->wake_, waker());
    lock.unlock();  // from here on the ticket may be gone
    const bool woken = w();
    w = waker();
    lock.lock();
    if (!woken && passes_on) choose(1, true);
  }
}

void wait_list::wake_next(std::size_t n) {
  if (size() > 0) wake(core_, n, true);
}
void wait_list::wake_all() {
  if (size() > 0) wake(core_, all_waiting, false);
}

void wait_list::ticket::end(bool pass_on) {
  const auto c = std::exchange(core_, nullptr);
  waker dropped;
  {
    std::lock_guard lock(c->guard);
    if (in_) {
      in_->remove(*this);
      --c->size;
    }
    arrival_ = 0;
    std::swap(dropped, wake_);
    pass_on &= std::exchange(passes_on_, false);
  }
  if (pass_on) wake(c, 1, true);
}

}  // namespace deft::ext
