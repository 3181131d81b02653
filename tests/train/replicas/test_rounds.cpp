// SPDX-License-Identifier: Apache-2.0
#include <deft/train/replicas/rounds.hpp>
#include <deque>

#include "session/sessions.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;

namespace {

constexpr const char* task_a = "/job:worker/replica:0/task:0";
constexpr const char* task_b = "/job:worker/replica:0/task:1";

/// Two sessions at a barrier for so many gradients of two.
struct pair_of_replicas {
  explicit pair_of_replicas(std::int64_t needed)
      : barrier(std::make_shared<replica_barrier>(needed, 2)),
        a(barrier->join(7, task_a, needed, 2)),
        b(barrier->join(5, task_b, needed, 2)) {
    barrier->take_part(*a);
    barrier->take_part(*b);
  }
  /// Whether the gradients of a step counted; empty if the step waits.
  std::optional<bool> arrive(const std::shared_ptr<replica_barrier::membership>& m,
                             std::uint64_t step) {
    return arrive(m, step, barrier->current());
  }
  std::optional<bool> arrive(const std::shared_ptr<replica_barrier::membership>& m,
                             std::uint64_t step, std::int64_t begun) {
    return barrier->arrive(*m, step, begun, place(), waker());
  }
  std::vector<std::uint64_t> await(const std::shared_ptr<replica_barrier::membership>& m) {
    return barrier->await(*m, place(), waker());
  }

  /// That of a step which nobody wakes.
  wait_list::ticket& place() { return places.emplace_back(); }

  std::deque<wait_list::ticket> places;
  std::shared_ptr<replica_barrier> barrier;
  std::shared_ptr<replica_barrier::membership> a, b;
};

/// Notes that it was woken.
struct bell final : waker::target {
  wait_list::ticket place;
  int rung = 0;
  bool over = false;  ///< the run
  bool wake(std::uint64_t) override { return ++rung > 0 && !over; }
  bool is_over(std::uint64_t) override { return over; }
};

}  // namespace

TEST_CASE("a round is granted to one member once it has enough gradients, ordered by task") {
  pair_of_replicas r(2);
  CHECK(r.await(r.a).empty());
  CHECK(r.arrive(r.b, 1) == std::nullopt);
  CHECK(r.await(r.a).empty());
  CHECK(r.arrive(r.a, 1) == std::nullopt);
  CHECK(r.await(r.b) == std::vector<std::uint64_t>{7, 5});
  CHECK(r.await(r.a).empty());
  CHECK(r.arrive(r.a, 1) == std::nullopt);  // a spurious wake-up
  CHECK(error_of([&] { r.barrier->end(*r.a); }).find("not granted") != std::string::npos);
  r.barrier->end(*r.b);
  CHECK(r.arrive(r.a, 1) == true);
  CHECK(r.arrive(r.b, 1) == true);
  CHECK(r.await(r.a).empty());
}

TEST_CASE("a session from before a restart of the rounds stays out when it was cut off, too") {
  pair_of_replicas r(1);
  r.barrier->restart();
  r.a.reset();
  r.a = r.barrier->join(7, task_a, 1, 2);
  r.b = r.barrier->join(6, task_b, 1, 2);
  r.barrier->take_part(*r.b);
  CHECK_THROWS_AS(r.arrive(r.a, 1), const error&);
}

TEST_CASE("those who wait are woken when a round is full, and when it ends") {
  pair_of_replicas r(1);
  const auto leader = std::make_shared<bell>(), step = std::make_shared<bell>();
  CHECK(r.barrier->await(*r.a, leader->place, waker(leader, 0)).empty());
  CHECK(r.barrier->arrive(*r.b, 1, 1, step->place, waker(step, 0)) == std::nullopt);
  CHECK(leader->rung == 1);
  CHECK(r.await(r.a).size() == 1);
  CHECK(step->rung == 0);
  r.barrier->end(*r.a);
  CHECK(step->rung == 1);
}

