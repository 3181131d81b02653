// SPDX-License-Identifier: Apache-2.0
// deft/graph/op_def.hpp: the graph's record of an operation; the catalog fills the records.
#pragma once
#include <cstdint>
#include <deft/core/any_array.hpp>
#include <deft/core/dims.hpp>
#include <deft/core/dtype.hpp>
#include <deft/core/registry.hpp>
#include <deft/core/shared_list.hpp>
#include <deft/graph/program.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace deft {

namespace ext {

/// Dtype and shape of one value; `dyn` where an extent is known only at run time.
struct tensor_type {
  dims shape;
  dtype type = dtype::none;

  friend bool operator==(const tensor_type&, const tensor_type&) = default;
};
/// Of a node's outputs.
using type_list = shared_list<tensor_type>;

/// "float(100,784)".
inline std::string to_string(const tensor_type& t) { return str(t.type, t.shape); }

/// A list of integers as an attribute: axes, a shape, a program's immediates.
using integers = std::vector<std::int64_t>;
/// A list of names as an attribute.
using strings = std::vector<std::string>;
/// A list of types as an attribute, whose extents may be `dyn`.
using tensor_types = std::vector<tensor_type>;

struct function_def;
/// A function as an attribute: what the operation does with its inputs. See graph/function.hpp.
using function_ref = std::shared_ptr<const function_def>;

/// Value of an attribute. The order of alternatives is part of the wire format.
using attr_value = std::variant<std::int64_t, double, std::string, integers, any_array, program_ref,
                                strings, function_ref, tensor_types>;
using attr_list = shared_list<attr_value>;

/// Takes the values.
attr_list make_attributes(std::span<attr_value> values);
/// Compares kinds and values; arrays, programs and functions by content.
bool same_attributes(std::span<const attr_value> a, std::span<const attr_value> b);
std::uint64_t hash_attributes(std::span<const attr_value> a);

/// For graph pages and logs; long arrays are shortened.
std::string to_string(const attr_value& v);

/// The portable program among attributes; nullptr if there is none.
const program* program_in(std::span<const attr_value> a);

/// The arguments of a shape rule.
struct infer_context {
  std::span<const tensor_type> inputs;
  std::span<const attr_value> attributes;
  /// Of an update in a run: what the resources hold, all of one shape. Empty: they are as declared.
  std::span<const tensor_type> held = {};
};

}  // namespace ext

/// The role of an operation in a run. Passes, executor, server and `explain` depend on the role,
/// not on the name of an operation.
enum class op_role : std::uint8_t {
  compute,      ///< values from values, by a device's kernel
  constant,     ///< its value is an attribute
  placeholder,  ///< has no value but the one that is fed
  feed,         ///< stands for a value that is fed
  alias,        ///< its first input's elements, under another type or name
  variable,     ///< the value of a resource before any update of the run
  read,         ///< the value of a resource after what it depends on
  assign,       ///< gives a resource another value
  update,       ///< changes the values of resources, by a kernel
  copy,         ///< its input on another device of the task; plans make it
  send,         ///< pushes its input to another task; plans make it
  receive,      ///< the value that another task sends; plans make it
  order,        ///< only waits for other nodes
  collective,   ///< combines its other inputs on the device of the first; plans replace it
  call,         ///< calls functions that are among its attributes
};

namespace ext {

/// Whether only plans make it, so that no client sends one.
constexpr bool is_transfer(op_role r) {
  return r == op_role::copy || r == op_role::send || r == op_role::receive;
}

/// How an operation may be treated.
enum class op_traits : unsigned {
  none = 0,
  elementwise = 1,     ///< an element from those at the same index; can be part of a program
  stateful = 2,        ///< never merged, folded or dropped for equality: state, random numbers
  effect = 4,          ///< has an effect beyond its value: assignments, checks
  no_value = 8,        ///< yields nothing: group, no_op
  waits = 16,          ///< may wait for something outside the step: a queue, a barrier
  keeps_axes = 32,     ///< the axes of its first output are the first ones of its first input
  repeats = 64,        ///< yields its first input's elements, as often as broadcasting would
  begins = 128,        ///< comes before the other nodes of its part of a step, also before reads
  on_processor = 256,  ///< runs on a processor of the task, whatever device of it is asked for
  checks = 512,        ///< yields its first input itself, or throws
};

}  // namespace ext

