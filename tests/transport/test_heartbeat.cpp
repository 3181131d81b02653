// SPDX-License-Identifier: Apache-2.0
// Heartbeats: a silent peer is lost, by name, on both ends; a busy one is not.
#include <deft/transport/channel_group.hpp>
#include <deft/transport/listener.hpp>

#include "faulty_stream.hpp"
#include "wire.hpp"

using namespace testing;

namespace {

constexpr std::chrono::milliseconds short_timeout{100}, long_timeout{1000}, never{0};

listen_options server_of(std::chrono::milliseconds timeout) {
  auto o = options_of_test();
  o.self.heartbeat_timeout = timeout;
  return o;
}
channel_options client_of(std::chrono::milliseconds timeout) {
  auto o = client_of_test();
  o.self.heartbeat_timeout = timeout;
  return o;
}

}  // namespace

namespace {

/// Returns when both ends of a connection have learnt that the other is lost.
void lose_one(std::chrono::milliseconds of_server, std::chrono::milliseconds of_client,
              std::string& server_says, std::string& client_says) {
  faulty_network network({});
  test_handler handler;
  mailbox<std::string> closed;
  handler.closed = [&](const auto&, const error* why) { closed.put(why ? why->what() : "none"); };
  handler.came = [](const auto&, message&&) {};
  listener l(server_of(of_server), handler);
  channel_group h(client_of(of_client));
  auto c = h.connect(l.address(), soon());
  auto p = c->call(message(message_kind::first_free));
  network.go_down();
  if (of_client != never) {
    REQUIRE(h.wait_for(*p, soon()));
    client_says = error_of([&] { p->take(); });
  }
  if (of_server != never) server_says = closed.get();
}

}  // namespace

TEST_CASE("a peer from which nothing is received is lost, by name, on both ends") {
  std::string server_says, client_says;
  lose_one(short_timeout, short_timeout, server_says, client_says);
  CHECK(client_says.starts_with("unavailable: lost /job:ps/replica:0/task:0 at 127.0.0.1:"));
  CHECK(client_says.ends_with(": nothing received from it for 100 ms"));
  CAPTURE(server_says);
  CHECK(server_says.starts_with("lost client at 127.0.0.1:"));
  CHECK(server_says.ends_with(": nothing received from it for 100 ms"));
}

TEST_CASE("each end has its own timeout") {
  std::string server_says, client_says;
  SUBCASE("of the client") {
    lose_one(never, short_timeout, server_says, client_says);
    CHECK(client_says.ends_with(": nothing received from it for 100 ms"));
  }
  SUBCASE("of the server") {
    lose_one(short_timeout, never, server_says, client_says);
    CHECK(server_says.ends_with(": nothing received from it for 100 ms"));
  }
}

TEST_CASE("a peer that is busy or has nothing to send is not lost") {
  test_handler handler;
  mailbox<int> go_on;
  handler.came = [&](const auto& c, message&& m) {
    if (m.step == 1) go_on.get();
    m.kind = message_kind::reply;
    c->send(m);
  };
  listener l(server_of(long_timeout), handler);
  channel_group h(client_of(long_timeout));
  auto idle = h.connect(l.address(), soon()), busy = h.connect(l.address(), soon());
  message m(message_kind::first_free);
  m.step = 1;
  auto p = busy->call(m);
  // No thread waits on the channels meanwhile. Each of these takes as long as a loss.
  std::string ignored;
  for (int i = 0; i < 2; ++i) lose_one(long_timeout, long_timeout, ignored, ignored);
  CHECK(!p->done());
  CHECK(!idle->lost());
  CHECK(!busy->lost());
  go_on.put(1);
  CHECK(h.wait_for(*p, soon()));
  CHECK(p->take().kind == message_kind::reply);
}

namespace {

/// What the test allows to pass of another stream.
class gated_stream final : public no_stream {
 public:
  struct gate {
    std::atomic<bool> mute{false};                ///< what is written does not arrive
    std::atomic<std::size_t> readable{SIZE_MAX};  ///< bytes
  };
  gated_stream(std::unique_ptr<stream> inner, gate& g) : inner_(std::move(inner)), gate_(g) {}
  std::ptrdiff_t read(void* to, std::size_t most) noexcept override {
    most = std::min<std::size_t>(most, gate_.readable);
    const auto n = most == 0 ? -EAGAIN : inner_->read(to, most);
    if (n > 0) gate_.readable -= static_cast<std::size_t>(n);
    return n;
  }
  std::ptrdiff_t write(const iovec* pieces, int count) noexcept override {
    return gate_.mute ? static_cast<std::ptrdiff_t>(pieces[0].iov_len)
                      : inner_->write(pieces, count);
  }
  void wait(direction d, std::function<void()> then) override { inner_->wait(d, std::move(then)); }
  void shut(bool both) noexcept override { inner_->shut(both); }

 private:
  const std::unique_ptr<stream> inner_;
  gate& gate_;
};

}  // namespace

TEST_CASE("a peer that says nothing, but takes what it is sent, is not lost") {
  test_handler handler;
  handler.came = [](const auto& c, message&& m) {
    m.kind = message_kind::reply;
    for (int i = 0; i < 64; ++i) m.tensors.emplace_back(dtype::uint8, dims{1 << 20});
    c->send(m);
  };
  listener l(server_of(long_timeout), handler);
  gated_stream::gate gate;
  const auto c = std::make_shared<detail::connection_state>(
      std::make_unique<gated_stream>(bare_socket(l.address()).stream(), gate), wire_limits{});
  shake_hands(c, client_of(never).self);
  c->send(message(message_kind::first_free, 1));
  gate.mute = true;
  // Twice the time after which a silent peer is lost.
  std::string ignored;
  message answer;
  for (int i = 0; i < 4; ++i) {
    lose_one(long_timeout / 2, long_timeout / 2, ignored, ignored);
    gate.readable = 8 << 20;
    while (gate.readable > 0) REQUIRE(c->try_receive(answer) == connection::arrival::nothing);
  }
  CHECK(l.connections() == 1);
  // One that does not take it either is.
  while (l.connections() == 1) lose_one(short_timeout, short_timeout, ignored, ignored);
  c->close();
}
