// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_recurrent.ipp: LSTM and GRU as expressions.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/broadcast_to.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/matmul.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/sigmoid.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/split.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/tanh.hpp>
#include <deft/train/layers_recurrent.hpp>

namespace deft {
namespace detail {
namespace {

void check_gates(const layer_scope& s, const any_tensor& x, const any_tensor& h,
                 const any_tensor& kernel, const any_tensor& bias, int gates) {
  if (!is_floating(x.type()) || x.type() != h.type() || x.type() != kernel.type() ||
      x.type() != bias.type() ||
      !are_gates(x.shape(), h.shape(), kernel.shape(), bias.shape(), gates) || h.shape()[1] == dyn)
    refuse_layer(
        s, x,
        str("expects floating tensors: x of (batch,inputs), a state of (batch,units) with "
            "known units, a kernel of (inputs + units,",
            gates, " units) and a bias of (", gates, " units), and got ", x.handle().type(), ", ",
            h.handle().type(), ", ", kernel.handle().type(), " and ", bias.handle().type()));
}
any_state lstm_step(const any_tensor& gates, const any_tensor& c, double forget_bias) {
  const auto [i, j, f, o] = split<4>(gates, axis<1>);
  const any_tensor next = c * sigmoid(f + forget_bias) + sigmoid(i) * tanh(j);
  return {next, tanh(next) * sigmoid(o)};
}
/// `candidate(r h)` is what tanh is taken of.
template <class F>
any_tensor gru_step(const any_tensor& gates, const any_tensor& h, const F& candidate) {
  const auto [r, u] = split<2>(any_tensor(sigmoid(gates)), axis<1>);
  return u * h + (1 - u) * tanh(candidate(r * h));
}
any_tensor joined(const any_tensor& x, const any_tensor& h) { return concat(axis<1>, x, h); }

}  // namespace

any_state add_lstm(const any_tensor& x, const any_state& state, const any_tensor& kernel,
                   const any_tensor& bias, double forget_bias, source_location w) {
  const layer_scope s{"lstm_cell", {}, false, w};
  check_gates(s, x, state.h, kernel, bias, 4);
  if (state.c.type() != x.type() || !may_equal(state.c.shape(), state.h.shape()))
    refuse_layer(s, state.c,
                 str("expects a state of two tensors of one type, and got ",
                     state.c.handle().type(), " and ", state.h.handle().type()));
  const location_scope on_behalf(w);
  return lstm_step(matmul(joined(x, state.h), kernel) + bias, state.c, forget_bias);
}

any_tensor add_gru(const any_tensor& x, const any_tensor& h, const any_tensor& gates,
                   const any_tensor& gates_bias, const any_tensor& candidate,
                   const any_tensor& candidate_bias, source_location w) {
  const layer_scope s{"gru_cell", {}, false, w};
  check_gates(s, x, h, gates, gates_bias, 2);
  check_gates(s, x, h, candidate, candidate_bias, 1);
  const location_scope on_behalf(w);
  return gru_step(matmul(joined(x, h), gates) + gates_bias, h, [&](const any_tensor& rh) {
    return matmul(joined(x, rh), candidate) + candidate_bias;
  });
}

any_tensor zero_state(const any_tensor& x, std::int64_t units) {
  const any_tensor zero = literal_like(std::int64_t{0}, x.type(), {});
  if (x.shape()[0] != dyn) return broadcast_to(zero, dims{x.shape()[0], units});
  const any_tensor column = slice(unstack_part(x, 1, 0, {}), {0, 0}, {dyn, 1});
  return broadcast_to(broadcast_to(zero, column), dims{dyn, units});
}

std::vector<any_tensor> steps_of(std::string_view layer, const any_tensor& x, source_location w) {
  if (x.rank() != 3 || x.shape()[1] == dyn || x.shape()[1] == 0)
    refuse_layer({layer, {}, false, w}, x,
                 str("expects a sequence of (batch,steps,inputs) whose number of steps is known, "
                     "and got ",
                     x.handle().type()));
  return unstack(x, axis<1>, w);
}

}  // namespace detail

lstm_state<any_tensor> lstm_cell(const any_tensor& x, const lstm_state<any_tensor>& state,
                                 std::string_view name, const lstm_options& options,
                                 ext::source_location w) {
  const detail::layer_scope s{"lstm_cell", name, options.shared, w};
  const auto in_graph = as_default(graph_of(x));
  const std::int64_t in = detail::layer_features(s, x, 2),
                     units = detail::layer_features(s, state.h, 2);
  const any_tensor kernel = detail::layer_weights(s, "kernel", {{in + units, 4 * units}, x.type()},
                                                  options.initializer, options.regularizer);
  const any_tensor bias = detail::layer_variable(s, "bias", {{4 * units}, x.type()}, zeros());
  return detail::add_lstm(x, state, kernel, bias, options.forget_bias, w);
}

namespace {

struct gru_variables {
  any_tensor gates, gates_bias, candidate, candidate_bias;

