// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <deft/session/threads/background_work.hpp>
#include <future>
#include <latch>
#include <memory>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("after wait() all background work is done and destroyed") {
  background_work all;
  all.wait();  // there is no work
  std::atomic<int> done{0};
  auto held = std::make_shared<int>();
  for (int i = 0; i < 100; ++i) all.run([&done, held] { ++done; });
  all.wait();
  CHECK(done == 100);
  CHECK(held.use_count() == 1);
}

TEST_CASE("work that waits does not hold up what came after it") {
  background_work all;
  std::latch together(50);
  for (int i = 0; i < 50; ++i) all.run([&] { together.arrive_and_wait(); });
  all.wait();
  CHECK(together.try_wait());
}

TEST_CASE("wait() ignores the work of other owners, and the work that calls it") {
  background_work mine, others;
  std::promise<void> end;
  others.run([ended = end.get_future().share()] { ended.wait(); });
  std::atomic<bool> waited{false};
  mine.run([&] {
    mine.wait();
    waited = true;
  });
  mine.wait();
  CHECK(waited);
  end.set_value();
  others.wait();
}
