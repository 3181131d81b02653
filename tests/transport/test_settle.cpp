// SPDX-License-Identifier: Apache-2.0
// Where an accepted client continues: on a local socket, or on its first connection.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <deft/transport/local.hpp>

#include "introduction.hpp"
#include "programs.hpp"
#include "raw_peer.hpp"

using namespace testing;

namespace {

/// The client's side of a handshake up to the welcome, by hand.
struct newcomer : raw_peer {
  explicit newcomer(const std::string& address, std::uint64_t reach = detail::local_reach())
      : raw_peer(address) {
    say(message_kind::hello, introduction_by_hand{.name = "newcomer", .reach = reach}.meta());
    CHECK(hear().kind == message_kind::challenge);
    say(message_kind::proof, proof_by_hand());
    const auto welcome = hear();
    REQUIRE(welcome.kind == message_kind::welcome);
    std::vector<std::uint8_t> seal;
    std::vector<std::string> catalog;
    from_bytes(welcome.meta, seal, catalog, offer.name, offer.caller, offer.server);
  }
  std::unique_ptr<detail::stream> connect() const {
    boost::system::error_code failed;
    auto s = detail::connect_local(offer.name, detail::event_loop::of_callers(), failed);
    REQUIRE(s);
    return s;
  }

  detail::local_offer offer;
};

/// A server, written by hand, that offers `name`; returns what it hears about the client's choice.
message settled_with(const std::string& name) {
  const int trap = listen_socket("localhost:0");
  std::thread client([address = address_of_socket(trap)] {
    channel_group h(client_of_test());
    CHECK(!h.connect(address, soon())->peer().local);
  });
  raw_peer c(bare_socket(::accept(trap, nullptr, nullptr)).stream());
  c.hear();
  c.say(message_kind::challenge, introduction_by_hand{options_of_test().self.name}.meta());
  CHECK(c.hear().kind == message_kind::proof);
  c.say(message_kind::welcome,
        to_bytes(std::vector<std::uint8_t>(), std::vector<std::string>(), name,
                 detail::local_offer::token{1}, detail::local_offer::token{2}));
  auto m = c.hear();
  client.join();
  ::close(trap);
  return m;
}

}  // namespace

TEST_CASE("processes of one machine continue on a local socket, and close TCP") {
  test_handler handler;
  mailbox<peer_info> seen;
  handler.opened = [&](const auto& c) { seen.put(c->peer()); };
  listener l(options_of_test("secret"), handler);
  const std::size_t before = sockets();
  channel_group h(client_of_test("secret"));
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
  h.poll();  // a group still holds the channels that it polled last
  while (sockets() > before || shared_mappings() > 0) std::this_thread::yield();
}

TEST_CASE("either end may stay on TCP") {
  test_handler handler;
  auto o = options_of_test();
  auto mine = client_of_test();
  SUBCASE("the server") { o.local_sockets = false; }
  SUBCASE("the client") { mine.local_sockets = false; }
  listener l(o, handler);
  channel_group h(mine);
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
    // The connection is open.
    n.say(message_kind::first_free);
    CHECK(n.hear().kind == message_kind::reply);
  }
}

TEST_CASE("a caller that is offered a local socket may stay on TCP") {
  test_handler handler;
  listener l(options_of_test(), handler);
  newcomer n(l.address());
  CHECK(n.offer.name != "");
  CHECK(l.connections() == 0);
  n.say(message_kind::settle);
  n.say(message_kind::first_free);
  CHECK(n.hear().kind == message_kind::reply);
  // The offer is withdrawn.
  raw_peer late(n.connect());
  late.say(message_kind::settle, to_bytes(n.offer.caller));
  CHECK(late.refusal().find("was not offered this local socket") != std::string::npos);
  CHECK(l.connections() == 1);
}

