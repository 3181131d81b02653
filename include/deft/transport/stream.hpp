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
/// after a sleep that was short, as its wake-up alone may have been what took so long.
class adaptive_spin {
 public:
  using duration = std::chrono::steady_clock::duration;
  explicit adaptive_spin(duration most) : most_(most), limit_(most) {}
  bool worth(duration waited) const { return waited < limit_; }
  /// What was waited for has come after `waited`, while spinning or only after a sleep.
  void came(bool slept, duration waited) {
    if (!slept) {
      limit_ = std::min(2 * limit_, most_);
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
/// Moves the calling thread, one of deft's own, to another processor if the peer of a loopback
/// socket runs on the same: there a spin keeps the peer from answering and each wakes the other in
/// turn, while a processor may idle. The system takes them together since one sleeps as it wakes
/// the other, and does not part them again.
void move_away_from_peer(int fd);
/// Lets a sibling hyperthread run while spinning.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace deft::detail
