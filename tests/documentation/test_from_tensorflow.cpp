// SPDX-License-Identifier: Apache-2.0
// What docs/from_tensorflow.md shows: its blocks, and the second columns of its tables.
#include <array>
#include <filesystem>
#include <thread>

#include "data/temporary_folder.hpp"
#include "op/modeling.hpp"
#include "train/training.hpp"

using namespace deft;
using namespace deft::ext;
using namespace std::chrono_literals;
using testing::outcome_of;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "a graph is written, fed and run") {
  placeholder<float, dyn, 2> x("x");
  auto w = constant({{1.f}, {10.f}});
  auto y = matmul(x, w) + 0.5f;

  session s;
  ndarray<float, dyn, 1> value = s.run(y, x = {{1, 2}, {3, 4}});
  CHECK(value == ndarray<float, dyn, 1>{21.5f, 43.5f});
}

TEST_CASE_FIXTURE(own_graph, "variables, gradients and an optimizer") {
  const std::vector<float> xs{0, 1, 2, 3}, ys{0.2f, 2.2f, 4.2f, 6.2f};

  placeholder<float, dyn> x("x"), y("y");
  variable<float> w("w", 0.f), b("b", 0.f);
  auto loss = mean(square(w * x + b - y));
  auto train = sgd(0.1).minimize(loss);

  session s;
  s.run(initialize_all());
  for (int i = 0; i < 300; ++i) s.run(train, x = xs, y = ys);
  auto [slope, intercept] = s.run(w, b);
  CHECK(slope == doctest::Approx(2).epsilon(0.01));
  CHECK(intercept == doctest::Approx(0.2).epsilon(0.05));

  SUBCASE("by hand") {
    auto [dw, db] = gradients(loss, w, b);
    auto descend = group(w.assign_sub(0.1f * dw), b.assign_sub(0.1f * db));
    s.run(descend, x = xs, y = ys);
    CHECK(s.run(w) == doctest::Approx(2).epsilon(0.01));
  }
  SUBCASE("in two halves") {
    sgd optimizer(0.1);
    auto of_variables = optimizer.compute_gradients(loss);
    for (auto& g : of_variables) g.gradient = minimum(g.gradient, 1.f);
    auto clipped = optimizer.apply_gradients(of_variables);
    s.run(clipped, x = xs, y = ys);
    CHECK(s.run(w) == doctest::Approx(2).epsilon(0.01));
  }
}

TEST_CASE_FIXTURE(own_graph, "an optimizer with a schedule, clipping and averages") {
  variable<float> w("w", 5.f);
  auto loss = square(w);
  auto step = global_step();
  auto rate = exponential_decay(0.1, step, 100, 0.96, {.staircase = true});

  momentum optimizer(rate, 0.5);
  auto clipped = clip_by_global_norm(optimizer.compute_gradients(loss), 5);
  auto train = optimizer.apply_gradients(clipped, step);
  exponential_moving_average averages(0.99, {.num_updates = step});
  operation both;
  if (auto after = control_dependencies(train)) both = averages.apply();

  session s;
  s.run(initialize_all());
  for (int i = 0; i < 100; ++i) s.run(both);
  CHECK(s.run(w) == doctest::Approx(0).epsilon(1e-3));
  CHECK(s.run(step) == 100);
  s.run(averages.swap());
  CHECK(s.run(w) > 0);
  CHECK(averages.average(w).name() == "w/moving_average");
  CHECK(averages.variables_to_restore().at("w/moving_average").name() == "w");

  // One step each, from different formulas.
  auto others = group(adam(0.001).minimize(loss),
                      momentum(0.1, 0.9, {.nesterov = true}).minimize(w), adagrad(0.5).minimize(w),
                      sync_replicas(optimizer, 2, 3).minimize(loss), sgd(1).minimize(loss, {w}));
  CHECK(trainable_variables().size() == 1);
}

