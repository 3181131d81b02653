// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <unistd.h>

#include <deft/transport/spin.hpp>
#include <stop_token>
#include <thread>
#include <vector>

#include "wire.hpp"

using deft::detail::adaptive_spin;
using deft::detail::arrival_wait;
using namespace std::chrono_literals;

namespace {
bool no() { return false; }
bool yes() { return true; }
}  // namespace

TEST_CASE("a spin that fails becomes shorter, with a full attempt now and then") {
  adaptive_spin spin(32us);
  CHECK(spin.worth(31us));
  CHECK_FALSE(spin.worth(32us));
  for (int i = 0; i < 10; ++i) spin.on_arrival(true, 1s);
  CHECK_FALSE(spin.worth(2us));
  CHECK(spin.worth(500ns));
  for (int i = 10; i < 16; ++i) spin.on_arrival(true, 1s);
  CHECK(spin.worth(31us));
}

TEST_CASE("a spin that pays becomes longer") {
  adaptive_spin spin(32us);
  for (int i = 0; i < 10; ++i) spin.on_arrival(true, 1s);
  for (int i = 0; i < 5; ++i) spin.on_arrival(false, 1us);
  CHECK(spin.worth(31us));
  spin.on_arrival(false, 1us);
  CHECK_FALSE(spin.worth(32us));
}

TEST_CASE("after short sleeps a full spin is tried a few times") {
  adaptive_spin spin(32us);
  for (int i = 0; i < 10; ++i) spin.on_arrival(true, 1s);
  for (int i = 0; i < 3; ++i) {
    spin.on_arrival(true, 50us);
    CHECK(spin.worth(31us));
  }
  for (int i = 13; i < 15; ++i) spin.on_arrival(true, 50us);
  CHECK_FALSE(spin.worth(16us));
  spin.on_arrival(false, 1us);
  spin.on_arrival(true, 50us);
  CHECK(spin.worth(31us));
}

TEST_CASE("no spin on the processor of the peer that is to answer") {
  adaptive_spin spin(32us);
  spin.on_arrival(true, 5us, true);
  CHECK_FALSE(spin.worth(0us));
  spin.on_arrival(true, 5us, false);
  CHECK(spin.worth(31us));
}

TEST_CASE("a wait looks again for as long as a spin is worth it, then sleeps until it is over") {
  arrival_wait wait(1h, no, no);
  const auto now = std::chrono::steady_clock::now();
  CHECK(wait.look_again(now));
  CHECK(wait.look_again(now + 59min));
  CHECK_FALSE(wait.look_again(now + 1h));
  CHECK_FALSE(wait.look_again(now));
  wait.restart();
  CHECK(wait.look_again(now));
}

TEST_CASE("the rest of a message is spun for, however long the message was waited for") {
  arrival_wait wait(1h, no, no);
  const testing::no_stream from;
  const auto now = std::chrono::steady_clock::now();
  auto spins = [&](auto limit) {
    CHECK(wait.look_again(now));
    CHECK(wait.look_again(now + limit - 1ns));
    CHECK_FALSE(wait.look_again(now + limit));
    CHECK_FALSE(wait.look_again(now + 4h));
  };
  for (auto limit : {60min, 30min, 15min}) {
    spins(limit);
    wait.on_arrival(from);
  }
  spins(450s);
  for (int part = 0; part < 3; ++part) {
    wait.on_partial_arrival(from);
    spins(60min);
  }
  wait.on_arrival(from);
  spins(225s);  // only the wait for the first part has counted
}

TEST_CASE("no spin after a message that was sent from the same processor") {
  class beside final : public testing::no_stream {
   public:
    explicit beside(bool is) : is_(is) {}
    bool shares_processor() const noexcept override { return is_; }

   private:
    bool is_;
  };
  arrival_wait wait(1h, no, no);
  auto spins_after = [&](bool is) {
    const auto now = std::chrono::steady_clock::now();
    wait.restart();
    if (wait.look_again(now)) wait.look_again(now + 1h);  // until it sleeps
    wait.woke();
    wait.on_arrival(beside(is));
    return wait.look_again(now);
  };
  CHECK(spins_after(false));
  // Often enough that the thread moves, if there is another processor.
  for (int i = 0; i < 40; ++i) CHECK_FALSE(spins_after(true));
  CHECK(spins_after(false));
}

