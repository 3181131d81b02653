// SPDX-License-Identifier: Apache-2.0
// deft/op/variable.hpp: state that lives on a task, by name, and outlives sessions.
#pragma once
#include <deft/op/assign.hpp>
#include <deft/op/initializer.hpp>
#include <deft/op/placeholder.hpp>

namespace deft::op {

/// A read of the value before any update of the run.
struct variable : variable_state {
  static constexpr std::string_view name = "variable";
  static constexpr int arity = 0;
  static constexpr op_role role = op_role::variable;
  static constexpr op_traits traits = op_traits::stateful;

  tensor_type infer(std::span<const tensor_type>) const { return checked(variable::name); }
};

/// A read after what it depends on.
struct read_variable : variable_state {
  static constexpr std::string_view name = "read_variable";
  static constexpr int arity = 0;
  static constexpr op_role role = op_role::read;

  tensor_type infer(std::span<const tensor_type>) const { return checked(read_variable::name); }
};

}  // namespace deft::op

namespace deft {

/// Options of a variable; every member has a default:
/// `variable<float> rate("rate", 0.1f, {.trainable = false})`.
struct variable_options {
  bool trainable = true;       ///< `minimize` updates it
  std::string container = {};  ///< what `reset` clears by name
};

namespace detail {
/// Not constructed by each variable, which would compile the construction into every caller.
const variable_options& default_options();
output make_variable(std::string_view name, const tensor_type& type, const initializer& initial,
                     const variable_options& options, source_location w);
/// The node by which an expression reads a variable: the variable's node, or under control
/// dependencies a new one that waits for them.
output read_variable(const output& variable, source_location w = {});
/// Checks that `n` is a variable of that type.
output expect_variable(const node_ref& n, const tensor_type& type);
output initial_value(const node& variable);
/// The operation that assigns the first value.
operation initializer_of(const output& variable, source_location w);
/// Throws invalid_argument if a variable of `declared` cannot have these extents.
void check_extents(std::string_view name, const dims& declared, const dims& extents,
                   source_location w);

template <class Shape, class Initial>
inline constexpr bool initial_shape_fits = [] {
  if constexpr (typed_expression<Initial> || is_ndarray<Initial>)
    if (shape_type_of<Initial>::value.n == 0) return true;  // fills the variable
  return update_shape_fits<Shape, Initial>;
}();
}  // namespace detail

/// A variable with elements of T and extents `E…`. Its name, with the name scopes, identifies it on
/// its task; a second variable of that name in one graph is an error. In an expression it stands
/// for its value.
template <class T, std::int64_t... E>
class variable : public tensor<T, E...> {
 public:
  /// `initial` is an initializer (`zeros()`, `truncated_normal(0.05f)`), a host value or an
  /// expression; a scalar fills the variable. Throws already_exists if a variable of that name is
  /// alive, invalid_argument for an invalid name (see name_scope) and if the initial value does not
  /// fit, depends on an update, or belongs to another graph.
  /// @{
  // The name is a template, so that 0 in a list of elements to feed is not taken for a null name.
  template <std::convertible_to<std::string_view> Name, ext::initializes Initial>
  variable(const Name& name, const Initial& initial, ext::source_location w = ext::here())
      : variable(name, initial, detail::default_options(), w) {}
  template <std::convertible_to<std::string_view> Name, ext::initializes Initial>
  variable(const Name& name, const Initial& initial, const variable_options& options,
           ext::source_location w = ext::here())
      : tensor<T, E...>(detail::known_type(), make(name, initial, options, w)) {
    if constexpr (!shape_t<E...>::value.is_static() &&
                  (ext::scalar<Initial> || std::same_as<Initial, deft::initializer>))
      static_assert(detail::takes<variable, Initial>,
                    "[variable] expects its extents where some of them are dyn, as in "
                    "variable<float, dyn, 3> w(\"w\", {rows, 3}, zeros())");
  }
  /// @}
  /// With the elements in row-major order, or row by row: `variable<float, 2, 2> w("w", {{1, 2},
  /// {3, 4}})`. A variable of rank 1 also takes a vector, array or span.
  /// @{
  template <std::convertible_to<std::string_view> Name>
  requires(shape_t<E...>::value.is_static())
      variable(const Name& name, const detail::element_list<T, E...>& list,
               const variable_options& options = detail::default_options(),
               ext::source_location w = ext::here())
      : variable(name, list.values_for(name, w), options, w) {}
  template <std::convertible_to<std::string_view> Name, std::size_t N, std::size_t M>
  variable(const Name& name, const T (&rows)[N][M],
           const variable_options& options = detail::default_options(),
           ext::source_location w = ext::here())
      : variable(name, detail::nested_list<T, shape_t<E...>, N, M>(rows[0]), options, w) {}
  template <std::convertible_to<std::string_view> Name, std::size_t N, std::size_t M, std::size_t L>
  variable(const Name& name, const T (&rows)[N][M][L],
           const variable_options& options = detail::default_options(),
           ext::source_location w = ext::here())
      : variable(name, detail::nested_list<T, shape_t<E...>, N, M, L>(rows[0][0]), options, w) {}
  /// @}
  /// @cond refused
  template <std::convertible_to<std::string_view> Name>
  variable(const Name& name, const detail::uneven_rows<tensor<T, E...>>&);
  /// @endcond

