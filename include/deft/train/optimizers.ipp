// SPDX-License-Identifier: Apache-2.0
// deft/train/optimizers.ipp: what each optimizer writes for a variable. A plan makes one pass over
// the variable and its slots of it. Those formulas of which devices have a compiled pass are in
// kernels/spec/formulas.hpp.
#pragma once
#include <array>
#include <deft/kernels/spec/formulas.hpp>
#include <deft/op/catalog.hpp>
#include <deft/train/optimizers.hpp>

namespace deft {
namespace {

namespace formula = ext::formula;

/// Throws invalid_argument unless the option of an optimizer `is_valid`.
void expect(bool is_valid, std::string_view optimizer, std::string_view what, double got) {
  if (!is_valid)
    ext::fail(errc::invalid_argument, "[", optimizer, "] expects ", what, ", and got ", got);
}
/// Likewise unless it is above 0, also as a number of the variable's dtype.
void expect_positive(std::string_view optimizer, std::string_view what, double got, dtype type) {
  expect(got > 0, optimizer, ext::str(what, " above 0"), got);
  if (type == dtype::float32 && static_cast<float>(got) == 0)
    ext::fail(errc::invalid_argument, "[", optimizer, "] expects ", what, " above 0, and got ", got,
              ", which is 0 as float");
}
/// How much of an average a step keeps.
bool is_part(double x) { return x >= 0 && x < 1; }

/// The steps that write a formula's nodes.
template <class F>
struct graph_steps {
  using value = any_tensor;

  std::array<update_target, F::results> variables;
  std::array<any_tensor, F::operands - F::results> others;
  std::array<operation, F::results> updates = {};

  any_tensor operator[](int k) const {
    const auto i = static_cast<std::size_t>(k);
    return i < variables.size() ? any_tensor(variables[i]) : others[i - variables.size()];
  }
  any_tensor assign(int k, const any_tensor& x) { return note(k, of(k).assign(x)); }
  any_tensor assign_add(int k, const any_tensor& x) { return note(k, of(k).assign_add(x)); }
  any_tensor assign_sub(int k, const any_tensor& x) { return note(k, of(k).assign_sub(x)); }

