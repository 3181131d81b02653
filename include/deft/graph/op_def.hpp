// SPDX-License-Identifier: Apache-2.0
// deft/graph/op_def.hpp: what the graph knows of an operation; records are filled by the catalog.
#pragma once
#include <cstdint>
#include <deft/core/any_array.hpp>
#include <deft/core/dims.hpp>
#include <deft/core/dtype.hpp>
#include <deft/graph/program.hpp>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace deft {

/// Dtype and shape of one value; `dyn` where an extent is known at run time only.
struct tensor_type {
  dims shape;
  dtype type = dtype::none;

  friend bool operator==(const tensor_type&, const tensor_type&) = default;
};
/// "float(100,784)".
inline std::string to_string(const tensor_type& t) { return str(t.type, t.shape); }

/// A list of integers as an attribute: axes, a shape, a program's immediates.
using integers = std::vector<std::int64_t>;

/// Value of an attribute. The order of alternatives is part of the wire format.
using attr_value =
    std::variant<std::int64_t, double, std::string, integers, any_array, program_ref>;
using attr_list = std::vector<attr_value>;

bool operator==(const attr_list& a, const attr_list& b) = delete;
/// Same kinds and same values; arrays and programs by content.
bool same_attributes(const attr_list& a, const attr_list& b);
std::uint64_t hash_attributes(const attr_list& a);
/// For graph pages and logs; long arrays are shortened.
std::string to_string(const attr_value& v);

/// What a shape rule sees.
struct infer_context {
  std::span<const tensor_type> inputs;
  std::span<const attr_value> attributes;
};

/// How an operation may be treated.
enum class op_traits : unsigned {
  none = 0,
  elementwise = 1,  ///< one value from the values at the same place; can be part of a program
  stateful = 2,     ///< never merged, folded or dropped for equality: state, random numbers
  effect = 4,       ///< worth running for itself: assignments, checks
  no_value = 8,     ///< yields nothing: group, no_op
};
constexpr op_traits operator|(op_traits a, op_traits b) {
  return static_cast<op_traits>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// One operation. Records live as long as the process and are compared by address.
struct op_def {
  std::string_view name;  ///< wire tag, node name, DOT label
  int version = 1;
  int min_inputs = 0;
  int max_inputs = 0;  ///< -1: any number
  op_traits traits = op_traits::none;
  std::span<const std::string_view> attributes;  ///< names, in order
  /// Checks inputs and attributes and gives the types of the outputs.
  /// Throws invalid_argument with the sentence that the user sees.
  void (*infer)(const infer_context&, std::vector<tensor_type>& outputs) = nullptr;

  constexpr bool is(op_traits t) const {
    return (static_cast<unsigned>(traits) & static_cast<unsigned>(t)) != 0;
  }
};

/// The catalog's records; defined by op/catalog.ipp, so that a program which builds graphs has it.
std::span<const op_def* const> catalog_ops();
/// Adds an operation of the program's own; it must live as long as the process.
/// Throws already_exists if the name is taken by another record.
void register_op(const op_def& def);
/// nullptr if there is none of that name.
const op_def* find_op(std::string_view name);

/// Runs the arity check and the shape rule of `def`.
void infer_types(const op_def& def, const infer_context& c, std::vector<tensor_type>& outputs);

}  // namespace deft
