// SPDX-License-Identifier: Apache-2.0
#include <deft/train/hooks.hpp>

#include <csignal>
#include <deft/op/initialized.hpp>
#include <filesystem>
#include <optional>
#include <thread>

#include "../data/temporary_folder.hpp"
#include "../session/processes.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::child_job;
using testing::child_program;
using testing::outcome_of;
using testing::temporary_folder;
using namespace std::chrono_literals;

namespace {

void alone(const std::function<void(task&)>& body) {
  const char* argv[] = {"test"};
  CHECK(task_main(1, argv, body) == 0);
}

/// Adds the same to every run.
struct adding_hook : hook {
  explicit adding_hook(std::function<run_arguments()> a) : added(std::move(a)) {}
  run_arguments before_run(run_context&) override { return added(); }
  std::function<run_arguments()> added;
};
hook_ref adding(std::function<run_arguments()> a) {
  return std::make_shared<adding_hook>(std::move(a));
}

}  // namespace

TEST_CASE("two hooks that feed one tensor are refused with its name") {
  alone([](task& self) {
    placeholder<float> x("x"), y("y");
    const auto of_x = adding([&] { return run_arguments{.feeds = {x = 3.f}}; });
    const auto of_y = adding([&] { return run_arguments{.feeds = {y = 4.f}}; });
    monitored_session good(self, {.hooks = {of_x, of_y}});
    CHECK(good.run(x + y) == 7);
    monitored_session bad(self, {.hooks = {of_x, of_y, of_x}});
    const auto o = outcome_of([&] { bad.run(x + y); });
    CAPTURE(o);
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.says("\"x\""));
    CHECK_FALSE(o.says("\"y\""));
  });
}

TEST_CASE("the largest timeout of a run and its hooks counts") {
  alone([](task& self) {
    variable<float> w("w", 1.f);
    const operation waits = await_initialized(w);
    const auto brief = adding([] { return run_arguments{.timeout = 1ms}; });
    const auto patient = adding([] { return run_arguments{.timeout = 1h}; });
    monitored_session s(self, {.hooks = {brief, patient, brief}});
    s.session().reset();
    std::thread later([&] {
      const auto o = outcome_of([&] { s.session().run(run_options{.timeout = 50ms}, waits); });
      CHECK(o.code == errc::deadline_exceeded);
      s.session().run(w.initializer());
    });
    CHECK(outcome_of([&] { s.run(run_options{.timeout = 2ms}, waits); }).message.empty());
    later.join();
  });
}

TEST_CASE("checkpoints are saved when enough time has passed") {
  for (const bool often : {true, false}) {
    CAPTURE(often);
    const temporary_folder folder;
    alone([&](task& self) {
      const operation count = global_step().assign_add(1);
      const auto saves = save_checkpoints(
          folder.path().string(), {.name = "m", .interval = often ? 1ns : 10h, .max_to_keep = 0});
      monitored_session s(self, {.hooks = {saves, stop_at_step(3)}});
      while (!s.should_stop()) s.run(count);
    });
    std::vector<std::string> names;
    for (const auto& path : checkpoints_in(folder.path().string()))
      names.push_back(std::filesystem::path(path).filename());
    CHECK(names == (often ? std::vector<std::string>{"m-0", "m-1", "m-2", "m-3"}
                          : std::vector<std::string>{"m-0", "m-3"}));
  }
}

TEST_CASE("an exception of a dataset leaves the loop that trains, and no hook ends") {
  int ended = 0, steps = 0;
  struct ending_hook : hook {
    explicit ending_hook(int& n) : count(n) {}
    void end(run_context&) override { ++count; }
    int& count;
  };
  alone([&](task& self) {
    placeholder<float> x("x");
    variable<float> w("w", 0.f);
    const operation train = w.assign_add(x);
    const auto numbers = from_generator([i = 0]() mutable { return std::optional(i++); })
                             .map([](int n) {
                               if (n == 3) fail(errc::data_loss, "the fourth is damaged");
                               return static_cast<float>(n);
                             })
                             .prefetch(2);
    const auto o = outcome_of([&] {
      monitored_session s(self, {.hooks = {std::make_shared<ending_hook>(ended)}});
      for (auto& [n] : numbers) {
        s.run(train, x = n);
        ++steps;
      }
    });
    CHECK(o.code == errc::data_loss);
    CHECK(o.says("the fourth is damaged"));
  });
  CHECK(steps == 3);
  CHECK(ended == 0);
}

