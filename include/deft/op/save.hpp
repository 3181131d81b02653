// SPDX-License-Identifier: Apache-2.0
// deft/op/save.hpp: tensors to and from safetensors files on the task that holds them. A saver
// makes these nodes.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {

/// Types of tensors as an attribute: of each dtype, rank and extents.
integers as_integers(std::span<const tensor_type> types);

/// Writes the inputs after the first one to a file: the text of the first, a path, and `suffix`.
/// Yields the number of bytes of their elements.
struct save_tensors {
  static constexpr std::string_view name = "save_tensors";
  static constexpr int arity = 1;
  static constexpr int max_arity = -1;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect;
  strings names;  ///< of the inputs after the first
  std::string suffix;
  static constexpr auto fields =
      field_list(field{"names", &save_tensors::names}, field{"suffix", &save_tensors::suffix});

  tensor_type infer(std::span<const tensor_type> in) const;
};

/// The values of variables of this task, all of one moment, on its processor.
struct snapshot_variables {
  static constexpr std::string_view name = "snapshot_variables";
  static constexpr int arity = 0;
  static constexpr op_traits traits = op_traits::stateful;
  strings containers, variables;
  integers types;  ///< as those of restore_tensors
  static constexpr auto fields = field_list(field{"containers", &snapshot_variables::containers},
                                            field{"variables", &snapshot_variables::variables},
                                            field{"types", &snapshot_variables::types});

  /// Throws invalid_argument if the attributes are not sound.
  std::vector<tensor_type> outputs() const;
  std::vector<tensor_type> infer(std::span<const tensor_type>) const { return outputs(); }
};

/// Reads tensors from files. The input is a text of three lines for each tensor: its name, the
/// file, and its name in the file; those of other names are passed over.
struct restore_tensors {
  static constexpr std::string_view name = "restore_tensors";
  static constexpr int arity = 1;
  static constexpr op_traits traits = op_traits::stateful;
  strings names;
  integers types;  ///< of each tensor: dtype, rank, extents
  static constexpr auto fields =
      field_list(field{"names", &restore_tensors::names}, field{"types", &restore_tensors::types});

  /// Throws invalid_argument if `types` are not one sound type for each name.
  std::vector<tensor_type> outputs() const;
  std::vector<tensor_type> infer(std::span<const tensor_type> in) const;
};

}  // namespace deft::op
