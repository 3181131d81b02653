// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <deft/transport/channel_group.hpp>
#include <map>

#include "reserved_address.hpp"
#include "wire.hpp"

using namespace testing;

TEST_CASE("a call is answered; one-way messages go both ways") {
  test_handler handler;
  mailbox<std::uint64_t> came;
  handler.came = [&](const auto& c, message&& m) {
    if (m.id == 0) {
      came.put(m.step);
      m.step *= 2;
      c->send(m);
      return;
    }
    m.kind = message_kind::reply;
    c->send(m);
  };
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  std::vector<std::uint64_t> unasked;
  auto c =
      h.connect(l.address(), soon(),
                {.on_message = [&](message&& m) { unasked.push_back(m.step); }, .on_lost = {}});
  CHECK(c->address() == l.address());
  message m(message_kind::first_free);
  m.meta = to_bytes("hello");
  m.step = 21;
  m.tensors = {pattern(dtype::float32, {3}, 1)};
  auto p = c->call(m);
  CHECK(!p->failed());
  REQUIRE(h.wait_for(*p, soon()));
  message answer = p->take();
  CHECK(answer.id == p->id());
  CHECK(answer.meta == m.meta);
  CHECK(same_bytes(answer.tensors[0], m.tensors[0]));
  m.id = 0;
  c->post(m);
  CHECK(came.get() == 21);
  REQUIRE(h.wait_until([&] { return !unasked.empty(); }, soon()));
  CHECK(unasked[0] == 42);
}

TEST_CASE("calls are pipelined, and answered in any order") {
  test_handler handler;
  std::vector<message> kept;
  handler.came = [&](const auto& c, message&& m) {
    kept.push_back(std::move(m));
    if (kept.size() < 50) return;
    for (auto i = kept.rbegin(); i != kept.rend(); ++i) {
      i->kind = message_kind::reply;
      c->send(*i);
    }
  };
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  auto c = h.connect(l.address(), soon());
  std::vector<std::shared_ptr<pending>> calls;
  for (int i = 0; i < 50; ++i) {
    message m(message_kind::first_free);
    m.step = static_cast<std::uint64_t>(i);
    calls.push_back(c->call(m));
  }
  CHECK(error_of([&] { calls[0]->take(); }).starts_with("failed_precondition"));
  REQUIRE(h.wait_until(
      [&] { return std::all_of(calls.begin(), calls.end(), [](auto& p) { return p->done(); }); },
      soon()));
  for (std::size_t i = 0; i < 50; ++i) CHECK(calls[i]->get().step == i);
}

TEST_CASE("wait_until checks first, keeps its deadline, and notices notify") {
  channel_group h(client_of_test());
  CHECK(h.wait_until([] { return true; }, past()));
  CHECK(!h.wait_until([] { return false; }, past()));
  CHECK(!h.wait_until([] { return false; }, deadline_in(std::chrono::milliseconds(5))));
  h.poll();
  CHECK(error_of([&] { h.wait_until([]() -> bool { fail(errc::internal, "no"); }); }) ==
        "internal: no");

  // Leader and followers alike.
  std::atomic<int> turn{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        CHECK(h.wait_until([&] { return turn == 4 * round + i; }, soon()));
        ++turn;
        h.notify();
      }
    });
  for (auto& t : threads) t.join();
  CHECK(turn == 800);
}

TEST_CASE("serve_until reads if no thread does, and does not replace one") {
  using std::chrono::microseconds;
  test_handler handler;
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  auto c = h.connect(l.address(), soon());
  auto served = [&](microseconds unseen) {
    const auto p = c->call(message(message_kind::first_free));
    return h.serve_until([&] { return p->done(); }, unseen) && p->done();
  };
  CHECK(served(microseconds(0)));
  CHECK(served(microseconds(500)));

  std::atomic<bool> stop{false};
  mailbox<int> leads;
  auto ready = [&, looked = 0]() mutable {
    if (++looked == 2) leads.put(1);  // the first check is before it leads
    return stop.load();
  };
  std::thread other;
  SUBCASE("a thread that waits") {
    other = std::thread([&] { h.wait_until(ready, soon()); });
    leads.get();
    CHECK(!h.serve_until([] { return false; }, microseconds(0)));
  }
  SUBCASE("but it replaces a thread that reads for others") {
    other = std::thread([&] {
      while (!h.read_until(ready, soon())) continue;
    });
    leads.get();
    CHECK(served(microseconds(0)));
  }
  stop = true;
  h.notify();
  other.join();
}

