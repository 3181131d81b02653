// SPDX-License-Identifier: Apache-2.0
// deft/train/optimizer.hpp: from the gradients of a loss to updates of variables, whatever the
// formula.
#pragma once
#include <deft/expr/tensor.hpp>
#include <deft/op/global_step.hpp>
#include <deft/op/variable.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace deft {

namespace detail {
template <class L>
inline constexpr bool may_be_scalar = true;
template <typed_expression L>
inline constexpr bool may_be_scalar<L> = shape_type_of<L>::value.n == 0;
}  // namespace detail

/// A number of an optimizer, such as its learning rate: a number, or a floating scalar tensor that
/// is computed in each step, such as a schedule (train/schedule.hpp).
class hyperparameter {
 public:
  /// The same number in every step.
  hyperparameter(double value) : value_(value) {}  // NOLINT: implicit on purpose
  /// Throws invalid_argument if `x` is not a floating scalar.
  template <ext::expression X>
  requires(!std::derived_from<X, operation>)
      hyperparameter(const X& x,
                     ext::source_location w = ext::here())  // NOLINT: implicit on purpose
      : tensor_(any_tensor(x)) {
    expect_scalar(w);
  }

  /// As a scalar tensor of that dtype.
  any_tensor as(dtype type) const;
  /// Null if it is a tensor.
  const double* number() const { return tensor_.valid() ? nullptr : &value_; }

 private:
  void expect_scalar(ext::source_location w) const;

  double value_ = 0;
  any_tensor tensor_;
};

/// The variables of a graph that optimizers update: trainable, and of float or double.
std::vector<any_variable> trainable_variables(graph g = current_graph());

/// A variable and the gradient of the loss with respect to it.
struct gradient_of_variable {
  any_variable variable;  ///< what apply_gradients updates
  any_tensor gradient;    ///< empty if the loss does not depend on the variable
};

/// What an optimizer updates: a variable, or the rows of it that have a gradient. In expressions it
/// stands for their value before the step. A variable of bfloat16 or float16 is updated in float:
/// its slot "master" keeps what it was rounded from, as long as nothing else changes the variable.
class update_target : public detail::expression_base {
 public:
  /// The whole variable.
  update_target(any_variable v) : variable_(std::move(v)) {}  // NOLINT: implicit on purpose
  /// Rows of equal indices must be updated alike. All updates of these rows and of their slots are
  /// added to `updates`.
  update_target(any_variable v, any_tensor indices, std::vector<operation>& updates)
      : variable_(std::move(v)), indices_(std::move(indices)), updates_(&updates) {}

  /// The variable, or that which has the rows.
  const any_variable& variable() const { return variable_; }
  /// The dtype of its value, which gradients and slots have, too: that of the variable, or float.
  dtype type() const { return is_half() ? dtype::float32 : variable_.type(); }
  /// The value before the step: of the variable, or of the rows alone.
  operator any_tensor() const;  // NOLINT: implicit on purpose

  /// An update, and the value after it.
  class updated : public operation {
   public:
    /// @cond made by assign
    updated(operation done, any_tensor after)
        : operation(std::move(done)), after_(std::move(after)) {}
    /// @endcond
    /// The value after the update: of the variable, or of the rows alone.
    const any_tensor& value() const { return after_; }

   private:
    any_tensor after_;
  };
  /// Replaces the value before the step, adds to it, or subtracts from it. `value` must be of
  /// type(), and have the extents of the variable or those of the rows.
  ///
  ///     const update_target a = v.slot("adagrad", 0.1);
  ///     const any_tensor squares = a.assign_add(square(g)).value();
  /// @{
  updated assign(const any_tensor& value) const;
  updated assign_add(const any_tensor& value) const;
  updated assign_sub(const any_tensor& value) const;
  /// @}

  /// The same rows of a slot of the variable: a variable of type() and its extents, filled with
  /// `value` at first.
  update_target slot(std::string_view name, double value) const;
  /// A slot of the whole variable, a scalar of double.
  update_target scalar_slot(std::string_view name, double value) const;

