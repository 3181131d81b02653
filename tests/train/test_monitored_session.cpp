// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deft/train/monitored_session.hpp>
#include <limits>
#include <optional>

#include "../data/temporary_folder.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::log_lines;
using testing::outcome_of;

namespace {
/// A single process.
int alone(const std::function<void(task&)>& body) {
  const char* argv[] = {"test"};
  return task_main(1, argv, body);
}

/// Counts its calls.
struct counting_hook : hook {
  int begun = 0, after = 0, ended = 0;
  float seen = 0;
  any_tensor watch;
  explicit counting_hook(any_tensor w) : watch(std::move(w)) {}
  void begin() override { ++begun; }
  run_arguments before_run(run_context&) override { return {.fetches = {watch}}; }
  void after_run(run_context&, std::span<const any_array> values) override {
    ++after;
    seen = *values[0].data<float>();
  }
  void end(run_context&) override { ++ended; }
};
}  // namespace

TEST_CASE("stop_at_step stops at its step, and counts only runs that train") {
  int runs = 0;
  std::int64_t last = 0;
  CHECK(alone([&](task& self) {
          variable<float> w("w", 1.f);
          auto step = global_step();
          operation train = sgd(0.1).minimize(w * w, step);
          monitored_session s(self, {.hooks = {stop_at_step(5)}});
          for (int i = 0; i < 9; ++i) s.run(w);  // does not train
          while (!s.should_stop()) {
            s.run(train);
            ++runs;
            s.run(w);
          }
          last = s.session().run(step);
        }) == 0);
  CHECK(runs == 5);
  CHECK(last == 5);
}

TEST_CASE("errors of a monitored run have its line") {
  std::string unfed, empty;
  unsigned line = 0;
  const auto body = [&](task& self) {
    placeholder<float> x("x");
    tensor<float> nothing;
    monitored_session s(self);
    line = here().line;
    unfed = outcome_of([&] { s.run(x + 1.f); }).message;
    empty = outcome_of([&] { s.run(run_options{}, x, nothing); }).message;
  };
  CHECK(alone(body) == 0);
  CAPTURE(unfed);
  CHECK(unfed.find(str("(run at test_monitored_session.cpp:", line + 1, ")")) != unfed.npos);
  CHECK(empty.find("[run] argument 2 is empty") != empty.npos);
}

TEST_CASE("errors of what a session runs by itself have the line that made it") {
  std::string unmade;
  unsigned line = 0;
  const auto body = [&](task& self) {
    placeholder<float> x("x");
    variable<float> w("w", x + 1.f);  // unfed
    line = here().line + 1;
    unmade = outcome_of([&] { monitored_session s(self); }).message;
  };
  CHECK(alone(body) == 0);
  CAPTURE(unmade);
  CHECK(unmade.find(str("(run at test_monitored_session.cpp:", line, ")")) != unmade.npos);
}

TEST_CASE("a monitored session does not depend on the scopes around it") {
  float last = 0;
  CHECK(alone([&](task& self) {
          variable<float> w("w", 1.f);
          operation train = w.assign_add(1.f);
          std::optional<monitored_session> s;
          {
            auto after = control_dependencies(train);
            auto there = on(device("/job:nowhere"));
            s.emplace(self);
          }
          s->run(train);
          last = s->session().run(w);
        }) == 0);
  CHECK(last == 2);
}

TEST_CASE("stop_on_nan stops, or throws with the loss's name and source location") {
  int runs = 0;
  log_lines lines;
  testing::outcome o;
  unsigned line = 0;
  int code = alone([&](task& self) {
    placeholder<float> x("x");
    line = __LINE__ + 1;
    tensor<float> loss = log(x);
    {
      monitored_session s(self, {.hooks = {stop_on_nan(loss)}});
      for (float v : {1.f, 2.f, -1.f, 3.f}) {
        if (s.should_stop()) break;
        s.run(loss, x = v);
        ++runs;
      }
    }
    monitored_session s(self, {.hooks = {stop_on_nan(loss, true)}});
    o = outcome_of([&] { s.run(loss, x = -1.f); });
  });
  CHECK(code == 0);
  CHECK(runs == 3);
  CAPTURE(o);
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.line == line);
  CHECK(join(lines.take(), "\n").find("not a number") != std::string::npos);
}

