// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/formulas.hpp: what optimizers compute for each element of a variable and its
// slots. train/optimizers.ipp writes their nodes from these formulas, and devices compile them.
#pragma once
#include <deft/core/config.hpp>
#include <deft/op/add.hpp>
#include <deft/op/div.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/sqrt.hpp>
#include <deft/op/square.hpp>
#include <deft/op/sub.hpp>

namespace deft::ext::formula {

// A formula F has as operands the `results` variables that it updates, then `inputs` - `results`
// more values, and then `literals`, in the order in which a plan has them in the program that it
// makes of the nodes. `F::run(s)` writes it with the steps `s`: `s[k]` is operand `k` before the
// update, `s.assign(k, x)`, `s.assign_add(k, x)` and `s.assign_sub(k, x)` update variable `k` and
// yield its new value, all of type `value`.

struct adagrad {
  static constexpr int inputs = 3, literals = 1, operands = inputs + literals, results = 2;
  enum operand { variable, accumulator, gradient, rate };

  template <class Steps>
  static DEFT_HD DEFT_ALWAYS_INLINE void run(Steps& s) {
    using value = typename Steps::value;
    const value squares = s.assign_add(accumulator, square(s[gradient]));
    s.assign_sub(variable, s[gradient] * s[rate] / sqrt(squares));
  }
};

/// TensorRate: the rate is an input, which comes before the part of the slot that is kept.
template <bool TensorRate>
struct momentum {
  static constexpr int inputs = TensorRate ? 4 : 3, literals = 5 - inputs, results = 2,
                       operands = inputs + literals;
  enum operand { variable, slot, gradient, rate = TensorRate ? 3 : 4, kept = TensorRate ? 4 : 3 };

  template <class Steps>
  static DEFT_HD DEFT_ALWAYS_INLINE void run(Steps& s) {
    using value = typename Steps::value;
    const value step = s.assign(slot, s[slot] * s[kept] + s[gradient]);
    s.assign_sub(variable, step * s[rate]);
  }
};

/// The part that is kept is a literal twice: of the step, and of the slot.
template <bool TensorRate>
struct nesterov {
  static constexpr int inputs = TensorRate ? 4 : 3, literals = 6 - inputs, results = 2,
                       operands = inputs + literals;
  enum operand {
    variable,
    slot,
    gradient,
    rate = TensorRate ? 3 : 5,
    kept_of_step = TensorRate ? 4 : 3,
    kept
  };

  template <class Steps>
  static DEFT_HD DEFT_ALWAYS_INLINE void run(Steps& s) {
    using value = typename Steps::value;
    const value step = s.assign(slot, s[slot] * s[kept] + s[gradient]);
    s.assign_sub(variable, (s[gradient] + s[kept_of_step] * step) * s[rate]);
  }
};

/// `fresh`: the part of the new square in the mean.
struct rmsprop {
  static constexpr int inputs = 3, literals = 3, operands = inputs + literals, results = 2;
  enum operand { variable, mean_square, gradient, rate, fresh, epsilon };

  template <class Steps>
  static DEFT_HD DEFT_ALWAYS_INLINE auto squares(Steps& s) {
    return s.assign_add(mean_square, (square(s[gradient]) - s[mean_square]) * s[fresh]);
  }
  template <class Steps, class V>
  static DEFT_HD DEFT_ALWAYS_INLINE V step(Steps& s, const V& variance) {
    return s[gradient] * s[rate] / sqrt(variance + s[epsilon]);
  }
  template <class Steps>
  static DEFT_HD DEFT_ALWAYS_INLINE void run(Steps& s) {
    s.assign_sub(variable, step(s, squares(s)));
  }
};

/// `rate` is corrected for the first steps; `fresh`: the parts of the new values in the means.
struct adam {
  static constexpr int inputs = 5, literals = 3, operands = inputs + literals, results = 3;
  enum operand { variable, mean_square, mean, gradient, rate, fresh_mean, fresh_square, epsilon };

