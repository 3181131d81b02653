// SPDX-License-Identifier: Apache-2.0
// deft/transport/spin.hpp: how long a thread spins before it sleeps. Internal.
#pragma once
#include <algorithm>
#include <chrono>
#include <deft/core/config.hpp>

namespace deft::detail {

class stream;

/// Lets the sibling hyperthread run while this one spins.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The longest time that a thread spins for a message of a peer. Sleeping and waking takes up to
/// half as long on a virtual machine, and as long again at the other end, which sleeps meanwhile.
inline constexpr auto most_spin = std::chrono::microseconds(100);

/// Whether more threads of this machine are ready to run than it has processors, so that one of
/// them waits for a thread that spins. False if the system does not say. Takes 1 us.
bool threads_outnumber_processors();

/// Lets another thread that is ready to run have the calling thread's processor: one that is about
/// to answer runs at once, and one that spins gives it back at once. Returns false without doing so
/// for 100 ms after the other thread kept it for long: the system has a thread that gave way wait,
/// even for a message that is there, until the other one had its share, which takes milliseconds.
bool give_way();

/// The threads of this host that spin.
struct spinning_threads {
  int count = 0;
  std::chrono::steady_clock::time_point until{};  ///< when the first of them sleeps
};

/// The threads known to spin until the calling thread is done with its task: those that have asked
/// for it, directly or through others.
class spinning_for_this {
 public:
  using clock = std::chrono::steady_clock;
  static spinning_threads now() {
    return others_.count && clock::now() < others_.until ? others_ : spinning_threads();
  }
  /// While this object lives, the calling thread handles a message whose sender spins; `count`
  /// other threads spin too, for `longer` more.
  spinning_for_this(int count, std::chrono::microseconds longer) : before_(others_) {
    others_ = {count + 1, clock::now() + (count ? longer : most_spin)};
  }
  ~spinning_for_this() { others_ = before_; }
  spinning_for_this(const spinning_for_this&) = delete;

 private:
  static inline thread_local spinning_threads others_;
  const spinning_threads before_;
};

/// How long to spin before sleeping. Waking a thread costs more than the wire, so spinning pays for
/// what arrives soon; otherwise it only takes the processor from threads that work, perhaps the
/// peer's. So the time is halved whenever spinning fails, with a full attempt now and then, until
/// it pays again; and with full attempts after short sleeps, which may have been short but for the
/// wake-up. It is zero if the peer needs this very processor to answer.
class adaptive_spin {
 public:
  using duration = std::chrono::steady_clock::duration;
  explicit adaptive_spin(duration most) : most_(most), limit_(most) {}
  bool worth(duration waited) const { return waited < limit_; }
  /// Something arrived after `waited`: while spinning, or after a sleep. `same_processor`: the peer
  /// sent it from the processor that this thread runs on.
  void on_arrival(bool slept, duration waited, bool same_processor = false) {
    if (!slept) {
      limit_ = std::min(2 * limit_, most_);
      nearly_ = 0;
    } else if (same_processor) {
      limit_ = {};
      nearly_ = 0;
    } else if (++failures_ % 16 == 0 || (waited < 3 * most_ && nearly_++ < 3)) {
      limit_ = most_;
    } else {
      limit_ = std::max(limit_ / 2, most_ / 32);
    }
  }

 private:
  duration most_, limit_;
  unsigned failures_ = 0, nearly_ = 0;
};

/// Decides when a reading thread looks again and when it sleeps. A thread that spins for long, or
/// while others spin on all processors, gives way to threads that work; where that does not pay, it
/// sleeps as soon as one of them lacks a processor. Between two processes of one machine it also
/// moves the waiting thread, which may be the caller's, off a processor that both ends share: each
/// wakes the other in turn while another processor may be idle, and the system's scheduler, which
/// put them together since one sleeps as it wakes the other, does not separate them again.
class arrival_wait {
 public:
  using clock = std::chrono::steady_clock;
  /// Where `give_way` returns false, `crowded` is asked at intervals whether a long spin is to end.
  explicit arrival_wait(clock::duration most, bool (*give_way)() = detail::give_way,
                        bool (*crowded)() = threads_outnumber_processors)
      : most_(most), spin_(most), give_way_(give_way), crowded_(crowded) {}
  /// Forgets a wait that ended without a message.
  void restart() {
    began_ = {};
    slept_ = in_part_ = false;
  }
  /// Until when a thread that spins gives way at once, given the `others` that spin: each of them
  /// needs a processor, and so do a thread that works and one more.
  static clock::time_point crowded_until(const spinning_threads& others);
  void set_crowded_until(clock::time_point t) { crowded_until_ = t; }
  /// After a look at `now` found nothing. Returns true to look again at once; false to sleep, and
  /// then call woke.
  bool look_again(clock::time_point now);
  void woke() { last_ = clock::now(); }
  /// A message arrived from `s`.
  void on_arrival(const stream& s);
  /// A part of a message arrived from `s`: the rest is on its way, and is spun for as long as for
  /// an answer that always comes soon.
  void on_partial_arrival(const stream& s);

 private:
  clock::duration most_;
  adaptive_spin spin_;
  bool slept_ = false, in_part_ = false;
  bool (*give_way_)();
  bool (*crowded_)();
  clock::time_point crowded_until_{}, ask_again_{};
  int shared_soon_ = 0;  ///< messages in a row, each soon after a sleep and from the same processor
  clock::time_point began_{}, last_{}, move_again_{};
};

}  // namespace deft::detail
