// SPDX-License-Identifier: Apache-2.0
#include <deft/transport/connection.hpp>
#include <deft/transport/connection_state.hpp>

#include "faulty_stream.hpp"
#include "tls_cluster.hpp"
#include "wire.hpp"

using namespace testing;

namespace {

/// Two connected ends in one process, past any handshake.
struct both_ends {
  std::shared_ptr<connection> a, b;
  static std::shared_ptr<connection> make(std::unique_ptr<detail::stream> from,
                                          const char* peer_of) {
    auto s = std::make_shared<detail::connection_state>(std::move(from), wire_limits{});
    s->peer.name = str("peer of ", peer_of);
    return std::make_shared<connection>(std::move(s));
  }
};

struct by_tcp : both_ends {
  by_tcp() {
    auto ends = bare_socket::tcp_pair();
    a = make(ends[0].stream(), "a");
    b = make(ends[1].stream(), "b");
  }
};
struct by_local_socket : both_ends {
  by_local_socket() {
    auto ends = bare_socket::local_pair();
    a = make(ends[0].local_stream(), "a");
    b = make(ends[1].local_stream(), "b");
  }
};
/// With keys that are replaced often.
struct by_tls : both_ends {
  by_tls() {
    auto ends = bare_socket::tcp_pair();
    tls_streams s(ends[0].stream(), ends[1].stream(), 100);
    a = make(std::move(s.caller), "a");
    b = make(std::move(s.server), "b");
    message m(message_kind::first_free);
    a->send(m);
    REQUIRE(b->receive(m, soon()));
    b->send(m);
    REQUIRE(a->receive(m, soon()));
  }
};

constexpr std::int64_t megabyte = std::int64_t{1} << 20;

}  // namespace

TEST_CASE("a message says how many threads spin until it is handled, an answer does not") {
  by_tcp e;
  message m(message_kind::first_free), got;
  e.a->send(m);
  {
    const detail::spinning_for_this sender(1, std::chrono::hours(1));
    e.a->send(m);
    e.a->send(message(message_kind::reply));
  }
  for (int expected : {0, 2, 0}) {
    REQUIRE(e.b->receive(got, soon()));
    CHECK(got.spinning == expected);
    CHECK(got.spinning_for == (expected ? 255 : 0));
  }
}

TEST_CASE_TEMPLATE("messages of any size arrive complete and in order", ends, by_tcp,
                   by_local_socket, by_tls) {
  ends e;
  std::vector<std::int64_t> sizes = {0, 1, 100, 5'000, 70'000, 3 * megabyte, 10, 20 * megabyte, 0};
  for (auto n : sizes) {  // no thread reads: most of it is queued
    message m(message_kind::first_free);
    m.step = static_cast<std::uint64_t>(n);
    m.meta.resize(static_cast<std::size_t>(n % 4096));
    m.tensors = {pattern(dtype::uint8, {n}, 1), any_array(dtype::float32, dims{0}),
                 pattern(dtype::uint8, {n / 2}, 2)};
    e.a->send(m);
  }
  CHECK(e.a->queued() > 0);
  message m;
  for (auto n : sizes) {
    REQUIRE(e.b->receive(m, soon()));
    CHECK(m.step == static_cast<std::uint64_t>(n));
    CHECK(same_bytes(m.tensors[0], pattern(dtype::uint8, {n}, 1)));
    CHECK(same_bytes(m.tensors[2], pattern(dtype::uint8, {n / 2}, 2)));
  }
  CHECK(e.a->drain(soon()));
  CHECK(e.a->queued() == 0);
}

TEST_CASE_TEMPLATE("messages arrive complete, however the streams cut and stall", ends, by_tcp,
                   by_local_socket, by_tls) {
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    CAPTURE(seed);
    const faulty_network network(
        {.short_reads = 300, .short_writes = 200, .stalls = 300, .delays = 100}, seed);
    ends e;
    for (const std::int64_t n : {0, 10, 70'000, 500'000, 3'000'000, 0}) {
      message m(message_kind::first_free), got;
      m.meta.resize(static_cast<std::size_t>(n % 4096));
      m.tensors = {pattern(dtype::uint8, {n}, 1), pattern(dtype::uint8, {n / 3}, 2)};
      for (const auto& c : {e.a, e.b}) c->send(m);
      for (const auto& c : {e.a, e.b}) {
        REQUIRE(c->receive(got, soon()));
        CHECK(got.meta.size() == m.meta.size());
        CHECK(same_bytes(got.tensors[0], m.tensors[0]));
        CHECK(same_bytes(got.tensors[1], m.tensors[1]));
      }
    }
  }
}

