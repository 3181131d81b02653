// SPDX-License-Identifier: Apache-2.0
// deft/transport/spin.hpp: how long to look again and again before a thread sleeps. Internal.
#pragma once
#include <algorithm>
#include <chrono>

namespace deft::detail {

class stream;

/// Lets a sibling hyperthread run while spinning.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// The longest that a thread spins for what a peer sends. To sleep and be woken takes up to half as
/// long on a virtual machine, and at the other end it takes that again, as that sleeps meanwhile.
inline constexpr auto most_spin = std::chrono::microseconds(100);

/// Threads of this host that spin.
struct spinning_threads {
  int count = 0;
  std::chrono::steady_clock::time_point until{};  ///< when the first of them sleeps
};

/// Those who spin, as far as is known, until what the calling thread does is done: all who asked
/// for it, one through the other.
class spinning_for_this {
 public:
  using clock = std::chrono::steady_clock;
  static spinning_threads now() {
    return others_.count && clock::now() < others_.until ? others_ : spinning_threads();
  }
  /// While this lives, the calling thread does what a message asks for, whose sender spins, and
  /// with it `count`, so much longer.
  spinning_for_this(int count, std::chrono::microseconds longer) : before_(others_) {
    others_ = {count + 1, clock::now() + (count ? longer : most_spin)};
  }
  ~spinning_for_this() { others_ = before_; }
  spinning_for_this(const spinning_for_this&) = delete;

 private:
  static inline thread_local spinning_threads others_;
  const spinning_threads before_;
};

/// How long to spin before sleeping. Waking a thread costs more than the wire, so what comes soon
/// is spun for; but where that is in vain it only takes the processor from those who work, be it
/// the peer. So it is done less and less, with a full try now and then, until it pays again; and
/// after a sleep that was short, as its wake-up alone may have been what took so long. Never where
/// the peer needs this very processor to answer.
class adaptive_spin {
 public:
  using duration = std::chrono::steady_clock::duration;
  explicit adaptive_spin(duration most) : most_(most), limit_(most) {}
  bool worth(duration waited) const { return waited < limit_; }
  /// What was waited for has come after `waited`, while spinning or only after a sleep; from a peer
  /// beside us, on the same processor.
  void came(bool slept, duration waited, bool beside = false) {
    if (!slept) {
      limit_ = std::min(2 * limit_, most_);
      nearly_ = 0;
    } else if (beside) {
      limit_ = {};
      nearly_ = 0;
    } else if (++in_vain_ % 16 == 0 || (waited < 3 * most_ && nearly_++ < 3)) {
      limit_ = most_;
    } else {
      limit_ = std::max(limit_ / 2, most_ / 32);
    }
  }

 private:
  duration most_, limit_;
  unsigned in_vain_ = 0, nearly_ = 0;
};

/// The waiting of whoever reads: when to look again and when to sleep. Between two processes of one
/// machine it also moves the thread that waits, the caller's or one of deft's own, off the
/// processor that both share: each wakes the other in turn while another one may idle, and the
/// system, which takes them together since one sleeps as it wakes the other, does not part them
/// again.
class arrival_wait {
 public:
  using clock = std::chrono::steady_clock;
  explicit arrival_wait(clock::duration most) : most_(most), spin_(most) {}
  /// Forgets a wait that ended without anything.
  void restart() {
    began_ = {};
    slept_ = false;
  }
  /// Until when it does not pay to spin beside `others`: processors have to be left for them, for
  /// who works, and for one more.
  static clock::time_point crowded_until(const spinning_threads& others);
  void set_crowded_until(clock::time_point t) { crowded_until_ = t; }
  /// There was nothing at `now`. True: look again at once; false: sleep, then call woke.
  bool look_again(clock::time_point now);
  void woke() { last_ = clock::now(); }
  /// There was something, from `s`.
  void came(const stream& s);

 private:
  clock::duration most_;
  adaptive_spin spin_;
  bool slept_ = false;
  clock::time_point crowded_until_{};
  int beside_soon_ = 0;  ///< messages in a row, each soon after a sleep and from the same processor
  clock::time_point began_{}, last_{}, move_again_{};
};

}  // namespace deft::detail
