// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <deft/session/threads/background_work.hpp>
#include <future>
#include <memory>

#include "testing.hpp"

using namespace deft;

TEST_CASE("who waits for background work finds all done, and what they held destroyed") {
  background_work all;
  all.wait();  // there are none
  std::atomic<int> done{0};
  auto held = std::make_shared<int>();
  for (int i = 0; i < 100; ++i) all.run([&done, held] { ++done; });
  all.wait();
  CHECK(done == 100);
  CHECK(held.use_count() == 1);
}

TEST_CASE("nobody waits for the work of others, nor work for itself") {
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
