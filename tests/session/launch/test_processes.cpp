// SPDX-License-Identifier: Apache-2.0
// Clients and tasks in separate processes.
#include <fcntl.h>
#include <sched.h>

#include <future>
#include <thread>

#include "data/temporary_folder.hpp"
#include "environment.hpp"
#include "execute/classifier.hpp"
#include "gpus.hpp"
#include "line_fit.hpp"
#include "reserved_address.hpp"
#include "session/processes.hpp"
#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::child_job;
using testing::child_program;
using testing::environment;
using testing::has;
using testing::losses_on;
using testing::pids_of;
using testing::usual_device;
using namespace std::chrono_literals;

namespace {

/// Of workers whose tasks are killed. A process that starts on CUDA's GPUs takes longer.
std::string short_patience() { return testing::on_cuda() ? "--patience=20000" : "--patience=500"; }

}  // namespace

TEST_CASE("a client in another process runs steps on the cluster, through one of its tasks") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  graph g;
  auto in = as_default(g);
  auto v = on(device("/job:ps/task:0"), [] { return variable<float>("shared", 40.f); });
  session s(c.target("worker", 0));
  s.run(initialize_all());
  const std::string where = str(" on /job:worker/replica:0/task:1/", usual_device(), ", ",
                                list_devices(s).size(), " devices");
  child_program first("remote_client", {c.target("worker", 0), "sum"});
  CHECK(first.line() == "4 42 42" + where);
  CHECK(first.wait() == 0);
  child_program second("remote_client", {c.target("worker", 1), "sum"});
  CHECK(second.line() == "4 44 44" + where);
  CHECK(second.wait() == 0);
  CHECK(s.run(v) == 44);
}

TEST_CASE("a task that was not compiled with an expression runs its program") {
  local_cluster c{{"worker", 2}};
  child_program p("remote_client", {c.target("worker", 0), "own"});
  program own;
  own.signature = p.line();
  CHECK(own.signature.find("square") != own.signature.npos);
  CHECK(find_fused(own) == nullptr);
  CHECK(p.line() == "4 1 0 on /job:worker/replica:0/task:1/" + usual_device());
  CHECK(p.wait() == 0);
}

TEST_CASE("errors reach a client in another process unchanged") {
  local_cluster c{{"worker", 2}};
  child_program p("remote_client", {c.target("worker", 0), "errors"});
  std::string said = p.line();
  INFO(said);
  CHECK(said.starts_with("invalid_argument|"));
  CHECK(said.find("remote_client.cpp:") != said.npos);
  CHECK(said.ends_with("|/job:worker/replica:0/task:1/" + usual_device()));
  CHECK(p.line() == "1");
  CHECK(p.wait() == 0);
}

TEST_CASE("runs of a client in another process are cancelled, and time out") {
  local_cluster c{{"worker", 2}};
  child_program cancels("remote_client", {c.target("worker", 0), "cancel"});
  CHECK(cancels.line().starts_with("cancelled|"));
  CHECK(cancels.line() == "5");
  child_program late("remote_client", {c.target("worker", 0), "timeout"});
  std::string said = late.line();
  INFO(said);
  CHECK(said.starts_with("deadline_exceeded|"));
  CHECK(said.find("/job:worker/replica:0/task:1") != said.npos);
  CHECK(late.line() == "5");
}

TEST_CASE("a client in another process learns how a step that failed ended") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  child_program client("remote_client", {c.target("worker", 0), "fate"});
  CHECK(client.line() == "unchanged, 0");
  CHECK(client.line() == "applied, 1");
  CHECK(client.wait() == 0);
}

TEST_CASE("the death of a client ends its steps, and nothing else") {
  local_cluster c{{"worker", 2}};
  graph g;
  auto in = as_default(g);
  auto x = on(device("/job:worker/task:1"), [] { return tensor<int>(identity(constant(3))); });
  session s(c.target("worker", 0), {.fold = false});
  CHECK(s.run(x) == 3);
  {
    child_program p("remote_client", {c.target("worker", 0), "hang"});
    REQUIRE(p.line() == "running");
    p.signal(SIGKILL);
    p.wait();
  }
  CHECK(s.run(x) == 3);
}