TEST_CASE("an offer is valid once, and only with its token") {
  captured_log log;
  test_handler handler;
  listener l(options_of_test(), handler);
  newcomer n(l.address());
  auto refused = [&](const detail::local_offer::token& token) {
    raw_peer c(n.connect());
    c.say(message_kind::settle, to_bytes(token));
    return c.refusal().find("was not offered this local socket") != std::string::npos;
  };
  CHECK(refused(n.offer.server));
  CHECK(refused({}));
  log.wait_for("refused a local socket");
  raw_peer there(n.connect());
  there.say(message_kind::settle, to_bytes(n.offer.caller));
  const auto welcome = there.hear();
  CHECK(welcome.kind == message_kind::welcome);
  CHECK(welcome.meta == to_bytes(n.offer.server));
  CHECK(refused(n.offer.caller));
  CHECK(n.hears_the_end());  // the first connection is closed
  there.say(message_kind::first_free);
  CHECK(there.hear().kind == message_kind::reply);
  CHECK(l.connections() == 1);
}

TEST_CASE("a caller that is accepted but does not choose a socket is refused in time") {
  captured_log log;
  test_handler handler;
  auto o = options_of_test();
  o.handshake_timeout = std::chrono::milliseconds(50);
  listener l(o, handler);
  newcomer n(l.address());
  log.wait_for("timed out after 50 ms waiting for the handshake of newcomer");
  raw_peer late(n.connect());
  late.say(message_kind::settle, to_bytes(n.offer.caller));
  CHECK(late.refusal().find("was not offered this local socket") != std::string::npos);
}

TEST_CASE("a client stays on TCP if the local socket does not answer correctly") {
  captured_log log;
  SUBCASE("no process listens there") {
    const auto m = settled_with("deft/nobody");
    CHECK(m.kind == message_kind::settle);
    CHECK(m.meta.empty());
    CHECK(log.wait_for("cannot use a local socket to /job:ps/replica:0/task:0 at ")
              .ends_with("Connection refused"));
  }
  SUBCASE("another process does") {
    const std::string name = str("deft/impostor/", random_incarnation());
    boost::asio::io_context context;
    boost::system::error_code failed;
    auto impostor = detail::listen_local(name, context, failed);
    REQUIRE(!failed);
    REQUIRE(fcntl(impostor.native_handle(), F_SETFL, 0) == 0);  // accept blocks
    bool knows = false;
    SUBCASE("without the token") {}
    SUBCASE("that closes the connection") { knows = true; }
    std::thread answer([&] {
      bare_socket s(::accept(impostor.native_handle(), nullptr, nullptr));
      if (knows) return;
      raw_peer c(s.local_stream());
      CHECK(c.hear().meta == to_bytes(detail::local_offer::token{1}));
      c.say(message_kind::welcome, to_bytes(detail::local_offer::token{1}));
      CHECK(c.hears_the_end());
    });
    CHECK(settled_with(name).kind == message_kind::settle);
    answer.join();
    if (!knows) log.wait_for("another process answered on the local socket");
  }
}

TEST_CASE("silent callers on the local socket keep no one out") {
  test_handler handler;
  auto o = options_of_test();
  o.max_handshakes = 4;
  o.handshake_timeout = o.silence = std::chrono::minutes(10);
  listener l(o, handler);
  newcomer n(l.address());
  std::vector<std::unique_ptr<detail::stream>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(n.connect());
  channel_group h(client_of_test());
  for (int i = 0; i < 10; ++i) CHECK(h.connect(l.address(), soon())->peer().name == o.self.name);
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
    const int failed = posix_spawn(&child, path.c_str(), nullptr, nullptr, arguments, environ);
    if (failed == ENOEXEC) {  // under qemu-user, of a program that the system does not pass to it
      MESSAGE("skipped: the system starts no programs of this test's processor");
      return;
    }
    REQUIRE(failed == 0);
    for (int message = 0; message <= i; ++message) CHECK(local.get() == 1);
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WTERMSIG(status) == SIGKILL);
    CHECK(closed.get() != "");
    while (sockets() > before || shared_mappings() > 0) std::this_thread::yield();
  }
}