TEST_CASE("a thread that would read for others sleeps while one waits for itself") {
  channel_group h(client_of_test());
  std::atomic<bool> over{false}, stop{false};
  std::atomic<int> looks{0};
  mailbox<int> read, leads;
  std::thread reads([&] {
    while (!h.read_until([&] { return ++looks, over.load(); }, soon())) continue;
    read.put(1);
  });
  while (looks == 0) std::this_thread::yield();
  looks = 0;
  CHECK_FALSE(h.wait_until([] { return false; }, deadline_in(std::chrono::milliseconds(200))));
  CHECK(looks < 5);
  // What it waits for comes while another thread still waits.
  std::thread waits([&, looked = 0]() mutable {
    auto ready = [&] {
      if (++looked == 2) leads.put(1);
      return stop.load();
    };
    h.wait_until(ready, soon());
  });
  leads.get();
  over = true;
  h.notify();
  read.get();
  stop = true;
  h.notify();
  reads.join();
  waits.join();
}

TEST_CASE("many threads share a group and its channels") {
  test_handler handler;
  listener a(options_of_test(), handler), b(options_of_test(), handler);
  channel_group h(client_of_test());
  auto x = h.connect(a.address(), soon()), y = h.connect(b.address(), soon());
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (std::uint64_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        message m(message_kind::first_free);
        m.session = t;
        m.step = i;
        m.meta.resize(i * 7);
        m.tensors = {
            pattern(dtype::int32, {static_cast<std::int64_t>(i * t)}, static_cast<unsigned>(t))};
        auto p = x->call(m), q = y->call(m);
        if (!h.wait_until([&] { return p->done() && q->done(); }, soon())) return;
        for (auto& answer : {p->take(), q->take()})
          right += answer.session == t && answer.step == i && answer.meta == m.meta &&
                   same_bytes(answer.tensors[0], m.tensors[0]);
      }
    });
  for (auto& t : threads) t.join();
  CHECK(right == 8 * 200 * 2);
}

TEST_CASE("a lost peer fails all its pending calls, for every waiter, and nothing else") {
  test_handler silent, echo;
  mailbox<int> came;
  silent.came = [&](const auto&, message&&) { came.put(1); };
  auto dying = std::make_unique<listener>(options_of_test(), silent);
  listener living(options_of_test(), echo);
  channel_group h(client_of_test());
  std::atomic<int> told{0};
  std::string reason;
  auto lost =
      h.connect(dying->address(), soon(), {.on_message = {}, .on_lost = [&](const error& e) {
                                             reason = e.what();
                                             ++told;
                                           }});
  auto kept = h.connect(living.address(), soon());
  std::string name = lost->peer().to_string();
  std::vector<std::thread> waiters;
  std::atomic<int> failed{0};
  for (int i = 0; i < 4; ++i)
    waiters.emplace_back([&] {
      auto p = lost->call(message(message_kind::first_free));
      auto said = error_of([&] {
        CHECK(h.wait_for(*p, soon()));
        p->take();
      });
      failed += said == "unavailable: lost " + name + ": it ended the connection";
    });
  for (int i = 0; i < 4; ++i) came.get();
  dying.reset();
  for (auto& w : waiters) w.join();
  CHECK(failed == 4);
  REQUIRE(h.wait_until([&] { return told == 1; }, soon()));
  CHECK(reason == "lost " + name + ": it ended the connection");
  CHECK(lost->lost());
  CHECK(error_of([&] {
          lost->call(message(message_kind::first_free));
        }).starts_with("unavailable: lost " + name));
  CHECK(error_of([&] {
          lost->post(message(message_kind::first_free));
        }).starts_with("unavailable: lost " + name));
  auto p = kept->call(message(message_kind::first_free));
  REQUIRE(h.wait_for(*p, soon()));
  CHECK(!p->failed());
}

