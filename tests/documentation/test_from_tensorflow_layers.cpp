// SPDX-License-Identifier: Apache-2.0
// What docs/from_tensorflow.md shows of layers.
#include "op/modeling.hpp"
#include "train/training.hpp"

using namespace deft;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "layers, and the losses of their weights") {
  placeholder<float, dyn, 4> x("x");
  placeholder<float, dyn, 5, 4> sequence("sequence");
  placeholder<bool> training("training");
  variable<float, 4, 2> w("w", glorot_uniform());
  variable<float, 2> b("b", zeros());
  tensor<float, dyn, 2> own = dense(x, w, b);
  placeholder<float, dyn, 28, 28, 1> image("image");
  placeholder<std::int32_t, dyn, 9> ids("ids");
  tensor<float, dyn, 28, 28, 32> filtered = conv2d<32>(image, window<5>, "conv");
  tensor<float, dyn, 9, 16> vectors = embedding<1000, 16>(ids, "words");
  tensor<float, dyn, 8> h = dense<8>(x, "fc", {.activation = relu});
  h = batch_norm(h, "bn", {.training = training});
  h = dropout(h, 0.5, {.training = training});
  h = layer_norm(h, "ln");
  auto [outputs, state] = lstm<16>(sequence, "lstm");
  auto last = gru<16>(sequence, "gru").state;
  const operation update = update_moving_averages();
  {
    auto tower = name_scope("tower_0");
    auto y = dense<1>(h, "out", {.regularizer = l2_regularizer(0.001)});
    auto error = mean(square(y));
    add_loss(error);
  }
  CHECK(losses("tower_0").size() == 2);
  any_tensor loss = total_loss();
  tensor<float> whole = mean(h) + total_loss<float>();

  session s;
  s.run(initialize_all());
  s.run(loss, whole, update, own, state.h, state.c, last, outputs, x = {{1, 2, 3, 4}, {4, 3, 2, 1}},
        training = true, sequence = ndarray<float, dyn, 5, 4>(1));
}
