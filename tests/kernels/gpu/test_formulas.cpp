// SPDX-License-Identifier: Apache-2.0
// Optimizers' updates on GPUs: each is one launch, with the processor's bits.
#include <deft/kernels/gpu/simulated/queue.hpp>
#include <deft/session/session.hpp>
#include <deft/train/optimizers.hpp>

#include "../../op/modeling.hpp"
#include "../arrays.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;
using gpu::simulated::simulated_gpus;

namespace {

struct trained {
  any_array variable;        ///< after three steps
  std::size_t launches = 0;  ///< of the last one
};

/// Three steps on a device, with gradients that are fed.
template <class T>
trained train(const optimizer& o, const char* where, const dims& shape) {
  own_graph own;
  const auto there = on(device(where));
  any_variable w("w", shape, ones(), dtype_of<T>);
  const any_tensor g = make_placeholder("g", dtype_of<T>, shape);
  const operation update = o.apply_gradients({{w, g}});
  session s({.simulated_gpus = 1});
  s.run(initialize_all());
  philox_stream random(7);
  trained t;
  for (int i = 0; i < 3; ++i) {
    any_array fed(dtype_of<T>, shape);
    for (std::int64_t k = 0; k < fed.elements(); ++k)
      fed.mutable_data<T>()[k] = static_cast<T>(random.uniform(-1, 1));
    simulated_gpus().reset_counts();
    s.run(update, feed(g, fed));
    t.launches = simulated_gpus().launches;
  }
  t.variable = s.run(any_tensor(w));
  return t;
}

/// `launches`: of the formula, and of scalars that go with it.
template <class T>
void check(const optimizer& o, std::size_t launches = 1) {
  for (const dims& shape : {dims{1}, dims{7}, dims{64}, dims{33, 31}, dims{5, 4, 3}}) {
    CAPTURE(shape);
    const trained gpu = train<T>(o, "/gpu:0", shape), cpu = train<T>(o, "/cpu:0", shape);
    CHECK(gpu.launches == launches);
    CHECK(cpu.launches == 0);
    CHECK(identical(gpu.variable, cpu.variable));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("an optimizer's update is one launch, with the processor's bits", T, float,
                   double) {
  check<T>(sgd(0.1));
  check<T>(momentum(0.1, 0.9));
  check<T>(momentum(0.1, 0.9, {.nesterov = true}));
  check<T>(adagrad(0.1));
  check<T>(rmsprop(0.1));
}

TEST_CASE("an update that is no formula of the library's is as many launches as instructions") {
  check<float>(adadelta(0.1), 17);  // one of them writes the literals
}

TEST_CASE("the scalars of adam's update are kernels of their own") {
  check<float>(adam(0.01), 12);  // 11 for the scalars
}
