// SPDX-License-Identifier: Apache-2.0
// Streams on local sockets with shared memory.
#include <random>

#include "local_streams.hpp"

using namespace testing;

namespace {

/// Data in one direction: written and read in pieces of any size, and compared.
class traffic {
 public:
  traffic(detail::stream& from, detail::stream& to, const std::vector<std::byte>& all,
          unsigned seed)
      : from_(from), to_(to), all_(all), pieces_(seed), reads_(seed + 1000) {}
  bool done() const { return read_ == all_.size(); }
  bool written() const { return written_ == all_.size(); }

  /// Writes until the stream takes no more.
  void write() {
    while (!written()) {
      iovec pieces[3];
      std::size_t at = written_;
      int count = 0;
      for (; count < 3 && at < all_.size(); ++count) {
        const std::size_t n = std::min(any_size(pieces_), all_.size() - at);
        pieces[count] = {const_cast<std::byte*>(&all_[at]), n};
        at += n;
      }
      const auto n = from_.write(pieces, count);
      if (n == -EAGAIN) return;
      REQUIRE(n > 0);
      written_ += static_cast<std::size_t>(n);
    }
  }
  /// Reads until there is nothing.
  void read() {
    while (!done()) {
      buffer_.resize(any_size(reads_));
      const auto n = to_.read(buffer_.data(), buffer_.size());
      if (n == -EAGAIN) return;
      REQUIRE(n > 0);
      REQUIRE(std::memcmp(buffer_.data(), &all_[read_], static_cast<std::size_t>(n)) == 0);
      read_ += static_cast<std::size_t>(n);
    }
  }

 private:
  using dice = std::minstd_rand;
  static std::size_t any_size(dice& d) {
    const std::size_t most[] = {16, 5'000, 200'000, 3 * megabyte};
    const std::size_t limit = most[d() % 4];
    return 1 + d() % limit;
  }
  detail::stream &from_, &to_;
  const std::vector<std::byte>& all_;
  dice pieces_, reads_;  ///< for writing and reading
  std::vector<std::byte> buffer_;
  std::size_t written_ = 0, read_ = 0;
};

struct two_streams {
  stream_ptr a, b;
  two_streams() {
    auto ends = bare_socket::local_pair();
    a = ends[0].local_stream();
    b = ends[1].local_stream();
  }
};

}  // namespace

TEST_CASE("bytes arrive unchanged, whatever the sizes of pieces, writes and reads") {
  const auto all = some_bytes(70 * megabyte);
  two_streams s;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    traffic there(*s.a, *s.b, all, seed), back(*s.b, *s.a, all, seed + 100);
    while (!there.done() || !back.done()) {
      there.write();
      back.write();
      there.read();
      back.read();
    }
  }
  CHECK(shared_mappings() == 4);  // each direction's at both ends
  // Nothing leaks.
  std::byte more;
  CHECK(s.a->read(&more, 1) == -EAGAIN);
  CHECK(!s.b->has_unread());
}

TEST_CASE("two threads write and read a stream while two others do so at its other end") {
  const auto all = some_bytes(100 * megabyte);
  two_streams s;
  traffic there(*s.a, *s.b, all, 1), back(*s.b, *s.a, all, 2);
  std::vector<std::thread> threads;
  for (auto* t : {&there, &back}) {
    threads.emplace_back([t] {
      while (!t->written()) t->write();
    });
    threads.emplace_back([t] {
      while (!t->done()) t->read();
    });
  }
  for (auto& t : threads) t.join();
  CHECK(there.done());
  CHECK(back.done());
}

TEST_CASE("a writer that has filled the shared memory learns when a slot is free again") {
  const auto all = some_bytes(40 * megabyte);
  two_streams s;
  // The memory has been sent, and this much is in the socket.
  std::size_t written = static_cast<std::size_t>(write_some(*s.a, all));
  CHECK(written < megabyte);
  std::vector<std::byte> got(all.size());
  std::size_t read = 0;
  auto read_all = [&] {
    std::ptrdiff_t n;
    while ((n = s.b->read(got.data() + read, got.size() - read)) > 0)
      read += static_cast<std::size_t>(n);
    CHECK(n == -EAGAIN);
  };
  read_all();
  auto write_all = [&] {
    std::ptrdiff_t n;
    while (written < all.size() && (n = write_some(*s.a, all, written)) > 0)
      written += static_cast<std::size_t>(n);
  };
  write_all();
  CHECK(written < all.size());
  CHECK(written > memory_bytes);
  mailbox<int> told;
  while (written < all.size()) {
    s.a->wait(detail::stream::direction::out, [&] { told.put(1); });
    s.a->loop().wake_keeper();
    // One slot, or the rest of the socket's bytes before it.
    const auto n = s.b->read(got.data() + read, got.size() - read);
    REQUIRE(n > 0);
    read += static_cast<std::size_t>(n);
    if (n < static_cast<std::ptrdiff_t>(megabyte)) read_all();
    told.get();
    write_all();
  }
  read_all();
  CHECK(read == all.size());
  CHECK(got == all);
}

