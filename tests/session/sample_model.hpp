// SPDX-License-Identifier: Apache-2.0
// tests/session/sample_model.hpp: a graph that tests change and send.
#pragma once
#include <deft/deft.hpp>
#include <vector>

namespace testing {

/// A model with most kinds of nodes, on worker 0; with `spread`, partly on worker 1. `initial`
/// replaces the initializers of its variables.
inline deft::ext::flat_graph sample_model(bool spread, bool initial = false) {
  using namespace deft;
  using namespace deft::ext;
  graph g;
  auto in = as_default(g);
  auto scope = on(device("/job:worker/task:0"));
  placeholder<float, dyn, 6> x("x");
  placeholder<std::int32_t, dyn> label("label");
  variable<float, 6, 4> w("w", truncated_normal(0.1));
  variable<float, 4> b("b", zeros());
  tensor<float, dyn, 4> hidden = relu(matmul(x, w) + b * 2.f);
  any_tensor far = hidden;
  if (spread)
    if (auto there = on(device("/job:worker/task:1"))) far = any_tensor(tanh(hidden) + 1.f);
  auto loss = mean(softmax_cross_entropy(hidden, label));
  any_tensor tail = concat(axes{0}, std::vector<any_tensor>{transpose(far), transpose(far)});
  any_tensor picked = gather(w, cast<std::int32_t>(argmax(w, axis<0>)) / 3);
  any_tensor drawn = random_uniform(dims{3, 2}, 0, 1, dtype::float32);
  any_tensor some = reshape(one_hot<5>(label), dims{dyn, 5});
  any_tensor chosen = where(w > 0.f, w, exp(w));
  any_tensor centred = hidden - mean(hidden, axis<1>, keepdims);
  any_tensor normal = centred / sqrt(mean(square(centred), axis<1>, keepdims) + 1.f);
  any_tensor norm = sum(square(hidden * 0.5f));
  operation train = sgd(0.1).minimize(loss);
  operation init = initialize_all();
  std::vector<output> fetches{loss.handle(),   tail.handle(),
                              picked.handle(), drawn.handle(),
                              some.handle(),   max(chosen).handle(),
                              normal.handle(), centred.handle(),
                              norm.handle(),   {train.handle(), run_only}};
  if (initial) return flatten(std::vector<output>{{init.handle(), run_only}}, {});
  const output feeds[] = {x.handle(), label.handle()};
  return flatten(fetches, feeds);
}

}  // namespace testing
