// SPDX-License-Identifier: Apache-2.0
// deft/transport/stream.hpp: bytes in both directions; what TLS will implement too. Internal.
#pragma once
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deft/transport/message.hpp>
#include <memory>
#include <string>
#include <vector>

namespace deft::detail {

/// A connected stream that never waits. Reading and writing may happen at the same time.
class stream {
 public:
  virtual ~stream() = default;
  /// How many bytes were read; 0: the peer has ended its direction; -EAGAIN: none are there;
  /// another -errno: it broke.
  virtual std::ptrdiff_t read(void* to, std::size_t most) noexcept = 0;
  /// How many bytes were written, or -errno.
  virtual std::ptrdiff_t write(const iovec* pieces, int count) noexcept = 0;
  /// Ends both directions, or the outgoing one; from any thread.
  virtual void shut(bool both) noexcept = 0;
  /// For poll(2).
  virtual int handle() const noexcept = 0;
  /// Whether what was read last was sent from the processor that the caller runs on.
  virtual bool beside_peer() const noexcept = 0;
};

/// Takes over a connected TCP socket.
std::unique_ptr<stream> tcp_stream(int fd);

/// One candidate of what a host name stands for.
struct endpoint {
  alignas(8) unsigned char address[128];
  unsigned length = 0;
  int family = 0;
  bool loopback = false;
};

/// "host:port" taken apart; "[::1]:80" too. Throws invalid_argument.
std::pair<std::string, std::string> split_address(const std::string& address);
/// What `address` stands for, IPv4 first; an empty host is loopback. Throws unavailable if the name
/// is not known, invalid_argument if it is malformed.
std::vector<endpoint> resolve(const std::string& address);
/// A connected socket, or -errno.
int connect_socket(const endpoint& to, deadline until);
/// A bound and listening socket. Throws unavailable.
int listen_on(const endpoint& at, const std::string& name);
/// Whether a bound socket can be reached from this machine only.
bool is_loopback(int fd);
/// "127.0.0.1:2222" of this end, or of the other.
std::string socket_text(int fd, bool peer);
/// Waits until `fd` can be read (or written), or has failed; false if the time is over.
bool wait_for_socket(int fd, bool write, deadline until);
/// What errno number `e` means.
std::string text_of_errno(int e);

/// Milliseconds for poll(2), rounded up; -1: for ever.
int poll_timeout(deadline until);
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
  explicit arrival_wait(clock::duration most_spin) : most_(most_spin), spin_(most_spin) {}
  /// Forgets a wait that ended without anything.
  void restart() {
    began_ = {};
    slept_ = false;
  }
  /// There was nothing at `now`. True: look again at once; false: sleep, then call woke.
  bool look_again(clock::time_point now);
  void woke() { last_ = clock::now(); }
  /// There was something, from `s`.
  void came(const stream& s);

 private:
  clock::duration most_;
  adaptive_spin spin_;
  bool slept_ = false;
  int beside_soon_ = 0;  ///< messages in a row, each soon after a sleep and from the same processor
  clock::time_point began_{}, last_{}, move_again_{};
};
/// Lets a sibling hyperthread run while spinning.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace deft::detail
