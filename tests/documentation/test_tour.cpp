// SPDX-License-Identifier: Apache-2.0
// What README.md, docs/models.md, docs/training.md and docs/flags.md show.
#include <deft/deft.hpp>
#include <thread>

#include "data/temporary_folder.hpp"
#include "session/sessions.hpp"
#include "train/training.hpp"

using namespace deft;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "a model is written, initialized and run") {
  placeholder<float, dyn, 3> x("x");
  variable<float, 3, 2> w("w", truncated_normal(0.1f));
  variable<float, 2> b("b", zeros());
  tensor<float, dyn, 2> y = relu(matmul(x, w) + b);

  session s;
  s.run(initialize_all());  // gives every variable its first value
  ndarray<float, dyn, 2> v = s.run(y, x = {{1, 2, 3}, {4, 5, 6}});
  auto [rows, bias] = s.run(y, b, x = {{1, 2, 3}});
  CHECK(v.extent(0) == 2);
  CHECK(rows.extent(0) == 1);
  CHECK(bias(1) == 0);
}

TEST_CASE_FIXTURE(own_graph, "axes, shapes and permutations are compile-time values") {
  placeholder<float, dyn, 4> y("y");
  auto total = sum(y);                             // float
  auto by_row = mean(y, axis<1>);                  // float(?)
  auto largest = max(y, axis<1>, keepdims);        // float(?,1)
  auto pairs = reshape(y, shape<dyn, 2, 2>);       // float(?,2,2)
  auto turned = transpose(y, perm<1, 0>);          // float(4,?)
  auto scaled = y / cast<float>(total + 1);        // as y
  any_tensor later = sum(any_tensor(y), axes{0});  // known only at run time: float(4)
  session s;
  const ndarray<float, 1, 4> row{1, 2, 3, 4};
  CHECK(s.run(total, y = row) == 10);
  CHECK(s.run(by_row, y = row)(0) == 2.5f);
  CHECK(s.run(largest, y = row)(0, 0) == 4);
  CHECK(s.run(pairs, y = row)(0, 1, 0) == 3);
  CHECK(s.run(turned, y = row)(3, 0) == 4);
  CHECK(s.run(scaled, y = row)(0, 3) == 4.f / 11);
  CHECK(s.run(later, y = row).data<float>()[3] == 4);
}

TEST_CASE_FIXTURE(own_graph, "gradients are tensors, and a step is prepared once") {
  placeholder<float, dyn> x("x"), target("target");
  variable<float> slope("slope", 0.f), offset("offset", 0.f);
  auto loss = mean(square(x * slope + offset - target));
  auto [ds, doff] = gradients(loss, slope, offset);  // typed as slope and offset
  operation step = group(slope.assign_sub(0.1f * ds), offset.assign_sub(0.1f * doff));

  session s;
  s.run(initialize_all());
  auto train = s.prepare(step, loss, feeds(x, target));
  const std::vector<float> xs{0, 1, 2}, ys{1, 3, 5};
  float error = 0;
  for (int i = 0; i < 300; ++i) error = train(xs, ys);  // plans nothing, looks nothing up
  CHECK(error < 1e-3f);
  CHECK(s.run(slope) == doctest::Approx(2).epsilon(0.01));
}

TEST_CASE_FIXTURE(own_graph, "layers have variables of their own, and data is a loop") {
  placeholder<float, dyn, 784> x("x");
  placeholder<std::int32_t, dyn> label("label");
  auto hidden = dense<64>(x, "hidden", {.activation = relu});  // hidden/kernel, hidden/bias
  auto logits = dense<10>(hidden, "logits");
  auto loss = mean(softmax_cross_entropy(logits, label));
  auto train = adam(0.001).minimize(loss);

  session s;
  s.run(initialize_all());
  auto step = s.prepare(train, loss, feeds(x, label));
  for (auto& [images, labels] : mnist().shuffle(8000).batch(100).take(20)) step(images, labels);

  auto swish = dense<64>(x, "swish", {.activation = [](auto v) { return v * sigmoid(v); }});
  s.run(initialize_all());
  CHECK(s.run(swish, x = ndarray<float, dyn, 784>(2)).extent(1) == 64);
}

