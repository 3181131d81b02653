// SPDX-License-Identifier: Apache-2.0
// Local sockets with shared memory against peers that violate the protocol.
#include <fcntl.h>
#include <sys/mman.h>

#include <deft/transport/connection_state.hpp>

#include "local_streams.hpp"

using namespace testing;

namespace {

/// The other end of a stream, written by hand.
class hostile {
 public:
  enum kind : std::uint8_t { in_socket = 1, in_memory = 2, memory = 3 };

  hostile() : hostile(bare_socket::local_pair()) {}

  void say(std::uint8_t kind, std::uint32_t bytes, std::vector<int> given = {},
           std::uint8_t zero = 0) {
    std::array<std::byte, 8> head{};
    std::memcpy(head.data(), &bytes, sizeof bytes);
    head[6] = std::byte{kind};
    head[7] = std::byte{zero};
    iovec piece{head.data(), head.size()};
    msghdr m{};
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    if (!given.empty()) {
      m.msg_control = control;
      m.msg_controllen = CMSG_SPACE(given.size() * sizeof(int));
      cmsghdr* const c = CMSG_FIRSTHDR(&m);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(given.size() * sizeof(int));
      std::memcpy(CMSG_DATA(c), given.data(), given.size() * sizeof(int));
    }
    REQUIRE(::sendmsg(raw.handle(), &m, MSG_NOSIGNAL) == 8);
  }
  /// The kind of the next record, and what came with it.
  std::uint8_t hear(std::vector<bare_socket>& given) {
    std::array<std::byte, 8> head{};
    iovec piece{head.data(), head.size()};
    msghdr m{};
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    REQUIRE(::recvmsg(raw.handle(), &m, MSG_WAITALL) == 8);
    if (const cmsghdr* c = CMSG_FIRSTHDR(&m)) {
      int fds[2];
      REQUIRE(c->cmsg_len == CMSG_LEN(sizeof fds));
      std::memcpy(fds, CMSG_DATA(c), sizeof fds);
      for (int fd : fds) given.emplace_back(fd);
    }
    return std::to_integer<std::uint8_t>(head[6]);
  }

  bare_socket raw;
  stream_ptr victim;

 private:
  explicit hostile(std::array<bare_socket, 2> ends)
      : raw(std::move(ends[0])), victim(ends[1].local_stream()) {}
};

/// A descriptor of `bytes` of memory.
bare_socket memory_of(std::size_t bytes, int seals) {
  const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(fd >= 0);
  REQUIRE(ftruncate(fd, static_cast<off_t>(bytes)) == 0);
  REQUIRE(fcntl(fd, F_ADD_SEALS, seals) == 0);
  return bare_socket(fd);
}
constexpr int sealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// What the victim says about what it read.
std::string verdict(hostile& h) {
  std::byte block[4096];
  for (;;) {
    const auto n = h.victim->read(block, sizeof block);
    if (n > 0) continue;
    if (n == -EAGAIN || n == 0) return "sound";
    CHECK(h.victim->read(block, sizeof block) == n);  // and it stays that way
    return h.victim->why(static_cast<int>(-n));
  }
}

}  // namespace

TEST_CASE("invalid records end the stream with a message") {
  hostile h;
  SUBCASE("sound") {
    h.say(hostile::in_socket, 4);
    h.raw.write("abcd");
    CHECK(verdict(h) == "sound");
    return;
  }
  std::string expected = "it sent an invalid record on its local socket";
  SUBCASE("of no kind") { h.say(9, 1); }
  SUBCASE("of kind 0") { h.say(0, 0); }
  SUBCASE("empty") { h.say(hostile::in_socket, 0); }
  SUBCASE("with what should be zero") { h.say(hostile::in_socket, 1, {}, 1); }
  SUBCASE("in memory, in a slot that there is not") {
    h.say(hostile::in_memory, 1, {}, detail::slots);
  }
  SUBCASE("in memory that is not shared") {
    expected = "it referred to shared memory that it has not shared";
    h.say(hostile::in_memory, 100);
  }
  SUBCASE("in memory, larger than a slot, or empty") {
    expected = "it sent a record that does not fit into a slot of its shared memory";
    std::uint32_t bytes = 0;
    SUBCASE("larger") { bytes = megabyte + 1; }
    SUBCASE("largest") { bytes = UINT32_MAX; }
    SUBCASE("empty") {}
    const auto memory = memory_of(memory_bytes, sealed);
    auto credits = bare_socket::local_pair();
    h.say(hostile::memory, 0, {memory.handle(), credits[0].handle()});
    CHECK(verdict(h) == "sound");
    CHECK(shared_mappings() == 1);
    h.say(hostile::in_memory, megabyte);
    CHECK(verdict(h) == "sound");
    h.say(hostile::in_memory, bytes);
  }
  CHECK(verdict(h) == expected);
}

TEST_CASE("memory that its owner could shrink is not mapped") {
  hostile h;
  auto credits = bare_socket::local_pair();
  const std::string unsafe =
      "the memory that it shares is not sealed, or does not have the agreed size";
  auto verdict_on = [&](const bare_socket& memory) {
    h.say(hostile::memory, 0, {memory.handle(), credits[0].handle()});
    const auto v = verdict(h);
    CHECK(shared_mappings() == 0);
    return v;
  };
  SUBCASE("not sealed") { CHECK(verdict_on(memory_of(memory_bytes, 0)) == unsafe); }
  SUBCASE("with one seal missing") {
    CHECK(verdict_on(memory_of(memory_bytes, F_SEAL_GROW | F_SEAL_SEAL)) == unsafe);
  }
  SUBCASE("too short") { CHECK(verdict_on(memory_of(memory_bytes - 4096, sealed)) == unsafe); }
  SUBCASE("too long") { CHECK(verdict_on(memory_of(memory_bytes + 4096, sealed)) == unsafe); }
  SUBCASE("a socket") { CHECK(verdict_on(bare_socket(::dup(credits[1].handle()))) == unsafe); }
  SUBCASE("a file") {
    std::FILE* const f = std::tmpfile();
    REQUIRE(f);
    REQUIRE(ftruncate(fileno(f), static_cast<off_t>(memory_bytes)) == 0);
    CHECK(verdict_on(bare_socket(::dup(fileno(f)))) == unsafe);
    std::fclose(f);
  }
}

