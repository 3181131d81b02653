// SPDX-License-Identifier: Apache-2.0
#include <deft/transport/credit.hpp>

#include "raw_peer.hpp"

using namespace testing;

namespace {

constexpr auto bulk = message_kind::first_free;

message bulk_of(std::int64_t bytes, std::uint32_t number = 0) {
  message m(bulk);
  m.takes_credit = true;
  m.flags = number;
  m.tensors.push_back(pattern(dtype::uint8, {bytes}, number));
  return m;
}

/// Holds messages, and with them the credit, until it is told to drop the oldest.
class keeping_handler : public test_handler {
 public:
  keeping_handler() {
    came = [this](const auto& from, message&& m) {
      if (m.id) return from->send(message(message_kind::reply, m.id));
      std::lock_guard lock(guard_);
      held_.push_back(std::move(m.credit));
      most_ = std::max(most_, held_.size());
      arrived.put(m.flags);
    };
  }
  void drop_one() {
    std::shared_ptr<const void> oldest;
    std::lock_guard lock(guard_);
    oldest = std::move(held_.front());
    held_.erase(held_.begin());
  }
  std::size_t most() const {
    std::lock_guard lock(guard_);
    return most_;
  }
  mailbox<std::uint32_t> arrived;

 private:
  mutable std::mutex guard_;
  std::vector<std::shared_ptr<const void>> held_;
  std::size_t most_ = 0;
};

}  // namespace

TEST_CASE("as long as the window is not used up, one more message is sent, however large") {
  detail::credit_account a;
  a.set_window({100, 3});
  CHECK(a.take(99));
  CHECK(a.take(1'000));
  CHECK(!a.take(0));
  a.give_back({1'000, 1});
  CHECK(a.take(0));
  CHECK(a.take(0));
  CHECK(!a.take(0));  // three
  CHECK(error_of([&] { a.give_back({100, 1}); }).starts_with("data_loss: the peer returned more"));
  CHECK(error_of([&] { a.give_back({0, 4}); }).starts_with("data_loss: the peer returned more"));
}

TEST_CASE("the receiver returns credit a quarter of the window at a time") {
  detail::credit_account a;
  a.set_window({1'000, 100});
  for (int i = 0; i < 50; ++i) CHECK(a.take(10));
  for (int i = 0; i < 24; ++i) CHECK(!a.free(10));
  const auto told = a.free(10);
  REQUIRE(told);
  CHECK(told->bytes == 250);
  CHECK(told->frames == 25);
  CHECK(a.used().bytes == 250);
  CHECK(a.used().frames == 25);
}

TEST_CASE("messages that a peer does not process wait at the sender, and hold up nothing else") {
  constexpr std::uint32_t count = 200;
  constexpr std::int64_t bytes = 100'000;
  keeping_handler handler;
  auto o = options_of_test();
  std::size_t fit = 0;
  SUBCASE("by bytes") {
    o.self.window = {4 * bytes, 1'000};
    fit = 4;
  }
  SUBCASE("by number") {
    o.self.window = {std::uint64_t{1} << 30, 8};
    fit = 8;
  }
  listener l(o, handler);
  channel_group h(client_of_test());
  auto c = h.connect(l.address(), soon());
  auto is_answered = [&] {
    auto p = c->call(message(bulk));
    REQUIRE(h.wait_for(*p, soon()));
  };
  for (std::uint32_t i = 0; i < count; ++i) c->post(bulk_of(bytes, i));
  // A call is answered, although it was sent after all of them.
  is_answered();
  CHECK(!c->drain(past()));
  CHECK(handler.most() == fit);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i >= fit) h.poll();
    CHECK(handler.arrived.get() == i);
    handler.drop_one();
  }
  is_answered();
  CHECK(c->drain(soon()));
  CHECK(handler.most() <= fit);
}

TEST_CASE("a channel that ends drops waiting messages, and says so") {
  keeping_handler handler;
  auto o = options_of_test();
  o.self.window = {1, 1};
  listener l(o, handler);
  channel_group h(client_of_test());
  mailbox<std::string> lost;
  auto c = h.connect(l.address(), soon(), {{}, [&](const error& e) { lost.put(e.message()); }});
  message m = bulk_of(10);
  for (int i = 0; i < 10; ++i) c->post(m);
  CHECK(handler.arrived.get() == 0);
  CHECK(!m.tensors[0].storage().unique());
  SUBCASE("here") { c->close(); }
  SUBCASE("there") {
    l.stop();
    h.wait_until([&] { return c->lost(); }, soon());
    h.poll();
    lost.get();
  }
  CHECK(m.tensors[0].storage().unique());
  CHECK_THROWS_AS(c->post(m), error);
}

TEST_CASE("heartbeats are sent while all messages wait for credit") {
  const int listening = listen_socket("localhost:0");
  raw_peer sender(address_of_socket(listening));
  bare_socket receiver(::accept(listening, nullptr, nullptr));
  ::close(listening);
  using std::chrono::milliseconds;
  sender.state().agree({milliseconds(0), {}}, {milliseconds(1'000), {1, 1}});
  for (int i = 0; i < 3; ++i) sender.state().send(bulk_of(10));
  for (int s : {1, 2})
    sender.state().beat(std::chrono::steady_clock::now() + std::chrono::seconds(s));
  sender.state().close();
  std::vector<std::byte> expected = detail::flatten_frame(bulk_of(10));
  const auto beat = detail::flatten_frame(message(message_kind::heartbeat));
  expected.insert(expected.end(), beat.begin(), beat.end());
  CHECK(receiver.read_all() == expected);
}

TEST_CASE("a peer that exceeds its credit is refused") {
  std::vector<std::byte> frames;
  for (int i = 0; i < 3; ++i) {
    const auto one = detail::flatten_frame(bulk_of(10));
    frames.insert(frames.end(), one.begin(), one.end());
  }
  raw_peer receiver(std::make_unique<memory_stream>(frames));
  receiver.state().agree({{}, {1'000, 2}}, {});
  const auto first = receiver.hear(), second = receiver.hear();
  CHECK(receiver.refusal().starts_with("resource_exhausted: the peer exceeds its credit"));
}
