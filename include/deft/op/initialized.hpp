// SPDX-License-Identifier: Apache-2.0
// deft/op/initialized.hpp: whether a variable has a value, and waiting until it has one.
#pragma once
#include <deft/op/variable.hpp>

namespace deft::op {

/// What names a variable on its task. These operations run on the processor of that task, wherever
/// on it the variable lives, so that the variable is not one of their resources.
struct variable_name {
  std::string container, variable;
  dtype type = dtype::none;
  dims shape;
  static constexpr auto fields = field_list(
      field{"container", &variable_name::container}, field{"name", &variable_name::variable},
      field{"dtype", &variable_name::type}, field{"shape", &variable_name::shape});
};

struct is_initialized : variable_name {
  static constexpr std::string_view name = "is_initialized";
  static constexpr int arity = 0;
  static constexpr op_traits traits = op_traits::stateful;

  tensor_type infer(std::span<const tensor_type> in) const;
};

/// Waits until the variable has a value.
struct await_initialized : variable_name {
  static constexpr std::string_view name = "await_initialized";
  static constexpr int arity = 0;
  static constexpr op_traits traits =
      op_traits::stateful | op_traits::effect | op_traits::no_value | op_traits::waits;

  void infer(std::span<const tensor_type> in) const;
};

/// Yields a number, int64, that a variable has until it is restored; 0 while it has no value or is
/// being restored.
struct value_generation : variable_name {
  static constexpr std::string_view name = "value_generation";
  static constexpr int arity = 0;
  static constexpr op_traits traits = op_traits::stateful;

  tensor_type infer(std::span<const tensor_type> in) const;
};

/// Takes the variable's value away. Until end_restoring it can only be assigned: it counts as one
/// without a value, and what reads or updates it fails with `aborted`. Plans that were made before
/// do not change it any more, also after that.
struct begin_restoring : variable_name {
  static constexpr std::string_view name = "begin_restoring";
  static constexpr int arity = 0;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::no_value;

  void infer(std::span<const tensor_type> in) const;
};
struct end_restoring : variable_name {
  static constexpr std::string_view name = "end_restoring";
  static constexpr int arity = 0;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::no_value;

  void infer(std::span<const tensor_type> in) const;
};

}  // namespace deft::op

namespace deft {

/// Whether `v` has a value: it was initialized, assigned or restored, and not reset since.
tensor<bool> is_initialized(const any_variable& v, ext::source_location w = ext::here());
/// An operation that waits until `v` has a value, which another session may give it.
operation await_initialized(const any_variable& v, ext::source_location w = ext::here());

namespace detail {
any_tensor value_generation(const any_variable& v);
operation begin_restoring(const any_variable& v);
operation end_restoring(const any_variable& v);
/// Gives `v` its first value if it has none.
operation initialize_if_empty(const any_variable& v);
}  // namespace detail

}  // namespace deft
