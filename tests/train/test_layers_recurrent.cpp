// SPDX-License-Identifier: Apache-2.0
#include <deft/train/layers_recurrent.hpp>

#include "differences.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;
using doctest::Approx;

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// (x, h) kernel + bias for row n.
std::vector<double> gates(const any_array& x, const double* h, std::int64_t units,
                          const any_array& kernel, const any_array& bias, std::int64_t n) {
  const std::int64_t in = x.shape()[1], out = bias.shape()[0];
  std::vector<double> sums;
  for (std::int64_t o = 0; o < out; ++o) {
    double sum = bias.data<double>()[o];
    for (std::int64_t i = 0; i < in; ++i)
      sum += x.data<double>()[n * in + i] * kernel.data<double>()[i * out + o];
    for (std::int64_t i = 0; i < units; ++i)
      sum += h[i] * kernel.data<double>()[(in + i) * out + o];
    sums.push_back(sum);
  }
  return sums;
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "lstm_cell has TensorFlow's gates: i, j, f, o") {
  placeholder<double, dyn, 3> x("x");
  placeholder<double, dyn, 2> c("c"), h("h");
  placeholder<double, 5, 8> kernel("kernel");
  placeholder<double, 8> bias("bias");
  const auto next = lstm_cell(x, lstm_state{c, h}, kernel, bias, 0.7);
  static_assert(std::is_same_v<decltype(next), const lstm_state<tensor<double, dyn, 2>>>);
  const std::vector<any_array> v{numbers({4, 3}), numbers({4, 2}, 0.2), numbers({4, 2}, -0.1),
                                 numbers({5, 8}, 0.05), numbers({8}, 0.1)};
  session s;
  const auto [nc, nh] = s.run(any_tensor(next.c), any_tensor(next.h), feed(any_tensor(x), v[0]),
                              feed(any_tensor(c), v[1]), feed(any_tensor(h), v[2]),
                              feed(any_tensor(kernel), v[3]), feed(any_tensor(bias), v[4]));
  for (std::int64_t n = 0; n < 4; ++n) {
    const auto g = gates(v[0], v[2].data<double>() + 2 * n, 2, v[3], v[4], n);
    for (std::int64_t k = 0; k < 2; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const double to = v[1].data<double>()[2 * n + k] * logistic(g[4 + at] + 0.7) +
                        logistic(g[at]) * std::tanh(g[2 + at]);
      CHECK(nc.data<double>()[2 * n + k] == Approx(to));
      CHECK(nh.data<double>()[2 * n + k] == Approx(std::tanh(to) * logistic(g[6 + at])));
    }
  }
}

TEST_CASE_FIXTURE(own_graph, "gru_cell has TensorFlow's gates: r, u") {
  placeholder<double, dyn, 3> x("x");
  placeholder<double, dyn, 2> h("h");
  placeholder<double, 5, 4> w("w");
  placeholder<double, 4> b("b");
  placeholder<double, 5, 2> w2("w2");
  placeholder<double, 2> b2("b2");
  const tensor<double, dyn, 2> next = gru_cell(x, h, w, b, w2, b2);
  const std::vector<any_array> v{numbers({3, 3}),   numbers({3, 2}, 0.2),  numbers({5, 4}, 0.05),
                                 numbers({4}, 0.1), numbers({5, 2}, -0.2), numbers({2}, 0.3)};
  session s;
  const any_array y = s.run(any_tensor(next), feed(any_tensor(x), v[0]), feed(any_tensor(h), v[1]),
                            feed(any_tensor(w), v[2]), feed(any_tensor(b), v[3]),
                            feed(any_tensor(w2), v[4]), feed(any_tensor(b2), v[5]));
  for (std::int64_t n = 0; n < 3; ++n) {
    const double* old = v[1].data<double>() + 2 * n;
    const auto g = gates(v[0], old, 2, v[2], v[3], n);
    const double reset[] = {logistic(g[0]) * old[0], logistic(g[1]) * old[1]};
    const auto c = gates(v[0], reset, 2, v[4], v[5], n);
    for (std::size_t k = 0; k < 2; ++k) {
      const double u = logistic(g[2 + k]);
      CHECK(y.data<double>()[2 * n + static_cast<std::int64_t>(k)] ==
            Approx(u * old[k] + (1 - u) * std::tanh(c[k])));
    }
  }
}

TEST_CASE("gradients of the cells agree with central differences") {
  check_differences({numbers({2, 3}), numbers({2, 2}, 0.2), numbers({2, 2}, -0.1),
                     numbers({5, 8}, 0.05), numbers({8}, 0.1)},
                    [](const std::vector<any_tensor>& x) {
                      const auto next = lstm_cell(x[0], lstm_state{x[1], x[2]}, x[3], x[4]);
                      return any_tensor(next.c * next.h);
                    });
  check_differences({numbers({2, 3}), numbers({2, 2}, 0.2), numbers({5, 4}, 0.05),
                     numbers({4}, 0.1), numbers({5, 2}, -0.2), numbers({2}, 0.3)},
                    [](const std::vector<any_tensor>& x) {
                      return gru_cell(x[0], x[1], x[2], x[3], x[4], x[5]);
                    });
}

