// SPDX-License-Identifier: Apache-2.0
// 20_mnist_towers: one model, trained on several devices in synchronous steps of one graph. Each
// device has a tower, the model on images of its own; all share the variables, on the processor,
// where the mean of their gradients is applied once. Then the moving averages of the variables are
// evaluated, from the checkpoint.
//
//     TFRecord files ── decode ── shuffle ── batch ── prefetch ── images, labels
//                                                            ┌────┴────┐
//     w1 b1 w2 b2 ──┬── tower_0 on /gpu:0: loss, gradients ◀─┘         │
//        ▲          └── tower_1 on /gpu:1: loss, gradients ◀───────────┘
//        └── momentum ◀── mean of the gradients
//
// ctest: --steps 120 --batch 32
// prints: step 100, loss [0-9.]+ \([0-9]+ examples/s; [0-9.]+ s/batch\)
// same losses: 0.02
// prints: accuracy of the averages of step 120: 0\.[5-9]
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>

#include "../mnist_records.hpp"
#include "model.hpp"

using namespace deft;

namespace {

std::vector<std::string> devices_of(task& self) {
  std::vector<std::string> names;
  std::istringstream given(self.flag("devices"));
  for (std::string name; std::getline(given, name, ',');) names.push_back(name);
  if (!names.empty()) return names;
  for (const auto& d : session(self).devices())
    if (d.name->type == "gpu") names.push_back("/gpu:" + std::to_string(names.size()));
  return names.empty() ? std::vector<std::string>{"/cpu:0", "/cpu:0"} : names;
}

void train(task& self, const std::filesystem::path& to) {
  const std::int64_t steps = self.flag("steps", 1500), batch = self.flag("batch", 64);
  const auto devices = devices_of(self);
  const auto towers = static_cast<std::int64_t>(devices.size());

  auto on_processor = on(device("/cpu:0"));
  const model shared;
  auto step = global_step();
  const auto rate = exponential_decay(0.1, step, 350, 0.5, {.staircase = true});
  const momentum optimizer(rate, 0.9);

  placeholder<float, dyn, 784> x("x");
  placeholder<std::int32_t, dyn> label("label");
  std::vector<std::vector<gradient_of_variable>> gradients;
  any_tensor loss;  // of the first tower
  for (std::int64_t i = 0; i < towers; ++i) {
    const std::string tower = "tower_" + std::to_string(i);
    auto scope = name_scope(tower);
    auto there = on(device(devices[static_cast<std::size_t>(i)]));
    const any_tensor of_tower = shared.loss(slice(x, {i * batch, 0}, {batch, 784}),
                                            slice(label, {i * batch}, {batch}), tower);
    if (i == 0) loss = of_tower;
    gradients.push_back(optimizer.compute_gradients(of_tower));
  }
  const auto mean_gradients = average_gradients(gradients);
  exponential_moving_average averages(0.99, {.num_updates = step});
  operation update;
  if (auto after = control_dependencies(optimizer.apply_gradients(mean_gradients, step)))
    update = averages.apply();

  std::vector<summary> summaries{scalar_summary("loss", loss), scalar_summary("rate", rate)};
  for (const auto& [v, gradient] : mean_gradients) {
    summaries.push_back(histogram_summary(v.name(), v));
    summaries.push_back(histogram_summary(v.name() + "/gradient", gradient));
  }

  monitored_session s(self, {.checkpoint_dir = to / "checkpoints",
                             .hooks = {stop_at_step(steps), stop_on_nan(loss),
                                       save_summaries(to / "summaries", summaries)},
                             .checkpoint_steps = 1000});
  std::printf("%zu towers:", devices.size());
  for (const auto& name : devices) std::printf(" %s", name.c_str());
  std::printf("\n");
  const auto files = write_records(mnist(self.data_dir()), to / "records");
  using clock = std::chrono::steady_clock;
  auto begin = clock::now();
  std::int64_t n = 0;
  for (auto& [images, labels] : examples(files, image_and_label, {.threads = 2})
                                    .shuffle(10'000, 1)
                                    .batch(towers * batch, true)
                                    .repeat()
                                    .prefetch(2)) {
    if (s.should_stop()) break;
    if (++n % 100 != 0) {
      s.run(update, x = images, label = labels);
      continue;
    }
    const auto [l, before] = s.run(loss, step, update, x = images, label = labels);
    const double seconds = std::chrono::duration<double>(clock::now() - begin).count() / 100;
    begin = clock::now();
    std::printf("step %lld, loss %.3f (%.0f examples/s; %.4f s/batch)\n",
                static_cast<long long>(before + 1), static_cast<double>(l.item<float>()),
                static_cast<double>(towers * batch) / seconds, seconds);
  }
}

/// The same model with the averages in place of the variables.
float evaluate(task& self, const std::filesystem::path& to) {
  const model averaged;
  auto step = global_step();
  placeholder<float, dyn, 784> x("x");
  placeholder<std::int64_t, dyn> label("label");
  const auto right = argmax(averaged.logits(x), {1}) == label;
  const tensor<float> accuracy(any_tensor(mean(cast(right, dtype::float32))));

  session s(self);
  saver restorer({.named = exponential_moving_average(0.99).variables_to_restore()});
  restorer.restore(s, latest_checkpoint(to / "checkpoints"));
  float sum = 0, batches = 0;
  for (auto& [images, labels] : mnist_test(self.data_dir()).batch(1000, true)) {
    sum += s.run(accuracy, x = images,
                 label = std::vector<std::int64_t>(labels.begin(), labels.end()));
    ++batches;
  }
  std::printf("accuracy of the averages of step %lld: %.4f\n", static_cast<long long>(s.run(step)),
              static_cast<double>(sum / batches));
  return sum / batches;
}

}  // namespace

int main(int argc, char** argv) {
  task self(argc, argv,
            {{"devices", "as /gpu:0,/gpu:1 (all GPUs, or two towers on the processor)"},
             {"steps", "number of steps (1500)"},
             {"batch", "images of a tower's step (64)"},
             {"to", "folder of records, checkpoints and summaries (towers)"},
             {"evaluate", "1: only evaluates the newest checkpoint"}});
  const std::filesystem::path to = self.flag("to", "towers");
  if (self.flag("evaluate", 0) == 0) train(self, to);
  graph of_evaluation;
  auto in_graph = as_default(of_evaluation);
  return evaluate(self, to) > 0.5F ? 0 : 1;
}
