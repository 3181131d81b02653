// SPDX-License-Identifier: Apache-2.0
#include <openssl/ssl.h>
#include <stdlib.h>

#include <deft/transport/connection_state.hpp>
#include <deft/transport/tls.hpp>
#include <deque>
#include <filesystem>
#include <thread>

#include "tls_cluster.hpp"

using namespace testing;
using detail::tls_end;

namespace {

/// The error of connecting to `l`; empty if it is accepted.
std::string outcome(const listener& l, const channel_options& o) {
  channel_group h(o);
  return error_of([&] { h.connect(l.address(), soon()); });
}
bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

/// The bytes in flight in one direction, up to a limit.
struct channel_of_bytes {
  std::deque<char> bytes;
  std::size_t room = SIZE_MAX;
};

/// One end of two such directions. Its waits are completed by hand.
class hand_stream final : public no_stream {
 public:
  hand_stream(channel_of_bytes& in, channel_of_bytes& out) : in_(in), out_(out) {}
  std::ptrdiff_t read(void* to, std::size_t most) noexcept override {
    const std::size_t n = std::min(most, in_.bytes.size());
    std::copy_n(in_.bytes.begin(), n, static_cast<char*>(to));
    in_.bytes.erase(in_.bytes.begin(), in_.bytes.begin() + static_cast<std::ptrdiff_t>(n));
    return n ? static_cast<std::ptrdiff_t>(n) : -EAGAIN;
  }
  std::ptrdiff_t write(const iovec* pieces, int) noexcept override {
    const std::size_t n = std::min(pieces->iov_len, out_.room);
    const auto* from = static_cast<const char*>(pieces->iov_base);
    out_.bytes.insert(out_.bytes.end(), from, from + n);
    out_.room -= n;
    return n ? static_cast<std::ptrdiff_t>(n) : -EAGAIN;
  }
  bool has_unread() const noexcept override { return !in_.bytes.empty(); }

 private:
  channel_of_bytes &in_, &out_;
};

/// Two TLS streams with bytes in memory between them, past the handshake.
struct streams_by_hand {
  channel_of_bytes there, back;
  tls_streams ends{std::make_unique<hand_stream>(back, there),
                   std::make_unique<hand_stream>(there, back)};
  const std::unique_ptr<detail::stream>&a = ends.caller, &b = ends.server;
  streams_by_hand() {
    char c = 0;
    for (int i = 0; i < 4; ++i)
      for (auto* end : {a.get(), b.get()}) {
        const auto n = end->read(&c, 1);
        INFO((end->fault() ? end->fault()->message() : ""));
        REQUIRE(n == -EAGAIN);
      }
  }
};
std::ptrdiff_t write(detail::stream& s, const std::string& text) {
  const iovec all{const_cast<char*>(text.data()), text.size()};
  return s.write(&all, 1);
}
std::string read(detail::stream& s, std::size_t most = 1 << 20) {
  std::string text(most, '\0');
  const auto n = s.read(text.data(), most);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}
std::string some_text(std::size_t n) {
  std::string text(n, '\0');
  for (std::size_t i = 0; i < n; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

message with_bytes(const any_array& a) {
  message m(message_kind::first_free);
  m.tensors = {a};
  return m;
}

/// A blocking client, of OpenSSL itself.
class openssl_client {
 public:
  explicit openssl_client(const std::string& address, int version = TLS1_3_VERSION)
      : socket_(address), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_min_proto_version(context_, version);
    SSL_CTX_set_max_proto_version(context_, version);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, socket_.handle());
  }
  ~openssl_client() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  openssl_client(const openssl_client&) = delete;
  /// Whether the server accepts it.
  bool is_welcome() {
    char c = 0;
    return SSL_connect(ssl_) == 1 && SSL_read(ssl_, &c, 1) > 0;
  }

 private:
  bare_socket socket_;
  SSL_CTX* context_;
  SSL* ssl_;
};

}  // namespace

