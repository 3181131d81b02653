// SPDX-License-Identifier: Apache-2.0
// Layers and optimizers give the same results on a processor, on a GPU and with variables on a
// parameter server, for extents known at compile time, in a run and when the model is written.
#include <deft/train/layers.hpp>
#include <deft/train/moving_average.hpp>
#include <deft/train/optimizers.hpp>
#include <functional>

#include "differences.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using doctest::Approx;

namespace {

using values = std::vector<any_array>;

void check_near(const values& a, const values& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(a[i].shape() == b[i].shape());
    for (std::int64_t e = 0; e < a[i].elements(); ++e)
      CHECK(a[i].data<float>()[e] == Approx(b[i].data<float>()[e]).epsilon(1e-4));
  }
}

/// What `f` makes of a session, whose model it writes first, wherever that is.
void check_everywhere(const std::function<values(const std::function<session()>&)>& f) {
  const auto written = [&](const device_spec& there, const std::function<session()>& open) {
    testing::own_graph own;
    set_seed(3);
    auto scope = on(there);
    return f(open);
  };
  const values on_processor =
      written(device("/cpu:0"), [] { return session({.simulated_gpus = 0}); });
  {
    INFO("a simulated GPU");
    check_near(written(device("/gpu:0"), [] { return session({.simulated_gpus = 1}); }),
               on_processor);
  }
  INFO("variables on two parameter servers");
  local_cluster c{{"ps", 2}, {"worker", 1}};
  check_near(written(replica_device(c.spec(), "/job:worker/task:0"),
                     [&] { return session(c.target("worker", 0)); }),
             on_processor);
}

}  // namespace

TEST_CASE("every optimizer trains variables of any extents anywhere") {
  const std::pair<const char*, std::function<std::unique_ptr<optimizer>()>> optimizers[] = {
      {"sgd", [] { return std::make_unique<sgd>(0.1); }},
      {"momentum", [] { return std::make_unique<momentum>(0.1, 0.9); }},
      {"nesterov", [] { return std::make_unique<momentum>(0.1, 0.9, momentum_options{true}); }},
      {"adagrad", [] { return std::make_unique<adagrad>(0.1); }},
      {"adadelta", [] { return std::make_unique<adadelta>(1.0); }},
      {"rmsprop", [] { return std::make_unique<rmsprop>(0.01); }},
      {"centered",
       [] {
         return std::make_unique<rmsprop>(0.01, rmsprop_options{.momentum = 0.5, .centered = true});
       }},
      {"adam", [] { return std::make_unique<adam>(0.01); }},
      {"adamw", [] { return std::make_unique<adamw>(0.01); }},
      {"ftrl", [] { return std::make_unique<ftrl>(0.1, ftrl_options{.l1 = 0.01}); }},
  };
  for (const auto& [name, make] : optimizers) {
    CAPTURE(std::string(name));
    check_everywhere([&](const std::function<session()>& open) {
      const ndarray<float, 4> begin{1.5f, -0.7f, 0, 2};
      variable<float, 4> known("known", begin);
      variable<float, dyn> unknown("unknown", begin);
      any_variable untyped("untyped", {4}, begin);
      const auto wanted = constant({0.2f, -0.1f, 0.4f, -3.f});
      const auto loss = [&](const auto& v) { return any_tensor(sum(square(v - wanted))); };
      const operation step = make()->minimize(loss(known) + loss(unknown) + loss(untyped));
      exponential_moving_average averages(0.5);
      operation both;
      if (auto after = control_dependencies(step)) both = averages.apply();
      session s = open();
      s.run(initialize_all());
      for (int i = 0; i < 4; ++i) s.run(both);
      values all;
      for (const node_ref& n : current_graph().variables()) {
        const std::string& of = any_variable(n).name();  // "known", "known/adam/mean"
        const node_ref v = current_graph().find_variable(of.substr(0, of.find('/')));
        CHECK(s.device_of(any_tensor(output{n, 0})) == s.device_of(any_tensor(output{v, 0})));
      }
      for (const any_variable& v : {any_variable(known), any_variable(unknown), untyped}) {
        all.push_back(s.run(any_tensor(v)));
        all.push_back(s.run(any_tensor(averages.average(v))));
      }
      for (std::size_t i = 2; i < all.size(); ++i) CHECK(all[i] == all[i - 2]);
      CHECK(all[0].data<float>()[3] < 2);
      CHECK(all[1].data<float>()[3] > all[0].data<float>()[3]);
      return all;
    });
  }
}