TEST_CASE("stop_on_nan says at which global step it was") {
  testing::outcome o;
  log_lines lines;
  CHECK(alone([&](task& self) {
          placeholder<float> x("x");
          const tensor<float> loss = log(x);
          const operation train = global_step().assign_add(1);
          {
            monitored_session s(self, {.hooks = {stop_on_nan(loss)}});
            for (float v : {1.f, 2.f, -1.f}) s.run(train, x = v);
            CHECK(s.should_stop());
          }
          monitored_session s(self, {.hooks = {stop_on_nan(loss, true)}});
          s.run(train, x = 1.f);
          o = outcome_of([&] { s.run(train, x = -1.f); });
        }) == 0);
  CHECK(join(lines.take(), "\n").find("\" is not a number at global step 3: stopping") !=
        std::string::npos);
  CAPTURE(o);
  CHECK(o.message.starts_with("the loss is not a number at global step 2, node "));
}

TEST_CASE("what is not a number is not saved") {
  const testing::temporary_folder folder;
  log_lines lines;
  for (const bool saves_often : {true, false})
    CHECK(alone([&](task& self) {
            variable<float> w("w", 1.f);
            placeholder<float> x("x");
            const tensor<float> loss = w * x;
            const operation train = group(w.assign_add(loss), global_step().assign_add(1));
            monitored_session s(self, {.checkpoint_dir = folder / str("often-", saves_often),
                                       .hooks = {stop_on_nan(loss)},
                                       .checkpoint_steps = saves_often ? 1 : 0});
            s.run(train, x = 1.f);
            s.run(train, x = std::numeric_limits<float>::quiet_NaN());
            CHECK(s.should_stop());
          }) == 0);
  CHECK(latest_checkpoint(folder / "often-true") == folder / "often-true/model-1");
  CHECK(latest_checkpoint(folder / "often-false") == folder / "often-false/model-0");
}

TEST_CASE("hooks begin, receive their values from every run, and end") {
  std::shared_ptr<counting_hook> h;
  alone([&](task& self) {
    placeholder<float> x("x");
    h = std::make_shared<counting_hook>(any_tensor(x * 10.f));
    monitored_session s(self, {.hooks = {h}});
    CHECK(h->begun == 1);
    CHECK(s.run(x + 1.f, x = 2.f) == 3);
    auto [a, b] = s.run(x, x * 2.f, x = 4.f);
    CHECK(b == 8);
    CHECK(h->ended == 0);
    s.request_stop();
    CHECK(s.should_stop());
  });
  CHECK(h->after == 2);
  CHECK(h->seen == 40);
  CHECK(h->ended == 1);
}

TEST_CASE("hooks do not end when an exception leaves the session") {
  struct rude_hook : hook {
    void end(run_context&) override { throw 42; }
  };
  std::shared_ptr<counting_hook> h;
  log_lines lines;
  alone([&](task& self) {
    variable<float> w("w", 1.f);
    h = std::make_shared<counting_hook>(any_tensor(w));
    CHECK_THROWS_AS(
        {
          monitored_session s(self, {.hooks = {h}});
          throw std::logic_error("of the program's own");
        },
        std::logic_error);
    CHECK(h->ended == 0);
    {
      // An exception that was caught inside does not count as the session's end.
      monitored_session s(self, {.hooks = {std::make_shared<rude_hook>(), h}});
      CHECK_THROWS_AS(s.run(w, w = 1.f, w = 2.f), error);
    }
    CHECK(h->ended == 1);
  });
  CHECK(join(lines.take(), "\n").find("not a std::exception") != std::string::npos);
}

