// SPDX-License-Identifier: Apache-2.0
// 24_recovery.cpp: training that survives the loss of its tasks. A parameter server and two workers
// fit a line; the chief saves checkpoints. Kill any of them while it runs:
//
//     24_recovery --restarts=9 --file_root=/tmp --save /tmp/line      in one terminal
//     pkill -KILL -f "24_recovery --job_name=ps"                      in another
//
// The launcher starts the task again. A worker that was killed goes on with the others; when the
// parameter server was killed, the chief restores the newest checkpoint, and all go on from there.
//
// ctest: --restarts 2
// through: with_kills
// prints: killed the worker
// prints: killed the ps
// prints: restored .*model-[0-9]+
// prints: worker/0: after step [0-9]+ the line is 3\.00 x \+ 2\.00
#include <cstdio>
#include <deft/deft.hpp>
#include <filesystem>

using namespace deft;

void run_worker(task& self) {
  const std::int64_t steps = self.flag("steps", 6000);
  const auto folder = std::filesystem::temp_directory_path() / "deft_recovery";
  const std::string to = self.flag("save", folder.string());

  auto scope = on(replica_device(self.cluster(), self.device()));
  variable<float> slope("slope", 0.f), offset("offset", 0.f);
  auto x = random_uniform(shape<1000>, -1, 1);
  auto y = x * 3.f + 2.f + random_normal(shape<1000>, 0, 0.01);
  auto loss = mean(square(x * slope + offset - y));
  auto train = sgd(0.01).minimize(loss, global_step());

  monitored_session s(self, {.checkpoint_dir = to,
                             .hooks = {stop_at_step(steps), stop_on_nan(loss),
                                       log_tensors({{"slope", slope}, {"offset", offset}}, 500),
                                       show_progress(loss, steps, 100)},
                             .checkpoint_steps = 200});
  while (!s.should_stop()) s.run(train);

  if (!self.is_chief()) return;
  const auto [a, b, step] = s.session().run(slope, offset, global_step());
  std::printf("after step %lld the line is %.2f x + %.2f\n", static_cast<long long>(step),
              static_cast<double>(a), static_cast<double>(b));
}

int main(int argc, char** argv) {
  return cluster_main(argc, argv, {{"ps", 1}, {"worker", 2}},
                      {{"steps", "number of steps (6000)"}, {"save", "folder of checkpoints"}},
                      run_worker);
}
