// SPDX-License-Identifier: Apache-2.0
#include <deft/transport/listener.hpp>
// its own header comes first, to check that it is self-contained
#include <fcntl.h>

#include <filesystem>
#include <optional>
#include <random>

#include "reserved_address.hpp"
#include "wire.hpp"

using namespace testing;

TEST_CASE("port 0 is any port, and the one chosen is reported") {
  test_handler handler;
  auto o = options_of_test();
  for (const char* address : {":0", "localhost:0", "127.0.0.1:0"}) {
    o.address = address;
    listener l(o, handler);
    CHECK(l.port() != 0);
    CHECK(l.address() == str("127.0.0.1:", l.port()));
    channel_group h(client_of_test());
    CHECK(h.connect(str("localhost:", l.port()), soon())->peer().name == o.self.name);
  }
}

TEST_CASE("a listening socket can be inherited") {
  test_handler handler;
  auto o = options_of_test();
  o.fd = listen_socket("localhost:0");
  auto address = address_of_socket(o.fd);
  // A caller that comes before the listener waits in the socket's queue.
  std::string answer;
  std::thread early([&] {
    channel_group h(client_of_test());
    answer = h.connect(address, soon())->peer().name;
  });
  listener l(o, handler);
  CHECK(l.address() == address);
  early.join();
  CHECK(answer == o.self.name);

  int pair[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  o.fd = pair[0];
  CHECK(error_of([&] { listener(o, handler); }).find("is not a listening socket") !=
        std::string::npos);
  char c;
  CHECK(::read(pair[1], &c, 1) == 0);  // the listener owned it, and has closed it
  ::close(pair[1]);
}

TEST_CASE("a reserved port refuses callers and others who bind, and a listener may use it") {
  using boost::asio::ip::tcp;
  const reserved_address reserved;
  boost::asio::io_context context;
  const tcp::endpoint at = detail::resolve(reserved.text).front();
  boost::system::error_code failed;
  tcp::socket(context).connect(at, failed);
  CHECK(failed == boost::asio::error::connection_refused);
  tcp::acceptor other(context, at.protocol());
  other.bind(at, failed);
  CHECK(failed == boost::asio::error::address_in_use);

  test_handler handler;
  auto o = options_of_test();
  o.address = reserved.text;
  for (int i = 0; i < 2; ++i) {
    listener l(o, handler);
    channel_group h(client_of_test());
    CHECK(h.connect(reserved.text, soon())->peer().name == o.self.name);
    CHECK(error_of([&] { reserve_address(reserved.text); }).find("another process listens there") !=
          std::string::npos);
  }
}

TEST_CASE("an address that other machines can reach needs a secret, or insecure") {
  test_handler handler;
  auto o = options_of_test();
  o.address = "0.0.0.0:0";
  auto refused = error_of([&] { listener(o, handler); });
  CHECK(refused ==
        "permission_denied: 0.0.0.0:0 can be reached from other machines: that needs a secret "
        "(DEFT_SECRET or --secret_file), TLS (--tls_cert, --tls_key and --tls_ca), or --insecure");
  auto inherited = o;
  inherited.fd = listen_socket("0.0.0.0:0");
  CHECK(error_of([&] { listener(inherited, handler); }).starts_with("permission_denied"));
  o.self.credentials.insecure = true;
  CHECK(error_of([&] { listener(o, handler); }) == "");
  o.self.credentials.insecure = false;
  o.self.credentials.secret = "s";
  CHECK(error_of([&] { listener(o, handler); }) == "");
}

TEST_CASE("all interfaces are those of IPv4, and with [::] those of IPv6 as well") {
  test_handler handler;
  auto o = options_of_test("s");
  const bool has_ipv6 = error_of([&] { ::close(listen_socket("[::1]:0")); }) == "";
  for (const char* address : {"0.0.0.0:0", "[::]:0"}) {
    if (address[0] == '[' && !has_ipv6) continue;
    o.address = address;
    listener l(o, handler);
    channel_group h(client_of_test("s"));
    CHECK(h.connect(str("127.0.0.1:", l.port()), soon())->peer().name == o.self.name);
    if (address[0] == '[')
      CHECK(h.connect(str("[::1]:", l.port()), soon())->peer().name == o.self.name);
  }
}

TEST_CASE("invalid addresses are refused by name") {
  test_handler handler;
  auto o = options_of_test();
  auto outcome = [&](std::string address) {
    o.address = std::move(address);
    return error_of([&] { listener(o, handler); });
  };
  CHECK(outcome("localhost") ==
        "invalid_argument: \"localhost\" is not a valid address: expected host:port");
  CHECK(outcome("localhost:99999") ==
        "invalid_argument: \"localhost:99999\" is not a valid address: \"99999\" is not a port "
        "(0 to 65535)");
  CHECK(outcome("http://x:1").starts_with("invalid_argument"));
  listener taken(options_of_test(), handler);
  const std::string said = outcome(taken.address());
  CHECK(said.starts_with("unavailable: cannot listen on " + taken.address()));
  CHECK(said.ends_with("use another port, or port 0 for any that is free"));
}

TEST_CASE("garbage is refused and logged, and disturbs no other connection") {
  captured_log log;
  test_handler handler;
  auto o = options_of_test();
  o.max_handshakes = 1'000;
  listener l(o, handler);
  channel_group h(client_of_test());
  auto c = h.connect(l.address(), soon());
  bare_socket browser(l.address());
  browser.write("GET / HTTP/1.1\r\nHost: ps0\r\n\r\n");
  CHECK(!browser.read_all().empty());
  log.wait_for("received something other than a deft frame: it begins with 47 45 54 20");

  std::mt19937 random(3);
  message hello(message_kind::hello);
  hello.meta = to_bytes("x", std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{0},
                        std::array<std::uint8_t, 32>{}, false, std::uint32_t{0}, std::uint64_t{0});
  auto sound = detail::flatten_frame(hello);
  for (int round = 0; round < 300; ++round) {
    auto bytes = sound;
    if (round % 3 == 0) {
      bytes.resize(1 + random() % 400);
      for (auto& b : bytes) b = static_cast<std::byte>(random());
    } else {
      for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    bare_socket s(l.address());
    s.write(bytes);
    if (round % 2) s.reset();
  }
  auto p = c->call(message(message_kind::first_free));
  REQUIRE(h.wait_for(*p, soon()));
  CHECK(p->take().kind == message_kind::reply);
  CHECK(l.connections() == 1);
}

namespace {

using silent_callers = std::vector<std::unique_ptr<bare_socket>>;
silent_callers silent(int count, const std::string& address, const std::string& from = "") {
  silent_callers all;
  for (int i = 0; i < count; ++i) all.push_back(std::make_unique<bare_socket>(address, from));
  return all;
}

}  // namespace

TEST_CASE("the longest handshake makes room, so that silent callers keep no one out") {
  captured_log log;
  test_handler handler;
  auto o = options_of_test();
  o.max_handshakes = 4;
  o.handshake_timeout = o.silence = std::chrono::minutes(10);
  listener l(o, handler);
  const auto callers = silent(40, l.address());
  log.wait_for("away: too many connections in the handshake");
  channel_group h(client_of_test());
  for (int i = 0; i < 10; ++i) {
    CHECK(h.connect(l.address(), soon())->peer().name == o.self.name);
    const auto more = silent(10, l.address());
  }
  CHECK(callers[0]->read_all().empty());  // it was closed
}

TEST_CASE("silent callers of one machine take the places of their own machine only") {
  test_handler handler;
  auto o = options_of_test();
  o.max_handshakes = 4;
  o.handshake_timeout = o.silence = std::chrono::minutes(10);
  listener l(o, handler);
  const bare_socket other(l.address());
  const auto callers = silent(40, l.address(), "127.0.0.2:0");
  for (std::size_t i = 0; i < 38; ++i)  // they have half of the places
    CHECK(callers[i]->read_all().empty());
  char c;
  CHECK(::recv(other.handle(), &c, 1, MSG_DONTWAIT) == -1);
  CHECK(errno == EAGAIN);  // it is open
}

namespace {
std::ptrdiff_t open_descriptors() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}
}  // namespace

TEST_CASE("callers that were refused keep few connections open") {
  test_handler handler;
  auto o = options_of_test();
  o.max_handshakes = 4;
  o.time_to_hear = std::chrono::minutes(10);
  listener l(o, handler);
  constexpr int callers = 40;
  const auto before = open_descriptors();
  silent_callers refused;
  for (int i = 0; i < callers; ++i) {
    refused.push_back(std::make_unique<bare_socket>(l.address()));
    refused.back()->write("GET / HTTP/1.1\r\n");
    CHECK(!refused.back()->read_all().empty());  // why
  }
  // Those of the callers, and of the connections in the handshake or refused.
  while (open_descriptors() > before + callers + 2 * o.max_handshakes) std::this_thread::yield();
}

TEST_CASE("a caller that sends nothing is refused before one that sends little") {
  captured_log log;
  test_handler handler;
  auto o = options_of_test();
  o.handshake_timeout = std::chrono::minutes(10);
  o.silence = std::chrono::milliseconds(50);
  listener l(o, handler);
  const auto callers = silent(1, l.address());
  log.wait_for("waiting for its first message");
  const auto answer = callers[0]->read_all();
  const std::string said(reinterpret_cast<const char*>(answer.data()), answer.size());
  CHECK(said.find("timed out after 50 ms waiting for its first message") != std::string::npos);
}

TEST_CASE("a caller that has sent something gets the time of a handshake") {
  captured_log log;
  test_handler handler;
  auto o = options_of_test();
  o.handshake_timeout = std::chrono::milliseconds(50);
  listener l(o, handler);
  bare_socket slow(l.address());
  slow.write("DEFT");
  log.wait_for("timed out after 50 ms waiting for the handshake of");
}

TEST_CASE("connections that have ended hold no descriptors") {
  test_handler handler;
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  h.connect(l.address(), soon())->close();
  const std::size_t before = descriptors();
  {
    const auto callers = silent(20, l.address());
    std::vector<std::shared_ptr<channel>> honest;
    for (int i = 0; i < 20; ++i) honest.push_back(h.connect(l.address(), soon()));
  }
  while (descriptors() > before) std::this_thread::yield();
}

TEST_CASE("a server that has run out of descriptors accepts callers once it has some") {
  captured_log log;
  test_handler handler;
  listener l(options_of_test(), handler);
  std::optional<bare_socket> caller;
  {
    const descriptor_limit few(descriptors() + 40);
    std::vector<bare_socket> all;
    for (int fd; (fd = ::fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0;) all.emplace_back(fd);
    REQUIRE(errno == EMFILE);
    all.pop_back();
    caller.emplace(l.address());
    log.wait_for("cannot accept on " + l.address() + ": Too many open files");
  }
  channel_group h(client_of_test());
  CHECK(h.connect(l.address(), soon())->peer().name == options_of_test().self.name);
  caller->write("GET / HTTP/1.1\r\n\r\n");
  CHECK(!caller->read_all().empty());  // the one that had to wait is served too
}

TEST_CASE("an invalid frame ends its connection with a message, and no other") {
  test_handler handler;
  mailbox<std::string> ended;
  handler.closed = [&](const auto&, const error* why) {
    ended.put(why ? why->what() : "in order");
  };
  auto o = options_of_test();
  o.limits.tensors = 2;
  listener l(o, handler);
  channel_group h(client_of_test());
  auto bad = h.connect(l.address(), soon()), good = h.connect(l.address(), soon());
  message m(message_kind::first_free);
  m.tensors.assign(3, any_array::scalar(1.f));
  auto p = bad->call(m);
  auto q = good->call(message(message_kind::first_free));
  REQUIRE(h.wait_until([&] { return p->done() && q->done(); }, soon()));
  CHECK(error_of([&] { p->take(); }) ==
        str("unavailable: lost ", bad->peer(), ": it refused: a message with 3 tensors (limit 2)"));
  CHECK(q->take().kind == message_kind::reply);
  CHECK(ended.get() == "a message with 3 tensors (limit 2)");
  good->close();
  CHECK(ended.get() == "in order");
}

TEST_CASE("an error that a handler throws is the answer, and the connection stays open") {
  captured_log log;
  test_handler handler;
  handler.came = [](const auto& c, message&& m) {
    if (m.flags == 1) throw error(errc::not_found, "no such thing", "node_1");
    m.kind = message_kind::reply;
    c->send(m);
  };
  handler.opened = [](const auto& c) {
    if (c->peer().name == "stranger") fail(errc::failed_precondition, "not today");
  };
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  auto c = h.connect(l.address(), soon());
  message m(message_kind::first_free);
  m.flags = 1;
  c->post(m);
  log.wait_for("a message from client at");
  auto p = c->call(m);
  REQUIRE(h.wait_for(*p, soon()));
  CHECK(p->failed());
  CHECK(error_of([&] { p->take(); }) == "not_found: no such thing, node \"node_1\"");
  auto q = c->call(message(message_kind::first_free));
  REQUIRE(h.wait_for(*q, soon()));
  CHECK(q->take().id == q->id());

  channel_group other({{"stranger", 0, {}, {}}, {}});
  auto s = other.connect(l.address(), soon());
  other.wait_until([&] { return s->lost(); }, soon());
  CHECK(error_of([&] { s->post(m); }).find("it refused: not today") != std::string::npos);
}

TEST_CASE("a message without an answer that cannot be handled ends its connection") {
  test_handler handler;
  mailbox<std::string> told;
  handler.came = [](const auto&, message&& m) {
    if (m.flags == 1) throw std::bad_alloc();
    if (m.flags == 2) from_bytes(m.meta, m.session);
  };
  handler.closed = [&](const auto&, const error* why) { told.put(why ? why->what() : "in order"); };
  listener l(options_of_test(), handler);
  for (std::uint8_t kind : {1, 2}) {
    captured_log log;
    channel_group h(client_of_test());
    auto c = h.connect(l.address(), soon());
    message m(message_kind::first_free);
    m.flags = kind;
    c->post(m);
    REQUIRE(h.wait_until([&] { return c->lost(); }, soon()));
    const std::string why =
        kind == 1 ? "out of memory" : "metadata ends early: expected 8 more bytes, got 0";
    CHECK(told.get() == why);
    CHECK(error_of([&] { c->post(m); }).ends_with("it refused: " + why));
  }
}

TEST_CASE("whatever a handler throws ends one connection at most") {
  captured_log log;
  test_handler handler;
  handler.opened = [](const auto& c) {
    if (c->peer().name == "stranger") throw std::runtime_error("not an error of deft's");
  };
  listener l(options_of_test(), handler);
  channel_group other({{"stranger", 0, {}, {}}, {}});
  auto s = other.connect(l.address(), soon());
  CHECK(other.wait_until([&] { return s->lost(); }, soon()));
  log.wait_for("not an error of deft's");
  channel_group h(client_of_test());
  auto c = h.connect(l.address(), soon());
  CHECK(h.wait_for(*c->call(message(message_kind::first_free)), soon()));
}

TEST_CASE("stop ends callers, handshakes and threads at once, from any thread") {
  test_handler handler;
  std::atomic<int> open{0};
  handler.opened = [&](const auto&) { ++open; };
  handler.closed = [&](const auto&, const error*) { --open; };
  auto l = std::make_unique<listener>(options_of_test(), handler);
  channel_group h(client_of_test());
  std::vector<std::shared_ptr<channel>> channels;
  for (int i = 0; i < 5; ++i) channels.push_back(h.connect(l->address(), soon()));
  bare_socket silent(l->address());
  auto address = l->address();
  SUBCASE("from outside") {
    l->stop();
    CHECK(open == 0);
    CHECK(l->connections() == 0);
    l->stop();
  }
  SUBCASE("by destruction") { l.reset(); }
  SUBCASE("from a handler") {
    mailbox<int> stopped;
    handler.came = [&](const auto&, message&&) {
      l->stop();
      stopped.put(1);
    };
    channels[0]->post(message(message_kind::first_free));
    stopped.get();
  }
  h.wait_until(
      [&] {
        return std::all_of(channels.begin(), channels.end(),
                           [](const auto& c) { return c->lost(); });
      },
      soon());
  CHECK(error_of([&] {
          h.connect(address, deadline_in(std::chrono::milliseconds(50)));
        }).starts_with("unavailable: timed out after "));
}