TEST_CASE_FIXTURE(own_graph, "what runs before what is said by control dependencies") {
  variable<std::int32_t> count("count", 0);
  auto add = count.assign_add(1);
  tensor<std::int32_t> seen;
  if (auto after = control_dependencies(add)) seen = count.read();

  session s;
  s.run(initialize_all());
  CHECK(s.run(seen) == 1);
  CHECK(s.run(add.value()) == 2);

  auto [old, now] = s.run(count, add.value());  // a plain read: the value from before the run
  CHECK(old == 2);
  CHECK(now == 3);
}

TEST_CASE_FIXTURE(own_graph, "parts of a graph on devices and tasks") {
  local_cluster c{{"ps", 1}, {"worker", 2}};

  tensor<float> a, sum;
  if (auto ps = on(device("/job:ps/task:0"))) a = constant(1.f);
  if (auto worker = on(device("/job:worker/task:1"))) {
    sum = a + 1.f;
    auto anywhere = on(device(nullptr));  // leaves all scopes around
    CHECK(requested_device(identity(a)).empty());
  }
  auto rule = on(device([](const node_info& n) { return n.op == "matmul" ? "/cpu:0" : ""; }));
  auto product = matmul(constant({{2.f}}), constant({{3.f}}));

  session remote(c.target("worker", 0));
  CHECK(remote.run(sum) == 2);
  CHECK(remote.device_of(sum) == "/job:worker/replica:0/task:1/cpu:0");
  CHECK(requested_device(product) == "/cpu:0");
}

namespace {

void run_worker(task& self) {
  auto scope = on(replica_device(self.cluster(), self.device()));
  variable<float, 2> w("w", zeros());
  auto x = random_uniform(shape<8, 2>, 0, 1);
  auto loss = mean(square(sum(x * (w - 1.f), axis<1>)));
  auto step = global_step();
  auto train = adagrad(0.5).minimize(loss, step);

  std::int64_t last = self.flag("steps", 20);
  monitored_session s(self, {.hooks = {stop_at_step(last), stop_on_nan(loss)}});
  while (!s.should_stop()) s.run(train);
}

const program_flag steps{"steps", "number of steps (20)"};
int program_main(int argc, char** argv) { return task_main(argc, argv, {steps}, run_worker); }

}  // namespace

TEST_CASE("one program is parameter server, worker and single process") {
  testing::threaded_job job(1, 2);
  for (int code : job.run(run_worker)) CHECK(code == 0);
  std::string name = "program";
  std::array<char*, 2> argv{name.data(), nullptr};
  CHECK(program_main(1, argv.data()) == 0);
}

TEST_CASE_FIXTURE(own_graph, "a cluster is named, a server started, and joined") {
  cluster_spec cluster{{"worker", {"localhost:0"}}};
  server worker(cluster, "worker", 0);
  std::thread other([&] { worker.join(); });
  session s(worker.target());
  CHECK(s.run(constant(3)) == 3);
  s.close();
  worker.interrupt();
  other.join();

  server alone = server::local();
  CHECK(session(alone.target()).run(constant(4)) == 4);
}

namespace {

/// Counts the runs.
class counting : public hook {
 public:
  explicit counting(const any_tensor& loss) : loss_(loss) {}
  void begin() override { runs_ = 0; }
  run_arguments before_run(run_context&) override { return {.fetches = {loss_}}; }
  void after_run(run_context& context, std::span<const any_array> values) override {
    ++runs_;
    if (values[0].item<float>() > 2) context.request_stop();
  }
  void end(run_context&) override { CHECK(runs_ == 3); }

 private:
  any_tensor loss_;
  int runs_ = 0;
};

}  // namespace

TEST_CASE("a hook of the program's own") {
  std::string name = "program";
  char* argv[] = {name.data(), nullptr};
  CHECK(task_main(1, argv, [](task& self) {
          variable<float> w("w", 0.f);
          any_tensor now = w.assign_add(1.f).value();
          monitored_session s(self, {.hooks = {std::make_shared<counting>(now)}});
          while (!s.should_stop()) s.run(now);
        }) == 0);
}

