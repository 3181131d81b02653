// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_recurrent.hpp: LSTM and GRU cells, and their steps over a sequence.
#pragma once
#include <deft/op/stack.hpp>
#include <deft/op/unstack.hpp>
#include <deft/train/layers_common.hpp>
#include <type_traits>
#include <utility>

namespace deft {

namespace op {
struct lstm_cell;  ///< several operations; only messages use these names
struct gru_cell;
struct lstm;
struct gru;
struct unroll;
}  // namespace op

/// What an LSTM cell keeps: both (batch,units). Its output is h.
template <class C = any_tensor, class H = C>
struct lstm_state {
  C c;  ///< the memory of the cell
  H h;  ///< its output
};
/// @cond deduction guide
template <class C, class H>
lstm_state(C, H) -> lstm_state<C, H>;
/// @endcond

namespace detail {
using any_state = lstm_state<any_tensor>;
// By name: nvcc loses braces within the arguments of a call.
template <class C, class H>
any_state without_types(const lstm_state<C, H>& s) {
  any_state a;
  a.c = any_tensor(s.c);
  a.h = any_tensor(s.h);
  return a;
}

/// Whether `kernel` is (inputs + units, gates units), and `bias` (gates units).
constexpr bool are_gates(const dims& x, const dims& h, const dims& kernel, const dims& bias,
                         int gates) {
  if (x.n != 2 || h.n != 2 || kernel.n != 2 || bias.n != 1) return false;
  auto agree = [](std::int64_t m, std::int64_t n) { return m == n || m == dyn || n == dyn; };
  auto times = [&](std::int64_t e) { return e == dyn ? dyn : gates * e; };
  const std::int64_t in = x.e[1] == dyn || h.e[1] == dyn ? dyn : x.e[1] + h.e[1];
  return agree(x.e[0], h.e[0]) && agree(kernel.e[0], in) && agree(kernel.e[1], times(h.e[1])) &&
         agree(bias.e[0], times(h.e[1]));
}
template <class X, class C, class H, class W, class B>
inline constexpr bool can_be_lstm =
    std::is_same_v<value_type_of<X>, value_type_of<W>>&& is_floating_type<value_type_of<X>>&&
        may_equal(extents_of<C>, extents_of<H>) &&
    are_gates(extents_of<X>, extents_of<H>, extents_of<W>, extents_of<B>, 4);
template <class X, class H, class W, class B, class W2, class B2>
inline constexpr bool can_be_gru =
    std::is_same_v<value_type_of<X>, value_type_of<W>>&& is_floating_type<value_type_of<X>>&&
        are_gates(extents_of<X>, extents_of<H>, extents_of<W>, extents_of<B>, 2) &&
    are_gates(extents_of<X>, extents_of<H>, extents_of<W2>, extents_of<B2>, 1);

any_state add_lstm(const any_tensor& x, const any_state& state, const any_tensor& kernel,
                   const any_tensor& bias, double forget_bias, source_location w);
any_tensor add_gru(const any_tensor& x, const any_tensor& h, const any_tensor& gates,
                   const any_tensor& gates_bias, const any_tensor& candidate,
                   const any_tensor& candidate_bias, source_location w);
}  // namespace detail

/// One step of an LSTM (Hochreiter, Schmidhuber: Long short-term memory, 1997; forget gate of Gers
/// et al., 2000) as TensorFlow's BasicLSTMCell computes it: concat(x, h) kernel + bias is, along
/// axis 1, the input gate i, the new values j, the forget gate f and the output gate o, each as
/// wide as h, and
///     c' = c sigmoid(f + forget_bias) + sigmoid(i) tanh(j),  h' = tanh(c') sigmoid(o).
/// x is (batch,inputs), kernel (inputs + units, 4 units), bias (4 units).
template <ext::expression X, ext::expression C, ext::expression H, ext::expression W,
          ext::expression B, class K = ext::kernels_for<X>>
auto lstm_cell(const X& x, const lstm_state<C, H>& state, const W& kernel, const B& bias,
               double forget_bias = 1, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<C> && ext::typed_expression<H> &&
                ext::typed_expression<W> && ext::typed_expression<B>) {
    if constexpr (!detail::can_be_lstm<X, C, H, W, B>) {
      static_assert(detail::takes<op::lstm_cell, detail::got<X>, detail::got<C>, detail::got<H>,
                                  detail::got<W>, detail::got<B>>,
                    "[lstm_cell] expects x of (batch,inputs), a state of (batch,units), a kernel "
                    "of (inputs + units, 4 units) and a bias of (4 units)");
      return lstm_state<detail::refused>();
    } else {
      const auto next =
          detail::add_lstm(any_tensor(detail::any_lower<K>(x, w)), detail::without_types(state),
                           any_tensor(kernel), any_tensor(bias), forget_bias, w);
      using R = ext::tensor_of<ext::value_type_of<H>, ext::shape_type_of<H>>;
      return lstm_state<R>{R(next.c.handle()), R(next.h.handle())};
    }
  } else
    return detail::add_lstm(any_tensor(x), detail::without_types(state), any_tensor(kernel),
                            any_tensor(bias), forget_bias, w);
}