constexpr ext::op_traits operator|(ext::op_traits a, ext::op_traits b) {
  return static_cast<ext::op_traits>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr ext::op_traits operator&(ext::op_traits a, ext::op_traits b) {
  return static_cast<ext::op_traits>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}

namespace ext {

/// Whether `traits` has `t`, or one of them.
constexpr bool is_one_of(op_traits traits, op_traits t) {
  return (static_cast<unsigned>(traits) & static_cast<unsigned>(t)) != 0;
}

/// The name of something that lives on a task and outlives steps.
struct resource_key {
  std::string_view kind;  ///< "variable", "queue", …: things of different kinds may share a name
  std::string container, name;

  friend bool operator==(const resource_key&, const resource_key&) = default;
  friend auto operator<=>(const resource_key&, const resource_key&) = default;
};

/// A resource that a node reads or writes.
struct resource_ref {
  resource_key key;
  tensor_type holds;  ///< as declared; dtype none where it holds no single value
  /// Of an update that keeps the resource's extents: the name of the resource, in the same
  /// container, whose extents it always has. Empty: an assignment may change them.
  std::string extents_of = {};
  bool only_first = false;  ///< of an assignment: it leaves a value that is there
};

struct node;
struct output;
struct node_def;
class call_kernel;
/// Computes the gradients of a node's inputs from `dz`, that of its first output; empty for inputs
/// without a gradient. `outputs` are the node's values.
using gradient_function = std::vector<output> (*)(const node& n, std::span<const output> outputs,
                                                  const output& dz);

/// The functions of an operation that are compiled once, not wherever its record is named: for the
/// catalog in op/op.ipp, for a program's own operations where deft/deft.hpp sees them used.
struct op_functions {
  gradient_function gradient = nullptr;
  /// Of an elementwise operation of the program's own: its body, as num::text gives it, of operands
  /// of the names x, y and z.
  std::string (*source)() = nullptr;
  /// Of an operation of the role `call`: makes what calls the functions of a node.
  std::unique_ptr<call_kernel> (*make_call)(const node_def& n) = nullptr;
};

/// How a reduction combines elements.
enum class fold_kind : std::uint8_t { none, sum, mean, max, min };

/// One operation. Records live as long as the process and are compared by address.
struct op_def {
  std::string_view name;  ///< wire tag, node name, DOT label
  int version = 1;
  int min_inputs = 0;
  int max_inputs = 0;  ///< -1: any number
  op_role role = op_role::compute;
  op_traits traits = op_traits::none;
  std::span<const std::string_view> attributes = {};  ///< names, in order
  /// The resources that it reads or writes; nullptr: none. An update has one for each output.
  std::vector<resource_ref> (*resources)(std::span<const attr_value> attributes) = nullptr;
  /// Checks inputs and attributes and computes the types of the outputs.
  /// Throws invalid_argument with the message that the user sees.
  void (*infer)(const infer_context&, std::vector<tensor_type>& outputs) = nullptr;
  const op_functions* functions = nullptr;
  /// Of an update: the elementwise operation of the old value and its input; nullptr: none.
  const op_def* joins = nullptr;
  /// Of a reduction, whose attributes are those of op::reduction.
  fold_kind folds = fold_kind::none;
  /// An operation of one output, which is this one's second output for the same first inputs: a
  /// plan takes it from there. A further input may be one value in place of one repeated. Nullptr:
  /// none.
  const op_def* subsumes = nullptr;

  constexpr bool is(op_traits t) const { return is_one_of(traits, t); }
};

/// The catalog's records; defined by op/catalog.ipp, so that a program which builds graphs has it.
std::span<const op_def* const> catalog_ops();
/// Registers an operation of the program; `def` must live as long as the process.
/// Throws already_exists if the name is taken by another record.
void register_op(const op_def& def);

/// An object with static storage that registers an operation of the program before main, and those
/// of its functions that are in `compiled`; there can be several of one operation. If two
/// operations have the same name, every look-up throws already_exists.
class op_registration : public registry<op_registration>::link {
 public:
  static registry<op_registration> all;

  op_registration(const op_def& def, op_functions& functions, const op_functions& compiled);

  const op_def& def() const { return def_; }

 private:
  const op_def& def_;
};

/// The operation of that name, or nullptr.
const op_def* find_op(std::string_view name);
/// Whether this operation is in the catalog or was registered.
bool is_known(const op_def& def);
/// All operations of the process: the catalog's and the registered ones.
std::vector<const op_def*> known_ops();
/// Their number, which grows with each operation that is registered.
std::size_t known_op_count();

/// The dtype by which a device chooses the kernel of a node: the last operand's of an elementwise
/// operation, the first one's of others, the result's if it has no operands. `none` if it
/// has no value either.
constexpr dtype dispatch_type(const op_def& def, std::span<const tensor_type> in,
                              std::span<const tensor_type> out) {
  if (!in.empty()) return def.is(op_traits::elementwise) ? in.back().type : in.front().type;
  return out.empty() ? dtype::none : out.front().type;
}

/// The gradient of an operation; nullptr if it has none.
gradient_function gradient_of(const op_def& def);

/// Runs the arity check and the shape rule of `def`.
void infer_types(const op_def& def, const infer_context& c, std::vector<tensor_type>& outputs);

}  // namespace ext

}  // namespace deft
