// SPDX-License-Identifier: Apache-2.0
#include <openssl/ssl.h>
#include <stdlib.h>

#include <deft/transport/connection_state.hpp>
#include <deft/transport/tls.hpp>
#include <deque>
#include <filesystem>
#include <thread>

#include "certificates.hpp"
#include "environment.hpp"
#include "faulty_stream.hpp"
#include "wire.hpp"

using namespace testing;
using detail::tls_end;

namespace {

constexpr std::int64_t megabyte = std::int64_t{1} << 20;
const std::string server_name = "/job:ps/replica:0/task:0";

/// Of a cluster whose only tasks are ps/0 and the workers; made once.
const certificate_authority& authority() {
  static const certificate_authority a;
  return a;
}
const credentials& of_server() {
  static const auto c = authority().issue("server", {"deft:/job:ps/task:0"});
  return c;
}
const credentials& of_client() {
  static const auto c = authority().issue("client", {"deft:/client"});
  return c;
}

listen_options server_of(const credentials& c) {
  listen_options o = options_of_test();
  o.self.credentials = c;
  return o;
}
hub_options client_of(const credentials& c) {
  hub_options o;
  o.self.credentials = c;
  return o;
}
/// What connecting to `l` ends with; empty if it is welcome.
std::string outcome(const listener& l, const hub_options& o) {
  hub h(o);
  return error_of([&] { h.connect(l.address(), soon()); });
}
bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

/// Bytes on their way in one direction, of which there is room for so many.
struct channel_of_bytes {
  std::deque<char> bytes;
  std::size_t room = SIZE_MAX;
};

/// One end of two such ways. What waits for it is called by hand.
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
  std::unique_ptr<detail::stream> a, b;
  streams_by_hand() {
    a = detail::tls_stream(std::make_unique<hand_stream>(back, there),
                           detail::make_tls_context(of_client(), "client"), tls_end::caller);
    b = detail::tls_stream(std::make_unique<hand_stream>(there, back),
                           detail::make_tls_context(of_server(), server_name), tls_end::server);
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

/// Two connected ends in one process, on sockets, past deft's handshake but not past that of TLS.
struct both_ends {
  std::shared_ptr<connection> a, b;
  explicit both_ends(std::uint64_t records_of_a_key = 1 << 23) {
    const int listening = listen_socket("localhost:0");
    bare_socket out(address_of_socket(listening));
    bare_socket in(::accept(listening, nullptr, nullptr));
    ::close(listening);
    auto end = [&](bare_socket& s, const credentials& c, std::string_view name, tls_end e) {
      auto state = std::make_shared<detail::connection_state>(
          detail::tls_stream(s.stream(), detail::make_tls_context(c, name), e, records_of_a_key),
          wire_limits{});
      state->peer.name = e == tls_end::caller ? "server" : "caller";
      return std::make_shared<connection>(std::move(state));
    };
    a = end(out, of_client(), "client", tls_end::caller);
    b = end(in, of_server(), server_name, tls_end::server);
  }
};

message with_bytes(const any_array& a) {
  message m(message_kind::first_free);
  m.tensors = {a};
  return m;
}

/// A client of OpenSSL's own, which waits.
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
  /// Whether the server goes on with it.
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

TEST_CASE("a certificate fits the tasks that it names, and no others") {
  auto fits = [](const char* use, const char* name) {
    return detail::certificate_fits({"deft:/other", use}, name);
  };
  CHECK(fits("deft:/client", "client"));
  CHECK(fits("deft:/job:ps/task:0", "/job:ps/replica:0/task:0"));
  CHECK(fits("deft:/job:ps/task:0", "/job:ps/task:0"));
  CHECK(fits("deft:/job:ps/task:*", "/job:ps/replica:0/task:17"));
  const std::pair<const char*, const char*> others[] = {
      {"deft:/client", "/job:ps/task:0"},
      {"deft:/client", "clients"},
      {"deft:/job:ps/task:0", "client"},
      {"deft:/job:ps/task:0", "/job:ps/replica:0/task:1"},
      {"deft:/job:ps/task:1", "/job:ps/replica:0/task:11"},
      {"deft:/job:ps/task:0", "/job:worker/replica:0/task:0"},
      {"deft:/job:ps/task:0", "/job:ps/replica:1/task:0"},
      {"deft:/job:ps/task:*", "/job:worker/replica:0/task:0"},
      {"deft:/job:ps/task:*", "/job:ps"},
      {"deft:/job:ps/task:*", "/job:ps/task:*"},
      {"deft:/job:ps/task:*", "/job:ps/task:0/cpu:0"},
      {"deft:/job:*/task:*", "/job:ps/replica:0/task:0"},
      {"deft:/job:ps/task:*", "/job:ps/task:x"},
      {"http://client", "client"},
      {"deft:/", ""},
  };
  for (const auto& [use, name] : others) {
    CAPTURE(use);
    CAPTURE(name);
    CHECK(fits(use, name) == (*name == 0));
  }
  CHECK(!detail::certificate_fits({}, "client"));
}

TEST_CASE("only what has left is reported as written, and is neither lost nor sent twice") {
  streams_by_hand s;
  const std::string text = some_text(100'000);
  std::size_t written = 0;
  auto offer = [&] {
    const auto n = write(*s.a, text.substr(written));
    if (n > 0) written += static_cast<std::size_t>(n);
    return n;
  };
  s.there.room = 1'000;
  CHECK(offer() == -EAGAIN);  // some of a record, which counts once it is whole
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

TEST_CASE("what lies decrypted is unread, and nobody waits for it") {
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

TEST_CASE("a stream that ends says so, and one that was changed on its way is a fault") {
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
    CHECK(contains(s.b->fault()->message(), "what came cannot be decrypted"));
    CHECK(s.a->read(&c, 1) == -EPROTO);  // it was told
    REQUIRE(s.a->fault());
    CHECK(contains(s.a->fault()->message(), "it ended TLS: bad record mac"));
  }
}

TEST_CASE("messages arrive whole over TLS, however the stream below cuts and stalls") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    std::optional<faulty_network> network;
    if (seed)
      network.emplace(faults{.short_reads = 300, .short_writes = 200, .stalls = 200, .delays = 20},
                      seed);
    both_ends e;
    const std::int64_t large = seed ? 500'000 : 20 * megabyte;
    const std::vector<std::int64_t> sizes = {0, 1, 100, 5'000, 70'000, large, 10, 2 * large, 0};
    for (auto n : sizes) {  // nobody reads: it is queued
      message m = with_bytes(pattern(dtype::uint8, {n}, 1));
      m.step = static_cast<std::uint64_t>(n);
      m.meta.resize(static_cast<std::size_t>(n % 4096));
      m.tensors.push_back(pattern(dtype::uint8, {n / 2}, 2));
      e.a->send(m);
    }
    CHECK(e.a->queued() > 0);
    message m;
    for (auto n : sizes) {
      REQUIRE(e.b->receive(m, soon()));
      CHECK(m.step == static_cast<std::uint64_t>(n));
      CHECK(same_bytes(m.tensors[0], pattern(dtype::uint8, {n}, 1)));
      CHECK(same_bytes(m.tensors[1], pattern(dtype::uint8, {n / 2}, 2)));
    }
    CHECK(e.a->drain(soon()));
    CHECK(e.a->queued() == 0);
  }
}

TEST_CASE("8 MB to a slow reader are queued until it has taken them") {
  both_ends e;
  message m;
  e.b->send(message(message_kind::first_free));  // past the handshake
  REQUIRE(e.a->receive(m, soon()));
  buffer mine = buffer::host(8 * megabyte);
  std::fill_n(static_cast<char*>(mine.data()), 8 * megabyte, 'x');
  e.a->send(with_bytes(any_array(dtype::uint8, dims{8 * megabyte}, mine)));
  SUBCASE("read in the end") {
    while (e.b->try_receive(m) != connection::arrival::something) std::this_thread::yield();
    CHECK(m.tensors[0].bytes() == 8 * megabyte);
    CHECK(static_cast<const char*>(m.tensors[0].raw())[8 * megabyte - 1] == 'x');
    CHECK(e.a->drain(soon()));
    CHECK(e.a->queued() == 0);
  }
  SUBCASE("closed before") {
    if (!e.a->drain(past())) CHECK(e.a->queued() > 0);
    e.a->close();
    CHECK(e.a->queued() == 0);
  }
  CHECK(mine.unique());
}

TEST_CASE("64 MB in both directions at once over TLS, with keys that are replaced") {
  both_ends e(100);
  any_array large = pattern(dtype::uint8, {64 * megabyte}, 5);
  auto side = [&](connection& c) {
    c.send(with_bytes(large));  // both send before either reads
    message answer;
    REQUIRE(c.receive(answer, soon()));
    CHECK(same_bytes(answer.tensors[0], large));
  };
  SUBCASE("each on its thread") {
    std::thread other([&] { side(*e.b); });
    side(*e.a);
    other.join();
  }
  SUBCASE("both on one thread") {
    e.a->send(with_bytes(large));
    e.b->send(with_bytes(large));
    message x, y;
    REQUIRE(e.b->receive(x, soon()));
    REQUIRE(e.a->receive(y, soon()));
    CHECK(same_bytes(x.tensors[0], large));
    CHECK(same_bytes(y.tensors[0], large));
  }
}

TEST_CASE("many threads send at once over TLS while both ends read") {
  both_ends e;
  constexpr int threads = 4, each = 200;
  auto send_all = [&](connection& c, int t) {
    for (int i = 0; i < each; ++i) {
      message m =
          with_bytes(pattern(dtype::uint8, {i % 50 == 0 ? megabyte : i}, static_cast<unsigned>(t)));
      m.session = static_cast<std::uint64_t>(t);
      m.step = static_cast<std::uint64_t>(i);
      c.send(m);
    }
  };
  auto receive_all = [&](connection& c) {
    std::uint64_t next[threads] = {};
    message m;
    for (int i = 0; i < threads * each; ++i) {
      REQUIRE(c.receive(m, soon()));
      CHECK(m.step == next[m.session]++);
      const auto n = m.step % 50 == 0 ? megabyte : static_cast<std::int64_t>(m.step);
      CHECK(same_bytes(m.tensors[0], pattern(dtype::uint8, {n}, static_cast<unsigned>(m.session))));
    }
  };
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] { send_all(*e.a, t); });
    all.emplace_back([&, t] { send_all(*e.b, t); });
  }
  all.emplace_back([&] { receive_all(*e.a); });
  receive_all(*e.b);
  for (auto& t : all) t.join();
}

