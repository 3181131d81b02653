// SPDX-License-Identifier: Apache-2.0
// benchmarks/bare.hpp: the yardstick, blocking TCP sockets between two processes without a library.
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deft/core/any_array.hpp>
#include <deft/transport/listener.hpp>
#include <string>

namespace bench {

/// A client's request: the far side reads `more` bytes, then answers with `answer` bytes.
struct request {
  std::int64_t more = 0, answer = 0;
  char padding[48] = {};
};

namespace detail {
constexpr std::int64_t at_once = 1 << 20;  // bytes per system call; the fastest size

inline bool receive_all(int fd, void* to, std::int64_t n) {
  for (auto* p = static_cast<char*>(to); n > 0;) {
    auto r = recv(fd, p, static_cast<std::size_t>(std::min(n, at_once)), 0);
    if (r <= 0) return false;
    p += r, n -= r;
  }
  return true;
}
inline bool send_all(int fd, const void* from, std::int64_t n) {
  for (auto* p = static_cast<const char*>(from); n > 0;) {
    auto r = send(fd, p, static_cast<std::size_t>(std::min(n, at_once)), MSG_NOSIGNAL);
    if (r <= 0) return false;
    p += r, n -= r;
  }
  return true;
}
inline void undelayed(int fd) {
  int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}
/// Memory in huge pages, with all pages touched.
inline deft::any_array touched(std::int64_t bytes) {
  deft::any_array a(deft::dtype::uint8, deft::dims{bytes});
  std::fill_n(static_cast<char*>(a.mutable_raw()), bytes, 'x');
  return a;
}
}  // namespace detail

/// The far side: serves one connection at a time, forever.
[[noreturn]] inline void serve_bare(int listening, std::int64_t most) {
  deft::any_array memory = detail::touched(most);
  for (;;) {
    int fd = accept(listening, nullptr, nullptr);
    if (fd < 0) _exit(0);
    detail::undelayed(fd);
    request r;
    while (detail::receive_all(fd, &r, sizeof r) &&
           detail::receive_all(fd, memory.mutable_raw(), r.more) &&
           detail::send_all(fd, memory.raw(), r.answer)) {
    }
    close(fd);
  }
}

/// The near side of a connection.
class bare_client {
 public:
  bare_client(const std::string& address, std::int64_t most)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)), memory_(detail::touched(most)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(
        static_cast<std::uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) std::abort();
    detail::undelayed(fd_);
  }
  ~bare_client() { close(fd_); }
  bare_client(const bare_client&) = delete;

  int fd() const { return fd_; }
  void call(const request& r) {
    if (!detail::send_all(fd_, &r, sizeof r) || !detail::send_all(fd_, memory_.raw(), r.more) ||
        !detail::receive_all(fd_, memory_.mutable_raw(), r.answer))
      std::abort();
  }

 private:
  int fd_;
  deft::any_array memory_;
};

}  // namespace bench
