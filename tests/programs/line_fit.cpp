// SPDX-License-Identifier: Apache-2.0
// tests/programs/line_fit.cpp: a training job of 1 ps and 2 workers, started like the demo.
#include <unistd.h>

#include <cstdio>
#include <deft/deft.hpp>

using namespace deft;

int main(int argc, char** argv) {
  const std::vector<program_flag> own{
      {"steps", "how many (50)"},
      {"fail", "the worker of this number throws instead of training"},
      {"patience", "how long a worker waits for a lost task, in ms (120,000)"},
      {"vanish", "1: workers end at once, and tell nobody"},
      {"deaf", "1: goes on after training, and nothing ends it"},
      {"sync", "1: synchronous steps"},
      {"save", "saves a checkpoint into this folder every 1000 steps, and says where it ends"}};
  return cluster_main(argc, argv, {{"ps", 1}, {"worker", 2}}, own, [](task& self) {
    if (self.flag("fail") == std::to_string(self.index())) throw std::runtime_error("as told");
    if (!self.flag("vanish").empty()) {
      std::printf("process %d vanishes\n", static_cast<int>(getpid()));
      std::fflush(stdout);
      _exit(0);
    }
    placeholder<float, dyn> x("x");
    auto scope = on(replica_device(self.cluster(), self.device()));
    variable<float> w("w", 0.f);
    auto loss = mean(square(x * w - x * 3.f));
    auto step = global_step();
    // Converges with stale gradients too, of up to six steps before, and given thousands of steps,
    // with those of a worker that was not scheduled for hundreds.
    const sgd descent(0.015);
    auto train = self.flag("sync").empty() ? descent.minimize(loss, step)
                                           : sync_replicas(descent, 2, 2).minimize(loss, step);
    monitored_session s(self,
                        {.checkpoint_dir = self.flag("save"),
                         .hooks = {stop_at_step(self.flag("steps", 50))},
                         .start_timeout = std::chrono::milliseconds(self.flag("patience", 120'000)),
                         .checkpoint_steps = 1000});
    std::printf("process %d trains\n", static_cast<int>(getpid()));
    std::fflush(stdout);
    while (!s.should_stop()) s.run(train, x = std::vector<float>{1, 2, 3});
    if (!self.flag("deaf").empty()) {
      std::printf("goes on\n");
      std::fflush(stdout);
      for (;;) pause();
    }
    std::printf("w is %.3f\n", static_cast<double>(s.session().run(w)));
    if (!self.flag("save").empty())
      std::printf("ends at step %lld\n", static_cast<long long>(s.session().run(step)));
  });
}
