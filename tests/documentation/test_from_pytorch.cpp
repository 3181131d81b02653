// SPDX-License-Identifier: Apache-2.0
// What docs/from_pytorch.md shows.
#include <cmath>
#include <deft/deft.hpp>
#include <string>
#include <vector>

#include "data/temporary_folder.hpp"
#include "op/modeling.hpp"
#include "train/training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::own_graph;

namespace {

// A model is a function from tensors to tensors; its layers make their own variables.
tensor<float, dyn, 10> classifier(const tensor<float, dyn, 784>& images,
                                  const tensor<bool>& training) {
  auto hidden = dense<128>(images, "fc1", {.activation = relu});
  auto kept = dropout(hidden, 0.1, {.training = training});
  return dense<10>(kept, "fc2");
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "a model, its loss, and a loop over batches") {
  placeholder<float, dyn, 784> x("x");
  placeholder<std::int32_t, dyn> label("label");
  placeholder<bool> training("training");
  auto logits = classifier(x, training);
  auto loss = mean(softmax_cross_entropy(logits, label));
  auto train = adamw(1e-3, 0.01).minimize(loss);
  auto correct = mean(cast<float>(cast<std::int32_t>(argmax(logits, axis<1>)) == label));

  session s;
  s.run(initialize_all());
  auto step = s.prepare(train, loss, feeds(x, label, training));
  float last = 0;
  for (auto& [images, labels] : mnist().shuffle(8000, 1).batch(64).take(100))
    last = step(images, labels, true);
  auto held_out = load_mnist().test;
  float accuracy = s.run(correct, x = held_out.images, label = held_out.labels, training = false);
  CHECK(std::isfinite(last));
  CHECK(accuracy > 0.7f);
}

TEST_CASE_FIXTURE(own_graph, "tensors: torch's names and deft's") {
  placeholder<float, dyn, 6> x("x");
  placeholder<float, dyn, 6> y("y");
  placeholder<std::int64_t, dyn> ids("ids");
  const ndarray<float, 2, 6> rows{{1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1}};
  session s;
  auto value = [&](const auto& t) { return s.run(t, x = rows); };

  CHECK(value(x * 2.f + 1)(0, 5) == 13);
  CHECK(value(sum(x)) == 42);
  CHECK(value(sum(x, axis<1>))(0) == 21);
  CHECK(value(mean(x, axis<1>, keepdims))(1, 0) == 3.5f);
  CHECK(value(max(x, axis<1>))(0) == 6);
  CHECK(value(argmax(x, axis<1>))(1) == 0);
  CHECK(value(reshape(x, shape<dyn, 2, 3>))(0, 1, 0) == 4);
  CHECK(value(transpose(x, perm<1, 0>))(5, 1) == 1);
  CHECK(value(expand_dims(x, axis<1>)).rank() == 3);
  CHECK(value(x(0))(5) == 6);
  CHECK(value(x(all, range<1, 3>))(1, 0) == 5);
  CHECK(value(x(ellipsis, -1))(1) == 1);
  CHECK(value(x(all, newaxis)).rank() == 3);
  CHECK(value(flatten(x)).extent(0) == 12);
  CHECK(value(squeeze(x(newaxis), axis<0>)).rank() == 2);
  CHECK(value(swap_axes(x, axis<0, 1>))(5, 1) == 1);
  CHECK(value(move_axis(x, axis<0>, axis<1>))(5, 1) == 1);
  CHECK(value(flip(x, axis<1>))(0, 0) == 6);
  CHECK(value(roll(x, 1, axis<1>))(0, 0) == 6);
  CHECK(value(repeat<2>(x, axis<1>))(0, 11) == 6);
  CHECK(value(tile(x, copies<2, 1>))(3, 0) == 6);
  CHECK(value(pad(x, before<0, 2>, after<0, 0>, pad_mode::reflect))(0, 0) == 3);
  CHECK(value(pad(x, {0, 2}, {0, 0}, pad_mode::edge)).data<float>()[1] == 1);
  CHECK(value(concat(axis<0>, x, x)).extent(0) == 4);
  CHECK(value(stack(axis<0>, x, x)).rank() == 3);
  CHECK(value(where(x > 3.f, x, 0.f))(0, 0) == 0);
  CHECK(value(clip_by_value(x, 2, 5))(0, 0) == 2);
  CHECK(value(cast<double>(x))(0, 0) == 1.0);
  CHECK(value(stop_gradient(x))(0, 0) == 1);
  CHECK(value(zeros_like(x))(1, 5) == 0);
  CHECK(value(random_normal_like(x)).extent(0) == 2);
  CHECK(value(gelu(x))(0, 5) > 5.9f);
  CHECK(value(silu(x))(0, 5) < 6);
  CHECK(value(softplus(x))(0, 5) > 6);
  CHECK(value(softmax(x, axis<0>))(0, 0) < 0.01f);
  CHECK(value(log_softmax(x))(0, 5) < 0);
  CHECK(s.run(sigmoid_cross_entropy(x, y), x = rows, y = ndarray<float, 2, 6>())(0, 0) > 1);
  CHECK(s.run(zeros(shape<2, 3>))(1, 2) == 0);
  CHECK(s.run(arange(size_of(ids)), ids = {7, 8, 9})(2) == 2);
  CHECK(s.run(gather(x, ids), x = rows, ids = {1, 1, 0}).extent(0) == 3);
  CHECK(s.run(one_hot<6>(ids), ids = {5})(0, 5) == 1);
  CHECK(s.run(matmul(x, transpose(y, perm<1, 0>)), x = rows, y = rows)(0, 1) == 56);
  CHECK(s.run(einsum("ij,kj->ik"_es, x, y), x = rows, y = rows)(0, 1) == 56);
}

TEST_CASE_FIXTURE(own_graph, "a part of a variable is assigned") {
  variable<float, 6, 4> cache("cache", zeros());
  placeholder<float, dyn, 6> x("x");
  placeholder<std::int32_t> i("i");
  session s;
  s.run(initialize_all());
  s.run(cache(all, i).assign(sum(x, axis<0>)), x = {{1, 2, 3, 4, 5, 6}, {1, 1, 1, 1, 1, 1}}, i = 2);
  CHECK(s.run(cache)(5, 2) == 7);
  CHECK(s.run(cache)(5, 1) == 0);
}

TEST_CASE_FIXTURE(own_graph, "gradients, by hand and by an optimizer") {
  variable<float, 3> w("w", ones());
  auto loss = sum(square(w));
  auto [dw] = gradients(loss, w);
  adam optimizer(0.1);
  auto clipped =
      optimizer.apply_gradients(clip_by_global_norm(optimizer.compute_gradients(loss), 1.0));
  session s;
  s.run(initialize_all());  // of the optimizer's variables, too
  CHECK(s.run(dw)(0) == 2);
  s.run(clipped);
  CHECK(s.run(w)(0) < 1);
}

TEST_CASE_FIXTURE(own_graph, "weights that PyTorch saved") {
  testing::temporary_folder temporary;
  const std::string file = temporary / "model.safetensors";
  // As safetensors.torch.save_file(linear.state_dict(), file) of a Linear(3, 2) writes it.
  write_safetensors(file, {{"fc.weight", ndarray<float, 2, 3>{{1, 2, 3}, {4, 5, 6}}.array()},
                           {"fc.bias", ndarray<float, 2>{10, 20}.array()}});

  placeholder<float, dyn, 3> x("x");
  variable<float, 2, 3> weight("fc.weight", zeros());
  variable<float, 2> bias("fc.bias", zeros());
  auto y = matmul(x, transpose(weight, perm<1, 0>)) + bias;  // Linear's formula

  session s;
  saver().restore(s, file);
  CHECK(s.run(y, x = {{1, 0, 0}})(0, 1) == 24);

  variable<float, 3, 2> kernel("fc/kernel", zeros());  // as dense has it
  saver from_torch({.named = {{"fc.weight", kernel}}, .transposed = {{"fc.weight", {1, 0}}}});
  from_torch.restore(s, file);
  CHECK(s.run(matmul(x, kernel), x = {{1, 0, 0}})(0, 1) == 4);
}

namespace {

// What a process of DistributedDataParallel does: the model is the same on all, the data is not.
void train_replica(task& self) {
  auto scope = on(replica_device(self.cluster(), self.device()));
  variable<float, 4> w("w", zeros());
  auto x = random_normal(shape<32, 4>, 0, 1);
  auto loss = mean(square(sum(x * (w - 1.f), axis<1>)));
  auto train = sync_replicas(sgd(0.1), 2, 2).minimize(loss, global_step());

  monitored_session s(self, {.hooks = {stop_at_step(30)}});
  while (!s.should_stop()) s.run(train);
}

}  // namespace

TEST_CASE("several processes take the mean of their gradients") {
  CHECK(testing::threaded_job(1, 2).run(train_replica) == std::vector{0, 0, 0});
}
