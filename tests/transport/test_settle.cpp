// SPDX-License-Identifier: Apache-2.0
// Where a welcome client goes on: by a local socket, or where it is.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <deft/transport/connection_state.hpp>
#include <deft/transport/local.hpp>

#include "programs.hpp"
#include "wire.hpp"

using namespace testing;

namespace {

/// The client's side of a handshake up to the welcome, by hand.
struct newcomer {
  explicit newcomer(const std::string& address, std::uint64_t reach = detail::local_reach())
      : here(state_of(bare_socket(address).stream())) {
    say(*here, message_kind::hello,
        to_bytes("newcomer", std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{0},
                 std::array<std::uint8_t, 32>{}, false, std::uint32_t{0}, reach));
    CHECK(hear(*here).kind == message_kind::challenge);
    const std::vector<std::string> none;
    say(*here, message_kind::proof, to_bytes(std::vector<std::uint8_t>(), none, none));
    const auto welcome = hear(*here);
    REQUIRE(welcome.kind == message_kind::welcome);
    std::vector<std::uint8_t> seal;
    std::vector<std::string> catalog;
    from_bytes(welcome.meta, seal, catalog, offer.name, offer.caller, offer.server);
  }
  ~newcomer() { here->close(); }

  using state_ptr = std::shared_ptr<detail::connection_state>;
  static state_ptr state_of(std::unique_ptr<detail::stream> s) {
    return std::make_shared<detail::connection_state>(std::move(s), wire_limits{});
  }
  static void say(detail::connection_state& to, message_kind kind, std::vector<std::byte> meta) {
    message m(kind);
    m.meta = std::move(meta);
    to.send(m);
  }
  static message hear(detail::connection_state& from) {
    message m;
    REQUIRE(from.receive(m, soon()));
    return m;
  }
  state_ptr connect() const {
    boost::system::error_code failed;
    auto s = detail::connect_local(offer.name, detail::event_loop::of_callers(), failed);
    REQUIRE(s);
    return state_of(std::move(s));
  }

  state_ptr here;
  detail::local_offer offer;
};

/// What a server that offers `name` by hand hears of where its client goes on.
message settled_with(const std::string& name) {
  const int trap = listen_socket("localhost:0");
  std::thread client([address = address_of_socket(trap)] {
    hub h(client_of_test());
    CHECK(!h.connect(address, soon())->peer().local);
  });
  const auto c = newcomer::state_of(bare_socket(::accept(trap, nullptr, nullptr)).stream());
  const auto hello = newcomer::hear(*c);
  newcomer::say(*c, message_kind::challenge, hello.meta);
  CHECK(newcomer::hear(*c).kind == message_kind::proof);
  newcomer::say(*c, message_kind::welcome,
                to_bytes(std::vector<std::uint8_t>(), std::vector<std::string>(), name,
                         detail::local_offer::token{1}, detail::local_offer::token{2}));
  auto m = newcomer::hear(*c);
  client.join();
  c->close();
  ::close(trap);
  return m;
}

}  // namespace

TEST_CASE("processes of one machine go on by a local socket, and TCP is gone") {
  test_handler handler;
  mailbox<peer_info> seen;
  handler.opened = [&](const auto& c) { seen.put(c->peer()); };
  listener l(options_of_test("secret"), handler);
  const std::size_t before = sockets();
  hub h(client_of_test("secret"));
  auto c = h.connect(l.address(), soon());
  CHECK(c->peer().local);
  CHECK(c->peer().authenticated);
  CHECK(c->peer().address == l.address());
  const auto client = seen.get();
  CHECK(client.local);
  CHECK(client.authenticated);
  CHECK(client.name == "client");
  CHECK(client.address.starts_with("127.0.0.1:"));
  CHECK(l.connections() == 1);
  while (sockets() > before + 2) std::this_thread::yield();
  CHECK(shared_mappings() == 0);
  message m(message_kind::first_free);
  m.tensors = {pattern(dtype::uint8, {30'000'000}, 7)};
  for (int i = 0; i < 3; ++i) {
    auto p = c->call(m);
    REQUIRE(h.wait_for(*p, soon()));
    CHECK(same_bytes(p->get().tensors[0], m.tensors[0]));
  }
  CHECK(shared_mappings() == 4);
  c.reset();
  h.poll();  // a hub keeps those that it looked at last
  while (sockets() > before || shared_mappings() > 0) std::this_thread::yield();
}

TEST_CASE("either end may keep to TCP") {
  test_handler handler;
  auto o = options_of_test();
  auto mine = client_of_test();
  SUBCASE("the server") { o.local_sockets = false; }
  SUBCASE("the client") { mine.local_sockets = false; }
  listener l(o, handler);
  hub h(mine);
  auto c = h.connect(l.address(), soon());
  CHECK(!c->peer().local);
  auto p = c->call(message(message_kind::first_free));
  REQUIRE(h.wait_for(*p, soon()));
  CHECK(p->get().kind == message_kind::reply);
}

TEST_CASE("a caller that cannot reach the server's local sockets is offered none") {
  test_handler handler;
  listener l(options_of_test(), handler);
  for (const std::uint64_t reach : {std::uint64_t{0}, detail::local_reach() + 2}) {
    newcomer n(l.address(), reach);
    CHECK(n.offer.name == "");
    // It is open.
    newcomer::say(*n.here, message_kind::first_free, {});
    CHECK(newcomer::hear(*n.here).kind == message_kind::reply);
  }
}