TEST_CASE("a gradient that comes too late waits for the end of its round, and does not count") {
  pair_of_replicas r(1);
  CHECK(r.arrive(r.a, 1) == std::nullopt);
  CHECK(r.arrive(r.b, 1) == std::nullopt);
  CHECK(r.await(r.a) == std::vector<std::uint64_t>{7});
  r.barrier->end(*r.a);
  CHECK(r.arrive(r.a, 1) == true);
  CHECK(r.arrive(r.b, 1) == false);
  CHECK(r.arrive(r.b, 2) == std::nullopt);  // in the next round it is the first
  CHECK(r.await(r.a) == std::vector<std::uint64_t>{5});
}

TEST_CASE("a gradient of a step that began in an earlier round does not count") {
  pair_of_replicas r(1);
  CHECK(r.arrive(r.a, 1, 1) == std::nullopt);
  CHECK(r.await(r.a).size() == 1);
  r.barrier->end(*r.a);
  CHECK(r.arrive(r.a, 1) == true);
  CHECK(r.barrier->current() == 2);
  CHECK(r.arrive(r.a, 2, 1) == false);  // another thread's, which the session's own round hides
  CHECK(r.await(r.a).empty());
  CHECK(r.arrive(r.a, 3, 2) == std::nullopt);
  CHECK(r.await(r.a).size() == 1);
  CHECK(r.arrive(r.a, 4, 1) == std::nullopt);  // the round is being applied
  r.barrier->end(*r.a);
  CHECK(r.arrive(r.a, 3, 2) == true);
  CHECK(r.arrive(r.a, 4, 1) == false);
}

TEST_CASE("a step that was cancelled while it waited counts once with the next") {
  pair_of_replicas r(2);
  CHECK(r.arrive(r.a, 1) == std::nullopt);
  CHECK(r.arrive(r.a, 2) == std::nullopt);
  CHECK(r.await(r.b).empty());
  CHECK(r.arrive(r.b, 1) == std::nullopt);
  CHECK(r.await(r.b).size() == 2);
}

TEST_CASE("of a step that has ended only its gradient is left") {
  pair_of_replicas r(1);
  CHECK(r.arrive(r.a, 1, 1) == std::nullopt);
  r.barrier->step_ended(*r.a, 1);
  CHECK(r.await(r.b) == std::vector<std::uint64_t>{7});
  r.barrier->end(*r.b);
  CHECK(r.arrive(r.a, 1, 1) == false);  // as one that comes now
}

TEST_CASE("a round goes on without a member that leaves or is lost") {
  pair_of_replicas r(2);
  CHECK(r.arrive(r.a, 1) == std::nullopt);
  SUBCASE("that leaves") {
    r.barrier->leave(*r.b);
    CHECK(error_of([&] { r.await(r.b); }).find("has left") != std::string::npos);
  }
  SUBCASE("that is lost") { r.b.reset(); }
  CHECK(r.await(r.a) == std::vector<std::uint64_t>{7});
  const auto state = r.barrier->describe_state();
  CHECK(state.needed == 1);
  CHECK(state.awaited == 0);
  CHECK(state.left == std::vector<std::string>{task_b});
  r.barrier->end(*r.a);

  r.b = r.barrier->join(9, task_b, 2, 2);
  r.barrier->take_part(*r.b);
  CHECK(r.barrier->describe_state().needed == 2);
  CHECK(r.barrier->describe_state().left.empty());
  CHECK(r.arrive(r.b, 1) == std::nullopt);
}