TEST_CASE("memory that comes twice, or without a way to return slots, ends the stream") {
  hostile h;
  const auto memory = memory_of(memory_bytes, sealed);
  auto credits = bare_socket::local_pair();
  SUBCASE("twice") {
    h.say(hostile::memory, 0, {memory.handle(), credits[0].handle()});
    h.say(hostile::memory, 0, {memory.handle(), credits[0].handle()});
    CHECK(verdict(h) == "it shared memory twice");
  }
  SUBCASE("no socket") {
    h.say(hostile::memory, 0, {memory.handle(), memory.handle()});
    CHECK(verdict(h) == "it does not accept the returned slots of its shared memory");
  }
  SUBCASE("a socket that is full") {
    while (::send(credits[0].handle(), "x", 1, MSG_DONTWAIT) == 1) continue;
    h.say(hostile::memory, 0, {memory.handle(), credits[0].handle()});
    CHECK(verdict(h) == "it does not accept the returned slots of its shared memory");
  }
}

TEST_CASE("unexpected descriptors are closed") {
  const std::size_t before = descriptors();
  {
    hostile h;
    const auto memory = memory_of(memory_bytes, sealed);
    const std::vector<int> many(6, memory.handle());
    for (int i = 0; i < 3; ++i) {
      h.say(hostile::in_socket, 1, many);
      h.raw.write("x");
      CHECK(verdict(h) == "sound");
    }
    auto credits = bare_socket::local_pair();
    h.say(hostile::memory, 0, {memory.handle(), credits[0].handle()});
    CHECK(verdict(h) == "sound");
    h.say(hostile::in_socket, 1, many);
    h.raw.write("x");
    CHECK(verdict(h) == "sound");
    CHECK(descriptors() <= before + 8);
  }
  CHECK(descriptors() == before);
}

TEST_CASE("if memory cannot be shared, everything goes through the socket") {
  const auto all = some_bytes(8 * megabyte);
  hostile h;
  std::vector<bare_socket> given;
  std::ptrdiff_t n = write_some(*h.victim, all);
  REQUIRE(n > 0);
  CHECK(h.hear(given) == hostile::memory);
  REQUIRE(given.size() == 2);
  SUBCASE("the peer closes it") { given.clear(); }
  SUBCASE("the peer does not answer") {}
  std::vector<std::byte> records;
  std::thread reader([&] { records = h.raw.read_all(); });
  for (std::size_t written = 0; written < all.size();) {
    REQUIRE((n > 0 || n == -EAGAIN));
    if (n > 0) written += static_cast<std::size_t>(n);
    if (written < all.size()) n = write_some(*h.victim, all, written);
  }
  h.victim->shut(false);
  reader.join();
  std::vector<std::byte> got;
  for (std::size_t at = 0; at < records.size();) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, &records[at], sizeof bytes);
    CHECK(records[at + 6] == std::byte{hostile::in_socket});
    at += 8;
    REQUIRE(bytes <= records.size() - at);
    got.insert(got.end(), records.begin() + static_cast<std::ptrdiff_t>(at),
               records.begin() + static_cast<std::ptrdiff_t>(at + bytes));
    at += bytes;
  }
  CHECK(got == all);
}

TEST_CASE("a peer that returns slots that it does not have gets an error") {
  std::vector<std::byte> slots;
  SUBCASE("more than there are") { slots.resize(detail::slots + 1); }
  SUBCASE("one twice") { slots = {std::byte{3}, std::byte{3}}; }
  SUBCASE("none of them") { slots = {std::byte{detail::slots}}; }
  const auto all = some_bytes(8 * megabyte);
  hostile h;
  std::vector<bare_socket> given;
  auto n = write_some(*h.victim, all);
  REQUIRE(n > 0);
  CHECK(h.hear(given) == hostile::memory);
  REQUIRE(given.size() == 2);
  given[1].write(slots);
  std::vector<std::byte> rest(64 * megabyte);
  std::size_t at = static_cast<std::size_t>(n);
  while ((n = write_some(*h.victim, all, at)) > 0 || n == -EAGAIN) {
    if (n > 0) at += static_cast<std::size_t>(n);
    if (n == -EAGAIN) REQUIRE(::recv(h.raw.handle(), rest.data(), rest.size(), 0) > 0);
  }
  CHECK(n == -EPROTO);
  CHECK(h.victim->why(EPROTO) == "it returned slots of shared memory that it was not given");
}

TEST_CASE("a peer that violates the protocol is lost, with a message") {
  auto ends = bare_socket::local_pair();
  const auto state =
      std::make_shared<detail::connection_state>(ends[0].local_stream(), wire_limits{});
  state->peer.name = "the peer";
  ends[1].write("GET / HTTP/1.1\r\n\r\n");
  message m;
  CHECK(error_of([&] { state->receive(m, soon()); }) ==
        "unavailable: lost the peer: it sent an invalid record on its local socket");
  state->close();
}
