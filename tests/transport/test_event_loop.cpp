// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <deft/transport/event_loop.hpp>
#include <thread>

#include "wire.hpp"

using namespace testing;
using detail::event_loop;

namespace {

event_loop& loop() { return event_loop::of_callers(); }

/// The thread that runs posted handlers.
struct runner {
  std::thread::id id;
  bool keeper = false;
};
std::shared_ptr<mailbox<runner>> post_to_loop(event_loop& to = loop()) {
  auto ran = std::make_shared<mailbox<runner>>();
  boost::asio::post(to.context(), [ran] {
    ran->put({std::this_thread::get_id(), event_loop::is_keeper()});
  });
  return ran;
}

}  // namespace

TEST_CASE("if no thread waits, the keeper runs the loop") {
  loop().wake_keeper();
  CHECK(post_to_loop()->get().keeper);
}

TEST_CASE("the keeper runs the loop without patience while something is under way") {
  static auto& patient = *new event_loop(std::chrono::hours(1));
  { event_loop::polling_scope was_here(patient); }  // which begins the patience
  event_loop::upkeep under_way(patient);
  CHECK(post_to_loop(patient)->get().keeper);
  { event_loop::polling_scope was_here(patient); }
  CHECK(post_to_loop(patient)->get().keeper);
}

TEST_CASE("a thread that waits runs the loop, and sleeps until it is woken") {
  std::thread waiter([] {
    static event_loop::sleeper s;  // a late wake-up of it is harmless
    boost::asio::steady_timer timer(loop().context());
    std::thread::id by;
    // On a busy machine the timer may expire before this thread waits, which leaves it to the
    // keeper.
    for (int tries = 0; tries < 100 && by != std::this_thread::get_id(); ++tries) {
      std::atomic<bool> ran{false};
      timer.expires_after(std::chrono::milliseconds(20));
      timer.async_wait([&](boost::system::error_code) {
        by = std::this_thread::get_id();
        ran = true;
        loop().wake(s);
      });
      REQUIRE(loop().wait(
          s, [&] { return ran.load(); }, soon()));
    }
    CHECK(by == std::this_thread::get_id());
    CHECK(!loop().wait(
        s, [] { return false; }, past()));
  });
  waiter.join();
}

TEST_CASE("of several waiting threads one runs the loop; when it leaves, another does") {
  struct waiter {
    event_loop::sleeper sleeper;
    std::atomic<bool> done{false};
    std::thread thread;
  };
  std::vector<std::unique_ptr<waiter>> all;
  for (int i = 0; i < 4; ++i) {
    auto& w = *all.emplace_back(std::make_unique<waiter>());
    w.thread = std::thread([&w] {
      CHECK(loop().wait(
          w.sleeper, [&] { return w.done.load(); }, soon()));
    });
  }
  for (auto& w : all) {
    // One of the remaining threads runs it.
    post_to_loop()->get();
    w->done = true;
    loop().wake(w->sleeper);
    w->thread.join();
  }
  post_to_loop()->get();
}

TEST_CASE("the keeper replaces a polling thread that does not poll") {
  event_loop::polling_scope busy(loop());
  CHECK(post_to_loop()->get().keeper);
  auto ran = post_to_loop();
  loop().poll();
  ran->get();
}
