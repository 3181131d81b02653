// SPDX-License-Identifier: Apache-2.0
// deft/op/assign_slice.hpp: updates of a part of a variable, in place.
#pragma once
#include <deft/op/assign.hpp>
#include <deft/op/slice.hpp>

namespace deft::op {

/// The first input is broadcast to a part of a variable, which is where `slice` has it: `begin`,
/// `size` and `step` are slice's, and so are further inputs.
struct slice_update : variable_state {
  static constexpr int arity = 1;
  static constexpr int max_arity = 3;
  static constexpr op_role role = op_role::update;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect;
  dims begin, size, step;
  static constexpr auto fields = field_list(
      field{"container", &slice_update::container}, field{"name", &slice_update::variable_name},
      field{"dtype", &slice_update::type}, field{"shape", &slice_update::shape},
      field{"extents_of", &slice_update::extents_of}, field{"begin", &slice_update::begin},
      field{"size", &slice_update::size}, field{"step", &slice_update::step});

  slice part() const { return {begin, size, step}; }

 protected:
  tensor_type checked_part(std::string_view op, std::span<const tensor_type> in,
                           bool arithmetic) const;
};
/// It replaces the part.
struct assign_slice : slice_update {
  static constexpr std::string_view name = "assign_slice";
  tensor_type infer(std::span<const tensor_type> in) const { return checked_part(name, in, false); }
};
/// It is added.
struct assign_add_slice : slice_update {
  using combines = add;
  static constexpr std::string_view name = "assign_add_slice";
  tensor_type infer(std::span<const tensor_type> in) const { return checked_part(name, in, true); }
};
/// It is subtracted.
struct assign_sub_slice : slice_update {
  using combines = sub;
  static constexpr std::string_view name = "assign_sub_slice";
  tensor_type infer(std::span<const tensor_type> in) const { return checked_part(name, in, true); }
};

}  // namespace deft::op
