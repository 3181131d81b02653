// SPDX-License-Identifier: Apache-2.0
// deft/op/save.hpp: tensors to and from safetensors files on the task that holds them. A saver
// makes these nodes.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {

/// Writes the inputs after the first one to a file: the first, a path, a string, and `suffix`.
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
  tensor_types types;
  static constexpr auto fields = field_list(field{"containers", &snapshot_variables::containers},
                                            field{"variables", &snapshot_variables::variables},
                                            field{"types", &snapshot_variables::types});

  /// Throws invalid_argument if the attributes are not sound.
  std::vector<tensor_type> outputs() const;
  std::vector<tensor_type> infer(std::span<const tensor_type>) const { return outputs(); }
};

/// Reads tensors from files. The inputs are strings, one for each tensor: the file, and its name
/// there.
struct restore_tensors {
  static constexpr std::string_view name = "restore_tensors";
  static constexpr int arity = 2;
  static constexpr op_traits traits = op_traits::stateful;
  strings names;  ///< for messages
  tensor_types types;
  static constexpr auto fields =
      field_list(field{"names", &restore_tensors::names}, field{"types", &restore_tensors::types});

  /// Throws invalid_argument if `types` are not one sound type for each name.
  std::vector<tensor_type> outputs() const;
  std::vector<tensor_type> infer(std::span<const tensor_type> in) const;
};

}  // namespace deft::op