TEST_CASE("a server that dies is named to a client in another process") {
  local_cluster c{{"worker", 2}};
  for (int victim : {1, 0}) {
    child_program p("remote_client", {c.target("worker", 0), "hang"});
    REQUIRE(p.line() == "running");
    c.kill("worker", victim);
    std::string said = p.line();
    INFO(said);
    CHECK(said.starts_with("unavailable|"));
    CHECK(said.find(str("/job:worker/replica:0/task:", victim)) != said.npos);
    CHECK(p.wait() == 1);
    c.restart("worker", victim);
  }
}

namespace {
/// Checks that both workers end with an error that says `why`.
void check_workers_fail(child_job& job, const std::string& why) {
  for (int i : {0, 1}) {
    child_program& worker = job.worker(i);
    worker.lines();
    const std::string said = worker.complaints();
    INFO(said);
    CHECK(worker.wait() == 1);
    CHECK(said.find(why) != said.npos);
  }
}
}  // namespace

TEST_CASE("a killed ps or worker is named by the tasks that need it, and none hangs") {
  for (int victim : {0, 1}) {
    CAPTURE(victim);
    const child_job::flags endless{"--steps=1000000000", short_patience()};
    child_job job("line_fit", 1, endless, 2, endless);
    for (int i : {0, 1}) REQUIRE(pids_of(job.worker(i), 1).size() == 1);
    if (victim == 0) {
      job.ps(0).signal(SIGKILL);
      check_workers_fail(job, "/job:ps/replica:0/task:0");
    } else {
      job.worker(0).signal(SIGKILL);
      // Asynchronous training continues without it.
      session s(job.target_of_ps(0));
      graph g;
      auto in = as_default(g);
      auto step = on(device("/job:ps/task:0"), [] { return global_step(); });
      const std::int64_t seen = s.run(step);
      while (s.run(step) <= seen) std::this_thread::yield();
    }
  }
}

TEST_CASE("a worker that gets a signal tells the others that it is done") {
  const testing::default_signals defaults;
  for (int number : {SIGTERM, SIGINT}) {
    CAPTURE(number);
    const int fd = listen_socket("localhost:0");
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    const std::string ps_host = address_of_socket(fd);
    child_job job("line_fit", 0, {}, 1, {"--steps=1000000000", "--ps_hosts=" + ps_host});
    const cluster_spec spec{{"ps", {ps_host}}, {"worker", {job.address_of_worker(0)}}};
    server ps(spec, "ps", 0, {.listen_fd = fd, .away = 1h});
    REQUIRE(pids_of(job.worker(0), 1).size() == 1);
    job.worker(0).signal(number);
    auto joined = std::async(std::launch::async, [&] { ps.join(); });
    CHECK(joined.wait_for(60s) == std::future_status::ready);
    CHECK(job.worker(0).wait() == 128 + number);
    ps.stop();
  }
}

TEST_CASE("a signal ends a worker that waits for a parameter server") {
  const testing::default_signals defaults;
  const testing::reserved_address nobody;
  child_job job("line_fit", 0, {}, 2, {"--ps_hosts=" + nobody.text});
  for (int i : {0, 1}) {
    const std::string said = job.worker(i).complaint();
    INFO(said);
    REQUIRE(said.find("still waiting for /job:ps/replica:0/task:0 at " + nobody.text + ", for ") !=
            said.npos);
    CHECK(said.find(" s: Connection refused") != said.npos);
    CHECK(said.find("timed out") == said.npos);
    job.worker(i).signal(SIGTERM);
    CHECK(job.worker(i).wait() == 128 + SIGTERM);
  }
}