TEST_CASE("an end that is closed ends the other one over TLS, within the handshake too") {
  both_ends e;
  message m;
  SUBCASE("before the handshake") {
    std::thread closer([&] { e.a->close(); });
    CHECK(!e.b->receive(m, soon()));
    closer.join();
  }
  SUBCASE("while it waits for the handshake") {
    e.a->send(with_bytes(any_array(dtype::uint8, dims{megabyte})));
    std::thread closer([&] { e.b->close(); });
    CHECK(!e.a->receive(m, soon()));
    CHECK(e.a->drain(soon()));
    closer.join();
  }
  SUBCASE("after it") {
    e.a->send(message(message_kind::first_free));
    REQUIRE(e.b->receive(m, soon()));
    std::thread closer([&] { e.a->close(); });
    CHECK(!e.b->receive(m, soon()));
    closer.join();
    CHECK(error_of([&] { e.b->send(message(message_kind::first_free)); }) ==
          "unavailable: lost caller: it ended the connection");
  }
  SUBCASE("within a message") {
    e.a->send(with_bytes(any_array(dtype::uint8, dims{64 * megabyte})));
    std::thread closer([&] {
      while (e.a->queued() > 60 * megabyte) std::this_thread::yield();
      e.a->close();
    });
    std::thread reader([&] { error_of([&] { e.a->receive(m, soon()); }); });
    message got;
    CHECK(error_of([&] { e.b->receive(got, soon()); }).starts_with("unavailable: lost caller: "));
    closer.join();
    reader.join();
  }
}

