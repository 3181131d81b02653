// SPDX-License-Identifier: Apache-2.0
// Jobs whose tasks a launcher starts, and starts again.
#include <sched.h>

#include <thread>

#include "data/temporary_folder.hpp"
#include "line_fit.hpp"
#include "session/processes.hpp"
#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::child_program;
using testing::has;
using testing::pids_of;
using testing::wait_until_gone;

TEST_CASE("a job of processes trains, and all of them end") {
  child_program p("line_fit", {"--steps", "10000"});
  auto lines = p.lines();
  INFO(join(lines, "\n"));
  CHECK(p.wait() == 0);
  CHECK(has(lines, "/job:ps/task:0 at 127.0.0.1:"));
  CHECK(has(lines, "worker/0: w is 3.000"));
  CHECK(has(lines, "worker/1: w is 3.000"));
}

TEST_CASE("a launcher's tasks take the flags of its user, except those that it sets itself") {
  child_program chosen("line_fit", {"--steps", "20", "--intra_op_threads", "1"});
  static_cast<void>(chosen.lines());
  CHECK(chosen.wait() == 0);
  child_program refused("line_fit", {"--steps", "20", "--task_index=1"});
  static_cast<void>(refused.lines());
  const std::string complaints = refused.complaints();
  CHECK(refused.wait() == 1);
  CAPTURE(complaints);
  CHECK(complaints.find("--task_index is set by the launcher") != complaints.npos);
}

TEST_CASE("the first task that fails ends the others, and its code is the launcher's") {
  child_program p("line_fit", {"--steps", "1000000000", "--fail", "1"});
  p.lines();
  std::string said = p.complaints();
  INFO(said);
  CHECK(p.wait() == 1);
  CHECK(said.find("as told") != said.npos);
  CHECK(said.find("worker/1 has failed, which ends the job: --restarts=N starts such a task "
                  "again\n") != said.npos);
}

TEST_CASE("a launcher starts tasks again that fail or are killed, as often as it may") {
  const testing::default_signals defaults;
  child_program p("line_fit", {"--steps", "1000000000", "--restarts", "1"});
  const auto pids = pids_of(p, 2);
  REQUIRE(pids.size() == 2);
  ::kill(pids[1], SIGKILL);
  const auto again = pids_of(p, 1);
  REQUIRE(again.size() == 1);
  CHECK(again[0] != pids[1]);
  p.signal(SIGINT);
  p.lines();
  CHECK(p.complaints().find(" Killed, and is started again\n") != std::string::npos);
  CHECK(p.wait() == 130);

  child_program failing("line_fit", {"--fail=1", "--steps=1000000000", "--restarts=2"});
  failing.lines();
  const std::string said = failing.complaints();
  CAPTURE(said);
  CHECK(failing.wait() == 1);
  const auto once = said.find("worker/1 has failed, and is started again\n");
  REQUIRE(once != said.npos);
  const auto twice = said.find("worker/1 has failed, and is started again\n", once + 1);
  REQUIRE(twice != said.npos);
  CHECK(said.find("worker/1 has failed, which ends the job\n", twice) != said.npos);

  child_program refused("line_fit", {"--restarts=often"});
  refused.lines();
  CHECK(refused.complaints().find("the argument ('often') for option '--restarts' is invalid") !=
        std::string::npos);
  CHECK(refused.wait() == 1);
  child_program negative("line_fit", {"--grace=-1"});
  negative.lines();
  CHECK(negative.complaints().find("--grace=-1: expected a number from 0") != std::string::npos);
  CHECK(negative.wait() == 1);
}

TEST_CASE("a launcher starts no parameter server once all workers have ended") {
  const testing::default_signals defaults;
  child_program p("line_fit", {"--vanish=1", "--restarts=1"});
  const auto pids = pids_of(p, 2);
  REQUIRE(pids.size() == 2);
  for (const int pid : pids) wait_until_gone(pid);
  while (std::system(str("pkill -KILL -P ", p.pid(), " -f -- --job_name=ps").c_str()) != 0)
    std::this_thread::yield();
  p.lines();
  const std::string said = p.complaints();
  CAPTURE(said);
  CHECK(p.wait() == 1);
  CHECK(said.find("ps/0 Killed, which ends the job\n") != said.npos);
  CHECK(said.find("started again") == said.npos);
}

