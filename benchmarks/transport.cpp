// SPDX-License-Identifier: Apache-2.0
// benchmarks/transport.cpp: calls and bulk transfers between two processes, by TCP and by local
// sockets with shared memory, each against bare blocking TCP sockets.
//
// Rows: name, our figure, the yardstick measured in turns with it, and our figure relative to it
// (lower is better for times, higher for speeds).
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deft/transport/archive.hpp>
#include <deft/transport/channel_group.hpp>
#include <deft/transport/listener.hpp>
#include <functional>
#include <thread>
#include <vector>

namespace {

using namespace deft;
using bench_clock = std::chrono::steady_clock;

constexpr std::int64_t bulk_bytes = std::int64_t{128} << 20;
constexpr std::int64_t at_once = 1 << 20;  // bytes per system call; the fastest size

// What a client orders from the bare process: the kind of work, and the size of a piece.
struct order {
  char what = 0;  // p: send pieces back; s: swallow a piece, send a byte; g: give one for a byte
  bool spin = false;
  std::int64_t piece = 0;
};

void receive_all(int fd, void* to, std::int64_t n, bool spin = false) {
  auto* p = static_cast<char*>(to);
  while (n > 0) {
    auto r = recv(fd, p, static_cast<std::size_t>(std::min(n, at_once)), spin ? MSG_DONTWAIT : 0);
    if (r < 0 && spin) continue;
    if (r <= 0) _exit(0);
    p += r;
    n -= r;
  }
}
void send_all(int fd, const void* from, std::int64_t n) {
  auto* p = static_cast<const char*>(from);
  while (n > 0) {
    auto r = send(fd, p, static_cast<std::size_t>(std::min(n, at_once)), MSG_NOSIGNAL);
    if (r <= 0) _exit(0);
    p += r;
    n -= r;
  }
}

void serve_bare(int listening) {
  for (;;) {
    int fd = accept(listening, nullptr, nullptr);
    if (fd < 0) return;
    int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    order o;
    receive_all(fd, &o, sizeof o);
    any_array piece(dtype::uint8, dims{o.piece});
    auto* data = static_cast<char*>(piece.mutable_raw());
    std::fill_n(data, o.piece, 'x');
    char byte = 1;
    // Serves until the other end closes.
    for (bool more = true; more;) {
      auto peeked = recv(fd, &byte, 1, MSG_PEEK | (o.spin ? MSG_DONTWAIT : 0));
      if (peeked < 0 && o.spin) continue;
      more = peeked > 0;
      if (!more) break;
      if (o.what == 'g') {
        receive_all(fd, &byte, 1);
        send_all(fd, data, o.piece);
      } else {
        receive_all(fd, data, o.piece, o.spin);
        if (o.what == 'p') send_all(fd, data, o.piece);
        if (o.what == 's') send_all(fd, &byte, 1);
      }
    }
    close(fd);
  }
}

struct far_side : connection_handler {
  any_array large{dtype::uint8, dims{bulk_bytes}};
  far_side() { std::fill_n(static_cast<char*>(large.mutable_raw()), bulk_bytes, 'x'); }
  void on_message(const std::shared_ptr<connection>& c, message&& m) override {
    m.kind = message_kind::reply;
    if (m.flags == 1) m.tensors.clear();
    if (m.flags == 2) m.tensors = {large};
    c->send(m);
    if (m.flags == 2) m.tensors.clear();
  }
};

[[noreturn]] void far_process(int bare, int ours) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  far_side handler;
  listen_options o;
  o.fd = ours;
  listener l(o, handler);
  serve_bare(bare);
  _exit(0);
}

class bare_client {
 public:
  bare_client(std::uint16_t port, const order& o) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) std::abort();
    int yes = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    send_all(fd_, &o, sizeof o);
  }
  ~bare_client() { close(fd_); }
  int fd() const { return fd_; }

 private:
  int fd_;
};

using repeated = std::function<double(int times)>;  // returns seconds per time

template <class F>
double seconds_of(F f, int times) {
  auto begin = bench_clock::now();
  for (int i = 0; i < times; ++i) f();
  return std::chrono::duration<double>(bench_clock::now() - begin).count() / times;
}
template <class F>
repeated timed(F f) {
  return [f](int times) { return seconds_of(f, times); };
}
/// Uses a new connection for each turn, so that its other end sleeps between turns.
template <class F>
repeated timed_bare(std::uint16_t port, order o, F f) {
  return [=](int times) {
    bare_client c(port, o);
    f(c.fd());
    return seconds_of([&] { f(c.fd()); }, times);
  };
}