/// One step of a GRU (Cho et al.: Learning phrase representations, 2014) as TensorFlow's GRUCell
/// computes it: sigmoid(concat(x, h) gates + gates_bias) is, along axis 1, the reset gate r and the
/// update gate u, and
///     c = tanh(concat(x, r h) candidate + candidate_bias),  h' = u h + (1 - u) c.
/// x is (batch,inputs), gates (inputs + units, 2 units), candidate (inputs + units, units).
template <ext::expression X, ext::expression H, ext::expression W, ext::expression B,
          ext::expression W2, ext::expression B2, class K = ext::kernels_for<X>>
auto gru_cell(const X& x, const H& h, const W& gates, const B& gates_bias, const W2& candidate,
              const B2& candidate_bias, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<H> && ext::typed_expression<W> &&
                ext::typed_expression<B> && ext::typed_expression<W2> &&
                ext::typed_expression<B2>) {
    if constexpr (!detail::can_be_gru<X, H, W, B, W2, B2>) {
      static_assert(detail::takes<op::gru_cell, detail::got<X>, detail::got<H>, detail::got<W>,
                                  detail::got<B>, detail::got<W2>, detail::got<B2>>,
                    "[gru_cell] expects x of (batch,inputs), a state of (batch,units), gates of "
                    "(inputs + units, 2 units) and a candidate of (inputs + units, units), with "
                    "their biases");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<H>, ext::shape_type_of<H>>(
          detail::add_gru(any_tensor(detail::any_lower<K>(x, w)), any_tensor(h), any_tensor(gates),
                          any_tensor(gates_bias), any_tensor(candidate), any_tensor(candidate_bias),
                          w)
              .handle());
  } else
    return detail::add_gru(any_tensor(x), any_tensor(h), any_tensor(gates), any_tensor(gates_bias),
                           any_tensor(candidate), any_tensor(candidate_bias), w);
}

/// Options of an lstm_cell or lstm with variables of its own.
struct lstm_options {
  double forget_bias = 1;                             ///< added to the forget gate
  std::optional<deft::initializer> initializer = {};  ///< of the kernel; glorot_uniform()
  deft::regularizer regularizer = {};                 ///< of the kernel, as in dense_options
  bool shared = false;                                ///< as in dense_options
};
/// Options of a gru_cell or gru with variables of its own.
struct gru_options {
  std::optional<deft::initializer> initializer = {};  ///< of the kernels; glorot_uniform()
  deft::regularizer regularizer = {};                 ///< of the kernels, as in dense_options
  bool shared = false;                                ///< as in dense_options
};