TEST_CASE_TEMPLATE("128 MB in both directions at once: no end waits for the other", ends, by_tcp,
                   by_local_socket, by_tls) {
  ends e;
  any_array large = pattern(dtype::uint8, {128 * megabyte}, 5);
  auto side = [&](connection& c) {
    message m(message_kind::first_free);
    m.tensors = {large};
    c.send(m);  // both send before either reads
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
    message m(message_kind::first_free);
    m.tensors = {large};
    e.a->send(m);
    e.b->send(m);
    message x, y;
    REQUIRE(e.b->receive(x, soon()));
    REQUIRE(e.a->receive(y, soon()));
    CHECK(same_bytes(x.tensors[0], large));
    CHECK(same_bytes(y.tensors[0], large));
  }
}

TEST_CASE_TEMPLATE("many threads send at once, and the messages of each stay in order", ends,
                   by_tcp, by_local_socket, by_tls) {
  ends e;
  constexpr int threads = 6, each = 300;
  std::vector<std::thread> senders;
  for (int t = 0; t < threads; ++t)
    senders.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        message m(message_kind::first_free);
        m.session = static_cast<std::uint64_t>(t);
        m.step = static_cast<std::uint64_t>(i);
        m.tensors = {pattern(dtype::uint8, {i % 50 == 0 ? megabyte : i}, static_cast<unsigned>(t))};
        e.a->send(m);
      }
    });
  std::uint64_t next[threads] = {};
  message m;
  for (int i = 0; i < threads * each; ++i) {
    REQUIRE(e.b->receive(m, soon()));
    CHECK(m.step == next[m.session]++);
    auto n = m.step % 50 == 0 ? megabyte : static_cast<std::int64_t>(m.step);
    CHECK(same_bytes(m.tensors[0], pattern(dtype::uint8, {n}, static_cast<unsigned>(m.session))));
  }
  for (auto& s : senders) s.join();
}

