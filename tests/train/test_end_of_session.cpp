// SPDX-License-Identifier: Apache-2.0
// How monitored sessions end: at which step, and what becomes of the errors of their last work.
#include <deft/op/initialized.hpp>
#include <deft/train/monitored_session.hpp>
#include <filesystem>
#include <optional>

#include "../data/temporary_folder.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::log_lines;
using testing::outcome_of;
using testing::temporary_folder;
using testing::threaded_job;

namespace {

/// A single process.
int alone(const std::function<void(task&)>& body) {
  const char* argv[] = {"test"};
  return task_main(1, argv, body);
}

struct ending_hook : hook {
  explicit ending_hook(std::string what) : throws(std::move(what)) {}
  void end(run_context&) override {
    ++ended;
    if (!throws.empty()) fail(errc::resource_exhausted, throws);
  }
  std::string throws;
  int ended = 0;
};

}  // namespace

TEST_CASE("close ends every hook once, and throws the first error") {
  const auto good = std::make_shared<ending_hook>(""), full = std::make_shared<ending_hook>("full"),
             other = std::make_shared<ending_hook>("other"),
             last = std::make_shared<ending_hook>("");
  log_lines lines;
  CHECK(alone([&](task& self) {
          variable<float> w("w", 1.f);
          monitored_session s(self, {.hooks = {good, full, other, last}});
          const auto o = outcome_of([&] { s.close(); });
          CHECK(o.code == errc::resource_exhausted);
          CHECK(o.message.starts_with("full"));
          s.close();
          CHECK(outcome_of([&] { s.run(w); }).code == errc::failed_precondition);
          CHECK(s.session().run(w) == 1);
        }) == 0);
  for (const auto& h : {good, full, other, last}) CHECK(h->ended == 1);
  CHECK(lines.take().empty());
}

TEST_CASE("a task fails if its last checkpoint cannot be written") {
  for (const bool closes : {false, true}) {
    CAPTURE(closes);
    const temporary_folder folder;
    const std::string where = folder / "checkpoints";
    log_lines lines;
    CHECK(alone([&](task& self) {
            const auto step = global_step();
            monitored_session s(self, {.checkpoint_dir = where});
            s.run(step.assign_add(1));
            std::filesystem::rename(where, folder / "elsewhere");
            testing::write_bytes(where, "as a full disk");
            if (closes) s.close();
          }) == 1);
    const std::string text = join(lines.take(), "\n");
    CAPTURE(text);
    CHECK(closes == (text.find("a hook's end failed: ") == text.npos));
  }
}

TEST_CASE("summaries that cannot be written at the end fail the task") {
  const temporary_folder folder;
  log_lines lines;
  CHECK(alone([&](task& self) {
          const auto step = global_step();
          const any_tensor loss = cast<float>(tensor<std::int64_t>(step));
          monitored_session s(self,
                              {.hooks = {save_summaries(folder.path().string(),
                                                        {histogram_summary("loss", loss)}, 1000)}});
          const testing::file_size_limit full(1);
          for (int i = 0; i < 3; ++i) s.run(step.assign_add(1));
        }) == 1);
}

TEST_CASE("stop_at_step sees what other workers have counted during a run") {
  int runs = 0;
  CHECK(alone([&](task& self) {
          const auto step = global_step();
          const variable<float> given("given", 0.f);
          const operation train = [&] {
            const auto after = control_dependencies(await_initialized(given));
            return operation(step.assign_add(1));
          }();
          monitored_session s(self, {.hooks = {stop_at_step(4)}});
          session& other = s.session();
          other.run(detail::begin_restoring(given));
          std::jthread trains([&] { s.run(train), ++runs; });
          for (int i = 0; i < 3; ++i) other.run(step.assign_add(1));
          other.run(given.assign(1.f));
          other.run(detail::end_restoring(given));
          trains.join();
          CHECK(s.should_stop());
        }) == 0);
  CHECK(runs == 1);
}

TEST_CASE("workers that stop at a step pass it by their own last ones at most") {
  constexpr std::int64_t last = 40;
  constexpr int workers = 3;
  for (int round = 0; round < 3; ++round) {
    std::atomic<std::int64_t> reached{0};
    threaded_job job(1, workers);
    const auto codes = job.run([&](task& self) {
      auto at_ps = on(device("/job:ps/task:0"));
      const auto step = global_step();
      const operation train = step.assign_add(1);
      monitored_session s(self, {.hooks = {stop_at_step(last)}});
      while (!s.should_stop()) s.run(train);
      const std::int64_t now = s.session().run(step);
      for (auto before = reached.load();
           before < now && !reached.compare_exchange_weak(before, now);)
        ;
    });
    CHECK(codes == std::vector<int>(1 + workers, 0));
    CHECK(reached >= last);
    CHECK(reached <= last + workers - 1);
  }
}

TEST_CASE("hooks that need a global step are refused without one") {
  const temporary_folder folder;
  log_lines lines;
  alone([&](task& self) {
    variable<float> w("w", 1.f);
    const operation train = sgd(0.1).minimize(w * w);
    const std::string where = folder.path().string();
    for (const auto& h :
         {stop_at_step(3), stop_at_step({.num_steps = 3}), show_progress(w * w, 3, 1),
          save_checkpoints(where), log_tensors({{"w", w}}), count_steps(),
          save_traces(folder / "traces"), save_summaries(where, {scalar_summary("w", w)})}) {
      auto o = outcome_of([&] { monitored_session s(self, {.hooks = {h}}); });
      CAPTURE(o);
      CHECK(o.code == errc::failed_precondition);
      CHECK(o.says("minimize(loss, global_step())"));
    }
    CHECK(outcome_of([&] { monitored_session s(self, {.checkpoint_dir = where}); }).code ==
          errc::failed_precondition);
    const auto step = global_step();  // which train does not count
    monitored_session s(self, {.hooks = {stop_at_step(3)}});
    for (int i = 0; i < 101; ++i) s.run(train);
    CHECK_FALSE(s.should_stop());
  });
  CHECK(join(lines.take(), "\n").find("the global step was 0 in 100 runs") != std::string::npos);
}