TEST_CASE(
    "a reader that stops before the end of what has arrived learns at once that there is more") {
  two_streams s;
  const auto all = some_bytes(1000);
  REQUIRE(write_some(*s.a, all) == 1000);
  std::byte some[10];
  REQUIRE(s.b->read(some, sizeof some) == 10);
  CHECK(s.b->has_unread());
  mailbox<int> told;
  s.b->wait(detail::stream::direction::in, [&] { told.put(1); });
  s.b->loop().wake_keeper();
  CHECK(told.get() == 1);
}

TEST_CASE("small messages need no shared memory, and it is freed with the streams") {
  const std::size_t before = descriptors();
  {
    two_streams s;
    const std::size_t both = descriptors();
    CHECK(both == before + 2);
    const auto small = some_bytes(1000);
    std::vector<std::byte> got(small.size());
    for (int i = 0; i < 100; ++i) {
      REQUIRE(write_some(*s.a, small) == 1000);
      REQUIRE(s.b->read(got.data(), got.size()) == 1000);
    }
    CHECK(shared_mappings() == 0);
    CHECK(descriptors() == both);
    const auto large = some_bytes(megabyte);
    traffic t(*s.a, *s.b, large, 1);
    REQUIRE(write_some(*s.a, large) > 0);
    REQUIRE(s.b->read(got.data(), 1) == 1);
    CHECK(shared_mappings() == 2);
    CHECK(descriptors() == both + 2);  // the sockets that return slots
  }
  CHECK(shared_mappings() == 0);
  CHECK(descriptors() == before);
}

TEST_CASE("a wait for space in the socket does not outlast it") {
  two_streams s;
  const auto all = some_bytes(8 * megabyte);
  std::size_t written = 0;
  std::ptrdiff_t n;
  while ((n = write_some(*s.a, all, written)) > 0) written += static_cast<std::size_t>(n);
  REQUIRE(n == -EAGAIN);
  REQUIRE(shared_mappings() == 1);  // the peer has not read about it
  const std::size_t before = descriptors();
  mailbox<int> told;
  s.a->wait(detail::stream::direction::out, [&] { told.put(1); });
  s.a->loop().wake_keeper();
  std::vector<std::byte> got(all.size());
  while (s.b->read(got.data(), got.size()) > 0) continue;
  CHECK(told.get() == 1);
  CHECK(waits_for_space() == 0);
  CHECK(descriptors() == before + 1);  // on which the peer returns slots
}

TEST_CASE("shutting a stream ends a wait for a slot, and ends the other end") {
  const auto all = some_bytes(40 * megabyte);
  two_streams s;
  std::vector<std::byte> got(all.size());
  std::size_t written = 0;
  std::ptrdiff_t n = 0;
  // The memory can be used once the peer has read about it.
  while (written < memory_bytes) {
    while ((n = write_some(*s.a, all, written)) > 0) written += static_cast<std::size_t>(n);
    if (written < memory_bytes)
      while (s.b->read(got.data(), got.size()) > 0) continue;
  }
  REQUIRE(n == -EAGAIN);
  mailbox<int> told;
  s.a->wait(detail::stream::direction::out, [&] { told.put(1); });
  s.a->loop().wake_keeper();
  s.a->shut(true);
  CHECK(told.get() == 1);
  CHECK(write_some(*s.a, all) == -EPIPE);
  while ((n = s.b->read(got.data(), got.size())) > 0) continue;
  CHECK(n == 0);
}

TEST_CASE("shared memory uses at most a part of the process's descriptors") {
  {
    const descriptor_limit few(64);
    CHECK(detail::descriptors_for_memory() == 16);
    const auto all = some_bytes(megabyte);
    std::vector<two_streams> pairs(10);
    for (auto& s : pairs) {
      traffic t(*s.a, *s.b, all, 1);
      while (!t.done()) {
        t.write();
        t.read();
      }
      traffic back(*s.b, *s.a, all, 2);
      while (!back.done()) {
        back.write();
        back.read();
      }
    }
    CHECK(shared_mappings() == 16);
    CHECK(descriptors() < 60);
  }
  CHECK(shared_mappings() == 0);
}