  gru_variables(const detail::layer_scope& s, const any_tensor& x, std::int64_t in,
                std::int64_t units, const gru_options& o) {
    auto weights = [&](std::string_view suffix, std::int64_t n) {
      return any_tensor(detail::layer_weights(s, suffix, {{in + units, n}, x.type()}, o.initializer,
                                              o.regularizer));
    };
    gates = weights("gates/kernel", 2 * units);
    gates_bias = detail::layer_variable(s, "gates/bias", {{2 * units}, x.type()}, ones());
    candidate = weights("candidate/kernel", units);
    candidate_bias = detail::layer_variable(s, "candidate/bias", {{units}, x.type()}, zeros());
  }
};

}  // namespace

any_tensor gru_cell(const any_tensor& x, const any_tensor& h, std::string_view name,
                    const gru_options& options, ext::source_location w) {
  const detail::layer_scope s{"gru_cell", name, options.shared, w};
  const auto in_graph = as_default(graph_of(x));
  const gru_variables v(s, x, detail::layer_features(s, x, 2), detail::layer_features(s, h, 2),
                        options);
  return detail::add_gru(x, h, v.gates, v.gates_bias, v.candidate, v.candidate_bias, w);
}

namespace {
void check_units(std::string_view layer, const any_tensor& x, std::int64_t units,
                 ext::source_location w) {
  detail::steps_of(layer, x, w);
  if (units < 1)
    detail::refuse_layer({layer, {}, false, w}, x, ext::str("expects units, and got ", units));
}
}  // namespace

unrolled<any_tensor, lstm_state<any_tensor>> lstm(const any_tensor& x, std::int64_t units,
                                                  std::string_view name,
                                                  const lstm_options& options,
                                                  ext::source_location w) {
  check_units("lstm", x, units, w);
  const detail::layer_scope s{"lstm", name, options.shared, w};
  const auto in_graph = as_default(graph_of(x));
  const std::int64_t in = detail::layer_features(s, x, 3), steps = x.shape()[1];
  const any_tensor kernel = detail::layer_weights(s, "kernel", {{in + units, 4 * units}, x.type()},
                                                  options.initializer, options.regularizer);
  const any_tensor bias = detail::layer_variable(s, "bias", {{4 * units}, x.type()}, zeros());
  const ext::location_scope on_behalf(w);
  // What the inputs add to the gates does not wait for the state: one product for all steps.
  const any_tensor inputs = matmul(reshape(x, {dyn, in}), slice(kernel, {0, 0}, {in, dyn})) + bias;
  const any_tensor of_state = slice(kernel, {in, 0}, {units, dyn});
  const any_tensor zero = detail::zero_state(x, units);
  return unroll(
      reshape(inputs, {x.shape()[0], steps, 4 * units}), lstm_state<any_tensor>{zero, zero},
      [&](const any_tensor& step, const lstm_state<any_tensor>& state) {
        return detail::lstm_step(step + matmul(state.h, of_state), state.c, options.forget_bias);
      },
      w);
}

unrolled<any_tensor, any_tensor> gru(const any_tensor& x, std::int64_t units, std::string_view name,
                                     const gru_options& options, ext::source_location w) {
  check_units("gru", x, units, w);
  const detail::layer_scope s{"gru", name, options.shared, w};
  const auto in_graph = as_default(graph_of(x));
  const std::int64_t in = detail::layer_features(s, x, 3), steps = x.shape()[1];
  const gru_variables v(s, x, in, units, options);
  const ext::location_scope on_behalf(w);
  auto of_inputs = [&](const any_tensor& kernel) { return slice(kernel, {0, 0}, {in, dyn}); };
  auto of_state = [&](const any_tensor& kernel) { return slice(kernel, {in, 0}, {units, dyn}); };
  const any_tensor inputs =
      matmul(reshape(x, {dyn, in}), concat(axis<1>, of_inputs(v.gates), of_inputs(v.candidate))) +
      concat(axis<0>, v.gates_bias, v.candidate_bias);
  const any_tensor gates = of_state(v.gates), candidate = of_state(v.candidate);
  return unroll(
      reshape(inputs, {x.shape()[0], steps, 3 * units}), detail::zero_state(x, units),
      [&](const any_tensor& step, const any_tensor& h) {
        return detail::gru_step(
            slice(step, {0, 0}, {dyn, 2 * units}) + matmul(h, gates), h, [&](const any_tensor& rh) {
              return slice(step, {0, 2 * units}, {dyn, units}) + matmul(rh, candidate);
            });
      },
      w);
}

}  // namespace deft
