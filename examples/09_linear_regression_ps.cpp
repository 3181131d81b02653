// SPDX-License-Identifier: Apache-2.0
// 09_linear_regression_ps.cpp: training on a parameter server and two workers, each a process of
// this program: --job_name and --task_index say which. Without flags it starts all three.
//
//     /job:ps/task:0         /job:worker/task:0 and 1, each with points of its own
//
//                            x ──┬── 2x + 0.2 + noise ── y ──┐
//                                └── w x + b ────────────────┴── sub ── square ── mean ── loss
//                                      ▲                                                   │
//     w, b ──── values ────────────────┘                                                   ▼
//      ▲                                                                               gradients
//      └── adagrad ◀───────────────────────────────────────────────────────────────────────┘
//
// prints: w = (1\.9[5-9]|2\.0[0-4])[0-9]*, b = 0\.(1[5-9]|2[0-4])
#include <cmath>
#include <cstdio>
#include <deft/deft.hpp>

using namespace deft;

/// A worker's whole program; the parameter server only serves.
void run_worker(task& self) {
  auto scope = on(replica_device(self.cluster(), self.device()));  // variables -> ps, the rest here
  variable<float> w("w", 0.f), b("b", 0.f);

  auto x = random_uniform(shape<1000>, -1.f, 1.f);  // other points in every step, on every worker
  auto noise = random_normal(shape<1000>, 0.f, 0.1f);
  tensor<float, 1000> y = 2 * x + 0.2f + noise;
  auto loss = mean(square(w * x + b - y));
  auto step = global_step();
  auto train = adagrad(0.8f).minimize(loss, step);

  // The chief initializes the variables, for which the other worker waits.
  monitored_session s(self, {.hooks = {stop_at_step(1000)}});
  while (!s.should_stop()) s.run(train);
  if (!self.is_chief()) return;

  auto [slope, offset] = s.session().run(w, b);
  std::printf("w = %.3f, b = %.3f\n", static_cast<double>(slope), static_cast<double>(offset));
  if (!(std::abs(slope - 2) < 0.05f && std::abs(offset - 0.2f) < 0.05f))
    throw error(errc::internal, "expected w = 2, b = 0.2");
}

int main(int argc, char** argv) {
  return cluster_main(argc, argv, {{"ps", 1}, {"worker", 2}}, run_worker);
}
