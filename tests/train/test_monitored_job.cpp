// SPDX-License-Identifier: Apache-2.0
// Monitored sessions of jobs with several tasks.
#include <deft/train/monitored_session.hpp>
#include <deft/transport/listener.hpp>
#include <mutex>
#include <optional>
#include <utility>

#include "../data/temporary_folder.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::log_lines;
using testing::outcome_of;
using testing::threaded_job;
using namespace std::chrono_literals;

namespace {

/// A parameter server of this process and a worker that trains on it.
class one_worker {
 public:
  explicit one_worker(std::vector<std::string> roots = {}) : roots_(std::move(roots)) {
    start_ps();
  }
  void start_ps() {
    ps_.reset();
    ps_.emplace(spec_, "ps", 0,
                server_options{.file_roots = roots_, .listen_fd = std::exchange(ps_fd_, -1)});
  }
  int run(const std::function<void(task&)>& body) {
    const std::string workers = "--worker_hosts=" + spec_.address("worker", 0),
                      servers = "--ps_hosts=" + spec_.address("ps", 0),
                      fd = str("--listen_fd=", std::exchange(worker_fd_, -1));
    const char* argv[] = {"test",          "--job_name=worker", "--task_index=0",
                          workers.c_str(), servers.c_str(),     fd.c_str()};
    return task_main(6, argv, [&](task& self) {
      auto scope = on(replica_device(self.cluster(), self.device()));
      body(self);
    });
  }

 private:
  int ps_fd_ = listen_socket("localhost:0"), worker_fd_ = listen_socket("localhost:0");
  cluster_spec spec_{{"ps", {address_of_socket(ps_fd_)}},
                     {"worker", {address_of_socket(worker_fd_)}}};
  std::vector<std::string> roots_;
  std::optional<server> ps_;
};

}  // namespace

TEST_CASE("traces of tasks are named after them, and hooks know their task") {
  struct asking_hook : hook {
    void after_create(run_context& context) override {
      CHECK(context.self().job() == "worker");
      CHECK(context.self().is_chief());
    }
  };
  testing::temporary_folder folder;
  one_worker job;
  CHECK(job.run([&](task& self) {
    const operation count = global_step().assign_add(1);
    monitored_session s(
        self, {.hooks = {save_traces(folder.path().string()), std::make_shared<asking_hook>()}});
    s.run(count);
  }) == 0);
  CHECK(std::filesystem::exists(folder / "trace-worker-0-1.json"));
}

TEST_CASE("a parameter server that restarts: variables are restored, or initialized anew") {
  for (const bool saves : {true, false}) {
    CAPTURE(saves);
    const testing::temporary_folder folder;
    log_lines lines;
    one_worker job({folder.path().string()});
    std::vector<std::int64_t> steps;
    float last = 0;
    CHECK(job.run([&](task& self) {
      variable<float> w("w", 1.f);
      auto step = global_step();
      const operation train = group(w.assign_add(1.f), step.assign_add(1));
      monitored_session s(self, {.checkpoint_dir = saves ? folder.path().string() : std::string(),
                                 .hooks = {stop_at_step(8)},
                                 .checkpoint_steps = 3});
      for (int i = 0; !s.should_stop(); ++i) {
        if (i == 5) job.start_ps();
        steps.push_back(s.run(step, train));
      }
      last = s.session().run(w);
    }) == 0);
    CHECK(last == 9);
    const std::vector<std::int64_t> restored{0, 1, 2, 3, 4, 3, 4, 5, 6, 7};
    const std::vector<std::int64_t> anew{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, 7};
    CHECK(steps == (saves ? restored : anew));
    const std::string text = join(lines.take(), "\n");
    CAPTURE(text);
    const auto first = text.find("; recovering");
    CHECK(first != std::string::npos);
    CHECK(text.find("; recovering", first + 1) == std::string::npos);
    // "lost …", or "… has restarted" if its loss was noticed between two steps
    CHECK(text.find("/job:ps/replica:0/task:0") < first);
  }
}

TEST_CASE("a chief that restarts leaves what the variables have") {
  one_worker job;
  std::vector<float> seen;
  for (int run = 0; run < 2; ++run)
    CHECK(job.run([&](task& self) {
      variable<float> w("w", 1.f);
      const operation train = w.assign_add(1.f);
      monitored_session s(self);
      s.run(train);
      seen.push_back(s.session().run(w));
    }) == 0);
  CHECK(seen == std::vector<float>{2, 3});
}