TEST_CASE("hooks of training, and norms") {
  testing::temporary_folder temporary;
  const std::string folder = temporary.path().string();
  const char* argv[] = {"program"};
  CHECK(task_main(1, argv, [&](task& self) {
          variable<float, 2> w("w", ndarray<float, 2>{3, 4});
          variable<std::int64_t> ends("ends", std::int64_t{0});
          const auto loss = sum(square(w)) / 2.f;
          const sgd optimizer(0.1);
          const operation train = optimizer.minimize(loss, global_step());
          const operation count = ends.assign_add(1);
          const any_tensor norm = global_norm(optimizer.compute_gradients(loss));
          const any_tensor x(w), clipped = clip_by_norm(x, 5);
          monitored_session s(
              self, {.hooks = {stop_at_step({.num_steps = 3}), log_tensors({{"loss", loss}}, 100),
                               count_steps(100), save_checkpoints(folder, {.every_steps = 100}),
                               run_at_end(count)}});
          const auto before = s.run(std::vector<any_tensor>{norm, clipped});
          CHECK(*before[0].data<double>() == 5);
          CHECK(before[1] == ndarray<float, 2>{3, 4}.array());
          while (!s.should_stop()) s.run(train);
          CHECK(s.session().run(global_step()) == 3);
        }) == 0);
  CHECK(!latest_checkpoint(folder).empty());
  std::atomic<int> turns{0};
  {
    coordinator threads;
    threads.start([&] { ++turns; });
    threads.join();
  }
  CHECK(turns == 1);
}

TEST_CASE("summaries for TensorBoard") {
  testing::temporary_folder temporary;
  const std::string folder = temporary.path().string();
  std::string name = "program";
  char* argv[] = {name.data(), nullptr};
  CHECK(task_main(1, argv, [&](task& self) {
          variable<float> w("w", 3.f);
          auto loss = square(w);
          auto train = sgd(0.1).minimize(loss, global_step());
          {
            session s;
            summary_writer writer(folder);
            writer.graph(s.describe(train).placed);
          }
          const auto x = broadcast_to(w, shape<2, 3>);
          const std::string text = "| rate | 0.1 |";
          std::vector<summary> summaries{scalar_summary("loss", loss), histogram_summary("w", w),
                                         image_summary("x", x), text_summary("options", text)};
          monitored_session s(self,
                              {.hooks = {stop_at_step(250), save_summaries(folder, summaries, 100),
                                         save_traces(folder, 100)}});
          while (!s.should_stop()) s.run(train);
        }) == 0);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files += entry.path().filename().string().starts_with("events.out.tfevents.");
  CHECK(files == 2);
}

TEST_CASE_FIXTURE(own_graph, "options of a session and of a run") {
  session s({.log_device_placement = false,
             .allow_soft_placement = true,
             .intra_op_threads = 0,
             .cpu_devices = 2,
             .timeout = 60s});
  auto y = constant(2.f) * 3.f;
  CHECK(s.run(run_options{.timeout = 5s}, y) == 6);
  cancel_source stop;
  CHECK(s.run(run_options{.cancel = stop.token()}, y) == 6);
  step_trace t;
  CHECK(s.run(run_options{.trace = &t}, y) == 6);
  const testing::temporary_folder folder;
  const std::string file = (folder / "step.json").string();
  write_chrome_trace(file, t);
  CHECK(std::filesystem::exists(file));
  CHECK(list_devices(s).size() == 2);
  CHECK(explain(s, y).find("/cpu:0") != std::string::npos);

  placeholder<float> x("x");
  auto step = s.prepare(x * y, feeds(x));
  CHECK(step(2.f) == 12);

  variable<float> w("w", ones());
  s.run(initialize_all());
  s.reset();
  CHECK(outcome_of([&] { s.run(w); }).code == errc::failed_precondition);
}

