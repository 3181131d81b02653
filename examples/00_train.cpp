// SPDX-License-Identifier: Apache-2.0
// 00_train.cpp: training on two processes, a parameter server that holds the variables and a worker
// that computes. Without flags the program starts both; `{"worker", 4}` would be four workers.
//
//     /job:ps/task:0         /job:worker/task:0
//
//     w, b ──── values ────▶ x ── w x + b ── loss ── gradients
//      ▲                                                 │
//      └── adam ◀────────────────────────────────────────┘
//
// prints: y = 2\.00 x \+ 0\.50
#include <cstdio>
#include <deft/deft.hpp>
using namespace deft;

int main(int argc, char** argv) {
  return cluster_main(argc, argv, {{"ps", 1}, {"worker", 1}}, [](task& self) {  // in each worker
    auto scope = on(replica_device(self.cluster(), self.device()));  // variables -> ps, rest here
    variable<float> w("w", 0.f), b("b", 0.f);
    auto x = random_uniform(shape<100>, -1, 1);
    auto loss = mean(square(w * x + b - (2 * x + 0.5f)));
    auto step = adam(0.05).minimize(loss, global_step());

    monitored_session s(self, {.hooks = {stop_at_step(500)}});
    while (!s.should_stop()) s.run(step);
    std::printf("y = %.2f x + %.2f\n", s.session().run(w), s.session().run(b));
  });
}
