// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_common.hpp: what layers share: their variables, activations, and whether they
// train.
#pragma once
#include <deft/op/variable.hpp>
#include <deft/train/regularizer.hpp>
#include <functional>
#include <optional>
#include <string_view>

namespace deft {

/// A function of a layer's result: an operation such as `relu` or `tanh`, or a callable that takes
/// and returns an any_tensor. None by default.
class activation_function {
 public:
  activation_function() = default;
  /// Implicit: `.activation = relu`, `.activation = [](const any_tensor& x) { return x * 2; }`.
  /// @{
  activation_function(any_tensor (*operation)(const any_tensor&, ext::source_location))  // NOLINT
      : f_([operation](const any_tensor& x) { return operation(x, {}); }) {}
  activation_function(any_tensor (*function)(const any_tensor&)) : f_(function) {}  // NOLINT
  template <class F>
  requires std::is_invocable_r_v<any_tensor, const F&, const any_tensor&> activation_function(F f)
      : f_(std::move(f)) {}  // NOLINT: implicit on purpose
  /// @}
  /// @cond refused
  template <std::convertible_to<std::string_view> Text>
  activation_function(const Text&) {  // NOLINT: implicit, to say what is meant
    static_assert(detail::takes<activation_function, Text>,
                  "[activation] expects a function, as in {.activation = relu}, and got text");
  }
  /// @endcond

  /// Whether there is a function.
  explicit operator bool() const { return static_cast<bool>(f_); }
  /// The function of x, or x itself if there is none.
  any_tensor operator()(const any_tensor& x) const { return f_ ? f_(x) : x; }

 private:
  std::function<any_tensor(const any_tensor&)> f_;
};

namespace detail {
/// An activation where no option stands, to say so. (Not made of {}, which options are.)
struct bare_activation {
  bare_activation(any_tensor (*)(const any_tensor&, source_location));  // NOLINT: implicit
  template <class F>
  requires std::is_invocable_r_v<any_tensor, const F&, const any_tensor&> bare_activation(const F&);
};
/// Whether neither a name alone nor as many tensors follow, for a layer that takes one of both.
template <int Tensors, class... Given>
inline constexpr bool no_parameters_or_name =
    ((ext::operand<Given> || number_or_text<Given>)&&...) &&
    (0 + ... + int{ext::expression<Given>}) < Tensors &&
    (sizeof...(Given) != 1 || (ext::operand<Given> && ...));
}  // namespace detail

/// Whether a layer trains: known while the graph is written, or a scalar of bool that a step feeds
/// or computes.
class training_flag {
 public:
  /// Known while the graph is written, which then has only what one of the two cases needs.
  training_flag(bool value) : value_(value) {}  // NOLINT: implicit on purpose
  /// Throws invalid_argument if `x` is not a scalar of bool.
  template <ext::expression X>
  requires(!std::derived_from<X, operation>)
      training_flag(const X& x,
                    ext::source_location w = ext::here())  // NOLINT: implicit on purpose
      : tensor_(any_tensor(x)) {
    expect_flag(w);
  }

  /// Whether it was given as a bool, and not as a tensor.
  bool is_known() const { return !tensor_.valid(); }
  /// The bool that was given; it means nothing unless is_known().
  bool value() const { return value_; }
  /// The scalar of bool that was given; empty if is_known().
  const any_tensor& tensor() const { return tensor_; }
  /// `training` or `otherwise`; both are made only if the flag is a tensor.
  template <class A, class B>
  any_tensor choose(const A& training, const B& otherwise) const {
    if (is_known()) return value_ ? training() : otherwise();
    return chosen(training(), otherwise());
  }

 private:
  void expect_flag(ext::source_location w) const;
  any_tensor chosen(const any_tensor& training, const any_tensor& otherwise) const;

  bool value_ = true;
  any_tensor tensor_;
};

/// Uniform in [-r, r), r = sqrt(6 / (rows + columns)), for matrices; axes before the last two
/// multiply both. (Glorot, Bengio: Understanding the difficulty of training deep feedforward neural
/// networks, AISTATS 2010.) The initializer of layers, if none is given.
initializer glorot_uniform();

namespace detail {

/// Where a layer looks for its variables.
struct layer_scope {
  std::string_view layer;  ///< for messages
  std::string_view name;
  bool shared;  ///< no name scope is part of the variables' names
  source_location location;
};
/// The variable NAME/SUFFIX of the current graph: the one that is there, or else a new one. Throws
/// invalid_argument if the one that is there has another dtype or shape.
any_variable layer_variable(const layer_scope& s, std::string_view suffix, const tensor_type& type,
                            const initializer& first, bool trainable = true);
/// Likewise, and adds what the regularizer makes of it to the losses.
any_variable layer_weights(const layer_scope& s, std::string_view suffix, const tensor_type& type,
                           const std::optional<initializer>& first, const regularizer& penalty);
/// Throws invalid_argument in the layer's name.
[[noreturn]] void refuse_layer(const layer_scope& s, const any_tensor& x, const std::string& what);
/// Throws invalid_argument unless x is floating, of rank `least` or more, and its last extent is
/// known; returns that.
std::int64_t layer_features(const layer_scope& s, const any_tensor& x, int least);

}  // namespace detail
}  // namespace deft