TEST_CASE_FIXTURE(own_graph, "names, scopes and graphs") {
  graph g;
  auto in_graph = as_default(g);
  CHECK(current_graph() == g);
  {
    auto layer = name_scope("layer1");
    variable<float, 10> b("b", zeros());
    CHECK(name_of(b) == "layer1/b");
    variable<float, 10> again(g.find_variable("layer1/b"));
    CHECK(same(b, again));

    // A second variable of that name while the first one lives is an error, not "layer1/b_1".
    auto o = outcome_of([] { variable<float, 10>("b", zeros()); });
    CHECK(o.code == errc::already_exists);
  }
  CHECK(!g.find_variable("layer1/b"));  // its last handle is gone

  auto logits = name(constant({1.f, 2.f}) * 2.f, "logits");
  CHECK(same(tensor<float, 2>(g.find("logits")), logits));
}

TEST_CASE_FIXTURE(own_graph, "the initial values of variables") {
  set_seed(1);
  variable<float, 4, 3> w1("w1", truncated_normal(0.1));
  variable<float, 4> w2("w2", random_uniform(-1, 1), {.trainable = false});
  variable<float, 4> w3("w3", w2.initial_value() * 2.f);
  any_variable w4("w4", {2, 3}, random_normal(0, 0.1));
  variable<float, 2, 2> w5("w5", {{1, 2}, {3, 4}});
  session s;
  s.run(w1.initializer(), w2.initializer(), w3.initializer(), w4.initializer());
  s.run(w5.initializer());
  auto [two, three] = s.run(w2, w3);
  for (int i = 0; i < 4; ++i) CHECK(three(i) == 2 * two(i));
  s.run(w2.assign(ndarray<float, 4>{1, 2, 3, 4}));
  CHECK(s.run(w2) == ndarray<float, 4>{1, 2, 3, 4});
  const std::vector<any_tensor> by_each = gradients(sum(w5) * 3.f, {w5, w1});
  CHECK(s.run(by_each[0]) == ndarray<float, 2, 2>{3, 3, 3, 3}.array());
}