TEST_CASE("a caller that is offered a local socket may stay where it is") {
  test_handler handler;
  listener l(options_of_test(), handler);
  newcomer n(l.address());
  CHECK(n.offer.name != "");
  CHECK(l.connections() == 0);
  newcomer::say(*n.here, message_kind::settle, {});
  newcomer::say(*n.here, message_kind::first_free, {});
  CHECK(newcomer::hear(*n.here).kind == message_kind::reply);
  // The offer is gone.
  const auto late = n.connect();
  newcomer::say(*late, message_kind::settle, to_bytes(n.offer.caller));
  message m;
  CHECK(error_of([&] { late->receive(m, soon()); }).find("it was not offered this local socket") !=
        std::string::npos);
  late->close();
  CHECK(l.connections() == 1);
}

TEST_CASE("an offer is good once, and for who knows its token") {
  captured_log log;
  test_handler handler;
  listener l(options_of_test(), handler);
  newcomer n(l.address());
  auto refused = [&](const detail::local_offer::token& token) {
    const auto c = n.connect();
    newcomer::say(*c, message_kind::settle, to_bytes(token));
    message m;
    const auto said = error_of([&] { c->receive(m, soon()); });
    c->close();
    return said.find("it was not offered this local socket") != std::string::npos;
  };
  CHECK(refused(n.offer.server));
  CHECK(refused({}));
  log.wait_for("refused a local socket");
  const auto there = n.connect();
  newcomer::say(*there, message_kind::settle, to_bytes(n.offer.caller));
  const auto welcome = newcomer::hear(*there);
  CHECK(welcome.kind == message_kind::welcome);
  CHECK(welcome.meta == to_bytes(n.offer.server));
  CHECK(refused(n.offer.caller));
  message m;
  CHECK(!n.here->receive(m, soon()));  // where it came from is closed
  newcomer::say(*there, message_kind::first_free, {});
  CHECK(newcomer::hear(*there).kind == message_kind::reply);
  CHECK(l.connections() == 1);
  there->close();
}

TEST_CASE("who is welcome but does not go on is refused in time") {
  captured_log log;
  test_handler handler;
  auto o = options_of_test();
  o.handshake_timeout = std::chrono::milliseconds(50);
  listener l(o, handler);
  newcomer n(l.address());
  log.wait_for("no message came in time from newcomer");
  const auto late = n.connect();
  newcomer::say(*late, message_kind::settle, to_bytes(n.offer.caller));
  message m;
  CHECK(error_of([&] { late->receive(m, soon()); }).find("it was not offered this local socket") !=
        std::string::npos);
  late->close();
}

TEST_CASE("a client stays on TCP where the local socket does not answer as it should") {
  captured_log log;
  SUBCASE("nobody listens there") {
    const auto m = settled_with("deft/nobody");
    CHECK(m.kind == message_kind::settle);
    CHECK(m.meta.empty());
    CHECK(log.wait_for("no local socket connects to client at ").ends_with("Connection refused"));
  }
  SUBCASE("another process does") {
    const std::string name = str("deft/impostor/", random_incarnation());
    boost::asio::io_context context;
    boost::system::error_code failed;
    auto impostor = detail::listen_local(name, context, failed);
    REQUIRE(!failed);
    REQUIRE(fcntl(impostor.native_handle(), F_SETFL, 0) == 0);  // accept waits
    bool knows = false;
    SUBCASE("without the token") {}
    SUBCASE("that hangs up") { knows = true; }
    std::thread answer([&] {
      bare_socket s(::accept(impostor.native_handle(), nullptr, nullptr));
      if (knows) return;
      const auto c = newcomer::state_of(s.local_stream());
      CHECK(newcomer::hear(*c).meta == to_bytes(detail::local_offer::token{1}));
      newcomer::say(*c, message_kind::welcome, to_bytes(detail::local_offer::token{1}));
      message m;
      CHECK(!c->receive(m, soon()));
      c->close();
    });
    CHECK(settled_with(name).kind == message_kind::settle);
    answer.join();
    if (!knows) log.wait_for("another process answers there");
  }
}

TEST_CASE("silent callers on the local socket keep nobody out") {
  test_handler handler;
  auto o = options_of_test();
  o.max_handshakes = 4;
  o.handshake_timeout = o.silence = std::chrono::minutes(10);
  listener l(o, handler);
  newcomer n(l.address());
  std::vector<newcomer::state_ptr> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(n.connect());
  hub h(client_of_test());
  for (int i = 0; i < 10; ++i) CHECK(h.connect(l.address(), soon())->peer().name == o.self.name);
  for (const auto& s : silent) s->close();
}

TEST_CASE("a process that is killed while it shares memory leaves nothing behind") {
  test_handler handler;
  mailbox<std::uint32_t> local;
  mailbox<std::string> closed;
  handler.came = [&](const auto& c, message&& m) {
    local.put(m.flags);
    m.kind = message_kind::reply;
    c->send(m);
  };
  handler.closed = [&](const auto&, const error* why) {
    closed.put(why ? why->what() : "in order");
  };
  listener l(options_of_test(), handler);
  const std::size_t before = sockets();
  for (int i = 0; i < 3; ++i) {
    const std::string path = testing::program("local_caller"), address = l.address();
    char* const arguments[] = {const_cast<char*>(path.c_str()), const_cast<char*>(address.c_str()),
                               nullptr};
    pid_t child = 0;
    REQUIRE(posix_spawn(&child, path.c_str(), nullptr, nullptr, arguments, environ) == 0);
    for (int message = 0; message <= i; ++message) CHECK(local.get() == 1);
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WTERMSIG(status) == SIGKILL);
    CHECK(closed.get() != "");
    while (sockets() > before || shared_mappings() > 0) std::this_thread::yield();
  }
}