TEST_CASE("with certificates that fit, both ends are authenticated; a secret may come on top") {
  captured_log log;
  test_handler handler;
  mailbox<peer_info> seen;
  handler.opened = [&](const auto& c) { seen.put(c->peer()); };
  auto server = of_server(), client = of_client();
  SUBCASE("without a secret") {}
  SUBCASE("with one") { server.secret = client.secret = "open sesame"; }
  listener l(server_of(server), handler);
  hub h(client_of(client));
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
  hub_options o = client_of(authority().issue("workers", {"deft:/job:worker/task:*"}));
  o.self.name = "/job:worker/replica:0/task:3";
  CHECK(outcome(l, o) == "");
}

TEST_CASE("where one end uses TLS and the other does not, both say what to do") {
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
              ": it does not use TLS, for which this process has a certificate"));
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
    log.wait_for(
        str("its certificate is not of the authority \"", authority().path("authority.crt"), "\""));
  }
  SUBCASE("the server's, of another authority") {
    auto strange = of_client();
    strange.authority = other.path("authority.crt");
    listener l(good, handler);
    CHECK(outcome(l, client_of(strange)) == str("unauthenticated: cannot connect to ", l.address(),
                                                ": its certificate is not of the authority \"",
                                                strange.authority, "\""));
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
    log.wait_for("it has shown no certificate");
  }
  SUBCASE("an older TLS") {
    listener l(good, handler);
    CHECK(!openssl_client(l.address(), TLS1_2_VERSION).is_welcome());
    log.wait_for("the handshake of TLS failed: unsupported protocol");
  }
}

