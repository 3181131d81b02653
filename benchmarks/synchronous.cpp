// SPDX-License-Identifier: Apache-2.0
// benchmarks/synchronous.cpp: synchronous steps of the demo's model on one parameter server and two
// workers: each with a graph of its own (sync_replicas), and as two towers of one graph.
//
// bench_synchronous [--peers ENVIRONMENT]: TensorFlow runs the same jobs in turns if it is
// installed. bench_synchronous --bind --mode MODE is the job itself, each task on processors of its
// own.
#include <cstdlib>
#include <deft/deft.hpp>
#include <deft/session/server/coordination.hpp>
#include <random>
#include <sstream>

#include "bench.hpp"
#include "program.hpp"

namespace {

using namespace deft;
using namespace deft::ext;

constexpr std::int64_t batch = 100;
constexpr int batches = 20;

struct weights {
  variable<float, 784, 128> w1{"w1", truncated_normal(0.05f)};
  variable<float, 128> b1{"b1", zeros()};
  variable<float, 128, 10> w2{"w2", truncated_normal(0.05f)};
  variable<float, 10> b2{"b2", zeros()};

  tensor<float> loss(const tensor<float, batch, 784>& x,
                     const tensor<std::int32_t, batch>& label) const {
    return deft::mean(softmax_cross_entropy(matmul(relu(matmul(x, w1) + b1), w2) + b2, label));
  }
};

struct random_batches {
  std::vector<ndarray<float, batch, 784>> images{batches};
  std::vector<ndarray<std::int32_t, batch>> labels{batches};

  explicit random_batches(int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    for (auto& a : images)
      for (auto& e : a) e = std::uniform_real_distribution<float>()(random);
    for (auto& a : labels)
      for (auto& e : a) e = std::uniform_int_distribution<std::int32_t>(0, 9)(random);
  }
};

/// Runs steps until the session is to stop; the chief prints how many a second there were after a
/// while to warm up.
template <class Step>
void train(task& self, monitored_session& s, std::int64_t steps, Step step) {
  using clock = std::chrono::steady_clock;
  const std::int64_t warm = steps / 5;
  clock::time_point begin;
  std::int64_t from = 0, now = 0;
  for (std::size_t i = 0; !s.should_stop(); ++i) {
    now = step(i % batches);
    if (from == 0 && now >= warm) from = now, begin = clock::now();
  }
  if (!self.is_chief()) return;
  const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
  std::printf("rate %.1f\n", static_cast<double>(now - from) / seconds);
}

void own_graphs(task& self) {
  const std::int64_t steps = self.flag("steps", 3000);
  auto scope = on(replica_device(self.cluster(), self.device()));
  const weights model;
  placeholder<float, batch, 784> x("x");
  placeholder<std::int32_t, batch> label("label");
  auto loss = model.loss(x, label);
  auto count = global_step();
  const int workers = self.cluster().tasks("worker");
  auto update = sync_replicas(adagrad(0.1), workers, workers).minimize(loss, count);
  monitored_session s(self, {.hooks = {stop_at_step(steps)}});
  const random_batches data(self.index());
  train(self, s, steps, [&](std::size_t i) {
    const auto [l, n] = s.run(loss, count, update, x = data.images[i], label = data.labels[i]);
    bench::keep(l);
    return n;
  });
}

void two_towers(task& self) {
  const std::int64_t steps = self.flag("steps", 3000);
  if (!self.is_chief()) {  // serves the other worker
    self.server().coordination().wait(task_name("worker", 0), "trained", std::chrono::minutes(5));
    return;
  }
  std::optional<weights> model;
  operation update;
  tensor<float> first_loss;
  std::vector<placeholder<float, batch, 784>> x;
  std::vector<placeholder<std::int32_t, batch>> label;
  auto at_ps = on(device("/job:ps/task:0"));
  model.emplace();
  auto count = global_step();
  const adagrad optimizer(0.1);
  std::vector<std::vector<gradient_of_variable>> gradients;
  for (int tower = 0; tower < 2; ++tower) {
    auto there = on(device(str("/job:worker/task:", tower)));
    auto scope = name_scope(str("tower_", tower));
    x.emplace_back("x");
    label.emplace_back("label");
    auto loss = model->loss(x.back(), label.back());
    if (tower == 0) first_loss = loss;
    gradients.push_back(optimizer.compute_gradients(loss));
  }
  update = optimizer.apply_gradients(average_gradients(gradients), count);
  {
    monitored_session s(self, {.hooks = {stop_at_step(steps)}});
    const random_batches data(0);
    train(self, s, steps, [&](std::size_t i) {
      const std::size_t j = (i + 1) % batches;
      const auto [l, n] =
          s.run(first_loss, count, update, x[0] = data.images[i], label[0] = data.labels[i],
                x[1] = data.images[j], label[1] = data.labels[j]);
      bench::keep(l);
      return n;
    });
  }
  self.server().coordination().signal("trained");
}

double rate_of(const char* mode) {
  bench::program job({"/proc/self/exe", "--bind", "--mode", mode});
  double rate = 0;
  while (job.more()) {
    const std::string line = job.line();
    if (const auto at = line.find(": rate "); at != line.npos)
      rate = std::atof(line.c_str() + at + 7);
  }
  if (job.wait() != 0) std::fprintf(stderr, "the job has failed\n");
  return rate;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = bench::flag(argc, argv, "mode");
  if (!mode.empty())
    return cluster_main(argc, argv, {{"ps", 1}, {"worker", 2}},
                        {{"mode", "replicas or towers"}, {"steps", "number of steps (3000)"}},
                        mode == "towers" ? two_towers : own_graphs);
  const std::string python = bench::python_of(bench::flag(argc, argv, "peers"));
  struct job {
    const char *mode, *name;
    double published;
  };
  for (const job& j : {job{"replicas", "synchronous MLP, ps and 2 workers", 150},
                       job{"towers", "two towers of one graph on 2 workers", 182}}) {
    std::unique_ptr<bench::program> tf;
    if (!python.empty())
      tf = std::make_unique<bench::program>(std::vector<std::string>{
          python, std::string(BENCH_PEERS) + "/tf_synchronous.py", j.mode});
    std::vector<double> own, theirs;
    for (int turn = 0; turn < 3; ++turn) {
      own.push_back(rate_of(j.mode));
      double r = j.published;
      if (tf && !(std::istringstream(tf->ask()) >> r)) tf.reset();
      theirs.push_back(r);
    }
    using bench::median, bench::text;
    bench::row(j.name, text(median(own), "/s"),
               text(median(theirs), "/s") + (tf ? " TensorFlow" : " TensorFlow, published"),
               median(own) / median(theirs), bench::at_least(6));
  }
}