TEST_CASE_FIXTURE(own_graph, "operations under their names") {
  placeholder<float, dyn, 4> x("x");
  auto a = constant({1.f, 2.f}), b = constant({3.f, 2.f});
  auto i = constant({0, 1});
  auto p = a < b;
  auto q = a == b;
  tensor<float, dyn, dyn> products = einsum("ij,kj->ik"_es, x, x);
  tensor<float, dyn> row_means = mean(x, axis<1>);
  tensor<float, dyn, 1> row_maxima = max(x, axis<1>, keepdims);
  tensor<std::int64_t, dyn> classes = argmax(x, axis<1>);
  tensor<float, dyn, 2> inner = slice(x, at<0, 1>, shape<dyn, 2>);
  tensor<float, dyn, 2> same_inner = x(all, range<1, 3>);
  tensor<float, 4> last = x(-1);
  tensor<float, dyn, 4, 1> apart = x(ellipsis, newaxis);
  tensor<float, dyn, 4> reversed = x(range(all, all, -1));
  tensor<float, dyn, 4> flipped = flip(x, axis<1>);
  tensor<float, dyn, 4> rolled = roll(x, 1, axis<1>);
  tensor<float, dyn, 8> twice = tile(x, copies<1, 2>);
  tensor<float, dyn, 7> reflected = pad(x, before<0, 1>, after<0, 2>, pad_mode::reflect);
  auto [left, right] = split<2>(x, axis<1>);
  tensor<float, 2, 2> both = stack(axis<1>, a, b);
  std::array<tensor<float, dyn>, 4> columns = unstack(x, axis<1>);
  tensor<float, dyn, 7> padded = pad(x, before<0, 1>, after<0, 2>);
  tensor<float, 4, dyn> turned = transpose(x);
  tensor<float, dyn, 2> pairs = reshape(x, shape<dyn, 2>);
  tensor<float, 4> joined = concat(axis<0>, a, b);
  auto [sum_at_a, sum_at_b] = all_reduce(a, b);
  tensor<float, 2, 1> column = expand_dims(a, axis<1>);
  tensor<float, 2> squeezed = squeeze(column, axis<1>);
  tensor<float, 2> taken = gather(a, i);
  tensor<float, 2, 10> hot = one_hot<10>(i);
  tensor<float, 2> chosen = where(p && !q, a, maximum(a, b));
  tensor<std::int32_t, 2> whole = cast<std::int32_t>(a);
  auto wider = broadcast_to(a, shape<3, 2>);
  auto rows = size_of(x, axis<0>);
  auto unchanged = stop_gradient(identity(a));
  auto activation = softmax(relu(tanh(sigmoid(x))));
  auto losses = softmax_cross_entropy(x, classes);
  auto image = random_normal(shape<8, 28, 28, 1>, 0, 1);
  auto filter = random_normal(shape<5, 5, 1, 6>, 0, 1);
  tensor<float, 8, 14, 14, 6> features = conv2d(image, filter, stride<2>, padding::same);
  tensor<float, 8, 14, 14, 1> halved = max_pool(image, window<2>);
  tensor<float, 8, 14, 14, 1> smooth = avg_pool(image, window<3>, stride<2>, padding::same);
  auto noise = random_normal(shape<2, 3>, 0, 1);
  auto total = sum(x);
  operation nothing = no_op();

  session s;
  const ndarray<float, dyn, 4> value{1, 2, 3, 4, 8, 7, 6, 5};
  auto [mean_of_rows, index, size] = s.run(row_means, classes, rows, x = value);
  CHECK(mean_of_rows == ndarray<float, dyn>{2.5f, 6.5f});
  CHECK(index == ndarray<std::int64_t, dyn>{3, 0});
  CHECK(size == 2);
  CHECK(s.run(products, x = value) == ndarray<float, dyn, dyn>{{30, 60}, {60, 174}});
  CHECK(s.run(total, x = value) == 36);
  CHECK(s.run(chosen) == ndarray<float, 2>{1, 2});
  CHECK(s.run(whole) == ndarray<std::int32_t, 2>{1, 2});
  CHECK(s.run(same_inner, x = value) == s.run(inner, x = value));
  CHECK(s.run(reflected, x = value)(0, 6) == 2);
  s.run(last, apart, reversed, flipped, rolled, twice, squeezed, x = value);
  s.run(row_maxima, turned, pairs, joined, column, taken, hot, wider, unchanged, activation, losses,
        features, halved, smooth, noise, nothing, x = value);
}

TEST_CASE_FIXTURE(own_graph, "several fetches, and lists of them") {
  auto a = constant(1.f), b = constant(2.f);
  session s;
  auto [first, second] = s.run(a, b);
  CHECK(first + second == 3);
  std::vector<any_tensor> layers{a, b, a + b};
  std::vector<any_array> values = s.run(layers);
  CHECK(values[2].item<float>() == 3);
}

TEST_CASE_FIXTURE(own_graph, "what is wrong is an error with a code, a node and a line") {
  placeholder<float> x("x");
  session s;
  try {
    s.run(x * 2.f);  // x is not fed
    FAIL("it ran");
  } catch (const error& e) {
    CHECK(e.code() == errc::invalid_argument);
    CHECK(e.node() == "x");
    CHECK(e.where().line == __LINE__ - 8);
  }
}

TEST_CASE_FIXTURE(own_graph, "two updates of one variable need an order") {
  variable<float> v("v", 1.f);
  auto twice = v.assign(v * 2.f), more = v.assign_add(1.f);
  session s;
  s.run(initialize_all());
  CHECK(outcome_of([&] { s.run(twice, more); }).code == errc::invalid_argument);

  tensor<float> after;
  if (auto first = control_dependencies(twice)) after = v.assign_add(1.f).value();
  CHECK(s.run(after) == 3);
}

