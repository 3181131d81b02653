// SPDX-License-Identifier: Apache-2.0
// tests/programs/jobs.cpp: a pipeline over jobs of other names: two stages that serve, and a worker
// that uses them. `--early=1`: the second stage returns at once instead.
#include <cstdio>
#include <deft/deft.hpp>

using namespace deft;

int main(int argc, char** argv) {
  const std::vector<program_flag> own{{"early", "whether the second stage returns at once"}};
  return cluster_main(argc, argv, {{"stage", 2}, {"worker", 1}}, own, [](task& self) {
    if (self.job() == "stage") {
      if (self.index() == 0 || !self.flag("early", false)) self.server().join();
      return;
    }
    const auto first = on(device("/job:stage/task:0"), [] { return identity(constant(20.f)); });
    const auto second =
        on(device("/job:stage/task:1"), [&] { return tensor<float>(first * 2.f + 2.f); });
    session s(self, {.fold = false});
    float value = s.run(second);
    // Until that has ended: what is under way then is lost in one way or another, what comes later
    // is told why.
    while (self.flag("early", false)) try {
        session(self, {.fold = false}).run(second);
      } catch (const error& e) {
        if (e.message().find("has ended") != e.message().npos) throw;
      }
    std::printf("%g, chief: %d\n", static_cast<double>(value), self.is_chief());
  });
}