namespace {

/// Trains `layer`, a function of images, rows or sequences of T whose extents after the first are
/// `E`, and compares what it then makes of its input. `averages`: it keeps moving averages.
template <class T, std::int64_t... E, class Layer>
void check_layer(const Layer& layer, bool averages = false) {
  constexpr std::int64_t batch = 4;
  any_array input(dtype_of<T>, dims{batch, E...});
  for (std::int64_t i = 0; i < input.elements(); ++i) {
    const auto drawn = static_cast<T>((i * 7) % 9);
    input.mutable_data<T>()[i] = std::is_integral_v<T> ? drawn : drawn / 4 - 1;
  }
  const auto trained = [&](const auto& x, const std::function<session()>& open) {
    const any_tensor y = layer(x);
    CHECK(y.shape()[0] == any_tensor(x).shape()[0]);
    std::vector<operation> steps{sgd(0.1).minimize(mean(square(y - 0.5f)))};
    if (averages) steps.push_back(update_moving_averages());
    const operation step = group(steps);
    session s = open();
    s.run(initialize_all());
    const auto in = feed(any_tensor(x), input);
    for (int i = 0; i < 3; ++i) s.run(step, in);
    return any_array(s.run(y, in));
  };
  check_everywhere([&](const std::function<session()>& open) {
    values all;
    const auto next = [&](const auto& write) {
      testing::own_graph own;
      set_seed(3);
      all.push_back(trained(write(), open));
    };
    next([] { return placeholder<T, batch, E...>("x"); });
    next([] { return placeholder<T, dyn, E...>("x"); });
    for (const std::int64_t first : {batch, dyn})
      next([&] { return make_placeholder("x", dtype_of<T>, dims{first, E...}); });
    for (std::size_t i = 1; i < all.size(); ++i) check_near({all[i]}, {all[0]});
    return all;
  });
}

template <class X>
constexpr bool typed = typed_expression<X>;

}  // namespace

TEST_CASE("fully connected layers train anywhere") {
  check_layer<float, 3>([]<class X>(const X& x) {
    if constexpr (typed<X>)
      return any_tensor(dense<2>(x, "fc", {.activation = relu}));
    else
      return dense(x, 2, "fc", {.activation = relu});
  });
}

TEST_CASE("convolutions and pooling train anywhere") {
  check_layer<float, 6, 5, 2>([]<class X>(const X& x) {
    if constexpr (typed<X>)
      return any_tensor(max_pool(conv2d<3>(x, window<3>, "conv", {.activation = tanh}), window<2>));
    else
      return any_tensor(
          max_pool(conv2d(x, 3, {3, 3}, "conv", {.activation = tanh}), {.window = {2, 2}}));
  });
  check_layer<float, 6, 6, 1>([]<class X>(const X& x) {
    if constexpr (typed<X>)
      return any_tensor(avg_pool(
          conv2d<2>(x, window<3>, "conv", {.bias = false}, stride<2>, padding::valid), window<2>));
    else
      return any_tensor(avg_pool(conv2d(x, 2, {3, 3}, "conv", {.bias = false},
                                        {.stride = {2, 2}, .padding = padding::valid}),
                                 {.window = {2, 2}}));
  });
}

TEST_CASE("normalizations train anywhere") {
  check_layer<float, 2, 3>([](const auto& x) { return any_tensor(layer_norm(x, "norm")); });
  check_layer<float, 2, 3>(
      [](const auto& x) { return any_tensor(batch_norm(x, "norm", {.momentum = 0.5})); }, true);
}

TEST_CASE("dropout draws the same anywhere") {
  check_layer<float, 8>(
      [](const auto& x) { return dense(any_tensor(dropout(x, 0.5, {.seed = 5})), 3, "fc"); });
}

TEST_CASE("embeddings train anywhere") {
  check_layer<std::int32_t, 3>([]<class X>(const X& x) {
    if constexpr (typed<X>)
      return any_tensor(embedding<9, 4>(x, "words"));
    else
      return embedding(x, 9, 4, "words");
  });
}

TEST_CASE("recurrent layers train anywhere") {
  check_layer<float, 3, 2>([]<class X>(const X& x) {
    if constexpr (typed<X>)
      return any_tensor(lstm<4>(x, "lstm").outputs);
    else
      return lstm(x, 4, "lstm").outputs;
  });
  check_layer<float, 3, 2>([]<class X>(const X& x) {
    if constexpr (typed<X>)
      return any_tensor(gru<4>(x, "gru").state);
    else
      return gru(x, 4, "gru").state;
  });
}