TEST_CASE_FIXTURE(own_graph,
                  "integers are divided as in C++, and literals take the tensor's dtype") {
  auto n = constant({7, -7});
  session s;
  CHECK(s.run(n / 2) == ndarray<std::int32_t, 2>{3, -3});
  CHECK(s.run(n % 2) == ndarray<std::int32_t, 2>{1, -1});
  CHECK(s.run(sum(cast<std::uint8_t>(constant({200, 100})))) == 44);
  CHECK(outcome_of([&] { s.run(n / 0); }).code == errc::invalid_argument);

  tensor<double, 2> halves = cast<double>(n) * 0.5;
  CHECK(s.run(halves) == ndarray<double, 2>{3.5, -3.5});
}

TEST_CASE_FIXTURE(own_graph, "random numbers repeat with the seed, and differ from run to run") {
  auto draw = [] {
    graph g;
    auto in_graph = as_default(g);
    set_seed(7);
    auto a = random_uniform(shape<3>, 0, 1), b = random_uniform(shape<3>, 0, 1);
    session s;
    auto [first, other] = s.run(a, b);
    auto second = s.run(a);
    CHECK(!(first == other));
    CHECK(!(first == second));
    return first;
  };
  CHECK(draw() == draw());

  auto a = random_uniform(shape<3>, 0, 1);
  session s, other, same({.stream = 0});
  auto first = s.run(a);
  CHECK(!(first == other.run(a)));
  CHECK(first == same.run(a));
}

TEST_CASE_FIXTURE(own_graph, "shapes are checked when the graph is written, or when it runs") {
  placeholder<float, dyn> x("x"), y("y");
  auto z = x + y;
  session s;
  CHECK(s.run(z, x = {1.f}, y = {1, 2, 3}) == ndarray<float, dyn>{2, 3, 4});
  CHECK(outcome_of([&] { s.run(z, x = {1, 2}, y = {1, 2, 3}); }).code == errc::invalid_argument);

  any_tensor unknown = make_placeholder("unknown", dtype::float32, {dyn, 2});
  const any_tensor total = sum(unknown, axes{1});
  const auto xs = ndarray<float, 2, 2>{1, 2, 3, 4};
  CHECK(ndarray<float, dyn>(s.run(total, feed(unknown, xs))) == ndarray<float, dyn>{3, 7});
  const std::vector<any_tensor> fetches{sum(total, axes{0}), total};
  const std::vector<any_array> values = s.run(fetches, feed(unknown, xs));
  CHECK(values[0].item<float>() == 10);
  CHECK((ndarray<float, dyn>(values[1]) == ndarray<float, dyn>{3, 7}));
  CHECK(outcome_of([&] { matmul(unknown, constant({{1.f}})); }).code == errc::invalid_argument);
  CHECK((tensor<float, dyn, 2>(unknown).extents() == dims{dyn, 2}));
}

TEST_CASE_FIXTURE(own_graph, "checkpoints") {
  const testing::temporary_folder files;
  const std::string folder = files.path().string(), path = folder + "/model";
  variable<float, 4, 2> w("w", ones());
  placeholder<std::int32_t, dyn> ids("ids");
  const auto& table = w;
  const std::int64_t n = 7;
  saver save({.max_to_keep = 3});
  saver renamed({.named = {{"old/w", w}}});
  session s;
  s.run(initialize_all());
  CHECK(save.save(s, path, n) == path + "-7");
  save.restore(s, latest_checkpoint(folder));
  renamed.save(s, folder + "/renamed");
  CHECK(s.run(gather(table, ids), ids = {3, 0}).extent(0) == 2);
  const monitored_options options{
      .checkpoint_dir = folder,
      .checkpoint_steps = 100,
  };
  CHECK(options.max_to_keep == 5);
}