 private:
  const update_target& of(int k) const { return variables[static_cast<std::size_t>(k)]; }
  any_tensor note(int k, const update_target::updated& done) {
    updates[static_cast<std::size_t>(k)] = done;
    return done.value();
  }
};

/// Writes F, and returns the update of its first variable. `others`: its operands after the
/// variables, in their order.
template <class F>
operation write_formula(std::array<update_target, F::results> variables,
                        std::array<any_tensor, F::operands - F::results> others) {
  graph_steps<F> s{std::move(variables), std::move(others)};
  F::run(s);
  return s.updates[0];
}

any_tensor as_scalar(double x, dtype type) { return hyperparameter(x).as(type); }

}  // namespace

operation sgd::update(const update_target& v, const any_tensor& g) const {
  return v.assign_sub(g * rate_.as(v.type()));
}

operation sgd::update_rows(const any_variable& v, const any_tensor& indices,
                           const any_tensor& rows) const {
  if (ext::is_half(v.type())) return optimizer::update_rows(v, indices, rows);
  return scatter_sub(v, indices, rows * rate_.as(v.type()));
}

operation momentum::update(const update_target& v, const any_tensor& g) const {
  const update_target a = v.slot("momentum", 0);
  const any_tensor kept = kept_.as(v.type()), rate = rate_.as(v.type());
  if (options_.nesterov)
    return write_formula<formula::nesterov<false>>({v, a}, {g, kept, kept, rate});
  return write_formula<formula::momentum<false>>({v, a}, {g, kept, rate});
}

operation adagrad::update(const update_target& v, const any_tensor& g) const {
  expect_positive("adagrad", "an initial accumulator", initial_, v.type());
  const update_target a = v.slot("adagrad", initial_);
  return write_formula<formula::adagrad>({v, a}, {g, rate_.as(v.type())});
}

operation adadelta::update(const update_target& v, const any_tensor& g) const {
  const auto [rho, epsilon] = options_;
  expect(is_part(rho), "adadelta", "a rho from 0 to below 1", rho);
  expect_positive("adadelta", "an epsilon", epsilon, v.type());
  const update_target a = v.slot("adadelta/accumulator", 0), d = v.slot("adadelta/update", 0);
  const any_tensor squares = a.assign(a * rho + square(g) * (1 - rho)).value();
  const any_tensor step = sqrt(d + epsilon) / sqrt(squares + epsilon) * g;
  const operation averaged = d.assign(d * rho + square(step) * (1 - rho));
  return group(v.assign_sub(step * rate_.as(v.type())), averaged);
}

operation rmsprop::update(const update_target& v, const any_tensor& g) const {
  const double fresh = 1 - options_.decay;
  expect(is_part(options_.decay), "rmsprop", "a decay from 0 to below 1", options_.decay);
  expect_positive("rmsprop", "an epsilon", options_.epsilon, v.type());
  expect(options_.momentum >= 0, "rmsprop", "a momentum from 0", options_.momentum);
  using plain = formula::rmsprop;
  graph_steps<plain> s{
      {v, v.slot("rmsprop/square", 1)},
      {g, rate_.as(v.type()), as_scalar(fresh, v.type()), as_scalar(options_.epsilon, v.type())}};
  any_tensor variance = plain::squares(s);
  if (options_.centered) {
    const update_target c = v.slot("rmsprop/mean", 0);
    // Rounding can make it negative where the gradient hardly changes.
    variance = maximum(variance - square(c.assign_add((g - c) * fresh).value()), 0);
  }
  const any_tensor step = plain::step(s, variance);
  if (options_.momentum == 0) return v.assign_sub(step);
  const update_target m = v.slot("rmsprop/momentum", 0);
  return v.assign_sub(m.assign(m * options_.momentum + step).value());
}

operation adam::update(const update_target& v, const any_tensor& g) const {
  const auto [beta1, beta2, epsilon, weight_decay] = options_;
  expect(is_part(beta1), "adam", "a beta1 from 0 to below 1", beta1);
  expect(is_part(beta2), "adam", "a beta2 from 0 to below 1", beta2);
  expect(epsilon >= 0, "adam", "an epsilon from 0", epsilon);
  expect(weight_decay >= 0, "adam", "a weight_decay from 0", weight_decay);
  const update_target power1 = v.scalar_slot("adam/beta1_power", 1);
  const update_target power2 = v.scalar_slot("adam/beta2_power", 1);
  const any_tensor kept1 = power1.assign(power1 * beta1).value();
  const any_tensor kept2 = power2.assign(power2 * beta2).value();
  const any_tensor rate = cast(rate_.as(dtype::float64) * sqrt(1 - kept2) / (1 - kept1), v.type());

  using plain = formula::adam;
  const update_target mean = v.slot("adam/mean", 0);
  graph_steps<plain> s{{v, v.slot("adam/square", 0), mean},
                       {g, rate, as_scalar(1 - beta1, v.type()), as_scalar(1 - beta2, v.type()),
                        as_scalar(epsilon, v.type())}};
  const any_tensor direction = plain::direction(s), squares = plain::squares(s);
  any_tensor step = plain::step(s, direction, squares);
  const bool divides_by_0 =
      v.type() == dtype::float32 ? static_cast<float>(epsilon) == 0 : epsilon == 0;
  if (divides_by_0) step = where(squares == 0, 0, step);
  if (weight_decay != 0) step = step + v * (rate_.as(v.type()) * weight_decay);
  return v.assign_sub(step);
}

operation ftrl::update(const update_target& v, const any_tensor& g) const {
  const auto [power, initial, l1, l2] = options_;
  expect(power <= 0, "ftrl", "a power of at most 0", power);
  expect_positive("ftrl", "an initial accumulator", initial, v.type());
  if (const double* rate = rate_.number())
    expect_positive("ftrl", "a learning rate", *rate, v.type());
  expect(l1 >= 0, "ftrl", "an l1 from 0", l1);
  expect(l2 >= 0, "ftrl", "an l2 from 0", l2);
  const update_target n = v.slot("ftrl/accumulator", initial), z = v.slot("ftrl/linear", 0);
  auto inverse_rate = [&, power = power](const any_tensor& accumulated) {
    const any_tensor root =
        power == -0.5 ? any_tensor(sqrt(accumulated)) : any_tensor(pow(accumulated, -power));
    return any_tensor(root / rate_.as(v.type()));
  };
  const any_tensor before = inverse_rate(n);
  const any_tensor now = inverse_rate(n.assign_add(square(g)).value());
  // A tensor of a rate may come to 0.
  const any_tensor moves = rate_.number() ? any_tensor() : any_tensor(rate_.as(v.type()) != 0);
  const auto if_moves = [&](const any_tensor& x, const any_tensor& otherwise) {
    return moves.valid() ? any_tensor(where(moves, x, otherwise)) : x;
  };
  const any_tensor none = as_scalar(0, v.type());
  const any_tensor linear = z.assign_add(if_moves(g - (now - before) * v, none)).value();
  const any_tensor pull = abs(linear) - l1;
  // NaN stays NaN.
  const any_tensor moved = where(pull <= 0, 0, any_tensor(-sign(linear) * pull / (now + 2 * l2)));
  return v.assign(if_moves(moved, v));
}

}  // namespace deft