TEST_CASE_FIXTURE(own_graph, "a layer's width and variable, and a rate that is fed") {
  placeholder<float, dyn, 784> x("x");
  std::int64_t units = 64;  // from a file, say
  any_tensor wide = dense(x, units, "wide", {.activation = relu});
  any_variable kernel(current_graph().find_variable("wide/kernel"));

  placeholder<float> rate("rate");
  auto train = sgd(rate).minimize(mean(square(wide)));
  session s;
  s.run(initialize_all());
  CHECK(kernel.shape() == dims{784, 64});
  const any_array before = s.run(kernel);
  const ndarray<float, dyn, 784> ones(any_array(s.run(fill(shape<2, 784>, 1.f))));
  s.run(train, x = ones, rate = 0);
  CHECK(s.run(kernel) == before);
  s.run(train, x = ones, rate = 0.5);
  CHECK(!(s.run(kernel) == before));
}

TEST_CASE_FIXTURE(own_graph, "a function's tensors and variables are on the device that is said") {
  struct half {
    variable<float, 4, 4> w;
    tensor<float, dyn, 4> y;
  };
  placeholder<float, dyn, 4> x("x");
  auto second = on(device("/cpu:1"), [&] {
    variable<float, 4, 4> w("w", ones());
    return half{w, matmul(x, w)};
  });
  session s({.cpu_devices = 2});
  s.run(initialize_all());
  CHECK(s.device_of(second.y).ends_with("/cpu:1"));
}

TEST_CASE_FIXTURE(own_graph, "variables are saved in checkpoints, and restored") {
  const testing::temporary_folder files;
  const std::string folder = files.path().string();
  variable<float, 2, 2> w("w", ones());
  session s;
  s.run(initialize_all());
  saver save;  // of all variables; saver save({.variables = {w}}) of these
  save.save(s, folder + "/model", 100);  // model-100
  s.run(w.assign(0.f));
  save.restore(s, latest_checkpoint(folder));
  CHECK(s.run(w)(1, 1) == 1);
}

namespace {

void train_line(task& self) {
  auto scope = on(replica_device(self.cluster(), self.device()));  // variables -> ps
  variable<float> slope("slope", 0.f);
  auto x = random_uniform(shape<16>, 0, 1);
  auto loss = mean(square(x * (slope - 3.f)));
  auto train = sgd(0.5).minimize(loss, global_step());

  monitored_session s(self, {.checkpoint_dir = self.flag("checkpoints"),
                             .hooks = {stop_at_step(50), stop_on_nan(loss)},
                             .checkpoint_steps = 20});
  while (!s.should_stop()) s.run(train);
}

int program_main(int argc, char** argv) {
  return cluster_main(argc, argv, {{"ps", 1}, {"worker", 2}},
                      {{"checkpoints", "folder of checkpoints"}}, train_line);
}

void train_in_rounds(task& self) {
  auto scope = on(replica_device(self.cluster(), self.device()));
  variable<float> slope("slope", 0.f);
  auto loss = mean(square(random_uniform(shape<16>, 0, 1) * (slope - 3.f)));
  auto train = sync_replicas(sgd(0.5), 2, 3).minimize(loss, global_step());
  monitored_session s(self, {.hooks = {stop_at_step(20)}});
  while (!s.should_stop()) s.run(train);
  CHECK(s.session().run(slope) == doctest::Approx(3).epsilon(0.2));
}

}  // namespace

TEST_CASE("three workers train in rounds of two") {
  CHECK(testing::threaded_job(1, 3).run(train_in_rounds) == std::vector<int>(4, 0));
}

TEST_CASE("a training job saves checkpoints") {
  const testing::temporary_folder files;
  std::string words[] = {"train", "--single", "--checkpoints=" + files.path().string()};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  CHECK(program_main(3, argv) == 0);
  CHECK(latest_checkpoint(files.path().string()) == (files / "model-50").string());
}

TEST_CASE_FIXTURE(own_graph, "a thread continues with the graph of a tensor") {
  variable<float> w("w", 1.f);
  session s;
  std::thread([&] {
    auto in = as_default(graph_of(w));  // a new thread's current graph is the process's
    s.run(initialize_all());
  }).join();
  CHECK(s.run(w) == 1);
}