/// The cells with variables of their own. An lstm_cell has NAME/kernel and NAME/bias, at first 0; a
/// gru_cell has NAME/gates/kernel and NAME/gates/bias, at first 1, and NAME/candidate/kernel and
/// NAME/candidate/bias, at first 0. Where the graph has them already, they are used again: in every
/// step the same. They throw invalid_argument if x is not floating, the last extents are unknown,
/// or variables of these names have other shapes.
/// @{
lstm_state<any_tensor> lstm_cell(const any_tensor& x, const lstm_state<any_tensor>& state,
                                 std::string_view name, const lstm_options& options = {},
                                 ext::source_location w = ext::here());
any_tensor gru_cell(const any_tensor& x, const any_tensor& h, std::string_view name,
                    const gru_options& options = {}, ext::source_location w = ext::here());
/// @}

/// What a recurrent layer makes of a sequence.
template <class Outputs, class State>
struct unrolled {
  Outputs outputs;  ///< of all steps, along axis 1
  State state;      ///< after the last
};

namespace detail {
template <class C, class H>
const H& output_of(const lstm_state<C, H>& s) {
  return s.h;
}
template <expression X>
const X& output_of(const X& s) {
  return s;
}
template <class X, class H>
inline constexpr bool can_unroll =
    extents_of<X>.n == 3 && extents_of<X>.e[1] != dyn&& extents_of<X>.e[1] > 0 &&
    extents_of<H>.n > 0;
template <class X, class H>
struct unrolled_shape {
  static constexpr dims value = [] {
    dims at{1}, d = op::with_axes(extents_of<H>, at);
    d.e[1] = extents_of<X>.e[1];
    return d;
  }();
};
/// Of (batch,units), for x of (batch,steps,inputs).
any_tensor zero_state(const any_tensor& x, std::int64_t units);
std::vector<any_tensor> steps_of(std::string_view layer, const any_tensor& x, source_location w);
}  // namespace detail

/// `state = cell(x_t, state)` for each step t of x, (batch,steps,inputs), from the state `first`;
/// x_t is (batch,inputs), and a state an lstm_state or a tensor. The graph has a copy of the cell
/// for each step. Throws invalid_argument unless the number of steps is known.
template <ext::expression X, class State, class Cell, class K = ext::kernels_for<X>>
auto unroll(const X& x, const State& first, const Cell& cell,
            ext::source_location w = ext::here()) {
  using H = std::remove_cvref_t<decltype(detail::output_of(first))>;
  State state = first;
  std::vector<any_tensor> outputs;
  if constexpr (ext::typed_expression<X> && ext::typed_expression<H>) {
    if constexpr (!detail::can_unroll<X, H>) {
      static_assert(detail::takes<op::unroll, detail::got<X>, detail::got<H>>,
                    "[unroll] expects a sequence of (batch,steps,inputs) whose number of steps is "
                    "known");
      return unrolled<detail::refused, State>{detail::refused(), state};
    } else {
      for (const auto& step : unstack(x, axis<1>, w)) {
        state = cell(step, state);
        outputs.push_back(any_tensor(detail::output_of(state)));
      }
      using R = ext::tensor_of<ext::value_type_of<H>, detail::unrolled_shape<X, H>>;
      return unrolled<R, State>{R(stack(axes{1}, outputs, w).handle()), state};
    }
  } else {
    for (const any_tensor& step : detail::steps_of("unroll", any_tensor(x), w)) {
      state = cell(step, state);
      outputs.push_back(any_tensor(detail::output_of(state)));
    }
    return unrolled<any_tensor, State>{stack(axes{1}, outputs, w), state};
  }
}

/// The cells of one name over a sequence, (batch,steps,inputs), from a state of zeros. Its outputs
/// are (batch,steps,units). Throws invalid_argument as the cells and `unroll` do.
/// @{
unrolled<any_tensor, lstm_state<any_tensor>> lstm(const any_tensor& x, std::int64_t units,
                                                  std::string_view name,
                                                  const lstm_options& options = {},
                                                  ext::source_location w = ext::here());
unrolled<any_tensor, any_tensor> gru(const any_tensor& x, std::int64_t units, std::string_view name,
                                     const gru_options& options = {},
                                     ext::source_location w = ext::here());
/// @}