  /// The same, left as it is, slots too, in steps where `condition`, a bool scalar, is false.
  update_target only_if(any_tensor condition) const;

 private:
  /// The slot `made` of `of`.
  update_target(any_variable made, const update_target& of)
      : variable_(std::move(made)),
        slot_of_(of.slot_of_.empty() ? of.variable_.name() : of.slot_of_),
        indices_(of.indices_),
        updates_(of.updates_),
        condition_(of.condition_) {}
  bool is_half() const { return ext::is_half(variable_.type()); }
  any_variable master() const;
  /// The value of `v`, or its rows.
  any_tensor read(const any_variable& v) const;
  template <class Op>
  updated write(const any_variable& v, const any_tensor& value) const;
  updated replace(const any_variable& v, const any_tensor& value) const;

  any_variable variable_;
  std::string slot_of_;  ///< the name of a variable; empty: it is none
  any_tensor indices_;   ///< empty: the whole variable
  std::vector<operation>* updates_ = nullptr;
  any_tensor condition_;  ///< empty: always
};

/// Computes gradients and updates variables by them. An optimizer's own variables, its slots, have
/// the variable's name followed by their own ("w/momentum"), and are placed with the variable, as
/// is the arithmetic of the update: between devices, only gradients travel. Optimizers of one kind
/// that update one variable share its slots.
///
/// The gradient of a variable of which only some rows were gathered, such as an embedding, is made
/// of those rows, through sums, averages and clipping: the update touches them and their slots
/// alone, and rows with one index are summed first. (For momentum, RMSProp, Adadelta and Adam it
/// differs from the whole gradient, which is 0 elsewhere: rows without a gradient stay as they are,
/// as in TensorFlow's momentum and LazyAdam.)
class optimizer {
 public:
  virtual ~optimizer() = default;

  /// One step of training: the operation that updates every trainable variable of float or double
  /// in the graph that `loss`, a scalar, depends on. Throws invalid_argument if there is none, or
  /// the loss is not a floating scalar.
  template <ext::expression L>
  operation minimize(const L& loss, ext::source_location w = ext::here()) const {
    return minimize_any(scalar_loss(loss, w), nullptr, nullptr, w);
  }
  /// Also adds 1 to `step` after the updates.
  template <ext::expression L>
  operation minimize(const L& loss, const variable<std::int64_t>& step,
                     ext::source_location w = ext::here()) const {
    return minimize_any(scalar_loss(loss, w), nullptr, &step, w);
  }
  /// Updates only the given variables, `minimize(loss, {w, b})` or `minimize(loss, w)`, and then
  /// adds 1 to `step` if it is given.
  /// @{
  template <ext::expression L>
  operation minimize(const L& loss, const std::vector<any_variable>& variables,
                     ext::source_location w = ext::here()) const {
    return minimize_any(scalar_loss(loss, w), &variables, nullptr, w);
  }
  template <ext::expression L>
  operation minimize(const L& loss, const std::vector<any_variable>& variables,
                     const variable<std::int64_t>& step,
                     ext::source_location w = ext::here()) const {
    return minimize_any(scalar_loss(loss, w), &variables, &step, w);
  }
  template <ext::expression L, std::convertible_to<any_variable> V>
  operation minimize(const L& loss, const V& of, ext::source_location w = ext::here()) const {
    return minimize(loss, std::vector<any_variable>{of}, w);
  }
  template <ext::expression L, std::convertible_to<any_variable> V>
  operation minimize(const L& loss, const V& of, const variable<std::int64_t>& step,
                     ext::source_location w = ext::here()) const {
    return minimize(loss, std::vector<any_variable>{of}, step, w);
  }
  /// @}
  /// @cond refused
  template <ext::expression L, class F>
  requires std::is_function_v<F> operation minimize(const L&, F&)
  const {
    static_assert(detail::takes<optimizer, F>,
                  "[minimize] expects a global step, and got a function: call it, as in "
                  "global_step()");
    return {};
  }
  template <ext::expression L, std::convertible_to<any_variable> V,
            std::convertible_to<any_variable> Next, class... More>
  requires(!std::same_as<Next, variable<std::int64_t>>) operation
      minimize(const L&, const V&, const Next&, const More&...)
  const {
    static_assert(detail::takes<optimizer, detail::got<V>, detail::got<Next>>,
                  "[minimize] expects several variables in braces: minimize(loss, {w, b})");
    return {};
  }
  template <ext::expression... G, class... Given>
  requires(sizeof...(G) > 0) operation apply_gradients(const std::tuple<G...>&, const Given&...)
  const {
    static_assert(detail::takes<optimizer, std::tuple<detail::got<G>...>>,
                  "[apply_gradients] expects gradients with their variables, as of "
                  "o.compute_gradients(loss), and got those of gradients(loss, w)");
    return {};
  }
  /// @endcond