TEST_CASE("a replica that comes with a newer session has not left when its old one is lost") {
  pair_of_replicas r(2);
  testing::log_lines lines(logging::level::info);
  auto old = std::exchange(r.a, r.barrier->join(9, task_a, 2, 2));
  r.barrier->take_part(*r.a);
  SUBCASE("without a restart of the rounds") {}
  SUBCASE("that is from before a restart") {
    r.barrier->restart();
    r.a = r.barrier->join(10, task_a, 2, 2);
    r.b = r.barrier->join(11, task_b, 2, 2);
    r.barrier->take_part(*r.a);
    r.barrier->take_part(*r.b);
  }
  old.reset();
  CHECK(r.barrier->describe_state().left.empty());
  CHECK(r.barrier->describe_state().needed == 2);
  CHECK(lines.take().empty());
  r.barrier->leave(*r.a);
  r.barrier->leave(*r.b);
  CHECK(lines.take() ==
        std::vector{str(task_a,
                        " has left synchronous training, where 1 of 2 replicas are no longer "
                        "expected; a step averages 1"),
                    str(task_b, " was the last to leave synchronous training")});
}

TEST_CASE("a member that leaves waits no longer, and its gradient does not count") {
  pair_of_replicas r(2);
  const auto step = std::make_shared<bell>();
  CHECK(r.barrier->arrive(*r.a, 1, 1, step->place, waker(step, 0)) == std::nullopt);
  SUBCASE("of a round that nobody ends") {
    r.barrier->leave(*r.a);
    CHECK(step->rung == 1);
    CHECK(r.arrive(r.a, 1) == false);
    CHECK(r.arrive(r.b, 1) == std::nullopt);
    CHECK(r.await(r.b) == std::vector<std::uint64_t>{5});
  }
  SUBCASE("unless it is being applied") {
    CHECK(r.arrive(r.b, 1) == std::nullopt);
    CHECK(r.await(r.b).size() == 2);
    r.barrier->leave(*r.a);
    CHECK(r.arrive(r.a, 1) == std::nullopt);
    r.barrier->end(*r.b);
    CHECK(r.arrive(r.a, 1) == true);
  }
  CHECK(r.arrive(r.a, 2) == false);
}

TEST_CASE("rounds stand still once a leader is lost, until the variables have been restored") {
  pair_of_replicas r(2);
  const auto bell_of = std::make_shared<bell>();
  const std::int64_t before = r.barrier->generation();
  CHECK(before != 0);
  CHECK(r.barrier->is_whole(r.place(), waker()));
  CHECK(r.arrive(r.a, 1) == std::nullopt);
  CHECK(r.arrive(r.b, 1) == std::nullopt);
  CHECK(r.await(r.b).size() == 2);
  r.b.reset();
  CHECK(r.barrier->generation() == 0);
  CHECK(error_of([&] { r.arrive(r.a, 1); }).find("applied in part") != std::string::npos);
  CHECK(error_of([&] { r.arrive(r.a, 2); }).find("applied in part") != std::string::npos);
  CHECK(r.await(r.a).empty());
  const auto saver = r.barrier->pause_of(9);
  CHECK(error_of([&] { saver->begin(r.place(), waker()); }).find("applied in part") !=
        std::string::npos);
  CHECK(!r.barrier->is_whole(bell_of->place, waker(bell_of, 0)));

  r.barrier->restart();
  CHECK(bell_of->rung == 1);
  CHECK(r.barrier->is_whole(r.place(), waker()));
  CHECK(r.barrier->generation() != 0);
  CHECK(r.barrier->generation() != before);
  // Members from before have plans of the old values.
  const std::string old = "restored after this session began";
  CHECK(error_of([&] { r.arrive(r.a, 3); }).find(old) != std::string::npos);
  CHECK(error_of([&] { r.barrier->take_part(*r.a); }).find(old) != std::string::npos);
  CHECK(error_of([&] { r.await(r.a); }).find("has left") != std::string::npos);
  const auto c = r.barrier->join(8, task_a, 2, 2);
  r.barrier->take_part(*c);
  CHECK(r.arrive(c, 1) == std::nullopt);
  CHECK(r.await(c) == std::vector<std::uint64_t>{8});
  r.barrier->end(*c);
  CHECK(r.arrive(c, 1) == true);
}