TEST_CASE("a launcher gives each task processors of its own if it is asked to") {
  const auto processors_of = [](pid_t task) {
    cpu_set_t own;
    REQUIRE(sched_getaffinity(task, sizeof own, &own) == 0);
    return own;
  };
  const testing::default_signals defaults;
  const cpu_set_t all = processors_of(0);
  const int count = CPU_COUNT(&all);
  const auto bound = [&](const cpu_set_t& one, const cpu_set_t& other) {
    cpu_set_t both;
    CPU_AND(&both, &one, &other);
    // A third each, or one of two.
    return CPU_COUNT(&one) + CPU_COUNT(&other) == std::max(2, count - count / 3) &&
           CPU_COUNT(&both) == (count > 1 ? 0 : 1);
  };
  const auto unbound = [&](const cpu_set_t& one, const cpu_set_t& other) {
    return CPU_EQUAL(&one, &all) && CPU_EQUAL(&other, &all);
  };
  for (const bool bind : {false, true}) {
    CAPTURE(bind);
    child_program p("line_fit", {"--steps", "1000000000", bind ? "--bind" : "--data=none"});
    const auto pids = pids_of(p, 2);
    REQUIRE(pids.size() == 2);
    // A thread that leaves a processor excludes it for a moment.
    for (;;) {
      const cpu_set_t one = processors_of(pids[0]), other = processors_of(pids[1]);
      if (bind ? bound(one, other) : unbound(one, other)) break;
      std::this_thread::yield();
    }
    p.signal(SIGINT);
    p.lines();
    CHECK(p.wait() == 130);
  }
}

TEST_CASE("tasks with fewer processors than there are of them do not interrupt each other") {
  const testing::default_signals defaults;
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  cpu_set_t one = all;
  for (int i = 0, seen = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &all) && ++seen > 1) CPU_CLR(i, &one);
  for (const bool few : {true, false}) {
    CAPTURE(few);
    REQUIRE(sched_setaffinity(0, sizeof one, few ? &one : &all) == 0);
    child_program p("line_fit", {"--steps", "1000000000"});
    const auto pids = pids_of(p, 2);
    REQUIRE(pids.size() == 2);
    for (const pid_t task : pids)
      CHECK(sched_getscheduler(task) ==
            (few || CPU_COUNT(&all) < 3 ? SCHED_BATCH : sched_getscheduler(0)));
    p.signal(SIGINT);
    p.lines();
    CHECK(p.wait() == 130);
  }
}

TEST_CASE("synchronous workers go on when a worker and the ps are killed") {
  const testing::default_signals defaults;
  child_program p("line_fit", {"--steps=5000", "--restarts=2", "--sync=1"});
  const auto pids = pids_of(p, 2);
  REQUIRE(pids.size() == 2);
  ::kill(pids[1], SIGKILL);
  REQUIRE(pids_of(p, 1).size() == 1);  // it trains again
  REQUIRE(std::system(str("pkill -KILL -P ", p.pid(), " -f -- --job_name=ps").c_str()) == 0);
  const auto lines = p.lines();
  const std::string said = p.complaints();
  CAPTURE(said);
  CHECK(p.wait() == 0);
  CHECK(has(lines, "worker/0: w is 3.000"));
  CHECK(has(lines, "worker/1: w is 3.000"));
  CHECK(said.find("ps/0 Killed, and is started again\n") != said.npos);
}

TEST_CASE("workers go on when the chief is killed") {
  const testing::default_signals defaults;
  for (const bool synchronous : {false, true}) {
    CAPTURE(synchronous);
    const testing::temporary_folder temporary;
    const std::string folder = temporary.path().string();
    std::vector<std::string> arguments{"--steps=5000", "--restarts=1", "--file_root=" + folder,
                                       "--save=" + folder + "/c"};
    if (synchronous) arguments.push_back("--sync=1");
    child_program p("line_fit", arguments);
    const auto pids = pids_of(p, 2);
    REQUIRE(pids.size() == 2);
    REQUIRE(std::system(str("pkill -KILL -P ", p.pid(), " -f -- --job_name=worker.--task_index=0")
                            .c_str()) == 0);
    const auto lines = p.lines();
    const std::string said = p.complaints();
    CAPTURE(said);
    CHECK(p.wait() == 0);
    CHECK(said.find("worker/0 Killed, and is started again\n") != said.npos);
    for (const char* worker : {"worker/0", "worker/1"}) {
      CHECK(has(lines, str(worker, ": w is 3.000")));
      CHECK(has(lines, str(worker, ": ends at step 500")));
    }
    CHECK(latest_checkpoint(folder + "/c").find("-500") != std::string::npos);
  }
}

TEST_CASE("nothing is left running after the launcher is interrupted or killed") {
  const testing::default_signals defaults;
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    CAPTURE(number);
    child_program p("line_fit", {"--steps", "1000000000"});
    auto pids = pids_of(p, 2);
    REQUIRE(pids.size() == 2);
    p.signal(number);
    p.lines();  // until the last process has closed it
    int code = p.wait();
    if (number != SIGKILL) CHECK(code == 128 + number);
    for (int pid : pids) wait_until_gone(pid);
  }
}

TEST_CASE("an interrupted launcher kills a task that does not end") {
  const testing::default_signals defaults;
  child_program p("line_fit", {"--steps", "1000000000", "--deaf", "1", "--grace=1"});
  const auto pids = pids_of(p, 2);
  REQUIRE(pids.size() == 2);
  p.signal(SIGINT);
  const auto said = p.lines();
  CHECK(has(said, "goes on"));
  CHECK(p.complaints().find("worker/0 has not ended within 1 s, and is killed\n") !=
        std::string::npos);
  CHECK(p.wait() == 130);
  for (int pid : pids) wait_until_gone(pid);
}