/// The same with units known at compile time: for x of (?,20,8), the outputs of
/// `lstm<16>(x, "lstm")` are (?,20,16).
/// @{
template <std::int64_t Units, ext::typed_expression X, class K = ext::kernels_for<X>>
auto lstm(const X& x, std::string_view name, const lstm_options& options = {},
          ext::source_location w = ext::here()) {
  constexpr dims in = ext::extents_of<X>;
  static_assert(
      in.n == 3 && in.e[1] != dyn && in.e[in.n - 1] != dyn,
      "[lstm] expects a sequence of (batch,steps,inputs) whose number of steps and inputs "
      "is known, and got another");
  using H = tensor<ext::value_type_of<X>, ext::extents_of<X>.e[0], Units>;
  const auto all = lstm(any_tensor(detail::any_lower<K>(x, w)), Units, name, options, w);
  using R = tensor<ext::value_type_of<X>, ext::extents_of<X>.e[0], ext::extents_of<X>.e[1], Units>;
  return unrolled<R, lstm_state<H>>{R(all.outputs.handle()),
                                    {H(all.state.c.handle()), H(all.state.h.handle())}};
}
template <std::int64_t Units, ext::typed_expression X, class K = ext::kernels_for<X>>
auto gru(const X& x, std::string_view name, const gru_options& options = {},
         ext::source_location w = ext::here()) {
  constexpr dims in = ext::extents_of<X>;
  static_assert(in.n == 3 && in.e[1] != dyn && in.e[in.n - 1] != dyn,
                "[gru] expects a sequence of (batch,steps,inputs) whose number of steps and inputs "
                "is known, and got another");
  using H = tensor<ext::value_type_of<X>, ext::extents_of<X>.e[0], Units>;
  const auto all = gru(any_tensor(detail::any_lower<K>(x, w)), Units, name, options, w);
  using R = tensor<ext::value_type_of<X>, ext::extents_of<X>.e[0], ext::extents_of<X>.e[1], Units>;
  return unrolled<R, H>{R(all.outputs.handle()), H(all.state.handle())};
}
/// @}
/// @cond refused
template <std::int64_t... Units, ext::expression X, class... Given>
requires(sizeof...(Given) < (sizeof...(Units) == 1 ? 1 : 2))
    unrolled<detail::refused, lstm_state<detail::refused>> lstm(const X&, const Given&...) {
  static_assert(detail::takes<op::lstm, detail::got<X>, detail::got<Given>...>,
                "[lstm] expects units and a name: lstm<16>(x, \"lstm\"), or lstm(x, 16, \"lstm\")");
  return {};
}
template <std::int64_t... Units, ext::expression X, class... Given>
requires(sizeof...(Given) < (sizeof...(Units) == 1 ? 1 : 2))
    unrolled<detail::refused, detail::refused> gru(const X&, const Given&...) {
  static_assert(detail::takes<op::gru, detail::got<X>, detail::got<Given>...>,
                "[gru] expects units and a name: gru<16>(x, \"gru\"), or gru(x, 16, \"gru\")");
  return {};
}
template <ext::expression X, ext::expression H, class... Given>
lstm_state<detail::refused> lstm_cell(const X&, const H&, const Given&...) {
  static_assert(detail::takes<op::lstm_cell, detail::got<X>, detail::got<H>, detail::got<Given>...>,
                "[lstm_cell] expects its state as one, lstm_state{c, h}, and a kernel and a bias, "
                "or a name: lstm_cell(x, lstm_state{c, h}, kernel, bias)");
  return {};
}
template <ext::expression X, class H, class... Given>
requires(detail::no_parameters_or_name<4, Given...>) detail::refused
    gru_cell(const X&, const H&, const Given&...) {
  static_assert(detail::takes<op::gru_cell, detail::got<X>, detail::got<H>, detail::got<Given>...>,
                "[gru_cell] expects a state, and a name, or gates, a candidate and their biases: "
                "gru_cell(x, h, \"cell\")");
  return {};
}
/// @endcond

}  // namespace deft