  /// With extents known only at run time, which stay as they are:
  /// `variable<float, dyn, dyn> w("w", {in, out}, truncated_normal(0.1f))`.
  /// Throws invalid_argument if they do not match those of the type.
  /// @{
  template <std::convertible_to<std::string_view> Name, ext::initializes Initial>
  variable(const Name& name, const dims& extents, const Initial& initial,
           ext::source_location w = ext::here())
      : variable(name, extents, initial, detail::default_options(), w) {}
  template <std::convertible_to<std::string_view> Name, ext::initializes Initial>
  variable(const Name& name, const dims& extents, const Initial& initial,
           const variable_options& options, ext::source_location w = ext::here())
      : tensor<T, E...>(detail::known_type(), make(name, initial, options, w, extents)) {
    static_assert(!shape_t<E...>::value.is_static(),
                  "[variable] expects extents only where its own are dyn");
  }
  /// @}
  /// @cond refused
  template <std::convertible_to<std::string_view> Name>
  requires(!shape_t<E...>::value.is_static()) variable(const Name&, const dims&) {
    static_assert(detail::takes<variable<T, E...>, Name, dims>,
                  "[variable] expects an initial value after its extents, as in "
                  "variable<float, dyn, 3> w(\"w\", {rows, 3}, zeros())");
  }
  template <std::convertible_to<std::string_view> Name>
  explicit variable(const Name&) {
    static_assert(
        detail::takes<variable<T, E...>, Name>,
        "[variable] expects an initial value, as in variable<float, 10> b(\"b\", zeros())");
  }
  template <std::convertible_to<std::string_view> Name, class Initial = initializer()>
  requires std::is_function_v<Initial> variable(const Name&, Initial*) {
    static_assert(
        detail::takes<variable<T, E...>, Name, Initial>,
        "[variable] expects an initial value, and got a function: call it, as in zeros()");
  }
  template <class Name = detail::missing>
  explicit variable() {
    static_assert(
        detail::takes<variable<T, E...>, Name>,
        "[variable] expects a name and an initial value, as in variable<float> b(\"b\", zeros())");
  }
  template <std::same_as<initializer> Initial>
  explicit variable(const Initial&) {
    static_assert(
        detail::takes<variable<T, E...>, Initial>,
        "[variable] expects a name before the initial value, as in variable<float> b(\"b\", "
        "zeros())");
  }
  template <ext::initializes Initial, std::convertible_to<std::string_view> Name>
  requires(!std::convertible_to<const Initial&, std::string_view>)
      variable(const Initial&, const Name&, const variable_options& = detail::default_options()) {
    static_assert(
        detail::takes<variable<T, E...>, Initial, Name>,
        "[variable] expects a name before the initial value, as in variable<float> b(\"b\", "
        "zeros())");
  }
  /// @endcond

  /// An existing variable of a graph: `variable<float, 10> b(g.find_variable("b"))`.
  /// Throws not_found if `n` is empty or not a variable, invalid_argument if dtype or shape differ.
  explicit variable(const ext::node_ref& n)
      : tensor<T, E...>(detail::expect_variable(n, {shape_t<E...>::value, dtype_of<T>})) {}
  /// @cond copies
  variable(const variable&) = default;
  /// @endcond