TEST_CASE("training goes on from the newest checkpoint") {
  const testing::temporary_folder folder;
  std::vector<float> drawn;
  const auto train_until = [&](const std::string& directory, std::int64_t last, float expected) {
    CHECK(alone([&](task& self) {
            variable<float> w("w", 1.f);
            auto step = global_step();
            tensor<float, 1> noise = random_uniform(shape<1>);
            const operation train = group(w.assign_add(1.f), step.assign_add(1));
            monitored_session s(self, {.checkpoint_dir = directory,
                                       .hooks = {stop_at_step(last), count_steps(1)},
                                       .checkpoint_steps = 2});
            CHECK(s.session().run(w) == expected);
            while (!s.should_stop()) drawn.push_back(s.run(noise, train)(0));
          }) == 0);
  };
  const std::string own = folder.path().string();
  train_until(own, 5, 1);
  CHECK(checkpoints_in(folder.path().string()) ==
        std::vector<std::string>{folder / "model-0", folder / "model-2", folder / "model-4",
                                 folder / "model-5"});
  train_until(own, 7, 6);
  train_until(own, 7, 8);  // nothing is left to do
  CHECK(latest_checkpoint(folder.path().string()) == (folder / "model-7").string());
  REQUIRE(drawn.size() == 7);
  // Random numbers are those of training without an interruption, and without hooks.
  const std::vector<float> interrupted = std::exchange(drawn, {});
  train_until(folder / "other", 7, 1);
  CHECK(drawn == interrupted);
  graph own_graph;
  auto in_own = as_default(own_graph);
  const tensor<float, 1> noise = random_uniform(shape<1>);
  session s;
  for (const float d : drawn) CHECK(s.run(noise)(0) == d);
}

TEST_CASE("a number of steps counts from where the session began") {
  const auto both = outcome_of([] {
    graph own;
    auto in_own = as_default(own);
    const auto step = global_step();
    stop_at_step({.last_step = 1, .num_steps = 1})->begin();
  });
  CHECK(both.code == errc::invalid_argument);
  int runs = 0;
  const testing::temporary_folder folder;
  std::vector<std::int64_t> ends;
  for (int session = 0; session < 2; ++session)
    alone([&](task& self) {
      const auto step = global_step();
      const operation count = step.assign_add(1);
      monitored_session s(self, {.checkpoint_dir = folder.path().string(),
                                 .hooks = {stop_at_step({.num_steps = 3})}});
      for (; !s.should_stop(); ++runs) s.run(count);
      ends.push_back(s.session().run(step));
    });
  CHECK(runs == 6);
  CHECK(ends == std::vector<std::int64_t>{3, 6});
}

TEST_CASE("hooks feed tensors, log, and run an operation at the end") {
  struct feeding_hook : hook {
    explicit feeding_hook(placeholder<float> t) : x(std::move(t)) {}
    run_arguments before_run(run_context&) override { return {.feeds = {x = 3.f}}; }
    placeholder<float> x;
  };
  log_lines lines(logging::level::info);
  alone([&](task& self) {
    placeholder<float> x("x");
    variable<float> last("last", 0.f);
    auto step = global_step();
    const operation count = step.assign_add(1);
    tensor<float> twice = x * 2.f;
    {
      monitored_session s(
          self, {.hooks = {std::make_shared<feeding_hook>(x), log_tensors({{"twice", twice}}, 2),
                           count_steps(2), run_at_end(last.assign(5.f))}});
      for (int i = 0; i < 4; ++i) CHECK(s.run(twice, count) == 6);
      auto o = outcome_of([&] { s.run(twice, x = 1.f); });
      CAPTURE(o);
      CHECK(o.code == errc::invalid_argument);
      CHECK(o.says("\"x\""));
    }
  });
  const std::string text = join(lines.take(), "\n");
  CAPTURE(text);
  CHECK(text.find("step 1: twice = 6") != std::string::npos);
  CHECK(text.find("step 3: twice = 6") != std::string::npos);
  CHECK(text.find("step 4: twice") == std::string::npos);
  CHECK(text.find("steps a second") != std::string::npos);
}

TEST_CASE("save_traces writes what ran, and other hooks may look at it") {
  struct looking_hook : hook {
    run_arguments before_run(run_context&) override { return {.trace = &seen}; }
    step_trace seen;
  };
  testing::temporary_folder folder;
  const auto looking = std::make_shared<looking_hook>();
  alone([&](task& self) {
    auto step = global_step();
    const operation count = step.assign_add(1);
    monitored_session s(self, {.hooks = {save_traces((folder / "traces").string(), 2), looking}});
    step_trace own;
    s.run(run_options{.trace = &own}, count);
    CHECK(!own.events.empty());
    CHECK(own.events.size() == looking->seen.events.size());
    for (int i = 0; i < 3; ++i) s.run(count);
  });
  std::vector<std::string> names;
  for (const auto& f : std::filesystem::directory_iterator(folder / "traces"))
    names.push_back(f.path().filename().string());
  std::ranges::sort(names);
  CHECK(names == std::vector<std::string>{"trace-1.json", "trace-3.json"});
}