TEST_CASE_FIXTURE(own_graph, "lstm and gru go over the steps of a sequence with one cell") {
  for (const bool dynamic : {false, true}) {
    const auto scope = name_scope(dynamic ? "dynamic" : "known");
    const any_tensor x =
        make_placeholder("x", dtype::float64, dims{dynamic ? dyn : std::int64_t{2}, 3, 2});
    const auto all = lstm(x, 2, "lstm");
    const auto other = gru(x, 2, "gru");
    CHECK(type_of(all.outputs) == (dynamic ? "double(?,3,2)" : "double(2,3,2)"));
    const std::string prefix = dynamic ? "dynamic/" : "known/";
    const auto variable = [&](const std::string& name) {
      return any_tensor(any_variable(g.find_variable(prefix + name)));
    };
    const any_array in = numbers({2, 3, 2}), kernel = numbers({4, 8}, 0.05), bias = numbers({8});
    const std::vector<point> at{
        {x, in}, {variable("lstm/kernel"), kernel}, {variable("lstm/bias"), bias}};
    session s;
    const auto [outputs, c, h] = s.run(all.outputs, all.state.c, all.state.h, feeds_of(at));
    std::vector<double> old_c(4), old_h(4);
    for (std::int64_t t = 0; t < 3; ++t) {
      any_array step(dtype::float64, {2, 2});
      for (std::int64_t i = 0; i < 4; ++i)
        step.mutable_data<double>()[i] = in.data<double>()[i / 2 * 6 + t * 2 + i % 2];
      for (std::size_t n = 0; n < 2; ++n) {
        const auto gate = gates(step, &old_h[2 * n], 2, kernel, bias, static_cast<std::int64_t>(n));
        for (std::size_t k = 0; k < 2; ++k) {
          old_c[2 * n + k] = old_c[2 * n + k] * logistic(gate[4 + k] + 1) +
                             logistic(gate[k]) * std::tanh(gate[2 + k]);
          old_h[2 * n + k] = std::tanh(old_c[2 * n + k]) * logistic(gate[6 + k]);
          CHECK(outputs.template data<double>()[n * 6 + static_cast<std::size_t>(t) * 2 + k] ==
                Approx(old_h[2 * n + k]));
        }
      }
    }
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(c.template data<double>()[i] == Approx(old_c[i]));
      CHECK(h.template data<double>()[i] == Approx(old_h[i]));
    }
    const std::vector<point> of_gru{{x, in},
                                    {variable("gru/gates/kernel"), numbers({4, 4}, 0.05)},
                                    {variable("gru/gates/bias"), numbers({4})},
                                    {variable("gru/candidate/kernel"), numbers({4, 2}, 0.2)},
                                    {variable("gru/candidate/bias"), numbers({2})}};
    const any_tensor zero = detail::zero_state(x, 2);
    const auto cells = unroll(x, zero, [](const any_tensor& step, const any_tensor& from) {
      return gru_cell(step, from, "gru");
    });
    CHECK(g.variables().size() == 6);
    const auto [by_cells, at_once] = s.run(cells.outputs, other.outputs, feeds_of(of_gru));
    for (std::size_t i = 0; i < 12; ++i)
      CHECK(by_cells.template data<double>()[i] == Approx(at_once.template data<double>()[i]));
    check_differences(all.outputs, at);
    check_differences(other.outputs, of_gru);
  }
}

TEST_CASE_FIXTURE(own_graph, "recurrent layers are typed by their extents") {
  placeholder<float, dyn, 20, 8> x("x");
  const auto [outputs, state] = lstm<16>(x, "lstm");
  static_assert(std::is_same_v<decltype(outputs), const tensor<float, dyn, 20, 16>>);
  static_assert(std::is_same_v<decltype(state), const lstm_state<tensor<float, dyn, 16>>>);
  static_assert(std::is_same_v<decltype(gru<4>(x, "gru").state), tensor<float, dyn, 4>>);
  placeholder<float, dyn, 16> c("c"), h("h");
  variable<float, 24, 64> kernel("kernel", zeros());
  variable<float, 64> bias("bias", zeros());
  const auto all = unroll(x, lstm_state<tensor<float, dyn, 16>>{c, h},
                          [&](const tensor<float, dyn, 8>& step, const auto& from) {
                            return lstm_cell(step, from, kernel, bias);
                          });
  static_assert(std::is_same_v<decltype(all.outputs), tensor<float, dyn, 20, 16>>);
  CHECK(any_variable(g.find_variable("lstm/kernel")).shape() == dims{24, 64});
}

TEST_CASE_FIXTURE(own_graph, "errors of recurrent layers") {
  const any_tensor x = any(dtype::float32, {dyn, 3, 2}), h = any(dtype::float32, {dyn, 4});
  const any_tensor step = any(dtype::float32, {dyn, 2}), kernel = any(dtype::float32, {6, 16});
  check_error(
      [&] {
        lstm(any(dtype::float32, {4, dyn, 2}), 3, "lstm");
      },
      "invalid_argument: [lstm] expects a sequence of (batch,steps,inputs) whose number of "
      "steps is known, and got float(4,?,2)");
  check_error([&] { gru(x, 0, "gru"); }, "invalid_argument: [gru] expects units, and got 0");
  check_error(
      [&] {
        lstm_cell(step, lstm_state{h, h}, kernel, any(dtype::float32, {4}));
      },
      "invalid_argument: [lstm_cell] expects floating tensors: x of (batch,inputs), a state "
      "of (batch,units) with known units, a kernel of (inputs + units,4 units) and a bias of "
      "(4 units), and got float(?,2), float(?,4), float(6,16) and float(4)");
  check_error(
      [&] {
        lstm_cell(step, lstm_state{step, h}, kernel, any(dtype::float32, {16}));
      },
      "invalid_argument: [lstm_cell] expects a state of two tensors of one type");
  check_error([&] { unroll(step, h, [](auto, auto s) { return s; }); },
              "invalid_argument: [unroll] expects a sequence of (batch,steps,inputs)");
}