  /// The value now; under control dependencies, after them.
  tensor<T, E...> read(ext::source_location w = ext::here()) const {
    return {detail::known_type(), detail::read_variable(this->handle(), w)};
  }
  /// The output that represents the variable inside an expression.
  ext::output operand() const { return detail::read_variable(this->handle()); }

  /// A part of it, as of a tensor, and a target of updates, which change that part alone:
  /// `v(range(2, 4), all).assign(0)`; see ext::variable_part.
  template <class... S>
  requires detail::subscripts<S...>
  auto operator()(const S&... s) const { return part_of_variable(*this, s...); }

  /// Sets the variable to `value`, an expression, a host array or a C++ scalar, which fills it.
  /// Dtype and shape must be the variable's. Like the other updates it runs on the variable's
  /// device, and yields the new value as `assign(…).value()`. Throws invalid_argument if a value
  /// with a dtype or shape known only at run time does not fit.
  template <ext::operand_of_update X, class K = ext::kernels_for<std::tuple<X, tensor<T, E...>>>>
  ext::assigned<tensor<T, E...>> assign(const X& value,
                                        ext::source_location w = ext::here()) const {
    return update<op::assign, K>(value, w);
  }
  /// `w.assign({1, 2, 3})`: the elements in row-major order. `w.assign({{1, 2}, {3, 4}})`: row by
  /// row; three levels of braces for rank 3.
  /// @{
  ext::assigned<tensor<T, E...>> assign(const detail::element_list<T, E...>& list,
                                        ext::source_location w = ext::here()) const {
    return update<op::assign, void>(list.values_for(this->handle()), w);
  }
  template <std::size_t N, std::size_t M>
  ext::assigned<tensor<T, E...>> assign(const T (&rows)[N][M],
                                        ext::source_location w = ext::here()) const {
    return update<op::assign, void>(detail::nested_list<T, shape_t<E...>, N, M>(rows[0]), w);
  }
  template <std::size_t N, std::size_t M, std::size_t L>
  ext::assigned<tensor<T, E...>> assign(const T (&rows)[N][M][L],
                                        ext::source_location w = ext::here()) const {
    return update<op::assign, void>(detail::nested_list<T, shape_t<E...>, N, M, L>(rows[0][0]), w);
  }
  /// @}

  /// @cond refused
  ext::assigned<tensor<T, E...>> assign(const detail::uneven_rows<tensor<T, E...>>&) const;
  template <class X>
  requires(!ext::operand_of_update<X>) ext::assigned<tensor<T, E...>> assign(const X&)
  const {
    static_assert(detail::takes<op::assign, variable<T, E...>, X>,
                  "[assign] expects an expression, a number, an ndarray, an any_array, or for a "
                  "variable of rank 1 a vector, array or span of an element type, and got another "
                  "type");
    return ext::assigned<tensor<T, E...>>({});
  }
  /// @endcond

  /// Adds `value`; for variables of numbers.
  template <ext::operand_of_update X, class K = ext::kernels_for<std::tuple<X, tensor<T, E...>>>>
  ext::assigned<tensor<T, E...>> assign_add(const X& value,
                                            ext::source_location w = ext::here()) const {
    return update<op::assign_add, K>(value, w);
  }
  /// Subtracts `value`; for variables of numbers.
  template <ext::operand_of_update X, class K = ext::kernels_for<std::tuple<X, tensor<T, E...>>>>
  ext::assigned<tensor<T, E...>> assign_sub(const X& value,
                                            ext::source_location w = ext::here()) const {
    return update<op::assign_sub, K>(value, w);
  }

  /// The first value, for use in the initial values of other variables.
  tensor<T, E...> initial_value() const {
    return tensor<T, E...>(detail::initial_value(*this->handle().node));
  }
  /// The operation that gives it its first value.
  operation initializer(ext::source_location w = ext::here()) const {
    return detail::initializer_of(this->handle(), w);
  }