/// The medians of both, measured in turns.
std::pair<double, double> in_turns(const repeated& ours, const repeated& bare, int times,
                                   int rounds) {
  std::vector<double> a, b;
  for (int i = 0; i < rounds; ++i) {
    a.push_back(ours(times));
    b.push_back(bare(times));
  }
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return {a[a.size() / 2], b[b.size() / 2]};
}

std::uint16_t port_of(int fd) {
  auto text = address_of_socket(fd);
  return static_cast<std::uint16_t>(std::stoi(text.substr(text.rfind(':') + 1)));
}

void row_time(const char* name, std::pair<double, double> s) {
  std::printf("%-36s %9.2f us %9.2f us %7.2f\n", name, s.first * 1e6, s.second * 1e6,
              s.first / s.second);
}
void row_speed(const char* name, std::pair<double, double> s) {
  std::printf("%-36s %7.2f GB/s %7.2f GB/s %7.2f\n", name, bulk_bytes / s.first / 1e9,
              bulk_bytes / s.second / 1e9, s.second / s.first);
}

void call_rows(channel& c, channel_group& h, std::uint16_t port, std::int64_t payload,
               const std::string& name) {
  message m(message_kind::first_free);
  m.meta = to_bytes(std::uint64_t{1}, std::uint64_t{2});
  m.tensors = {any_array(dtype::uint8, dims{payload})};
  std::fill_n(static_cast<char*>(m.tensors[0].mutable_raw()), payload, 'x');
  auto ours = timed([&] {
    auto p = c.call(m);
    h.wait_for(*p);
    if (p->get().tensors[0].bytes() != static_cast<std::size_t>(payload)) std::abort();
  });
  std::int64_t frame = 64 + 16 + 24 + payload;  // as many bytes as in our frame
  std::vector<char> bytes(static_cast<std::size_t>(frame), 'x');
  for (bool spin : {false, true}) {
    auto bare = timed_bare(port, {'p', spin, frame}, [&, spin](int fd) {
      send_all(fd, bytes.data(), frame);
      receive_all(fd, bytes.data(), frame, spin);
    });
    row_time(str(name, spin ? ", to spinning" : ", to blocking").c_str(),
             in_turns(ours, bare, 2'000, 9));
  }
}

void bulk_rows(channel& c, channel_group& h, std::uint16_t port, const std::string& name) {
  any_array large(dtype::uint8, dims{bulk_bytes});
  auto* data = static_cast<char*>(large.mutable_raw());
  std::fill_n(data, bulk_bytes, 'x');
  message m(message_kind::first_free);
  auto ours_once = timed([&] {
    auto p = c.call(m);
    h.wait_for(*p);
    p->get();
  });
  auto push = [&](int fd) {
    char byte = 1;
    send_all(fd, data, bulk_bytes);
    receive_all(fd, &byte, 1);
  };
  auto pull = [&](int fd) {
    char byte = 1;
    send_all(fd, &byte, 1);
    receive_all(fd, data, bulk_bytes);
  };
  m.flags = 1;
  m.tensors = {large};
  row_speed(str(name, " there").c_str(),
            in_turns(ours_once, timed_bare(port, {'s', false, bulk_bytes}, push), 2, 15));
  m.flags = 2;
  m.tensors.clear();
  row_speed(str(name, " back").c_str(),
            in_turns(ours_once, timed_bare(port, {'g', false, bulk_bytes}, pull), 2, 15));
  m.flags = 0;
  m.tensors = {large};
  row_speed(str(name, " there and back").c_str(),
            in_turns(ours_once,
                     timed_bare(port, {'p', false, bulk_bytes},
                                [&](int fd) {
                                  send_all(fd, data, bulk_bytes);
                                  receive_all(fd, data, bulk_bytes);
                                }),
                     2, 9));
}

}  // namespace

int main() {
  int bare = listen_socket("localhost:0"), ours = listen_socket("localhost:0");
  auto port = port_of(bare);
  auto address = address_of_socket(ours);
  pid_t child = fork();  // before any thread starts
  if (child == 0) far_process(bare, ours);
  close(bare);
  close(ours);

  std::printf("%-36s %12s %12s %7s\n", "", "ours", "bare TCP", "ratio");
  for (const bool local : {false, true}) {
    channel_group h({.local_sockets = local});
    auto c = h.connect(address, deadline_in(std::chrono::seconds(10)));
    if (c->peer().local != local) continue;
    const char* const by = local ? "local, " : "TCP, ";
    call_rows(*c, h, port, 4, str(by, "call, 4 B"));
    call_rows(*c, h, port, 4096, str(by, "call, 4 KB"));
    bulk_rows(*c, h, port, str(by, "128 MB"));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}