  /// The first half of minimize: gradients with respect to all trainable variables of float or
  /// double in the graph of `loss`, or to those given, in that order. Throws invalid_argument if
  /// `loss` is not floating, unimplemented if an operation on the way has no gradient.
  ///
  ///     const sgd o(0.1);
  ///     auto train = o.apply_gradients(clip_by_global_norm(o.compute_gradients(loss), 5.0));
  /// @{
  std::vector<gradient_of_variable> compute_gradients(const any_tensor& loss) const;
  std::vector<gradient_of_variable> compute_gradients(
      const any_tensor& loss, const std::vector<any_variable>& variables) const;
  /// @}

  /// The second half: updates each variable that has a gradient, then adds 1 to `step` if it is
  /// given. Throws invalid_argument if no variable has one, or an option of the optimizer is out of
  /// its range.
  /// @{
  operation apply_gradients(const std::vector<gradient_of_variable>& gradients,
                            ext::source_location w = ext::here()) const {
    return apply(gradients, nullptr, w);
  }
  operation apply_gradients(const std::vector<gradient_of_variable>& gradients,
                            const variable<std::int64_t>& step,
                            ext::source_location w = ext::here()) const {
    return apply(gradients, &step, w);
  }
  /// @}

 protected:
  /// The update of one variable, or of rows of it. What it writes is placed with the variable.
  virtual operation update(const update_target& v, const any_tensor& gradient) const = 0;
  /// The update of a variable by rows of a gradient, which are to be summed where indices are
  /// equal.
  virtual operation update_rows(const any_variable& v, const any_tensor& indices,
                                const any_tensor& rows) const;
  /// `o.update(v, gradient)`, for an optimizer that is made of another.
  static operation update_by(const optimizer& o, const update_target& v,
                             const any_tensor& gradient) {
    return o.update(v, gradient);
  }
  /// What compute_gradients differentiates in place of the loss, and how it gives the gradient of
  /// the loss from that. (One of rows is changed by detail::each_value.)
  /// @{
  virtual any_tensor scaled(const any_tensor& loss) const { return loss; }
  virtual any_tensor unscaled(const any_tensor& gradient) const { return gradient; }
  /// @}
  /// What apply_gradients does; `step` may be null.
  virtual operation apply(const std::vector<gradient_of_variable>& gradients,
                          const variable<std::int64_t>* step, ext::source_location w) const;

 private:
  template <class L>
  static any_tensor scalar_loss(const L& loss, ext::source_location w) {
    if constexpr (!detail::may_be_scalar<L>)
      static_assert(
          detail::takes<optimizer, detail::got<L>>,
          "[minimize] expects a scalar loss, and got a tensor: use mean(loss), or sum(loss)");
    const ext::location_scope on_behalf(w);
    return any_tensor(loss);
  }
  operation minimize_any(const any_tensor& loss, const std::vector<any_variable>* variables,
                         const variable<std::int64_t>* step, ext::source_location w) const;
};

/// The mean of what `compute_gradients` returned for several replicas of a model, in the same order
/// of variables. A replica whose loss does not depend on a variable counts as a gradient of 0.
/// (Replicas with variables of their own use all_reduce_mean.)
/// Throws invalid_argument if the replicas' variables differ.
std::vector<gradient_of_variable> average_gradients(
    const std::vector<std::vector<gradient_of_variable>>& replicas,
    ext::source_location w = ext::here());

}  // namespace deft
