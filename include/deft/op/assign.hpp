// SPDX-License-Identifier: Apache-2.0
// deft/op/assign.hpp: updates of variables.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/base/shapes.hpp>
#include <deft/op/sub.hpp>

namespace deft::op {

/// The attributes of every node that reads or writes a variable.
struct variable_state {
  std::string container;
  std::string variable_name;  ///< with its name scopes: the variable's identity on its task
  dtype type = dtype::none;
  dims shape;
  std::string extents_of;  ///< of an update: see resource_ref
  static constexpr auto fields = field_list(
      field{"container", &variable_state::container}, field{"name", &variable_state::variable_name},
      field{"dtype", &variable_state::type}, field{"shape", &variable_state::shape},
      field{"extents_of", &variable_state::extents_of});

  resource_ref resource() const {
    return {{"variable", container, variable_name}, {shape, type}, extents_of};
  }

  tensor_type checked(std::string_view op) const;
  /// The type of an update by `value`. Throws invalid_argument if `value` does not fit.
  tensor_type checked_update(std::string_view op, const tensor_type& value, bool arithmetic) const;
};

/// Sets a variable. Like the other updates, it yields the new value.
struct assign : variable_state {
  static constexpr std::string_view name = "assign";
  static constexpr int arity = 1;
  static constexpr op_role role = op_role::assign;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect;

  tensor_type infer(std::span<const tensor_type> in) const {
    return checked_update(name, in[0], false);
  }
};

/// Sets a variable that has no value, and leaves one that has. Yields the value that it has then.
struct initialize : variable_state {
  static constexpr std::string_view name = "initialize";
  static constexpr int arity = 1;
  static constexpr op_role role = op_role::assign;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect;

  resource_ref resource() const {
    resource_ref r = variable_state::resource();
    r.only_first = true;
    return r;
  }
  tensor_type infer(std::span<const tensor_type> in) const {
    return checked_update(name, in[0], false);
  }
};

struct assign_add : variable_state {
  using joins = add;
  static constexpr std::string_view name = "assign_add";
  static constexpr int arity = 1;
  static constexpr op_role role = op_role::update;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect;

  tensor_type infer(std::span<const tensor_type> in) const {
    return checked_update(name, in[0], true);
  }
};

struct assign_sub : variable_state {
  using joins = sub;
  static constexpr std::string_view name = "assign_sub";
  static constexpr int arity = 1;
  static constexpr op_role role = op_role::update;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect;

  tensor_type infer(std::span<const tensor_type> in) const {
    return checked_update(name, in[0], true);
  }
};

}  // namespace deft::op

namespace deft::ext {

/// What a variable may be updated with: an expression, a C++ scalar, or a host array, which becomes
/// a constant of the graph. The array of a vector variable may be anything contiguous.
template <class X>
concept operand_of_update =
    (operand<X> && !std::derived_from<X, operation>) || detail::is_ndarray<X> ||
    std::same_as<X, any_array> || detail::element_range<const X> || detail::text<X> ||
    detail::text_range<X>;

/// An update of a variable: an operation, whose `value()` is the variable's new value.
template <class Tensor>
class assigned : public operation {
 public:
  explicit assigned(const output& o) : operation(o.node) {}
  Tensor value() const { return Tensor(output{handle(), 0}); }
};

}  // namespace deft::ext

namespace deft::detail {
/// Adds a node of `def` that reads or changes the variable whose node's output `variable` is, on
/// that variable's device, and keeps it alive.
output at_variable(const op_def& def, const output& variable, attr_list attributes,
                   std::span<const output> inputs, source_location w);
/// Adds an update of the variable whose node's output `variable` is, on its device. `extents_of`:
/// of one that keeps the variable's extents, which are always those of that variable.
output update(const op_def& def, const output& variable, const output& value, source_location w,
              std::string_view extents_of = {});
template <class Op>
output update(const output& variable, const output& value, source_location w,
              std::string_view extents_of = {}) {
  return update(record_of<Op>, variable, value, w, extents_of);
}

template <class T, class X>
inline constexpr bool update_dtype_fits = [] {
  if constexpr (scalar<X>)
    return literal_fits<T, X>;
  else if constexpr (typed_expression<X> || is_ndarray<X>)
    return std::is_same_v<T, value_type_of<X>>;
  else if constexpr (element_range<const X>)
    return std::is_same_v<T, std::iter_value_t<data_of<const X>>>;
  else if constexpr (text<X> || text_range<X>)
    return std::is_same_v<T, std::string>;
  else
    return true;
}();
template <class Shape, class X>
inline constexpr bool update_shape_fits = [] {
  if constexpr (typed_expression<X> || is_ndarray<X>)
    return may_equal(Shape::value, shape_type_of<X>::value);
  else if constexpr (element_range<const X> || text_range<X>)
    return Shape::value.n == 1;
  else
    return true;
}();

/// A constant in the graph of `like`, which need not be the current one.
output constant_with(const output& like, any_array value, source_location w);
/// A scalar constant, repeated to the shape of `like`, in its graph.
output filled(any_array scalar, const output& like, source_location w);
/// The same of a literal, for an update of the variable `like`. Throws invalid_argument that names
/// it if its dtype cannot represent the literal.
output filled(const literal& v, const output& like, source_location w);
/// An array of that type, of which `name` is one, whose elements are all `v`. Throws
/// invalid_argument if its extents are not known.
any_array repeated(std::string_view v, const tensor_type& type, const std::string& name,
                   source_location w);
/// The same of a text. Throws invalid_argument where the extents of `like` are not known.
output filled(std::string_view v, const output& like, source_location w);

template <class K, class X>
output any_update_value(const X& x, const output& variable, source_location w) {
  if constexpr (text<X>)
    return filled(std::string_view(x), variable, w);
  else if constexpr (scalar<X>)
    return filled(literal_of(x), variable, w);
  else if constexpr (typed_expression<X>)
    return lower<K>(x, w);
  else if constexpr (is_ndarray<X>)
    return constant_with(variable, borrowed::from(x).clone(), w);
  else if constexpr (std::same_as<X, any_array>)
    return constant_with(variable, x.clone(), w);
  else if constexpr (element_range<const X> || text_range<X>)
    return constant_with(variable, array_of_list(x).clone(), w);
  else
    return any_tensor(x).handle();
}
template <class T, class X, class K = kernels_for<X>>
output update_value(const X& x, const output& variable, source_location w) {
  if constexpr (scalar<X>)
    return filled(literal_of(x), variable, w);
  else
    return any_update_value<K>(x, variable, w);
}
}  // namespace deft::detail

namespace deft::ext {}  // namespace deft::ext
