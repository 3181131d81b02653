// builds
#include <deft/deft.hpp>
using namespace deft;
void calls(const tensor<float, dyn, 3>& x, const any_tensor& a, const tensor<std::int32_t, dyn>& i,
           const tensor<std::int64_t>& n, const variable<float, 3, 4>& w) {
  reshape(a, {3, 4});
  reshape(x, dims{3, 4});
  reshape(x, a);
  reshape(a, shape<3, 4>);
  transpose(a);
  transpose(x, axes{1, 0});
  static_cast<void>(tensor<float, 3, dyn>(transpose(x, {0, 1})));
  transpose(a, {1, 0});
  slice(a, {0, 0}, {1, 1});
  slice(a, at<0, 0>, shape<1, 1>);
  slice(x, {n, 0}, shape<1, 1>);
  slice(x, {n, 0}, shape<dyn, 3>, {n});
  zeros({2, 3});
  zeros({2, 3}, dtype::float64);
  zeros(dims{2}, dtype::float64);
  zeros(shape<dyn, 3>, {n});
  ones<double>(shape<2>);
  static_cast<void>(variable<float, 3>("z", zeros()));
  fill({2}, 1.f);
  fill<double>(shape<2>, 1);
  fill(shape<dyn>, {n}, 1);
  fill(dims{2}, a);
  matmul(a, x);
  matmul(x, a, true, false);
  split<3>(a, axis<1>);
  split(a, axis<1>, 3);
  split(x, axes{1}, 3);
  cast<double>(a);
  cast(a, dtype::float64);
  cast(x, dtype::float64);
  sum(a, axis<1>, keepdims);
  sum(x, {0, 1});
  sum(x, {0}, keepdims);
  max(a, axes{1}, keepdims);
  mean(x, axis<1>);
  argmax(a);
  argmax(x);
  argmax(x, {1});
  softmax(a, axis<0>);
  log_softmax(x, axes{0});
  gather(a, i);
  gather(x, i, axis<0>);
  concat(axis<0>, a, x);
  concat(axis<0>, std::vector{x, x});
  concat(axes{0}, std::vector<any_tensor>{a, x});
  stack(axis<0>, a);
  stack(axes{0}, std::vector<any_tensor>{a, a});
  unstack(a, axis<0>);
  unstack(x, axes{1});
  one_hot<4, double>(i);
  one_hot(i, 4);
  one_hot(a, 4, dtype::float64);
  pad(a, {1, 0}, {1, 0});
  pad(a, before<1, 0>, after<0, 0>, 2);
  expand_dims(a, axis<0>);
  expand_dims(x, axes{1});
  broadcast_to(a, {2, 3});
  broadcast_to(x, a);
  ensure_shape(a, {2, 3});
  max_pool(a, {.window = {2, 2}});
  avg_pool(a, window<2>, stride<1>, padding::same);
  conv2d(a, a, stride<2>, padding::same);
  conv2d(a, a, {.stride = {2, 2}});
  gradients(sum(w), w);
  gradients(sum(w), {w, w});
  gradients(sum(w), std::vector{w});
  gradients(a, a);
  where(a, a, 1);
  where(x > 0, 1.f, x);
  random_uniform(shape<2>, -1, 1);
  random_uniform({2}, -1, 1);
  random_uniform(-1, 1);
  random_normal(shape<dyn>, {n});
  truncated_normal({2}, 0.1);
  truncated_normal(0.1);
  constant(1);
  constant({1, 2});
  constant({{1.f}, {2.f}});
  constant({"a", "b"});
  group({});
  group(w.assign(0), a);
  control_dependencies(w.assign(0), a);
  layer_norm(a, "ln");
  batch_norm(a, a, a, a, a, 0.1);
  batch_norm(x, "bn", {.training = false});
  dense<4>(x, "d1");
  dense(a, 4, "d2", {.activation = relu});
  dense(x, w, a);
  dropout(a, 0.5);
  dropout(x, 0.5, {.training = false});
  embedding<10, 4>(i, "e1");
  embedding(a, 10, 4, "e2");
  conv2d(a, 8, {3, 3}, "c1");
  conv2d(a, 8, dims{3, 3}, "c2");
  lstm(a, 4, "l1");
  gru(a, 4, "g1");
  gru_cell(a, x, "g2");
  lstm_cell(a, lstm_state<any_tensor>{a, a}, "l2");
  clip_by_value(a, 0, 1);
  clip_by_norm(a, 1);
  clip_by_norm(x, 1);
  conv2d(a, 8, {3, 3}, "c3", {.activation = relu}, {.stride = {2, 2}});
}
void texts(const tensor<std::string, dyn>& words, const any_tensor& a) {
  static_cast<void>(tensor<bool, dyn>(words == "a"));
  static_cast<void>(tensor<bool, dyn>("a" != words));
  static_cast<void>(tensor<bool, dyn>(std::string("a") == words));
  static_cast<void>(any_tensor(a != std::string_view("a")));
  static_cast<void>(any_tensor("a" == a));
  static_cast<void>(any_tensor(words == a));
  static_cast<void>(variable<std::string>("s", "a"));
  static_cast<void>(variable<std::string, 2>("t", {"a", "b"}));
}
void arrays() {
  const ndarray<float> number(2), braced{2};
  const ndarray<float, 2> list{1, 2}, other({1, 2}), vector(std::vector<float>{1, 2});
  const ndarray<float, 1> one{1};
  const ndarray<float, 2, 2> rows{{1, 2}, {3, 4}};
  const ndarray<float, dyn, 2> some(3), all(3, 2);
  const ndarray<std::string, dyn> texts(3), text{"a"};
}
void runs(session& s, const tensor<float, dyn, 3>& x, const any_tensor& a,
          const placeholder<float, dyn>& k, const run_options& options) {
  s.run(x, a);
  s.run(std::vector{x, x}, k = {1, 2});
  s.run(options, x, a, k = {1, 2});
  s.run({.timeout = std::chrono::seconds(1)}, a, k = {1, 2});
  auto step = s.prepare(x, std::vector{a, a}, feeds(k));
  step({1, 2});
  step(options, {1, 2});
  step({.timeout = std::chrono::seconds(1)}, {1, 2});
  step(options, std::vector<float>{1, 2});
  step(options, k = {1, 2});
}
void layers(const tensor<float, dyn, 8, 8, 3>& x, const conv2d_layer_options& options) {
  conv2d<8>(x, window<3>, "c4");
  conv2d<8>(x, window<3>, "c5", {.activation = relu}, stride<2>, padding::valid);
  conv2d<8>(x, window<3>, "c6", options, stride<2>);
  max_pool(x, window<3>);
  max_pool(x, window<3>, padding::same);
  max_pool(x, window<3>, stride<2>);
  avg_pool(x, window<3>, stride<2>, padding::same);
}
void trains(const tensor<float>& loss, const variable<float, 3>& w, const any_variable& v,
            const variable<std::int64_t>& step) {
  sgd{0.1};
  sgd o(exponential_decay(0.1, step, 1000, 0.96, {.staircase = true}));
  momentum(0.1, 0.9, {.nesterov = true});
  adagrad(0.1, 0.2);
  static_cast<void>(adadelta());
  adadelta({.rho = 0.9});
  rmsprop(loss, {.momentum = 0.9});
  static_cast<void>(adam());
  adam({.beta1 = 0.5});
  adam(0.1, {.beta1 = 0.5});
  adamw(0.1, 0.01);
  ftrl(0.1, {.l1 = 1});
  o.minimize(loss);
  o.minimize(loss, step);
  o.minimize(loss, w);
  o.minimize(loss, v, step);
  o.minimize(loss, {w, v}, step);
  o.apply_gradients(clip_by_global_norm(o.compute_gradients(loss), 5), step);
  global_norm(o.compute_gradients(loss, {w}));
  auto [dw] = gradients(loss, w);
  w.assign_sub(0.1f * dw);
  piecewise_constant(step, {100}, {0.1, 0.01});
  polynomial_decay(0.1, any_tensor(step), 1000, {.power = 2});
  linear_warmup(cosine_decay(0.1, step, 1000), step, 10);
}
