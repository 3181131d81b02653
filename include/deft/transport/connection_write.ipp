// SPDX-License-Identifier: Apache-2.0
// deft/transport/connection_write.ipp: sending without waiting, within the peer's credit.
#pragma once
#include <algorithm>
#include <cerrno>
#include <deft/transport/archive.hpp>
#include <deft/transport/connection_state.hpp>
#include <exception>
#include <new>

namespace deft::detail {

namespace {
constexpr auto send_spin = std::chrono::microseconds(20);
constexpr std::size_t spin_at_most = 256 * 1024;  // bytes left that are worth a spin
constexpr std::size_t pieces_at_once = 64;        // of a gather write: Asio's limit
// Bytes of a gather write. In steps of this size the kernel moves data 1.5 times as fast as in one
// of 128 MB, since it serves the receiver in between; below 512 KB it is slower again.
constexpr std::size_t write_at_once = std::size_t{1} << 20;
constexpr int frames_for_others = 16;  // that a sender writes for senders that came later
constexpr int frames_at_once = 64;     // that the loop writes before it serves other connections
constexpr std::size_t held_at_most = 65'536;  // messages waiting for credit

std::uint64_t credit_of(const message& m) {
  std::uint64_t bytes = header_bytes + m.meta.size();
  for (const auto& t : m.tensors) bytes += t.bytes();
  return bytes;
}
}  // namespace

/// Writes until everything is written or the socket takes no more. Modifies `pieces`.
connection_state::progress connection_state::write_pieces(std::vector<iovec>& pieces,
                                                          std::size_t& written, std::size_t total,
                                                          bool spin) {
  std::size_t first = 0;
  auto skip = [&](std::size_t n) {
    while (n > 0) {
      auto& p = pieces[first];
      std::size_t some = std::min(n, p.iov_len);
      p.iov_base = static_cast<char*>(p.iov_base) + some;
      p.iov_len -= some;
      n -= some;
      if (p.iov_len == 0) ++first;
    }
  };
  skip(written);
  std::chrono::steady_clock::time_point give_up{};
  while (written < total) {
    std::size_t last = first, bytes = 0, cut = 0;
    while (last < pieces.size() && last < first + pieces_at_once && bytes < write_at_once)
      bytes += pieces[last++].iov_len;
    if (bytes > write_at_once) pieces[last - 1].iov_len -= cut = bytes - write_at_once;
    std::ptrdiff_t n = stream_->write(pieces.data() + first, static_cast<int>(last - first));
    pieces[last - 1].iov_len += cut;
    if (n > 0) {
      written += static_cast<std::size_t>(n);
      skip(static_cast<std::size_t>(n));
      sent_.store(true, std::memory_order_relaxed);
      give_up = {};
    } else if (n == -EAGAIN || n == -EWOULDBLOCK) {
      if (!spin || total - written > spin_at_most) return progress::some;
      auto now = std::chrono::steady_clock::now();
      if (give_up == std::chrono::steady_clock::time_point{}) give_up = now + send_spin;
      if (now >= give_up) return progress::some;
      relax();
    } else {
      break_off(stream_->why(static_cast<int>(-n)));
      return progress::broken;
    }
  }
  return progress::all;
}

connection_state::waiting connection_state::keep(const message& m, const header_block& head,
                                                 const std::vector<std::byte>& descriptors,
                                                 std::size_t written) const {
  waiting w;
  w.head.reserve(head.size() + m.meta.size() + descriptors.size());
  w.head.assign(head.begin(), head.end());
  w.head.insert(w.head.end(), m.meta.begin(), m.meta.end());
  w.head.insert(w.head.end(), descriptors.begin(), descriptors.end());
  w.total = w.head.size();
  for (const auto& t : m.tensors) {
    if (t.bytes() == 0) continue;
    w.tensors.push_back(t);
    w.total += t.bytes();
  }
  w.written = written;
  return w;
}

void connection_state::mark_spinning(header_block& head, message_kind kind) const {
  if (kind == message_kind::reply || kind == message_kind::error) return;
  const auto others = spinning_for_this::now();
  if (others.count == 0 || !stream_->on_this_host()) return;
  const auto longer =
      std::chrono::ceil<std::chrono::microseconds>(others.until - std::chrono::steady_clock::now());
  head[spinning_at] = static_cast<std::byte>(std::min(others.count, 255));
  head[spinning_at + 1] = static_cast<std::byte>(std::clamp<std::int64_t>(longer.count(), 0, 255));
}

/// Collects the pieces of a frame in `pieces_`; small ones are copied together. Returns their
/// bytes.
std::size_t connection_state::gather(const message& m, const header_block& head) {
  constexpr std::size_t small = 4096, gathered_at_once = 64 * 1024;
  pieces_.clear();
  gathered_.clear();
  std::size_t most = head.size() + m.meta.size() + descriptors_.size();
  for (const auto& t : m.tensors) most += t.bytes() <= small ? t.bytes() : 0;
  gathered_.reserve(std::min(most, gathered_at_once));  // must not reallocate: pieces point into it
  std::size_t total = 0;
  auto add = [&](const void* data, std::size_t n) {
    if (n == 0) return;
    total += n;
    const auto* bytes = static_cast<const std::byte*>(data);
    if (n > small || gathered_.size() + n > gathered_.capacity())
      return pieces_.push_back({const_cast<void*>(data), n});
    const std::byte* end = gathered_.data() + gathered_.size();
    gathered_.insert(gathered_.end(), bytes, bytes + n);
    auto* last = pieces_.empty() ? nullptr : &pieces_.back();
    if (last && static_cast<std::byte*>(last->iov_base) + last->iov_len == end)
      last->iov_len += n;
    else
      pieces_.push_back({const_cast<std::byte*>(end), n});
  };
  add(head.data(), head.size());
  add(m.meta.data(), m.meta.size());
  add(descriptors_.data(), descriptors_.size());
  for (const auto& t : m.tensors) add(t.raw(), t.bytes());
  return total;
}

void connection_state::send(const message& m) {
  std::unique_lock lock(guard_);
  if (lost()) {
    lock.unlock();
    throw_lost();
  }
  if (m.takes_credit && (!held_.empty() || !on_the_way_.take(credit_of(m)))) return hold(m);
  try {
    send(m, lock);
  } catch (const std::bad_alloc&) {
    if (!m.takes_credit) throw;
    if (lock.owns_lock()) lock.unlock();
    give_back({credit_of(m), 1});
    throw;
  }
}

/// With the lock held. Queues `m` until there is credit.
void connection_state::hold(const message& m) {
  if (held_.size() == held_at_most)
    fail(errc::resource_exhausted, peer, " does not process what is sent to it: ", held_at_most,
         " messages are waiting (limit)");
  held_.push_back(m);
  held_bytes_ += credit_of(m);
}
void connection_state::drop_held() {
  held_.clear();
  held_bytes_ = 0;
}

/// Messages have been processed by the peer, or not been sent: sends the waiting ones that now have
/// credit.
void connection_state::give_back(const credit& c) {
  std::unique_lock lock(guard_);
  on_the_way_.give_back(c);
  while (!held_.empty() && !lost() && on_the_way_.take(credit_of(held_.front()))) {
    const message next = std::move(held_.front());
    held_.pop_front();
    held_bytes_ -= credit_of(next);
    try {
      send(next, lock);
    } catch (const std::bad_alloc&) {
      if (lock.owns_lock()) lock.unlock();
      return break_off("out of memory while writing");  // the peer would miss a message
    }
    lock.lock();
  }
}

/// Makes the received `m` return its credit when it is destroyed.
void connection_state::note_credit(message& m) {
  const std::uint64_t bytes = credit_of(m);
  {
    std::lock_guard lock(credit_guard_);
    if (!taken_.take(bytes))
      fail(errc::resource_exhausted, peer, " exceeds its credit: ", taken_.used().bytes,
           " bytes in ", taken_.used().frames, " messages are unprocessed here");
  }
  m.credit = std::shared_ptr<const void>(
      this, [self = shared_from_this(), bytes](const void*) { self->free_credit(bytes); });
}
void connection_state::free_credit(std::uint64_t bytes) {
  std::optional<credit> told;
  {
    std::lock_guard lock(credit_guard_);
    told = taken_.free(bytes);
  }
  if (!told || lost()) return;
  message m(message_kind::credit);
  m.session = told->bytes;
  m.flags = told->frames;
  try {
    send(m);
  } catch (const error&) {
    // The connection was lost in the meantime.
  } catch (const std::bad_alloc&) {
    break_off("out of memory while writing");  // the peer would wait for its credit
  }
}

/// With the lock held.
void connection_state::end_writing() {
  writing_ = false;
  if (copiers_ > 0) changed_.notify_all();
}

void connection_state::copy_borrowed() {
  auto copy = [](std::vector<any_array>& tensors) {
    for (auto& t : tensors)
      if (t.storage().is_borrowed()) t = t.clone();
  };
  std::unique_lock lock(guard_);
  ++copiers_;
  changed_.wait(lock, [&] { return !writing_; });
  --copiers_;
  for (auto& w : queue_) copy(w.tensors);
  for (auto& m : held_) copy(m.tensors);
}

/// With the lock held, which it releases.
void connection_state::send(const message& m, std::unique_lock<std::mutex>& lock) {
  if (writer_ != writer::none) {
    std::vector<std::byte> descriptors;
    auto head = encode_frame(m, descriptors);
    mark_spinning(head, m.kind);
    queue_.push_back(keep(m, head, descriptors, 0));
    queued_ += queue_.back().total;
    return lock.unlock();
  }
  auto head = encode_frame(m, descriptors_);
  mark_spinning(head, m.kind);
  writer_ = writer::sender;
  writing_ = true;
  lock.unlock();

  std::size_t written = 0, total = 0;
  progress p = progress::all;
  std::exception_ptr no_memory;
  try {
    total = gather(m, head);
    p = write_pieces(pieces_, written, total, true);
  } catch (const std::bad_alloc&) {
    no_memory = std::current_exception();  // nothing of `m` has been written
  }

  lock.lock();
  end_writing();
  bool kept = false;
  if (p == progress::some && !closed_here()) try {
      queue_.push_front(keep(m, head, descriptors_, written));
      queued_ += total - written;
      kept = true;
    } catch (const std::bad_alloc&) {
      no_memory = std::current_exception();
      lock.unlock();
      break_off("out of memory while writing");
      lock.lock();
    }
  if (kept) return hand_over(lock);
  // Other senders may have queued messages behind this one.
  if (p == progress::all && write_queue(lock, frames_for_others) == progress::some &&
      !closed_here()) {
    hand_over(lock);
  } else {
    stop_writing(lock);
    lock.unlock();
  }
  if (no_memory) std::rethrow_exception(no_memory);
  if (p != progress::all) throw_lost();
}

/// With the lock held; it is released while writing.
connection_state::progress connection_state::write_queue(std::unique_lock<std::mutex>& lock,
                                                         int most) {
  for (int i = 0; !queue_.empty() && !closed_here(); ++i) {
    if (i == most) return progress::some;
    waiting& w = queue_.front();
    writing_ = true;
    lock.unlock();
    const std::size_t before = w.written;
    progress p = progress::broken;
    try {
      pieces_.clear();
      pieces_.push_back({w.head.data(), w.head.size()});
      for (const auto& t : w.tensors) pieces_.push_back({const_cast<void*>(t.raw()), t.bytes()});
      p = write_pieces(pieces_, w.written, w.total, false);
    } catch (const std::bad_alloc&) {
      break_off("out of memory while writing");
    }
    lock.lock();
    end_writing();
    queued_ -= w.written - before;
    if (p != progress::all) return p;
    queue_.pop_front();
  }
  return queue_.empty() ? progress::all : progress::broken;
}

/// There is no writer any more: everything is written, or nothing can be.
void connection_state::stop_writing(std::unique_lock<std::mutex>&) {
  writer_ = writer::none;
  if (refused_.load(std::memory_order_acquire)) stream_->shut(false);
  if (lost()) {
    queue_.clear();
    queued_ = 0;
  }
  changed_.notify_all();
}

void connection_state::hand_over(std::unique_lock<std::mutex>& lock) {
  writer_ = writer::loop;
  lock.unlock();
  write_when_possible();
  loop().wake_keeper();
}

void connection_state::write_when_possible() {
  const auto failure = failure_of([&] { wait_to_write(); });
  if (!failure) return;
  break_off("out of memory while writing");
  std::unique_lock lock(guard_);
  stop_writing(lock);
}
void connection_state::wait_to_write() {
  stream_->wait(stream::direction::out, [self = shared_from_this()] {
    std::unique_lock mine(self->guard_);
    const std::size_t before = self->queued_;
    const progress p = self->write_queue(mine, frames_at_once);
    // A peer that takes bytes is alive.
    if (self->queued_ < before) self->received_.store(true, std::memory_order_relaxed);
    if (p != progress::some || self->closed_here()) return self->stop_writing(mine);
    mine.unlock();
    self->write_when_possible();
  });
}

}  // namespace deft::detail