TEST_CASE("a container that is cleared begins a round, for the same members") {
  pair_of_replicas r(1);
  CHECK(r.arrive(r.a, 1) == std::nullopt);
  r.barrier->clear();
  CHECK(r.arrive(r.a, 1) == false);
  CHECK(r.arrive(r.a, 2) == std::nullopt);
  CHECK(r.await(r.a) == std::vector<std::uint64_t>{7});
}

TEST_CASE("a pause that two steps of a session have begun needs two ends") {
  pair_of_replicas r(1);
  const auto first = std::make_shared<bell>(), second = std::make_shared<bell>();
  const auto leader = std::make_shared<bell>();
  const auto saver = r.barrier->pause_of(9);
  CHECK(r.barrier->pause_of(9) == saver);
  CHECK(saver->begin(first->place, waker(first, 0), 1));
  CHECK(saver->begin(first->place, waker(first, 0), 1));  // a spurious wake-up
  CHECK(saver->begin(second->place, waker(second, 0), 2));
  CHECK(r.arrive(r.b, 1) == std::nullopt);
  CHECK(r.barrier->await(*r.a, leader->place, waker(leader, 0)).empty());
  std::uint64_t left = 2;  // the step that ends last
  SUBCASE("by themselves") { saver->end(1); }
  SUBCASE("in the other order") {
    saver->end(2);
    left = 1;
  }
  SUBCASE("by another step, after a failure") {
    first->over = true;
    saver->end(3);
  }
  SUBCASE("by another step, where the one that failed has not ended yet") {
    saver->end(3);
    left = 1;
  }
  SUBCASE("by another step, which begins") {
    first->over = true;
    CHECK(saver->begin(second->place, waker(second, 0), 3));
    saver->end(3);
  }
  CHECK(r.await(r.b).empty());
  CHECK(leader->rung == 0);
  saver->end(left);
  CHECK(leader->rung == 1);
  CHECK(r.await(r.a) == std::vector<std::uint64_t>{5});
}

TEST_CASE("steps of a session that pause are woken by the end of a round, not by each other") {
  pair_of_replicas r(1);
  const auto first = std::make_shared<bell>(), second = std::make_shared<bell>();
  const auto saver = r.barrier->pause_of(9);
  CHECK(r.arrive(r.a, 1) == std::nullopt);
  CHECK(r.await(r.a).size() == 1);
  CHECK_FALSE(saver->begin(first->place, waker(first, 0), 1));
  CHECK_FALSE(saver->begin(second->place, waker(second, 0), 2));
  CHECK(first->rung == 0);
  CHECK_FALSE(saver->begin(first->place, waker(first, 0), 1));  // a spurious wake-up
  CHECK(second->rung == 0);
  r.barrier->end(*r.a);
  CHECK(first->rung > 0);
  CHECK(second->rung == 1);
  CHECK(saver->begin(first->place, waker(first, 0), 1));
  CHECK(saver->begin(second->place, waker(second, 0), 2));
  CHECK(second->rung == 1);
  saver->end(1);
  saver->end(2);
  CHECK(second->rung == 1);
}

TEST_CASE("an old pause of a session ends no new one, and a pause ends with its session") {
  pair_of_replicas r(1);
  const auto running = std::make_shared<bell>();
  std::optional<replica_barrier::pause> before(r.barrier);
  CHECK(before->begin(running->place, waker(running, 0), 1));
  auto saver = r.barrier->pause_of(9);
  CHECK(saver->begin(running->place, waker(running, 0), 1));
  before.reset();
  CHECK(r.arrive(r.a, 1) == std::nullopt);
  CHECK(r.await(r.a).empty());
  SUBCASE("that is closed") { saver.reset(); }
  SUBCASE("or by its step") { saver->end(1); }
  CHECK(r.await(r.a) == std::vector<std::uint64_t>{7});
}