TEST_CASE("closing a channel cancels its calls, abandoning a call drops its answer") {
  test_handler handler;
  mailbox<std::pair<std::shared_ptr<connection>, std::uint64_t>> came;
  handler.came = [&](const auto& c, message&& m) { came.put({c, m.id}); };
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  bool told = false;
  auto c = h.connect(l.address(), soon(),
                     {.on_message = {}, .on_lost = [&](const error&) { told = true; }});
  auto dropped = c->call(message(message_kind::first_free));
  c->abandon(*dropped);
  auto [server, id] = came.get();
  server->send(message(message_kind::reply, id));
  auto p = c->call(message(message_kind::first_free));
  auto [same_server, second] = came.get();
  same_server->send(message(message_kind::reply, second));
  REQUIRE(h.wait_for(*p, soon()));
  CHECK(!dropped->done());
  auto q = c->call(message(message_kind::first_free));
  c->close();
  CHECK(q->done());
  CHECK(error_of([&] { q->take(); }).starts_with("cancelled: the channel to /job:ps"));
  h.poll();
  CHECK(!told);
}

TEST_CASE("an abandoned call releases its listener, even if that holds the call") {
  struct keeper : answer_listener {
    std::shared_ptr<pending> call;
    void answered(pending&) override {}
  };
  test_handler handler;
  handler.came = [](const auto&, message&&) {};
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  auto c = h.connect(l.address(), soon());
  auto k = std::make_shared<keeper>();
  const std::weak_ptr<keeper> kept = k;
  k->call = c->call(message(message_kind::first_free), k);
  c->abandon(*k->call);
  k.reset();
  CHECK(kept.expired());
}

TEST_CASE("connect waits for a server that is not up yet") {
  test_handler handler;
  auto o = options_of_test();
  const reserved_address meanwhile;
  o.address = meanwhile.text;
  std::string name;
  mailbox<int> begun;
  std::thread client([&] {
    channel_group h(client_of_test());
    begun.put(1);
    name = h.connect(o.address, soon())->peer().name;
  });
  begun.get();
  listener l(o, handler);
  client.join();
  CHECK(name == o.self.name);
}

TEST_CASE("connect says what it waited for, for how long, and why it failed") {
  channel_group h(client_of_test());
  auto briefly = [] { return deadline_in(std::chrono::milliseconds(30)); };
  int fd = listen_socket("localhost:0");
  auto address = address_of_socket(fd);
  auto expect = [&](const char* why) {
    const auto e = error_of([&] { h.connect(address, briefly()); });
    CAPTURE(e);
    CHECK(e.starts_with("unavailable: timed out after "));
    CHECK(e.ends_with(str(" ms waiting for ", address, ": ", why)));
  };
  expect("it accepted the connection, but does not answer");
  ::close(fd);
  const file_descriptor reserved(reserve_address(address));
  expect("Connection refused");
  CHECK(error_of([&] { h.connect("no port", briefly()); }).starts_with("invalid_argument"));
  CHECK(error_of([&] {
          h.connect("host.invalid:1", deadline_in(std::chrono::milliseconds(500)));
        }).find("cannot resolve host \"host.invalid\"") != std::string::npos);
}

