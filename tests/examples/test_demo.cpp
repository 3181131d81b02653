// SPDX-License-Identifier: Apache-2.0
// The demo, examples/10_mnist_ps.cpp, as processes of a test.
#include <algorithm>

#include "session/processes.hpp"

using namespace deft;
using namespace deft::ext;
using testing::child_job;

namespace {

/// What the chief says of a job of 1 ps and so many workers, which have so many simulated GPUs.
std::vector<std::string> demo(int workers, int steps, int gpus) {
  child_job job(DEFT_TEST_DEMO, 1, {"--simulated_gpus=0"}, workers,
                {str("--steps=", steps), str("--simulated_gpus=", gpus)});
  auto lines = job.worker(0).lines();
  for (int i = 0; i < workers; ++i) CHECK(job.worker(i).wait() == 0);
  return lines;
}
/// What follows on the line that begins like that.
std::string after(const std::vector<std::string>& lines, const std::string& begin) {
  const auto i = std::ranges::find_if(lines, [&](const auto& l) { return l.starts_with(begin); });
  REQUIRE_MESSAGE(i != lines.end(), begin, " is not among:\n", join(lines, "\n"));
  return i->substr(begin.size());
}

}  // namespace

TEST_CASE("the demo learns on processors, and on GPUs of its workers") {
  const auto on_processors = demo(2, 300, 0), on_gpus = demo(2, 300, 2);
  auto accuracy = [](const auto& lines) {
    return std::stod(after(lines, "accuracy on 2000 held-out images: "));
  };
  for (const char* what : {"relu ", "add  ", "mean "}) {
    CHECK(after(on_processors, what) == "/job:worker/replica:0/task:0/cpu:0");
    CHECK(after(on_gpus, what) == "/job:worker/replica:0/task:0/gpu:0");
  }
  CHECK(after(on_gpus, "w1   ") == "/job:ps/replica:0/task:0/cpu:0");
  CHECK(after(on_gpus, "step 300/300  loss ").starts_with("0."));
  // A worker that is held up adds an old gradient, perhaps in the last step: 300 steps end at 0.93
  // where nothing is, and ended at 0.84 on a busy machine. Guessing gives 0.1.
  for (const auto& lines : {on_processors, on_gpus}) CHECK(accuracy(lines) > 0.7);
}

TEST_CASE("a single worker's losses on a GPU are those on a processor") {
  // Two workers' gradients come in an order of their own, another one in each run.
  constexpr int steps = 60;
  const auto on_processor = demo(1, steps, 0), on_gpu = demo(1, steps, 1);
  for (int step : {1, steps}) {
    auto loss = [&](const auto& lines) {
      return std::stod(after(lines, str("step ", step, "/", steps, "  loss ")));
    };
    INFO("step ", step);
    CHECK(loss(on_processor) < (step == 1 ? 2.5 : 1));
    CHECK(loss(on_gpu) == doctest::Approx(loss(on_processor)).epsilon(0.001));
  }
}