TEST_CASE("a long spin gives way to other threads") {
  static int given = 0;
  arrival_wait wait(
      1h, [] { return ++given, true; }, yes);
  const auto now = std::chrono::steady_clock::now();
  CHECK(wait.look_again(now));
  CHECK(wait.look_again(now + 9us));  // a short wait is spun in any case
  CHECK(given == 0);
  CHECK(wait.look_again(now + 10us));
  CHECK(wait.look_again(now + 59min));
  CHECK(given == 2);
  CHECK_FALSE(wait.look_again(now + 1h));
  CHECK(given == 2);
}

TEST_CASE("a spin gives way at once while other threads spin on all processors") {
  static int given = 0;
  arrival_wait wait(
      1h, [] { return ++given, true; }, no);
  const auto now = std::chrono::steady_clock::now();
  wait.set_crowded_until(arrival_wait::crowded_until({1 << 20, now + 5us}));
  CHECK(wait.look_again(now + 4us));
  CHECK(given == 1);
  CHECK(wait.look_again(now + 5us));
  CHECK(given == 1);
  // Even without a thread that works.
  CHECK(arrival_wait::crowded_until({-1, now + 1min}) == arrival_wait::clock::time_point{});
}

TEST_CASE("no spin while other threads spin on all processors, if it does not pay to give way") {
  arrival_wait wait(1h, no, no);
  const auto now = std::chrono::steady_clock::now();
  wait.set_crowded_until(arrival_wait::crowded_until({1 << 20, now + 1min}));
  CHECK_FALSE(wait.look_again(now + 59s));
  wait.restart();
  CHECK(wait.look_again(now + 1min));
}

TEST_CASE("a spin that does not give way ends once a thread that could work lacks a processor") {
  static bool crowded = true;
  arrival_wait wait(1h, no, [] { return crowded; });
  const auto now = std::chrono::steady_clock::now();
  CHECK(wait.look_again(now));
  CHECK(wait.look_again(now + 10us));  // a short wait is spun in any case
  crowded = false;
  CHECK(wait.look_again(now + 1s));
  crowded = true;
  CHECK(wait.look_again(now + 1s + 1us));  // it is not asked each time
  CHECK_FALSE(wait.look_again(now + 2s));
  crowded = false;
  CHECK_FALSE(wait.look_again(now + 3s));
  wait.restart();
  CHECK(wait.look_again(now + 3s));
}

TEST_CASE("a thread does not give way for a while after another one kept its processor for long") {
  cpu_set_t all, one;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  {
    const std::jthread busy([](std::stop_token stop) {  // on the same processor
      while (!stop.stop_requested()) deft::detail::relax();
    });
    while (deft::detail::give_way()) continue;
  }
  REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
  while (!deft::detail::give_way()) std::this_thread::yield();
}

TEST_CASE("threads that are ready to run are counted") {
  std::vector<std::jthread> busy;
  for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); ++i)
    busy.emplace_back([](std::stop_token stop) {
      while (!stop.stop_requested()) deft::detail::relax();
    });
  // The threads may have yet to start.
  while (!deft::detail::threads_outnumber_processors()) std::this_thread::yield();
}

TEST_CASE("threads that spin for a message are counted in all messages that it leads to") {
  using deft::detail::spinning_for_this;
  CHECK(spinning_for_this::now().count == 0);
  {
    const spinning_for_this sender(2, 1h);
    CHECK(spinning_for_this::now().count == 3);
    CHECK(spinning_for_this::now().until > std::chrono::steady_clock::now() + 50min);
    const spinning_for_this inner(1, 0us);
    CHECK(spinning_for_this::now().count == 0);
  }
  CHECK(spinning_for_this::now().count == 0);
}
