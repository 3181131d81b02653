// SPDX-License-Identifier: Apache-2.0
// Optimizers' updates on CUDA's devices: one launch each, once NVRTC has compiled those that are no
// formula of the library's. Against a runtime that needs no GPU.
#include <atomic>
#include <chrono>
#include <deft/session/session.hpp>
#include <deft/train/optimizers.hpp>

#include "../session/sessions.hpp"
#include "fake_runtime.hpp"
#include "kernels/gpu/nvrtc.hpp"

using namespace deft;
using namespace testing;

namespace {

/// Launches of a step.
struct launches {
  int kernels = 0;   ///< of what nvcc has compiled
  int programs = 0;  ///< of what NVRTC has, on as many elements as the variable has
  int scalars = 0;   ///< likewise, on one

  bool operator==(const launches&) const = default;
};
std::ostream& operator<<(std::ostream& to, const launches& l) {
  return to << l.kernels << " kernels, " << l.programs << " programs, " << l.scalars
            << " of scalars";
}
launches seen;

/// A step's, once the code of its programs is there.
launches of_update(const optimizer& o) {
  own_graph own;
  fake::runtime() = {};
  fake::runtime().kernel = [](const std::string&, void**, cudaStream_t) {
    return ++seen.kernels > 0;
  };
  fake::runtime().program = [](const fake::program_launch& l) {
    ++(l.blocks > 1 ? seen.programs : seen.scalars);
    return [] {};
  };
  auto there = on(device("/gpu:0"));
  variable<float, 100, 100> w("w", ones());
  const placeholder<float, 100, 100> g("g");
  const operation update = o.apply_gradients({{w, g}});
  session s;
  s.run(initialize_all());
  auto step = s.prepare(update, feeds(g));
  const ndarray<float, 100, 100> fed;
  const auto until = std::chrono::steady_clock::now() + 60s;
  do {
    seen = {};
    step(fed);
    // Not of an earlier program's instructions, nor of launches that were captured before.
  } while ((seen.kernels > 1 || seen == launches{}) && std::chrono::steady_clock::now() < until);
  return seen;
}

}  // namespace

TEST_CASE("every update is one launch once its program is compiled") {
  if (skipped_without_nvrtc()) return;
  // A formula of the library's.
  CHECK(of_update(adagrad(0.1)) == launches{1, 0, 0});
  CHECK(of_update(adam(0.1)) == launches{1, 0, 3});
  // Others.
  CHECK(of_update(adadelta(0.1)) == launches{0, 1, 0});
  CHECK(of_update(ftrl(0.1)) == launches{0, 1, 0});
  CHECK(of_update(adamw(0.1, 0.01)) == launches{0, 1, 3});
}