TEST_CASE_TEMPLATE("thousands of tensors in one message", ends, by_tcp, by_local_socket, by_tls) {
  ends e;
  message m(message_kind::first_free), got;
  for (int i = 0; i < 5'000; ++i)
    m.tensors.push_back(pattern(dtype::int32, {i % 7}, static_cast<unsigned>(i)));
  e.a->send(m);
  REQUIRE(e.b->receive(got, soon()));
  REQUIRE(got.tensors.size() == 5'000);
  for (std::size_t i = 0; i < 5'000; ++i) CHECK(same_bytes(got.tensors[i], m.tensors[i]));
}

TEST_CASE_TEMPLATE(
    "queued messages refer to the tensors until they are written or the end is closed", ends,
    by_tcp, by_local_socket, by_tls) {
  ends e;
  buffer mine = buffer::host(64 * megabyte);
  {
    message m(message_kind::first_free);
    m.tensors = {any_array(dtype::uint8, dims{64 * megabyte}, mine)};
    e.a->send(m);
  }
  CHECK(!mine.unique());
  SUBCASE("written") {
    message got;
    REQUIRE(e.b->receive(got, soon()));
    CHECK(e.a->drain(soon()));
  }
  SUBCASE("closed") {
    CHECK(!e.a->drain(past()));
    e.a->close();
  }
  CHECK(mine.unique());
}

TEST_CASE_TEMPLATE("receive keeps its deadline, and the part of a message that it has read", ends,
                   by_tcp, by_local_socket, by_tls) {
  ends e;
  message m;
  CHECK(error_of([&] { e.b->receive(m, past()); }) ==
        "deadline_exceeded: timed out after 0 ms waiting for a message from peer of b");
  CHECK(e.b->try_receive(m) == connection::arrival::nothing);
  any_array large = pattern(dtype::uint8, {64 * megabyte}, 3);
  message out(message_kind::first_free);
  out.tensors = {large};
  e.a->send(out);
  int retries = 0;
  while (e.b->try_receive(m) != connection::arrival::something) ++retries;
  WARN(retries > 0);  // unless the writer is always ahead
  CHECK(same_bytes(m.tensors[0], large));
}

TEST_CASE_TEMPLATE("borrowed memory is the lender's again before it was written", ends, by_tcp,
                   by_local_socket, by_tls) {
  ends e;
  any_array mine = pattern(dtype::uint8, {64 * megabyte}, 3);
  const any_array as_sent = mine.clone();
  message m(message_kind::first_free), got;
  m.tensors = {any_array::view(dtype::uint8, dims{64 * megabyte}, mine.raw())};
  e.a->send(m);
  m.tensors.clear();
  CHECK(e.a->queued() > 0);
  e.a->copy_borrowed();
  std::memset(mine.mutable_raw(), 0, mine.bytes());
  e.a->send(m);
  REQUIRE(e.b->receive(got, soon()));
  CHECK(same_bytes(got.tensors[0], as_sent));
  REQUIRE(e.b->receive(got, soon()));
  CHECK(got.tensors.empty());
}

TEST_CASE("a connection says whether it has just read a part of a message") {
  message m(message_kind::first_free), got;
  m.meta.resize(50);
  const auto bytes = detail::flatten_frame(m);
  const std::size_t step = 50;  // after a pause each time
  const auto c = std::make_shared<detail::connection_state>(
      std::make_unique<testing::memory_stream>(bytes, step), wire_limits());
  CHECK(c->try_receive(got) == connection::arrival::nothing);
  CHECK_FALSE(c->has_received_part());
  for (std::size_t read = step; read < bytes.size(); read += step) {
    CHECK(c->try_receive(got) == connection::arrival::nothing);
    CHECK(c->has_received_part());
  }
  CHECK(c->try_receive(got) == connection::arrival::something);
  CHECK_FALSE(c->has_received_part());
}

TEST_CASE_TEMPLATE("closing one end ends the other, and wakes a thread that receives", ends, by_tcp,
                   by_local_socket, by_tls) {
  ends e;
  message m;
  SUBCASE("the other end") {
    std::thread closer([&] { e.a->close(); });
    CHECK(!e.b->receive(m, soon()));
    closer.join();
    CHECK(error_of([&] { e.b->send(message(message_kind::first_free)); }) ==
          "unavailable: lost peer of b: it ended the connection");
  }
  SUBCASE("this end") {
    std::thread closer([&] { e.b->close(); });
    CHECK(!e.b->receive(m, soon()));
    closer.join();
    CHECK(error_of([&] { e.b->send(message(message_kind::first_free)); }) ==
          "unavailable: lost peer of b: it was closed here");
  }
  SUBCASE("within a message") {
    message out(message_kind::first_free);
    out.tensors = {any_array(dtype::uint8, dims{64 * megabyte})};
    e.a->send(out);
    e.a->close();
    CHECK(error_of([&] { e.b->receive(m, soon()); }).starts_with("unavailable: lost peer of b: "));
  }
  CHECK(e.b->lost());
}

TEST_CASE_TEMPLATE("a send to a peer that is gone fails, and does not kill the process", ends,
                   by_tcp, by_local_socket, by_tls) {
  ends e;
  e.b.reset();
  message m(message_kind::first_free);
  m.tensors = {any_array(dtype::uint8, dims{megabyte})};
  auto said = error_of([&] {
    for (;;) e.a->send(m);
  });
  CHECK(said.starts_with("unavailable: lost peer of a: "));
}

TEST_CASE_TEMPLATE("tensors that cannot be sent are refused before anything is written", ends,
                   by_tcp, by_local_socket, by_tls) {
  ends e;
  message m(message_kind::first_free), got;
  m.tensors = {any_array()};
  CHECK(error_of([&] { e.a->send(m); }).starts_with("internal"));
  e.a->send(message(message_kind::first_free, 5));
  REQUIRE(e.b->receive(got, soon()));
  CHECK(got.id == 5);
}

TEST_CASE("the bytes of a peer's calls are limited") {
  connection c(
      std::make_shared<detail::connection_state>(std::make_unique<no_stream>(), wire_limits()));
  const std::size_t most = connection::most_bytes();
  CHECK(most > 0);
  c.begin_call(most);
  c.begin_call(1);  // one call may be as large as it likes, if there is not too much already
  CHECK(error_of([&] { c.begin_call(0); }).find("resource_exhausted") == 0);
  c.end_call(1);
  CHECK_NOTHROW(c.begin_call(most));
  c.end_call(most);
  c.end_call(most);
  CHECK_NOTHROW(c.begin_call(0));
}