TEST_CASE("only bytes that were sent are reported as written, and none is lost or sent twice") {
  streams_by_hand s;
  const std::string text = some_text(100'000);
  std::size_t written = 0;
  auto offer = [&] {
    const auto n = write(*s.a, text.substr(written));
    if (n > 0) written += static_cast<std::size_t>(n);
    return n;
  };
  s.there.room = 1'000;
  CHECK(offer() == -EAGAIN);  // part of a record, which counts once it is complete
  CHECK(offer() == -EAGAIN);
  s.there.room = 16 * 1024;
  CHECK(offer() == 16 * 1024);
  std::string got;
  for (int i = 0; written < text.size(); ++i) {
    REQUIRE(i < 10'000);
    s.there.room = 777;
    offer();
    got += read(*s.b);
  }
  got += read(*s.b);
  CHECK(got == text);
  CHECK(s.b->read(got.data(), 1) == -EAGAIN);
}

TEST_CASE("small pieces share a record, large ones are cut into records") {
  streams_by_hand s;
  const std::string text = some_text(40'000);
  std::vector<iovec> pieces;
  for (std::size_t at = 0, n = 0; at < text.size(); at += n) {
    n = std::min<std::size_t>(at < 2'000 ? 100 : 37'000, text.size() - at);
    pieces.push_back({const_cast<char*>(text.data()) + at, n});
  }
  CHECK(s.a->write(pieces.data(), static_cast<int>(pieces.size())) == 40'000);
  CHECK(s.there.bytes.size() <= 40'000 + 3 * 22);  // what TLS adds to a record
  std::string got;
  while (s.b->has_unread()) got += read(*s.b, 1 + got.size() % 5'000);
  CHECK(got == text);
}

TEST_CASE("decrypted bytes count as unread, and no wait is needed for them") {
  streams_by_hand s;
  CHECK(write(*s.a, "hello") == 5);
  CHECK(s.b->has_unread());
  CHECK(read(*s.b, 2) == "he");
  CHECK(s.there.bytes.empty());
  CHECK(s.b->has_unread());
  mailbox<int> called;
  s.b->wait(detail::stream::direction::in, [&] { called.put(1); });
  detail::event_loop::of_callers().wake_keeper();
  CHECK(called.get() == 1);
  CHECK(read(*s.b) == "llo");
  CHECK(!s.b->has_unread());
}

TEST_CASE("a stream that ends says so, and one that was tampered with is a fault") {
  streams_by_hand s;
  SUBCASE("ended") {
    CHECK(write(*s.a, "last") == 4);
    s.a->shut(true);
    CHECK(read(*s.b) == "last");
    char c = 0;
    CHECK(s.b->read(&c, 1) == 0);
    CHECK(s.b->fault() == nullptr);
  }
  SUBCASE("changed") {
    CHECK(write(*s.a, "first") == 5);
    CHECK(read(*s.b) == "first");
    CHECK(write(*s.a, "second") == 6);
    s.there.bytes.back() ^= 1;
    char c = 0;
    CHECK(s.b->read(&c, 1) == -EPROTO);
    REQUIRE(s.b->fault());
    CHECK(contains(s.b->fault()->message(), "received data that cannot be decrypted"));
    CHECK(s.a->read(&c, 1) == -EPROTO);  // the peer was told
    REQUIRE(s.a->fault());
    CHECK(contains(s.a->fault()->message(), "it ended the TLS connection: bad record mac"));
  }
}

TEST_CASE("an end that is closed within the TLS handshake ends the other one") {
  auto ends = bare_socket::tcp_pair();
  tls_streams s(ends[0].stream(), ends[1].stream());
  auto end = [](std::unique_ptr<detail::stream>& of) {
    return std::make_shared<detail::connection_state>(std::move(of), wire_limits{});
  };
  const auto caller = end(s.caller), server = end(s.server);
  message m;
  SUBCASE("before it") {
    std::thread closer([&] { caller->close(); });
    CHECK(!server->receive(m, soon()));
    closer.join();
  }
  SUBCASE("while the other waits for it") {
    caller->send(with_bytes(any_array(dtype::uint8, dims{1 << 20})));
    std::thread closer([&] { server->close(); });
    CHECK(!caller->receive(m, soon()));
    CHECK(caller->drain(soon()));
    closer.join();
  }
  for (const auto& c : {caller, server}) c->close();
}

TEST_CASE("with matching certificates both ends are authenticated; a secret can be added") {
  captured_log log;
  test_handler handler;
  mailbox<peer_info> seen;
  handler.opened = [&](const auto& c) { seen.put(c->peer()); };
  auto server = of_server(), client = of_client();
  SUBCASE("without a secret") {}
  SUBCASE("with one") { server.secret = client.secret = "open sesame"; }
  listener l(server_of(server), handler);
  channel_group h(client_of(client));
  auto c = h.connect(l.address(), soon());
  CHECK(c->peer().name == server_name);
  CHECK(c->peer().authenticated);
  CHECK(seen.get().authenticated);
  auto p = c->call(with_bytes(pattern(dtype::float32, {1'000'000}, 3)));
  REQUIRE(h.wait_for(*p, soon()));
  CHECK(same_bytes(p->get().tensors[0], pattern(dtype::float32, {1'000'000}, 3)));
  if (!client.secret.empty()) {
    client.secret = "wrong";
    CHECK(contains(outcome(l, client_of(client)), "does not accept the caller's secret"));
  }
}

TEST_CASE("a task calls another one with the certificate of its own name") {
  test_handler handler;
  listener l(server_of(of_server()), handler);
  channel_options o = client_of(authority().issue("workers", {"deft:/job:worker/task:*"}));
  o.self.name = "/job:worker/replica:0/task:3";
  CHECK(outcome(l, o) == "");
}

TEST_CASE("if only one end uses TLS, both say what to do") {
  captured_log log;
  test_handler handler;
  const std::string what_to_set =
      ": set --tls_cert, --tls_key and --tls_ca, or DEFT_TLS_CERT, DEFT_TLS_KEY and DEFT_TLS_CA";
  SUBCASE("the server") {
    listener l(server_of(of_server()), handler);
    CHECK(outcome(l, client_of_test()) ==
          str("unauthenticated: ", l.address(),
              " refused the connection: the caller does not use TLS", what_to_set));
    log.wait_for(str("the caller does not use TLS", what_to_set));
  }
  SUBCASE("the caller") {
    listener l(options_of_test(), handler);
    CHECK(outcome(l, client_of(of_client())) ==
          str("unauthenticated: cannot connect to ", l.address(),
              ": it does not use TLS, but this process requires it"));
    log.wait_for(
        str("the caller uses TLS, for which this process has no certificate", what_to_set));
  }
}

TEST_CASE("a certificate of another authority, or one that is not valid now, is refused") {
  captured_log log;
  test_handler handler;
  const certificate_authority other;
  const auto good = server_of(of_server());
  SUBCASE("the caller's, of another authority") {
    auto foreign = other.issue("client", {"deft:/client"});
    foreign.authority = authority().path("authority.crt");
    listener l(good, handler);
    CHECK(outcome(l, client_of(foreign)) == str("unauthenticated: cannot connect to ", l.address(),
                                                ": it does not accept the certificate \"",
                                                foreign.certificate, "\": unknown CA"));
    log.wait_for(str("its certificate is not signed by the authority \"",
                     authority().path("authority.crt"), "\""));
  }
  SUBCASE("the server's, of another authority") {
    auto strange = of_client();
    strange.authority = other.path("authority.crt");
    listener l(good, handler);
    CHECK(outcome(l, client_of(strange)) ==
          str("unauthenticated: cannot connect to ", l.address(),
              ": its certificate is not signed by the authority \"", strange.authority, "\""));
    log.wait_for(
        str("it does not accept the certificate \"", of_server().certificate, "\": unknown CA"));
  }
  SUBCASE("the caller's, expired") {
    const auto old = authority().issue("old", {"deft:/client"}, {-7200, -3600});
    listener l(good, handler);
    CHECK(outcome(l, client_of(old)) == str("unauthenticated: cannot connect to ", l.address(),
                                            ": it does not accept the certificate \"",
                                            old.certificate, "\": certificate expired"));
    log.wait_for("its certificate is not valid: certificate has expired");
  }
  SUBCASE("the server's, of tomorrow") {
    listener l(server_of(authority().issue("new", {"deft:/job:ps/task:0"}, {3600, 7200})), handler);
    CHECK(outcome(l, client_of(of_client())) ==
          str("unauthenticated: cannot connect to ", l.address(),
              ": its certificate is not valid: certificate is not yet valid"));
    log.wait_for("it does not accept the certificate");
  }
  SUBCASE("none at all") {
    listener l(good, handler);
    CHECK(!openssl_client(l.address()).is_welcome());
    log.wait_for("it has not shown a certificate");
  }
  SUBCASE("an older TLS") {
    listener l(good, handler);
    CHECK(!openssl_client(l.address(), TLS1_2_VERSION).is_welcome());
    log.wait_for("the TLS handshake failed: unsupported protocol");
  }
}

TEST_CASE("a process whose certificate is for another one is refused, with both names") {
  captured_log log;
  test_handler handler;
  SUBCASE("the caller") {
    listener l(server_of(of_server()), handler);
    const auto caller = std::make_shared<detail::connection_state>(
        detail::tls_stream(bare_socket(l.address()).stream(),
                           detail::make_tls_context(of_client(), "client"), tls_end::caller),
        wire_limits::before_authentication());
    caller->peer.address = l.address();
    const process_identity liar{"/job:worker/replica:0/task:1", 0, {}, of_client()};
    const auto said = error_of([&] { shake_hands(caller, liar); });
    CHECK(contains(said, "unauthenticated: "));
    CHECK(contains(said,
                   "refused the connection: the certificate of "
                   "\"/job:worker/replica:0/task:1\" at 127.0.0.1:"));
    CHECK(said.ends_with(" is for deft:/client"));
    log.wait_for("is for deft:/client");
  }
  SUBCASE("the server") {
    const int trap = listen_socket("localhost:0");
    const auto address = address_of_socket(trap);
    std::string what;
    std::thread client([&] {
      channel_group h(client_of(of_client()));
      what = error_of([&] { h.connect(address, soon()); });
    });
    const auto worker = authority().issue("worker", {"deft:/job:worker/task:0"});
    const auto accepted = std::make_shared<detail::connection_state>(
        detail::tls_stream(bare_socket(::accept(trap, nullptr, nullptr)).stream(),
                           detail::make_tls_context(worker, "/job:worker/replica:0/task:0"),
                           tls_end::server),
        wire_limits::before_authentication());
    message m;
    REQUIRE(accepted->receive(m, soon()));
    const process_identity liar{server_name, 1, {}, worker};
    detail::server_handshake handshake(*accepted, liar);
    CHECK(!handshake.on_message(
        m, [](const peer_info&) {}, [] { return detail::local_offer(); }));
    client.join();
    ::close(trap);
    CHECK(what == str("unauthenticated: the certificate of \"", server_name, "\" at ", address,
                      " is for deft:/job:worker/task:0"));
  }
}

TEST_CASE("callers that fail in TLS do not disturb others, whatever they send") {
  captured_log log;
  test_handler handler;
  auto o = server_of(of_server());
  o.max_handshakes = 1'000;
  listener l(o, handler);
  channel_group h(client_of(of_client()));
  auto c = h.connect(l.address(), soon());
  bare_socket browser(l.address());
  browser.write("GET / HTTP/1.1\r\nHost: ps0\r\n\r\n");
  CHECK(!browser.read_all().empty());
  bare_socket garbage(l.address());
  garbage.write(std::string("\x16\x03\x01\x00\x20", 5) + some_text(32));
  garbage.read_all();
  for (std::size_t n = 1; n < 200; ++n) {
    bare_socket s(l.address());
    s.write("\x16" + some_text(n));
    if (n % 2) s.reset();
  }
  auto p = c->call(message(message_kind::first_free));
  REQUIRE(h.wait_for(*p, soon()));
  CHECK(p->take().kind == message_kind::reply);
  CHECK(l.connections() == 1);
}

TEST_CASE("a caller that stops within the TLS handshake is refused in time") {
  captured_log log;
  test_handler handler;
  auto o = server_of(of_server());
  o.handshake_timeout = std::chrono::milliseconds(50);
  listener l(o, handler);
  bare_socket slow(l.address());
  slow.write(std::string("\x16\x03\x01\x02", 4));
  log.wait_for("timed out after 50 ms waiting for the handshake of");
}

TEST_CASE("a server that other machines can reach may have TLS in place of a secret") {
  test_handler handler;
  auto o = server_of(of_server());
  o.address = "0.0.0.0:0";
  CHECK(error_of([&] { listener(o, handler); }) == "");
}

TEST_CASE("a certificate of a client, or of another task, does not serve") {
  test_handler handler;
  channel_group h(client_of(of_client()));
  auto as_client = server_of(of_client());
  as_client.self.name = "client";
  listener client(as_client, handler);
  CHECK(error_of([&] {
          h.connect(client.address(), soon());
        }).starts_with("failed_precondition: " + client.address() + " is \"client\""));
  auto as_another = server_of(authority().issue("worker", {"deft:/job:worker/task:1"}));
  as_another.self.name = "/job:worker/replica:0/task:1";
  listener another(as_another, handler);
  CHECK(h.connect(another.address(), soon(), {}, as_another.self.name)->peer().authenticated);
  CHECK(error_of([&] {
          h.connect(another.address(), soon(), {}, "/job:worker/replica:0/task:0");
        }) == "failed_precondition: " + another.address() +
                  " is /job:worker/replica:0/task:1, not /job:worker/replica:0/task:0");
}
