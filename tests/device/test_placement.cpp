// SPDX-License-Identifier: Apache-2.0
#include <deft/device/placement.hpp>
// its own header comes first, to check that it is self-contained
#include <doctest/doctest.h>
#include <atomic>
#include <thread>
#include <unordered_set>
#include <vector>

using namespace deft;
using namespace deft::ext;

TEST_CASE("a placement is a value: anywhere, or a name") {
  const placement anywhere, gpu = intern(parse_device("/gpu:0")),
                            cpu = intern(parse_device("/cpu:0"));
  CHECK_FALSE(anywhere);
  CHECK(anywhere == nullptr);
  CHECK(gpu);
  CHECK(gpu->type == "gpu");
  CHECK(*gpu == parse_device("/device:GPU:0"));
  CHECK(gpu != cpu);
  CHECK((gpu < cpu) != (cpu < gpu));
  CHECK(std::unordered_set<placement>{gpu, cpu, gpu, anywhere}.size() == 3);
  CHECK(sizeof(placement) == sizeof(void*));
}

TEST_CASE("a name is forgotten with its last placement") {
  const auto before = detail::interned_names();
  {
    placement p = intern(parse_device("/job:forgotten/gpu:0"));
    placement copy = p, moved = std::move(p);
    CHECK_FALSE(p);  // NOLINT: moved from on purpose
    CHECK(copy == moved);
    CHECK(detail::interned_names() == before + 1);
    copy = intern(parse_device("/job:forgotten/gpu:1"));
    CHECK(detail::interned_names() == before + 2);
    const placement& same = copy;
    copy = same;
    CHECK(to_string(*copy) == "/job:forgotten/gpu:1");
    moved = nullptr;
    CHECK(detail::interned_names() == before + 1);
  }
  CHECK(detail::interned_names() == before);
}

TEST_CASE("equal names are interned once, from any thread") {
  CHECK(intern({}) == nullptr);
  placement first = intern(parse_device("/job:interned/gpu:0"));
  CHECK(to_string(*first) == "/job:interned/gpu:0");
  CHECK(intern(parse_device("/job:interned/gpu:1")) != first);
  std::vector<std::thread> threads;
  std::atomic<int> same{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        intern(parse_device("/job:interned/task:" + std::to_string(i)));
        same += intern(parse_device("/job:interned/gpu:0")) == first;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(same == 4000);
}

TEST_CASE("threads may drop and intern the same name at the same time") {
  const auto before = detail::interned_names();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 20'000; ++i) {
        const placement p = intern(parse_device("/job:dropped/gpu:0"));
        const placement copy = p;
        if (copy->type != "gpu") std::abort();
      }
    });
  for (auto& t : threads) t.join();
  CHECK(detail::interned_names() == before);
}