TEST_CASE("an update that failed in part stops the rounds; one that changed nothing does not") {
  for (const bool in_part : {false, true}) {
    CAPTURE(in_part);
    pair_of_replicas r(1);
    CHECK(r.arrive(r.a, 1) == std::nullopt);
    CHECK(r.await(r.a).size() == 1);
    r.barrier->fail(*r.a, error(errc::unavailable, "gone"), in_part);
    CHECK((r.barrier->generation() == 0) == in_part);
    CHECK(error_of([&] { r.arrive(r.a, 1); }).find(in_part ? "applied in part" : "gone") !=
          std::string::npos);
  }
}

TEST_CASE("an error of the update fails the round; one of a member's own only its step") {
  pair_of_replicas r(2);
  CHECK(r.arrive(r.a, 1) == std::nullopt);
  r.barrier->fail(*r.b, error(errc::resource_exhausted, "own"), true);
  CHECK(error_of([&] { r.arrive(r.b, 1); }).find("own") != std::string::npos);
  CHECK(r.arrive(r.b, 2) == std::nullopt);
  CHECK(r.await(r.a).size() == 2);
  r.barrier->fail(*r.a, error(errc::resource_exhausted, "all"), false);
  CHECK(error_of([&] { r.arrive(r.a, 1); }).find("all") != std::string::npos);
  CHECK(error_of([&] { r.arrive(r.b, 2); }).find("all") != std::string::npos);
}

TEST_CASE("members agree on the numbers of replicas, and one of them applies gradients") {
  const auto barrier = std::make_shared<replica_barrier>(2, 3);
  wait_list::ticket place;
  CHECK(error_of([&] { barrier->join(1, task_a, 3, 3); }).find("2 of 3") != std::string::npos);
  const auto a = barrier->join(1, task_a, 2, 3);
  CHECK(barrier->join(1, task_a, 2, 3) == a);
  CHECK(error_of([&] { barrier->arrive(*a, 1, 1, place, waker()); }).find("replica_updates") !=
        std::string::npos);
  CHECK(barrier->describe_state().awaited == 2);
}

TEST_CASE("a member whose connection was lost applies gradients again once it waits for a grant") {
  const auto barrier = std::make_shared<replica_barrier>(1, 2);
  wait_list::ticket place, leads;
  const auto a = barrier->join(1, task_a, 1, 2);
  auto leader = barrier->join(2, task_b, 1, 2);
  barrier->take_part(*leader);
  leader.reset();
  CHECK(error_of([&] { barrier->arrive(*a, 1, 1, place, waker()); }).find("was lost") !=
        std::string::npos);
  leader = barrier->join(2, task_b, 1, 2);
  CHECK(barrier->await(*leader, leads, waker()).empty());
  CHECK(barrier->arrive(*a, 2, 1, place, waker()) == std::nullopt);
  CHECK(barrier->await(*leader, leads, waker()) == std::vector<std::uint64_t>{1});
  barrier->end(*leader);
  CHECK(barrier->arrive(*a, 2, 1, place, waker()) == true);
}

TEST_CASE("a new barrier learns from a member who has left") {
  const auto barrier = std::make_shared<replica_barrier>(2, 2);
  wait_list::ticket place, leads;
  const auto a = barrier->join(1, task_a, 2, 2);
  const std::string left[] = {task_a, task_b};
  barrier->take_part(*a, left);
  CHECK(barrier->describe_state().left == std::vector<std::string>{task_b});
  CHECK(barrier->arrive(*a, 1, 1, place, waker()) == std::nullopt);
  CHECK(barrier->await(*a, leads, waker()) == std::vector<std::uint64_t>{1});
  barrier->end(*a);
  const auto b = barrier->join(2, task_b, 2, 2);
  barrier->take_part(*a, left);  // task_b is back
  CHECK(barrier->describe_state().left.empty());
}