TEST_CASE("the chief initializes, and the other workers wait for the values") {
  threaded_job job(1, 3);
  std::mutex guard;
  std::vector<float> seen;
  auto codes = job.run([&](task& self) {
    auto scope = on(replica_device(self.cluster(), self.device()));
    // Only the chief's initial value is used.
    variable<float> v("v", self.is_chief() ? 7.f : -1.f);
    monitored_session s(self);
    float value = s.run(v);
    std::lock_guard lock(guard);
    seen.push_back(value);
  });
  CHECK(codes == std::vector<int>{0, 0, 0, 0});
  CHECK(seen == std::vector<float>{7, 7, 7});
}

TEST_CASE("without parameter servers each worker initializes its own variables") {
  threaded_job job(0, 2);
  std::atomic<int> ran{0};
  std::atomic<bool> second{false};
  auto codes = job.run([&](task& self) {
    variable<float> v("v", 1.f);
    if (self.is_chief()) {
      monitored_session s(self);
      while (!second) std::this_thread::yield();
      ++ran;
    } else {
      monitored_session s(self);
      second = true;
      ++ran;
    }
  });
  CHECK(codes == std::vector<int>{0, 0});
  CHECK(ran == 2);
}

TEST_CASE("a session warns where a job has parameter servers and no variable is on them") {
  const auto lines_of = [](int ps, bool replicated, bool variables) {
    threaded_job job(ps, 1);
    log_lines lines(logging::level::warning);
    const auto codes = job.run([&](task& self) {
      std::optional<variable<float>> w;
      const auto write = [&] {
        if (variables) w.emplace("w", 1.f);
      };
      if (replicated) {
        auto there = on(replica_device(self.cluster(), self.device()));
        write();
      } else {
        write();
      }
      monitored_session s(self);
    });
    CHECK(codes == std::vector<int>(static_cast<std::size_t>(ps) + 1, 0));
    std::vector<std::string> said = lines.take();
    std::erase_if(said, [](auto& line) { return !line.starts_with("monitored_session"); });
    return said;
  };
  const auto said = lines_of(1, false, true);
  INFO(join(said, "\n"));
  REQUIRE(said.size() == 1);
  CHECK(said[0].starts_with("monitored_session at test_monitored_job.cpp:"));
  CHECK(said[0].find(": this job has tasks of job \"ps\" and no variable of the graph is on them: "
                     "auto there = on(replica_device(self.cluster(), self.device()))") !=
        std::string::npos);
  CHECK(lines_of(1, true, true).empty());
  CHECK(lines_of(1, false, false).empty());
  CHECK(lines_of(0, false, true).empty());
}

TEST_CASE("a chief that does not initialize in time is named") {
  int fds[] = {listen_socket("localhost:0"), listen_socket("localhost:0")};
  cluster_spec spec{{"ps", {address_of_socket(fds[0])}},
                    {"worker", {"localhost:1", address_of_socket(fds[1])}}};
  server ps(spec, "ps", 0, {.listen_fd = fds[0]});
  std::string hosts = str("--worker_hosts=localhost:1,", spec.address("worker", 1)),
              servers = str("--ps_hosts=", spec.address("ps", 0)), fd = str("--listen_fd=", fds[1]);
  const char* argv[] = {"test",        "--job_name=worker", "--task_index=1",
                        hosts.c_str(), servers.c_str(),     fd.c_str()};
  testing::outcome o;
  log_lines lines(logging::level::warning);
  task_main(6, argv, [&](task& self) {
    auto scope = on(replica_device(self.cluster(), self.device()));
    variable<float> w("w", 1.f);
    o = outcome_of([&] { monitored_session s(self, {.start_timeout = 400ms}); });
  });
  CAPTURE(o);
  const std::vector<std::string> said = lines.take();  // before the time was over
  CHECK(said == std::vector<std::string>{"waiting for the chief, /job:worker/replica:0/task:0, to "
                                         "initialize \"w\""});
  CHECK(o.code == errc::deadline_exceeded);
  CHECK(o.says("the chief, /job:worker/replica:0/task:0, to initialize \"w\""));
}
