// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/wait_list.hpp>

#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "testing.hpp"

using namespace deft::ext;

namespace {

/// Those who wait, each with a letter, which it writes when it is woken.
class queue_of_letters {
 public:
  struct one final : waker::target {
    one(queue_of_letters& of, char c) : all(of), letter(c) {}
    bool wake(std::uint64_t) override {
      all.woken += letter;
      if (then) then();
      return !over;
    }
    bool is_over(std::uint64_t) override { return over; }

    queue_of_letters& all;
    const char letter;
    bool over = false;
    std::function<void()> then;
    wait_list::ticket ticket;
  };

  ~queue_of_letters() { list.reset(); }

  one& add(char letter) {
    for (auto& o : ones_)
      if (o->letter == letter) return add(o);
    return add(ones_.emplace_back(std::make_shared<one>(*this, letter)));
  }
  std::string take() { return std::exchange(woken, {}); }

  std::string woken;
  std::optional<wait_list> list{std::in_place};

 private:
  one& add(const std::shared_ptr<one>& o) {
    list->add(o->ticket, waker(o, 0));
    return *o;
  }

  std::vector<std::shared_ptr<one>> ones_;
};

}  // namespace

TEST_CASE("those who wait are woken in the order in which they came, once") {
  queue_of_letters q;
  for (char c : std::string("abcde")) q.add(c);
  CHECK(q.list->size() == 5);
  q.list->wake_next();
  CHECK(q.take() == "a");
  q.list->wake_next(2);
  CHECK(q.take() == "bc");
  CHECK(q.list->size() == 2);
  q.list->wake_next(9);
  CHECK(q.take() == "de");
  q.list->wake_next();
  q.list->wake_all();
  CHECK(q.take().empty());
  CHECK(q.list->size() == 0);
  for (char c : std::string("zy")) q.add(c);
  q.list->wake_all();
  CHECK(q.take() == "zy");
}

TEST_CASE("one that waits again in the same run keeps its place") {
  queue_of_letters q;
  for (char c : std::string("abc")) q.add(c);
  SUBCASE("while it waits") {}
  SUBCASE("once it was woken") {
    q.list->wake_next();
    CHECK(q.take() == "a");
  }
  SUBCASE("once all were woken") {
    q.list->wake_all();
    q.take();
    for (char c : std::string("cdb")) q.add(c);
  }
  q.add('a');
  q.list->wake_all();
  CHECK(q.take().substr(0, 3) == "abc");
}

TEST_CASE("one that was served waits behind the others the next time") {
  queue_of_letters q;
  q.add('a').ticket.served();
  CHECK(q.list->size() == 0);
  for (char c : std::string("ba")) q.add(c);
  q.list->wake_all();
  CHECK(q.take() == "ba");
}

TEST_CASE("one that leaves is not woken") {
  queue_of_letters q;
  for (char c : std::string("abcd")) q.add(c);
  q.add('a').ticket.leave();
  q.add('c').ticket.leave();
  q.add('c').ticket.leave();
  CHECK(q.list->size() == 2);
  {
    wait_list::ticket gone;
    q.list->add(gone, waker());
    CHECK(q.list->size() == 3);
  }
  CHECK(q.list->size() == 2);
  q.list->wake_all();
  CHECK(q.take() == "bd");
}

TEST_CASE("what one was woken for and did not take the next one gets") {
  queue_of_letters q;
  auto& a = q.add('a');
  for (char c : std::string("bcd")) q.add(c);
  SUBCASE("where its run is over") {
    a.over = true;
    q.list->wake_next(2);
    CHECK(q.take() == "abc");
  }
  SUBCASE("where it leaves") {
    q.list->wake_next();
    CHECK(q.take() == "a");
    a.ticket.leave();
    CHECK(q.take() == "b");
    a.ticket.leave();
    CHECK(q.take().empty());
  }
  SUBCASE("unless it was served") {
    q.list->wake_next();
    a.ticket.served();
    CHECK(q.take() == "a");
  }
  SUBCASE("unless it came too late and waits again") {
    q.list->wake_next();
    q.add('a').ticket.leave();
    CHECK(q.take() == "a");
  }
  SUBCASE("unless all were woken") {
    q.list->wake_all();
    CHECK(q.take() == "abcd");
    a.ticket.leave();
    CHECK(q.take().empty());
  }
}