  template <class Steps>
  static DEFT_HD DEFT_ALWAYS_INLINE auto direction(Steps& s) {
    return s.assign_add(mean, (s[gradient] - s[mean]) * s[fresh_mean]);
  }
  template <class Steps>
  static DEFT_HD DEFT_ALWAYS_INLINE auto squares(Steps& s) {
    return s.assign_add(mean_square, (square(s[gradient]) - s[mean_square]) * s[fresh_square]);
  }
  template <class Steps, class V>
  static DEFT_HD DEFT_ALWAYS_INLINE V step(Steps& s, const V& towards, const V& squares_now) {
    return towards * s[rate] / (sqrt(squares_now) + s[epsilon]);
  }
  template <class Steps>
  static DEFT_HD DEFT_ALWAYS_INLINE void run(Steps& s) {
    const auto towards = direction(s);
    const auto squares_now = squares(s);
    s.assign_sub(variable, step(s, towards, squares_now));
  }
};

/// F with as many operands that are inputs, the first ones.
template <class F, int Inputs = F::inputs>
struct compiled {
  using formula = F;
  static constexpr int inputs = Inputs;
};
template <class... C>
struct compiled_list {
  /// Calls `f.operator()<C>()` for each.
  template <class Function>
  static constexpr void each(Function&& f) {
    (f.template operator()<C>(), ...);
  }
};
/// Those that all devices compile, for float and double. With one more input the rate is a tensor.
using all = compiled_list<compiled<adagrad>, compiled<adagrad, adagrad::inputs + 1>,
                          compiled<momentum<false>>, compiled<momentum<true>>,
                          compiled<nesterov<false>>, compiled<nesterov<true>>, compiled<rmsprop>,
                          compiled<rmsprop, rmsprop::inputs + 1>, compiled<adam>>;

/// A value that a kernel computes with, of type V; `Apply()(op, v...)` is that operation of such.
template <class V, class Apply>
struct operand_value {
  V v;

  friend DEFT_HD DEFT_ALWAYS_INLINE operand_value operator+(const operand_value& a,
                                                            const operand_value& b) {
    return of(op::add(), a, b);
  }
  friend DEFT_HD DEFT_ALWAYS_INLINE operand_value operator-(const operand_value& a,
                                                            const operand_value& b) {
    return of(op::sub(), a, b);
  }
  friend DEFT_HD DEFT_ALWAYS_INLINE operand_value operator*(const operand_value& a,
                                                            const operand_value& b) {
    return of(op::mul(), a, b);
  }
  friend DEFT_HD DEFT_ALWAYS_INLINE operand_value operator/(const operand_value& a,
                                                            const operand_value& b) {
    return of(op::div(), a, b);
  }
  friend DEFT_HD DEFT_ALWAYS_INLINE operand_value square(const operand_value& x) {
    return of(op::square(), x);
  }
  friend DEFT_HD DEFT_ALWAYS_INLINE operand_value sqrt(const operand_value& x) {
    return of(op::sqrt(), x);
  }

 private:
// Apply may be of the host alone: where a program is written.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
  template <class Op, class... More>
  static DEFT_HD DEFT_ALWAYS_INLINE operand_value of(Op op, const operand_value& x,
                                                     const More&... more) {
    return {Apply()(op, x.v, more.v...)};
  }
};

/// The steps of a kernel: reads operands from `in`, and leaves the variables' new values in `out`.
template <class V, class Apply>
struct kernel_steps {
  using value = operand_value<V, Apply>;

  const V* in;
  V* out;

  DEFT_HD DEFT_ALWAYS_INLINE value operator[](int k) const { return {in[k]}; }
  DEFT_HD DEFT_ALWAYS_INLINE value assign(int k, const value& x) {
    out[k] = x.v;
    return x;
  }
  DEFT_HD DEFT_ALWAYS_INLINE value assign_add(int k, const value& x) {
    return assign(k, (*this)[k] + x);
  }
  DEFT_HD DEFT_ALWAYS_INLINE value assign_sub(int k, const value& x) {
    return assign(k, (*this)[k] - x);
  }
};

/// F on values in registers.
template <class F, class Apply, class V>
DEFT_HD DEFT_ALWAYS_INLINE void run_in_registers(const V* in, V* out) {
  kernel_steps<V, Apply> s{in, out};
  F::run(s);
}

}  // namespace deft::ext::formula