  /// A feed: the value stands for the variable in one run; the variable keeps its own.
  using detail::feed_forms<T, E...>::operator=;
  /// @cond refused
  template <ext::expression X>
  void operator=(const X&) const {
    static_assert(detail::takes<variable, detail::got<X>>,
                  "[variable] expects a host value to feed, and got an expression: use assign, as "
                  "in s.run(w.assign(x))");
  }
  void operator=(const variable&) {
    static_assert(detail::never<variable>,
                  "[variable] expects a host value to feed, and got a variable: use assign");
  }
  void operator=(detail::nothing) const {
    static_assert(detail::never<variable>, "[variable] expects a host value to feed, and got {}");
  }
  /// @endcond

 private:
  template <class Initial>
  static ext::output make(std::string_view name, const Initial& initial,
                          const variable_options& options, ext::source_location w,
                          const dims& extents = shape_t<E...>::value) {
    if constexpr (!detail::update_dtype_fits<T, Initial>)
      static_assert(detail::takes<variable<T, E...>, detail::got<Initial>>,
                    "[variable] expects an initial value of its own dtype, and got another");
    else if constexpr (!detail::initial_shape_fits<shape_t<E...>, Initial>)
      static_assert(detail::takes<variable<T, E...>, detail::got<Initial>>,
                    "[variable] expects an initial value of its own shape, and got another");
    if constexpr (!shape_t<E...>::value.is_static())
      detail::check_extents(name, shape_t<E...>::value, extents, w);
    return detail::make_variable(name, {extents, dtype_of<T>}, detail::initializer_at(initial, w),
                                 options, w);
  }
  template <class Op, class K, class X>
  ext::assigned<tensor<T, E...>> update(const X& value, ext::source_location w) const {
    using R = ext::assigned<tensor<T, E...>>;
    if constexpr (!detail::update_dtype_fits<T, X>) {
      static_assert(
          detail::takes<Op, variable<T, E...>, detail::got<X>>,
          "[assign] expects a value of the variable's dtype, and got another: use cast<T>(x)");
      return R({});
    } else if constexpr (!detail::update_shape_fits<shape_t<E...>, X>) {
      static_assert(detail::takes<Op, variable<T, E...>, detail::got<X>>,
                    "[assign] expects a value of the variable's shape, and got another");
      return R({});
    } else if constexpr (std::is_same_v<Op, op::assign> || ext::is_numeric(dtype_of<T>))
      return R(detail::update<Op>(this->handle(),
                                  detail::update_value<T, X, K>(value, this->handle(), w), w));
    else {
      static_assert(detail::takes<Op, variable<T, E...>, detail::got<X>>,
                    "[assign_add] expects a variable of numbers, and got bool or strings");
      return R({});
    }
  }
};

/// A variable whose dtype and extents are known only at run time, so that a container can hold
/// several: `std::vector<any_variable> weights`. Operations take it as an any_tensor.
class any_variable : public detail::expression_base {
 public:
  /// An empty handle, to be assigned to; using it throws failed_precondition.
  any_variable() = default;
  /// As for variable<T, E…>: `any_variable w("w", {in, out}, truncated_normal(0.1))`.
  /// Also throws invalid_argument if an extent is `dyn`.
  /// @{
  template <std::convertible_to<std::string_view> Name, ext::initializes Initial>
  any_variable(const Name& name, const dims& extents, const Initial& initial,
               dtype type = dtype::float32, ext::source_location w = ext::here())
      : any_variable(name, extents, initial, type, detail::default_options(), w) {}
  template <std::convertible_to<std::string_view> Name, ext::initializes Initial>
  any_variable(const Name& name, const dims& extents, const Initial& initial, dtype type,
               const variable_options& options, ext::source_location w = ext::here())
      : any_variable(make(name, {extents, type}, detail::initializer_at(initial, w), options, w)) {}
  /// @}
  /// An existing variable of a graph. Throws not_found if `n` is empty or not a variable.
  explicit any_variable(const ext::node_ref& n);

  /// A handle to the same variable.
  template <class T, std::int64_t... E>
  any_variable(const variable<T, E...>& v)  // NOLINT: implicit on purpose
      : output_(v.handle()) {}