TEST_CASE("a waker may use the list") {
  queue_of_letters q;
  auto& a = q.add('a');
  auto& b = q.add('b');
  q.add('c');
  SUBCASE("to wait again, and is not woken twice") {
    a.then = [&] { q.add('a'); };
    q.list->wake_all();
    CHECK(q.take() == "abc");
    CHECK(q.list->size() == 1);
  }
  SUBCASE("to remove one that is about to be woken") {
    a.then = [&] { b.ticket.leave(); };
    q.list->wake_all();
    CHECK(q.take() == "ac");
  }
  SUBCASE("to wake") {
    a.then = [&] { q.list->wake_next(); };
    q.list->wake_next();
    CHECK(q.take() == "ab");
  }
  SUBCASE("to destroy it") {
    a.then = [&] { q.list.reset(); };
    q.list->wake_all();
    CHECK(q.take() == "a");
  }
}

TEST_CASE("tickets may outlive their list") {
  queue_of_letters q;
  auto& a = q.add('a');
  q.add('b');
  q.list.emplace();
  a.ticket.leave();
  CHECK(q.list->size() == 0);
  q.add('b');
  q.list->wake_all();
  CHECK(q.take() == "b");
}

TEST_CASE("a ticket is in one list at a time") {
  wait_list one, other;
  wait_list::ticket t;
  one.add(t, waker());
  other.add(t, waker());
  CHECK(one.size() == 0);
  CHECK(other.size() == 1);
}

TEST_CASE("wake_at_end wakes at its end, as many as were said") {
  queue_of_letters q;
  for (char c : std::string("abcd")) q.add(c);
  { wake_at_end none(*q.list); }
  CHECK(q.take().empty());
  {
    wake_at_end some(*q.list);
    some.next();
    some.next();
    CHECK(q.take().empty());
  }
  CHECK(q.take() == "ab");
  {
    wake_at_end rest(*q.list);
    rest.next();
    rest.all();
  }
  CHECK(q.take() == "cd");
}

TEST_CASE("threads that add, leave and wake lose no wake-up") {
  constexpr int rounds = 2'000;
  wait_list waiting;
  std::mutex guard;
  int there = 0;  // guarded
  struct bell final : waker::target {
    std::mutex guard;
    std::condition_variable changed;
    bool rung = false;
    bool wake(std::uint64_t) override {
      std::lock_guard lock(guard);
      rung = true;
      changed.notify_one();
      return true;
    }
    bool is_over(std::uint64_t) override { return false; }
    void wait() {
      std::unique_lock lock(guard);
      changed.wait(lock, [&] { return std::exchange(rung, false); });
    }
  };
  const auto take = [&](int n) {
    const auto me = std::make_shared<bell>();
    wait_list::ticket t;
    for (int i = 0; i < n; ++i) {
      for (;;) {
        {
          std::lock_guard lock(guard);
          if (there > 0) {
            --there;
            break;
          }
          waiting.add(t, waker(me, 0));
        }
        // Some are cancelled when they are woken.
        me->wait();
        if (i % 3 == 0) t.leave();
      }
      t.served();
    }
  };
  std::array<std::thread, 3> consumers;
  for (auto& c : consumers) c = std::thread(take, rounds);
  for (int i = 0; i < rounds * 3; ++i) {
    wake_at_end woken(waiting);
    std::lock_guard lock(guard);
    ++there;
    woken.next();
  }
  for (auto& c : consumers) c.join();
  CHECK(there == 0);
  CHECK(waiting.size() == 0);
}