TEST_CASE("Ctrl-C and SIGTERM end training with a checkpoint") {
  const testing::default_signals defaults;
  for (const bool single : {true, false})
    for (const int number : {SIGINT, SIGTERM}) {
      CAPTURE(single);
      CAPTURE(number);
      const temporary_folder folder;
      const std::string path = folder.path().string();
      std::vector<std::string> flags{"--steps=1000000000", "--save=" + path};
      std::optional<child_job> job;
      std::optional<child_program> process;
      if (single) {
        flags.push_back("--single");
        process.emplace("line_fit", flags);
      } else {
        job.emplace("line_fit", 1, child_job::flags{"--file_root=" + path}, 1, flags);
      }
      child_program& trains = single ? *process : job->worker(0);
      std::string begun;
      do begun = latest_checkpoint(path);
      while (begun.empty() || begun.ends_with("model-0"));
      trains.signal(number);
      const auto lines = trains.lines();
      INFO(join(lines, "\n"));
      CHECK(trains.wait() == 128 + number);
      REQUIRE(!lines.empty());
      CHECK("ends at step " + latest_checkpoint(path).substr((path + "/model-").size()) ==
            lines.back());
    }
}

TEST_CASE("a null hook is refused") {
  alone([](task& self) {
    CHECK(outcome_of([&] {
            monitored_session s(self, {.hooks = {hook_ref()}});
          }).says("[monitored_session] one of the hooks is null"));
  });
}

TEST_CASE("only the chief saves checkpoints, in whose hooks they may be") {
  const temporary_folder folder;
  testing::threaded_job job(0, 2, {"--file_root=" + folder.path().string()});
  const auto codes = job.run([&](task& self) {
    variable<float> w("w", 1.f);
    const operation train = group(w.assign_add(1.f), global_step().assign_add(1));
    const std::string own = folder / str("of-", self.index());
    monitored_session s(self, {.hooks = {save_checkpoints(own), stop_at_step(3)}});
    while (!s.should_stop()) s.run(train);
  });
  CHECK(codes == std::vector<int>{0, 0});
  CHECK(latest_checkpoint(folder / "of-0") == folder / "of-0/model-3");
  CHECK(latest_checkpoint(folder / "of-1").empty());
}

TEST_CASE("only the chief writes summaries") {
  const temporary_folder folder;
  testing::threaded_job job(0, 2);
  const auto codes = job.run([&](task& self) {
    variable<float> w("w", 1.f);
    const operation train = group(w.assign_add(1.f), global_step().assign_add(1));
    monitored_session s(self, {.hooks = {save_summaries(folder / "logs", {scalar_summary("w", w)}),
                                         stop_at_step(3)}});
    while (!s.should_stop()) s.run(train);
  });
  CHECK(codes == std::vector<int>{0, 0});
  const std::filesystem::directory_iterator files(folder / "logs");
  CHECK(std::distance(begin(files), end(files)) == 1);

  // Where they cannot be written, no task is thought to be lost.
  testing::write_bytes(folder / "file", "x");
  testing::log_lines lines;
  CHECK(testing::threaded_job(0, 1).run([&](task& self) {
    const auto step = global_step();
    const auto o = testing::outcome_of(
        [&] { monitored_session s(self, {.hooks = {save_summaries(folder / "file", {})}}); });
    CHECK(o.code == errc::failed_precondition);
    CAPTURE(o);
    CHECK(o.says("[summary_writer]"));
  }) == std::vector<int>{0});
  CHECK(join(lines.take(), "\n").find("starting again") == std::string::npos);
}

namespace {

struct failing_hook : hook {
  int failures = 0;
  explicit failing_hook(int most) : failures(most) {}
  void after_run(run_context&, std::span<const any_array>) override {
    if (failures > 0 && failures--) fail(errc::unavailable, "no summaries are written");
  }
};

}  // namespace

TEST_CASE("a hook that fails after every run ends training, and others hear of each run") {
  for (const int failures : {2, 100}) {
    CAPTURE(failures);
    testing::threaded_job job(1, 1);
    std::string message;
    int runs = 0;
    job.run([&](task& self) {
      auto scope = on(replica_device(self.cluster(), self.device()));
      const operation train = global_step().assign_add(1);
      monitored_session s(self,
                          {.hooks = {std::make_shared<failing_hook>(failures), stop_at_step(6)}});
      message = outcome_of([&] {
                  for (; !s.should_stop(); ++runs) s.run(train);
                }).message;
    });
    CHECK(runs == (failures == 2 ? 6 : 3));
    CHECK(message.empty() == (failures == 2));
    CHECK((message.empty() || message.find("no summaries are written") != message.npos));
  }
}

TEST_CASE("after a recovery the next run is logged, whatever its step") {
  alone([](task& self) {
    variable<float> w("w", 1.f);
    const operation train = group(w.assign_add(1.f), global_step().assign_add(1));
    const hook_ref logs = log_tensors({{"w", w}}, 100);
    testing::log_lines lines(logging::level::info);
    monitored_session s(self, {.hooks = {logs}});
    run_context again(self, s.session());
    for (int i = 0; i < 6; ++i) {
      if (i == 4) logs->after_create(again);  // as a recovery does
      s.run(train);
    }
    const std::string text = join(lines.take(), "\n");
    CAPTURE(text);
    CHECK(text.find("step 1: w = ") != text.npos);
    CHECK(text.find("step 2: w = ") == text.npos);
    CHECK(text.find("step 5: w = ") != text.npos);
  });
}
