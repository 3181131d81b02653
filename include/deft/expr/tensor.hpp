// SPDX-License-Identifier: Apache-2.0
// deft/expr/tensor.hpp: tensor<T, extents…>, the handle that names a value of the graph.
#pragma once
#include <deft/core/ndarray.hpp>
#include <deft/expr/any_tensor.hpp>
#include <deft/expr/feed.hpp>
#include <deft/expr/lower.hpp>
#include <deft/expr/misuse.hpp>

namespace deft {

class initializer;

namespace detail {
/// Says that an output is of the tensor's type, so that nothing is checked, nor compiled for it.
struct known_type {};
template <class Declared, class Got>
inline constexpr bool shape_fits = fits(Declared::value, Got::value);
template <class X>
inline constexpr bool never = false;
/// Stands for omitted template arguments, which have their own message.
struct missing;
template <>
inline constexpr bool is_element_type<missing> = true;
/// The first argument of a tensor without a value, which nobody writes.
struct nothing_yet {
  explicit nothing_yet() = default;
};
/// The result of rebinding a tensor: neither a fetch nor a feed.
struct rebound_tensor {};
/// A tensor that provides its own operand for expressions: a variable.
template <class V, class Base>
concept reads_itself = std::derived_from<V, Base> && requires(const V& v) {
  v.operand();
};
}  // namespace detail

/// A value of the graph with element type T and extents `E…` (`dyn` where known only at run time).
/// Cheap to copy. Naming one ends an elementwise expression: it becomes one fused node, as in
/// `tensor<float, dyn, 10> y = relu(matmul(x, w) + b);`.
template <class T, std::int64_t... E>
class tensor : public detail::feed_forms<T, E...> {
  static_assert(
      !std::is_same_v<T, detail::missing>,
      "expected the dtype and the extents, as in placeholder<float, dyn, 784> x(\"x\") and "
      "variable<float, 784, 10> w(\"w\", zeros()); auto y = x + 1 needs none");
  static_assert(detail::is_element_type<T>,
                "element types are " DEFT_ELEMENT_TYPES
                "; for long long use std::int64_t, for other integers std::int32_t");

 public:
  using value_type = T;              ///< the element type
  using shape_type = shape_t<E...>;  ///< the extents as a type
  /// Extents as the type knows them, with `dyn` where only a run does.
  static constexpr dims extents() { return shape_type::value; }

  /// An empty handle; using it throws failed_precondition, which names this source location.
  tensor(detail::nothing_yet = detail::nothing_yet(), ext::source_location w = ext::here())
      : output_(detail::declared_empty(w)) {}
  /// The tensor of a node's output, as handle() yields it. Throws invalid_argument if dtype or
  /// shape differ; see the constructor from an any_tensor.
  explicit tensor(ext::output o, ext::source_location w = {})
      : output_(detail::as_declared(std::move(o), {shape_type::value, dtype_of<T>}, w)) {}
  /// @cond
  /// Of that type, as the caller knows.
  tensor(detail::known_type, ext::output o) : output_(std::move(o)) {}
  tensor(const tensor&) = default;
  tensor(tensor&&) noexcept = default;
  /// @endcond

  /// Lowers the expression. Nodes made by operators report this source location.
  template <class X, class Kernels = ext::kernels_for<X>>
  requires(ext::typed_expression<X> && !std::derived_from<X, tensor>)
      tensor(const X& x, ext::source_location w = ext::here()) {  // NOLINT: implicit on purpose
    if constexpr (!std::is_same_v<T, ext::value_type_of<X>>)
      static_assert(detail::takes<tensor<T, E...>, detail::got<X>>,
                    "[tensor] the expression has another dtype than the tensor that names it: use "
                    "cast<T>(x)");
    else if constexpr (!detail::shape_fits<shape_type, ext::shape_type_of<X>>)
      static_assert(detail::takes<tensor<T, E...>, detail::got<X>>,
                    "[tensor] the expression has another shape than the tensor that names it: use "
                    "reshape(x, shape<E...>), also where an extent becomes known");
    else
      output_ = ext::lower<Kernels>(x, w);
  }

  /// A variable's value, read after the control dependencies in force here.
  template <detail::reads_itself<tensor> V>
  tensor(const V& v) : output_(v.operand()) {}  // NOLINT: implicit on purpose

  /// From an any_tensor, which stays the same tensor: `same(t, x)`. Throws invalid_argument if
  /// dtype or shape differ; where an extent of x is known only at run time, a run whose value has
  /// another one throws it, with this source location.
  explicit tensor(const any_tensor& x, ext::source_location w = ext::here())
      : tensor(x.handle(), w) {}

  /// The value of a node: `tensor<float, dyn, 10>(g.find("logits"))`. Throws not_found if `n` is
  /// empty, and as for an any_tensor.
  explicit tensor(const ext::node_ref& n, ext::source_location w = ext::here())
      : tensor(detail::value_of(n, w), w) {}

  /// @cond refused
  template <std::same_as<any_tensor> X>
  tensor(const X&) {  // NOLINT: implicit, to say what is meant
    static_assert(detail::takes<tensor<T, E...>, X>,
                  "[tensor] an any_tensor's dtype and shape are known only at run time: "
                  "tensor<T, E...>(x) checks them, and converts it");
  }