  /// False for an empty handle.
  bool valid() const { return static_cast<bool>(output_); }
  /// Throws failed_precondition if empty.
  const ext::output& handle() const {
    if (!valid()) detail::refuse_empty("variable");
    return output_;
  }
  /// With its name scopes.
  const std::string& name() const;
  /// As it was declared: an extent is `dyn` where only its initial value says it. Throws
  /// failed_precondition if empty.
  /// @{
  dtype type() const { return handle().type().type; }
  const dims& shape() const { return handle().type().shape; }
  int rank() const { return shape().rank(); }
  /// @}
  /// The output that represents it inside an expression.
  ext::output operand() const { return detail::read_variable(handle()); }
  /// Its value, as operations and fetches take it. Throws failed_precondition if empty.
  operator any_tensor() const { return any_tensor(operand()); }  // NOLINT: implicit on purpose

  /// The value now; under control dependencies, after them.
  any_tensor read(ext::source_location w = ext::here()) const {
    return any_tensor(detail::read_variable(handle(), w));
  }
  /// A part of it: see ext::any_variable_part.
  template <class... S>
  requires detail::subscripts<S...>
  auto operator()(const S&... s) const { return part_of_variable(*this, s...); }
  /// Sets the value to `value`, or adds or subtracts it, on the variable's device. Yields the new
  /// value, as `assign(…).value()`. Throws invalid_argument if `value` does not fit, and where it
  /// is added to or subtracted from a variable of bool.
  /// @{
  template <ext::operand_of_update X, class K = ext::kernels_for<std::tuple<X>>>
  ext::assigned<any_tensor> assign(const X& value, ext::source_location w = ext::here()) const {
    return update<K>(ext::record_of<op::assign>, value, w);
  }
  template <ext::operand_of_update X, class K = ext::kernels_for<std::tuple<X>>>
  ext::assigned<any_tensor> assign_add(const X& value, ext::source_location w = ext::here()) const {
    return update<K>(ext::record_of<op::assign_add>, value, w);
  }
  template <ext::operand_of_update X, class K = ext::kernels_for<std::tuple<X>>>
  ext::assigned<any_tensor> assign_sub(const X& value, ext::source_location w = ext::here()) const {
    return update<K>(ext::record_of<op::assign_sub>, value, w);
  }
  /// @}
  /// The first value, for use in the initial values of other variables.
  any_tensor initial_value() const { return any_tensor(detail::initial_value(*handle().node)); }
  /// The operation that gives it its first value.
  operation initializer(ext::source_location w = ext::here()) const {
    return detail::initializer_of(handle(), w);
  }

 private:
  static ext::node_ref make(std::string_view name, const ext::tensor_type& type,
                            const deft::initializer& initial, const variable_options& options,
                            ext::source_location w);
  template <class K, class X>
  ext::assigned<any_tensor> update(const ext::op_def& def, const X& value,
                                   ext::source_location w) const {
    return ext::assigned<any_tensor>(
        detail::update(def, handle(), detail::any_update_value<K>(value, handle(), w), w));
  }

  ext::output output_;
};
/// @cond refused
template <std::convertible_to<std::string_view> Name, class... Initial>
variable(const Name&, const Initial&...) -> variable<detail::missing>;
template <ext::initializes Initial, std::convertible_to<std::string_view> Name>
variable(const Initial&, const Name&) -> variable<detail::missing>;
/// @endcond

namespace detail {
/// The processor of the task on which a variable is placed; null if it is placed nowhere yet.
placement processor_of(const any_variable& v);
}  // namespace detail

/// The operation that gives its first value to every variable that the current graph has now.
/// Warns if there are none; throws failed_precondition if a variable has no initial value.
operation initialize_all(ext::source_location w = ext::here());

/// Updates of a variable known only at run time, given as the any_tensor that reads it: sets it to
/// `value`, or adds or subtracts that. Throws invalid_argument if `v` is not a variable or `value`
/// does not fit.
/// @{
ext::assigned<any_tensor> assign(const any_tensor& v, const any_tensor& value,
                                 ext::source_location w = ext::here());
ext::assigned<any_tensor> assign_add(const any_tensor& v, const any_tensor& value,
                                     ext::source_location w = ext::here());
ext::assigned<any_tensor> assign_sub(const any_tensor& v, const any_tensor& value,
                                     ext::source_location w = ext::here());
/// @}

}  // namespace deft