TEST_CASE("tasks that need a ps learn that a signal stopped it") {
  const testing::default_signals defaults;
  const child_job::flags endless{"--steps=1000000000", short_patience()};
  for (int number : {SIGTERM, SIGINT}) {
    CAPTURE(number);
    // It waits for its workers, which nobody told, for half of --grace.
    child_job job("line_fit", 1, {"--grace=1"}, 2, endless);
    for (int i : {0, 1}) REQUIRE(pids_of(job.worker(i), 1).size() == 1);
    job.ps(0).signal(number);
    CHECK(job.ps(0).wait() == 128 + number);
    check_workers_fail(job, "/job:ps/replica:0/task:0 was stopped");
  }
}

TEST_CASE("the last checkpoint is written if all tasks are told to end at once") {
  const testing::default_signals defaults;
  for (int number : {SIGTERM, SIGINT}) {
    CAPTURE(number);
    const testing::temporary_folder temporary;
    const std::string folder = temporary.path().string();
    const child_job::flags flags{"--steps=1000000000", "--file_root=" + folder,
                                 "--save=" + folder + "/c"};
    child_job job("line_fit", 1, flags, 2, flags);
    for (int i : {0, 1}) REQUIRE(pids_of(job.worker(i), 1).size() == 1);
    for (child_program* p : {&job.ps(0), &job.worker(0), &job.worker(1)}) p->signal(number);
    const auto said = job.worker(0).lines();
    INFO(join(said, "\n"));
    for (child_program* p : {&job.ps(0), &job.worker(0), &job.worker(1)})
      CHECK(p->wait() == 128 + number);
    const std::string end = "ends at step ", name = latest_checkpoint(folder + "/c");
    INFO(name);
    REQUIRE(!said.empty());
    REQUIRE(said.back().starts_with(end));
    CHECK(std::stoll(name.substr(name.rfind('-') + 1)) >=
          std::stoll(said.back().substr(end.size())));
  }
}

TEST_CASE("a parameter server whose worker was killed ends with 1, and names it") {
  const testing::default_signals defaults;
  child_job job("line_fit", 1, {"--lost_worker_timeout=0"}, 2, {"--steps=1000000000"});
  for (int i : {0, 1}) REQUIRE(pids_of(job.worker(i), 1).size() == 1);
  job.worker(1).signal(SIGKILL);
  const std::string said = job.ps(0).complaints();
  INFO(said);
  CHECK(said.find("/job:ps/replica:0/task:0 ends before its job: /job:worker/replica:0/task:1 was "
                  "lost and has not come back for 0 ms") != said.npos);
  CHECK(job.ps(0).wait() == 1);
}

TEST_CASE("a second signal ends a task whose function does not return") {
  const testing::default_signals defaults;
  child_job job("line_fit", 1, {}, 1, {"--steps=1000000000", "--deaf=1"});
  REQUIRE(pids_of(job.worker(0), 1).size() == 1);
  job.worker(0).signal(SIGTERM);
  const std::string said = job.worker(0).line();
  INFO(said);
  CHECK(said == "goes on");
  job.worker(0).signal(SIGTERM);
  CHECK(job.worker(0).wait() == SIGTERM);  // by the signal, not by an exit code
}

TEST_CASE("a model over GPUs of two processes learns as on the processor") {
  const auto expected = losses_on("/cpu:0", "/cpu:0", {.simulated_gpus = 0});
  child_job tasks("line_fit", 2, {"--simulated_gpus=2"});
  const auto losses =
      losses_on("/job:ps/task:0/gpu:1", "/job:ps/task:1/gpu:0", {}, tasks.target_of_ps(0));
  REQUIRE(losses.size() == expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i)
    CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("a wrong number of simulated GPUs ends a program with a message") {
  auto said = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--single");
    child_program p("line_fit", arguments);
    p.lines();
    const std::string text = p.complaints();
    CHECK(p.wait() == 1);
    return text;
  };
  for (const char* given : {"x", "-1", "65"}) {
    const environment set("DEFT_SIMULATED_GPUS", given);
    CHECK(said({}).ends_with(str("/line_fit: DEFT_SIMULATED_GPUS is \"", given,
                                 "\"; expected a number from 0 to 64\n")));
  }
  CHECK(said({"--simulated_gpus=-1"})
            .ends_with("/line_fit: simulated_gpus is -1; expected a number from 0 to 64\n"));
}
