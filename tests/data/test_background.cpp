// SPDX-License-Identifier: Apache-2.0
// tests/data/test_background.cpp: threads of pipelines keep the order, report errors, and end.
#include <deft/data/pipeline.hpp>
// its own header comes first, to check that it is self-contained
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "../testing.hpp"

using namespace deft;
using namespace deft::ext;
using numbers = std::vector<int>;

namespace {

auto count_to(int n) {
  return from_generator([i = 0, n]() mutable { return i < n ? std::optional(i++) : std::nullopt; });
}
auto endless() {
  return from_generator([i = 0]() mutable { return std::optional(i++); });
}
template <class Dataset>
numbers all_of(const Dataset& d) {
  numbers out;
  for (auto& [n] : d) out.push_back(n);
  return out;
}

/// Lets threads wait until another has come to some point.
class gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

}  // namespace

TEST_CASE("map with threads keeps the order, in which the slowest may come first") {
  gate last;
  auto d = count_to(8).map(
      [&](int n) {
        if (n == 0) last.wait();
        if (n == 7) last.open();
        return 10 * n;
      },
      {.threads = 4});
  CHECK(all_of(d) == numbers{0, 10, 20, 30, 40, 50, 60, 70});
  for (int threads : {1, 2, 7}) {
    auto squares = count_to(1000).map([](int n) { return n * n; }, {.threads = threads}).repeat(2);
    int i = 0;
    for (auto& [s] : squares) {
      CHECK(s == (i % 1000) * (i % 1000));
      ++i;
    }
    CHECK(i == 2000);
  }
  CHECK(all_of(count_to(0).map([](int n) { return n; }, {.threads = 3})) == numbers{});
}

TEST_CASE("each thread of a map has a copy of the function") {
  auto d = count_to(1000).map(
      [buffer = std::string()](int n) mutable {
        buffer.assign(static_cast<std::size_t>(n % 50), 'x');
        return static_cast<int>(buffer.size());
      },
      {.threads = 4});
  int i = 0;
  for (auto& [n] : d) CHECK(n == i++ % 50);
}

TEST_CASE("an exception reaches the consumer where the element would have come") {
  auto broken = [](int n) {
    if (n == 5) fail(errc::data_loss, "five");
    return n;
  };
  auto check = [](auto d) {
    for (int round = 0; round < 20; ++round) {
      numbers seen;
      CHECK(testing::error_of([&] {
              for (auto& [n] : d) seen.push_back(n);
            }) == "data_loss: five");
      CHECK(seen == numbers{0, 1, 2, 3, 4});
    }
    auto i = d.begin();
    for (int n = 0; n < 4; ++n) ++i;
    CHECK_THROWS(++i);
    CHECK(i == d.end());
  };
  check(endless().map(broken, {.threads = 3}));
  check(endless().map(broken).prefetch(2));
  check(endless().map(broken).map([](int n) { return n; }, {.threads = 3}));
  check(endless().map(broken).prefetch(1).prefetch(50));
  check(endless().map(broken).prefetch(3).repeat());
}

TEST_CASE("prefetch makes elements while the consumer has another one") {
  gate second;
  auto d = count_to(3)
               .map([&](int n) {
                 if (n == 1) second.open();
                 return n;
               })
               .prefetch(1);
  auto i = d.begin();
  second.wait();  // without a thread it would never come
  ++i;
  CHECK(std::get<0>(*i) == 1);
}

TEST_CASE("prefetch makes no more than it should") {
  std::atomic<int> made = 0;
  gate enough;
  auto d = endless()
               .map([&](int n) {
                 if (++made == 4) enough.open();
                 return n;
               })
               .prefetch(3);
  auto i = d.begin();
  enough.wait();  // the element that was taken, and three more
  CHECK(made == 4);
  CHECK(std::get<0>(*i) == 0);
}

TEST_CASE("leaving a loop early ends the threads") {
  auto alive = std::make_shared<int>();
  for (int taken : {0, 1, 5}) {
    auto d = endless()
                 .map([alive](int n) { return n; }, {.threads = 3})
                 .prefetch(4)
                 .shuffle(10, 1)
                 .prefetch(2);
    int seen = 0;
    for (auto& [n] : d) {
      static_cast<void>(n);
      if (seen++ == taken) break;
    }
  }
  // The threads' copies are gone.
  CHECK(alive.use_count() == 1);
}

TEST_CASE("passes with threads are made again, and side by side") {
  auto d = count_to(100).map([](int n) { return n; }, {.threads = 2}).prefetch(3);
  const numbers all = all_of(count_to(100));
  CHECK(all_of(d) == all);
  auto i = d.begin(), j = d.begin();
  for (int n = 0; n < 100; ++n, ++i, ++j) {
    CHECK(std::get<0>(*i) == n);
    CHECK(std::get<0>(*j) == n);
  }
  CHECK(all_of(count_to(5).prefetch(2).repeat(3)) ==
        numbers{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
  CHECK(all_of(d.shuffle(10, 5)) == all_of(count_to(100).shuffle(10, 5)));
}

TEST_CASE("prefetched batches reuse their memory") {
  ndarray<float, dyn, 8> x(64);
  std::set<const void*> places;
  for (auto& [a] : from_slices(x).batch(4).repeat(50).prefetch(2))
    places.insert(std::as_const(a).data());
  CHECK(places.size() <= 3);
}
