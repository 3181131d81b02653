// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>

#include <deft/core/thread.hpp>
#include <deft/transport/serving_threads.hpp>
#include <filesystem>
#include <mutex>
#include <set>

#include "wire.hpp"

using namespace testing;

namespace {

int threads() {
  namespace fs = std::filesystem;
  return static_cast<int>(
      std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("hundreds of connections are served by few threads") {
  const int before = threads();
  const deadline until = soon();
  test_handler handler;
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  const auto many = std::min<rlim_t>(400, descriptors.rlim_cur / 4);
  std::vector<std::shared_ptr<channel>> channels;
  for (rlim_t i = 0; i < many; ++i) channels.push_back(h.connect(l.address(), soon()));
  for (int round = 0; round < 2; ++round) {
    std::vector<std::shared_ptr<pending>> calls;
    for (auto& c : channels) calls.push_back(c->call(message(message_kind::first_free)));
    for (auto& p : calls) REQUIRE(h.wait_for(*p, soon()));
  }
  // The serving threads, and a keeper for each loop. Where the system ran the keeper before those
  // that had been called, it called more of them: they end when they find nothing to do.
  const int most = deft::ext::usable_processors() + detail::serving_threads::most_spare + 2;
  while (threads() - before > most && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  CHECK(threads() - before <= most);
}

TEST_CASE("a thread that took the place of a blocked one does so again in the next step") {
  constexpr int steps = 200;
  const int calls = deft::ext::usable_processors() + 1;
  std::mutex guard;
  std::set<pid_t> ran;
  mailbox<int> arrived, go_on;
  test_handler handler;
  handler.came = [&](const auto& c, message&& m) {
    {
      const detail::serving_threads::blocking_region while_computing;
      {
        std::lock_guard lock(guard);
        ran.insert(gettid());
      }
      arrived.put(1);
      go_on.get();
    }
    m.kind = message_kind::reply;
    c->send(m);
  };
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  std::vector<std::shared_ptr<channel>> channels;
  for (int i = 0; i < calls; ++i) channels.push_back(h.connect(l.address(), soon()));
  for (int step = 0; step < steps; ++step) {
    std::vector<std::shared_ptr<pending>> replies;
    for (auto& c : channels) replies.push_back(c->call(message(message_kind::first_free)));
    for (int i = 0; i < calls; ++i) arrived.get();
    for (int i = 0; i < calls; ++i) go_on.put(1);
    for (auto& p : replies) REQUIRE(h.wait_for(*p, soon()));
  }
  // Threads of before may take part.
  const int most = deft::ext::usable_processors() + detail::serving_threads::most_spare + calls;
  CHECK(static_cast<int>(ran.size()) <= most);
}

TEST_CASE("handlers that block do not keep other connections from being served") {
  test_handler handler;
  mailbox<int> arrived, go_on;
  handler.came = [&](const auto& c, message&& m) {
    if (m.step == 1) {
      const detail::serving_threads::blocking_region while_waiting;
      arrived.put(1);
      go_on.get();
    }
    m.kind = message_kind::reply;
    c->send(m);
  };
  listener l(options_of_test(), handler);
  channel_group h(client_of_test());
  std::vector<std::shared_ptr<channel>> channels;
  std::vector<std::shared_ptr<pending>> calls;
  message wait(message_kind::first_free);
  SUBCASE("and say so") { wait.step = 1; }
  SUBCASE("and do not say so") {
    wait.step = 2;
    handler.came = [&](const auto& c, message&& m) {
      if (m.step == 2) {
        arrived.put(1);
        go_on.get();
      }
      m.kind = message_kind::reply;
      c->send(m);
    };
  }
  for (int i = 0; i < 20; ++i) {
    channels.push_back(h.connect(l.address(), soon()));
    calls.push_back(channels.back()->call(wait));
  }
  for (int i = 0; i < 20; ++i) arrived.get();
  const auto other = h.connect(l.address(), soon());
  REQUIRE(h.wait_for(*other->call(message(message_kind::first_free)), soon()));
  for (int i = 0; i < 20; ++i) go_on.put(1);
  for (auto& p : calls) CHECK(h.wait_for(*p, soon()));
}