namespace {

bool says(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// What `dial` has called back with.
struct dialled {
  std::shared_ptr<channel> link;
  std::string failure;
  error_reason reason{};
};
/// Dials; the mailbox gets the result.
std::shared_ptr<mailbox<dialled>> dial(channel_group& h, const std::string& address,
                                       deadline until) {
  auto result = std::make_shared<mailbox<dialled>>();
  h.dial(address, until, {},
         [result](std::shared_ptr<channel> c, const std::shared_ptr<const error>& failure) {
           CHECK((c == nullptr) != (failure == nullptr));
           result->put({std::move(c), failure ? str(failure->code(), ": ", failure->message()) : "",
                        failure ? failure->reason() : error_reason::none});
         });
  return result;
}

}  // namespace

TEST_CASE("many servers are dialled at the same time, while no thread waits for them") {
  test_handler handler;
  channel_group h(client_of_test());
  std::vector<std::unique_ptr<listener>> servers;
  std::vector<std::shared_ptr<mailbox<dialled>>> results;
  for (int i = 0; i < 8; ++i)
    servers.push_back(std::make_unique<listener>(options_of_test(), handler));
  for (int i = 0; i < 64; ++i)
    results.push_back(dial(h, servers[static_cast<std::size_t>(i % 8)]->address(), soon()));
  for (const auto& r : results) {
    const auto d = r->get();
    REQUIRE(d.link);
    auto p = d.link->call(message(message_kind::first_free));
    REQUIRE(h.wait_for(*p, soon()));
    CHECK(p->get().kind == message_kind::reply);
  }
}

TEST_CASE("dial calls back with the reason if it fails, at once or at the deadline") {
  channel_group h(client_of_test());
  CHECK(says(dial(h, "nowhere", soon())->get().failure,
             "invalid_argument: \"nowhere\" is not a valid address"));
  const auto unknown = dial(h, "no.such.host.invalid:1", past())->get();
  CHECK(says(unknown.failure, "unavailable: "));
  CHECK(unknown.reason == error_reason::connect_timeout);
  // Accepts connections, and does not answer.
  const int silent = listen_socket("localhost:0");
  const auto address = address_of_socket(silent);
  const auto late = dial(h, address, deadline_in(std::chrono::milliseconds(50)))->get();
  CHECK(late.failure == "unavailable: it accepted the connection, but does not answer");
  CHECK(late.reason == error_reason::connect_timeout);
  ::close(silent);
}

TEST_CASE("a group may be destroyed while it dials") {
  const int silent = listen_socket("localhost:0");
  std::shared_ptr<mailbox<dialled>> result;
  {
    channel_group h(client_of_test());
    result = dial(h, address_of_socket(silent), soon());
    bare_socket(::accept(silent, nullptr, nullptr));  // and ends the connection
    ::close(silent);
  }
  CHECK(says(result->get().failure, "was destroyed"));
}

TEST_CASE("a server that sends an invalid frame is lost, and learns why") {
  test_handler handler;
  mailbox<std::string> told;
  handler.closed = [&](const auto&, const error* why) { told.put(why ? why->what() : "in order"); };
  listener l(options_of_test(), handler);
  auto o = client_of_test();
  o.limits.tensors = 2;
  channel_group h(o);
  auto c = h.connect(l.address(), soon());
  message m(message_kind::first_free);
  m.tensors.assign(3, any_array::scalar(1.f));
  auto p = c->call(m);  // is sent back unchanged
  REQUIRE(h.wait_for(*p, soon()));
  CHECK(error_of([&] { p->take(); }).ends_with("a message with 3 tensors (limit 2)"));
  CHECK(c->lost());
  CHECK(error_of([&] { c->call(m); }).starts_with("unavailable: lost /job:ps"));
  CHECK(told.get().find("it refused: a message with 3 tensors (limit 2)") != std::string::npos);
}

TEST_CASE("an error that cannot be decoded ends its call") {
  test_handler handler;
  handler.came = [](const auto& c, message&& m) { c->send(m); };
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  auto c = h.connect(l.address(), soon());
  message m(message_kind::error);
  m.meta.resize(3);
  auto p = c->call(m);
  REQUIRE(h.wait_for(*p, soon()));
  CHECK(p->failed());
  CHECK_FALSE(c->lost());
}

TEST_CASE("a message that cannot be handled ends its channel, as somebody may wait for it") {
  test_handler handler;
  handler.came = [](const auto& c, message&& m) {
    if (m.id == 0) c->send(m);
  };
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  auto c = h.connect(l.address(), soon(),
                     {.on_message = [](message&&) { throw std::bad_alloc(); }, .on_lost = {}});
  auto waits = c->call(message(message_kind::first_free));
  c->post(message(message_kind::first_free));
  REQUIRE(h.wait_for(*waits, soon()));
  CHECK(error_of([&] { waits->take(); }).ends_with(": out of memory"));
  CHECK(c->lost());
}