TEST_CASE("a process whose certificate is for another one is refused, and both names are said") {
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
    const auto said = error_of([&] { detail::shake_hands_as_client(caller, liar, soon(), false); });
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
      hub h(client_of(of_client()));
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

TEST_CASE("callers that fail in TLS, whatever they send, leave the others alone") {
  captured_log log;
  test_handler handler;
  auto o = server_of(of_server());
  o.max_handshakes = 1'000;
  listener l(o, handler);
  hub h(client_of(of_client()));
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

TEST_CASE("who stops within the handshake of TLS is refused in time") {
  captured_log log;
  test_handler handler;
  auto o = server_of(of_server());
  o.handshake_timeout = std::chrono::milliseconds(50);
  listener l(o, handler);
  bare_socket slow(l.address());
  slow.write(std::string("\x16\x03\x01\x02", 4));
  log.wait_for("no message came in time from");
}

TEST_CASE("TLS on a network with faults: calls have their answers") {
  faulty_network network({.short_reads = 300, .short_writes = 100, .stalls = 200, .delays = 200});
  test_handler handler;
  listener l(server_of(of_server()), handler);
  hub h(client_of(of_client()));
  auto c = h.connect(l.address(), soon());
  for (int i = 0; i < 50; ++i) {
    const auto sent = pattern(dtype::uint8, {i * 1'000}, static_cast<unsigned>(i));
    auto p = c->call(with_bytes(sent));
    REQUIRE(h.wait_for(*p, soon()));
    CHECK(same_bytes(p->get().tensors[0], sent));
  }
}

TEST_CASE("a server that others can reach may have TLS in place of a secret") {
  test_handler handler;
  auto o = server_of(of_server());
  o.address = "0.0.0.0:0";
  CHECK(error_of([&] { listener(o, handler); }) == "");
}

TEST_CASE("files for TLS that do not do are named, before anything is listened on or called") {
  test_handler handler;
  const auto good = of_client();
  auto refused = [&](auto change) {
    auto c = good;
    change(c);
    const auto of_hub = error_of([&] { hub h(client_of(c)); });
    auto o = server_of(c);
    o.self.name = "client";
    CHECK(error_of([&] { listener(o, handler); }) == of_hub);
    return of_hub;
  };
  auto file = [&](const std::string& text, mode_t mode = 0600) {
    static int made = 0;
    const auto path = authority().path(str("file", ++made));
    write_bytes(path, text);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    return path;
  };
  const std::string missing =
      "invalid_argument: TLS needs a certificate, its key and an "
      "authority; there is no ";
  CHECK(refused([](credentials& c) { c.certificate.clear(); }) ==
        missing + "certificate (--tls_cert or DEFT_TLS_CERT)");
  CHECK(refused([](credentials& c) { c.key.clear(); }) ==
        missing + "key (--tls_key or DEFT_TLS_KEY)");
  CHECK(refused([](credentials& c) { c.authority.clear(); }) ==
        missing + "authority (--tls_ca or DEFT_TLS_CA)");
  CHECK(refused([](credentials& c) { c.certificate = "/no/such/file"; }) ==
        "not_found: cannot read the certificate \"/no/such/file\"");
  CHECK(refused([](credentials& c) { c.key = "/no/such/file"; }) ==
        "not_found: cannot read the key \"/no/such/file\"");
  CHECK(refused([](credentials& c) { c.authority = "/no/such/file"; }) ==
        "not_found: cannot read the authority \"/no/such/file\"");
  const auto text = file("no certificate, no key"), open_key = file(read_bytes(good.key), 0640);
  CHECK(refused([&](credentials& c) {
          c.certificate = text;
        }).starts_with(str("invalid_argument: the certificate \"", text, "\" is not one in PEM")));
  CHECK(refused([&](credentials& c) {
          c.key = text;
        }).starts_with(str("invalid_argument: the key \"", text, "\" is not one in PEM")));
  CHECK(refused([&](credentials& c) {
          c.authority = text;
        }).starts_with(str("invalid_argument: the authority \"", text, "\" is not")));
  CHECK(refused([&](credentials& c) { c.key = open_key; }) ==
        str("permission_denied: others than its owner have access to the key \"", open_key,
            "\" (mode 0640): run chmod 600 ", open_key));
  CHECK(refused([&](credentials& c) { c.key = of_server().key; }) ==
        str("invalid_argument: the key \"", of_server().key,
            "\" does not belong to the certificate \"", good.certificate, "\""));
  CHECK(refused([&](credentials& c) { c = of_server(); }) ==
        str("invalid_argument: the certificate \"", of_server().certificate,
            "\" is for deft:/job:ps/task:0, not for client"));
  CHECK(refused([&](credentials& c) { c = authority().issue("nothing", {"http://x"}); }) ==
        str("invalid_argument: the certificate \"", authority().path("nothing.crt"),
            "\" is for no task and no client, not for client"));
}