  template <ext::scalar V>
  tensor(const V&) {  // NOLINT: implicit, to say what is meant
    static_assert(detail::takes<tensor<T, E...>, V>,
                  "[tensor] expects an expression, and got a number: constant(0.5f) is a tensor; "
                  "where(c, a, b) chooses between tensors, which c ? a : b does not");
  }

  template <std::same_as<initializer> Given>
  tensor(const Given&) {  // NOLINT: implicit, to say what is meant
    static_assert(detail::takes<tensor<T, E...>, Given>,
                  "[tensor] expects an expression, and got an initializer, which variables take: "
                  "zeros(shape<2, 3>) is a tensor");
  }
  /// @endcond

  /// Rebinds the handle; the result cannot be mistaken for a fetch or a feed.
  detail::rebound_tensor operator=(const tensor& o) {
    output_ = o.output_;
    return {};
  }
  /// Rebinds the handle to what `o` was.
  detail::rebound_tensor operator=(tensor&& o) noexcept {
    output_ = std::move(o.output_);
    return {};
  }
  /// To a variable's value. (Other expressions become a tensor first, whose constructor knows the
  /// line.)
  template <detail::reads_itself<tensor> V>
  detail::rebound_tensor operator=(const V& v) {
    output_ = v.operand();
    return {};
  }
  /// Rebinds it to what is of another type and converts to it.
  template <class V>
  requires(!ext::host_value<V> && !ext::expression<V> &&
           std::convertible_to<const V&, tensor>) detail::rebound_tensor
  operator=(const V& v) {
    tensor named = v;
    return *this = std::move(named);
  }
  using detail::feed_forms<T, E...>::operator=;

  /// @cond refused
  /// For `float f = x`, `std::exp(x)`, `bool e = x == y`.
  operator double() const {  // NOLINT: implicit, to say what is meant
    static_assert(detail::takes<double, tensor<T, E...>>,
                  "a tensor has no value while the graph is written: s.run(x) yields it; functions "
                  "of tensors are deft's, as deft::exp; where(c, a, b) chooses; name_of(x) serves "
                  "as a key");
    return 0;
  }
  /// @endcond

  /// A part of it: `x(i)` without the axis, `x(range(2, 5), all)`, `x(all, newaxis)`; axes without
  /// a subscript are taken whole. See op/subscript.hpp. Throws invalid_argument, in the run for
  /// what only that knows, if there is no such part.
  template <class... S>
  requires detail::subscripts<S...>
  auto operator()(const S&... s) const { return subscripted(*this, s...); }

  /// Whether the handle refers to a value: false for one that was never assigned.
  bool valid() const { return static_cast<bool>(output_); }
  /// The node's output, for those who extend the engine. Throws failed_precondition if empty.
  const ext::output& handle() const {
    if (!valid()) detail::refuse_empty("tensor");
    return output_;
  }
  /// As handle(), for callers that report an empty handle themselves.
  const ext::output& unchecked() const { return output_; }

  /// @cond refused
  template <class B>
  requires std::same_as<B, bool>
  explicit operator B() const {
    static_assert(detail::takes<B, tensor<T, E...>>,
                  "a tensor has no truth value while the graph is written: use where(c, a, b), or "
                  "same(a, b) to compare handles");
  }
  /// @endcond

  /// Whether both handles refer to the same output of the same node; `a == b` compares elements.
  friend bool same(const tensor& a, const tensor& b) {
    return ext::origin_of(a.output_) == ext::origin_of(b.output_);
  }

 protected:
  ext::output output_;  ///< empty until the handle is assigned
};

/// @cond refused
/// `tensor t = x + y` lacks its template arguments, and says so.
template <ext::typed_expression X>
tensor(const X&) -> tensor<detail::missing>;
/// @endcond

namespace detail {
template <class T, std::int64_t... E>
tensor<T, E...> tensor_base_of(const tensor<T, E...>&);

/// A text next to a tensor of strings: a constant, made by conversion as an any_operand is.
class text_operand {
 public:
  template <class V>
  requires(!expression<V> && !std::is_null_pointer_v<V> && text<V>)
      text_operand(const V& v, source_location w = operator_line())  // NOLINT: implicit on purpose
      : constant_(add_constant(any_array::scalar(std::string_view(v)), w).handle()), location_(w) {}

  const tensor<std::string>& constant() const { return constant_; }
  source_location location() const { return location_; }

 private:
  tensor<std::string> constant_;
  source_location location_;
};
}  // namespace detail

template <ext::typed_expression X, class Kernels>
any_tensor::any_tensor(const X& x, ext::source_location w) : output_(ext::lower<Kernels>(x, w)) {}

/// A feed of any expression, named or not: `s.run(loss, feed(x * 2, value))`. It replaces
/// the expression wherever it is written. Throws failed_precondition for an empty tensor,
/// invalid_argument for a number that the dtype cannot represent. A dtype or shape known only at
/// run time is checked by the run.
template <ext::expression X, ext::host_value V, class K = ext::kernels_for<X>>
[[nodiscard]] feed_value feed(const X& x, V&& value) {
  if constexpr (ext::typed_expression<X>)
    return ext::make_feed<ext::value_type_of<X>, ext::shape_type_of<X>>(ext::lower<K>(x, {}),
                                                                        std::forward<V>(value));
  else
    return detail::make_any_feed(x.handle(), std::forward<V>(value));
}

}  // namespace deft
