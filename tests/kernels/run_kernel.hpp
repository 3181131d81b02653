// SPDX-License-Identifier: Apache-2.0
// tests/kernels/run_kernel.hpp: runs one node on the CPU, without a session.
#pragma once
#include <cstring>
#include <deft/expr/op_record.hpp>
#include <deft/kernels/cpu/device.hpp>
#include <vector>

namespace testing {

using deft::any_array;

inline std::vector<deft::ext::tensor_type> types_of(const std::vector<any_array>& values) {
  std::vector<deft::ext::tensor_type> types;
  for (const auto& v : values) types.push_back({v.shape(), v.type()});
  return types;
}

/// The node of `op` on inputs of these types; the shape rule gives its outputs.
inline deft::ext::node_def node_of(const deft::ext::op_def& op, deft::ext::attr_list attributes,
                                   const std::vector<deft::ext::tensor_type>& in) {
  deft::ext::node_def n;
  n.op = &op;
  n.attributes = std::move(attributes);
  std::vector<deft::ext::tensor_type> out;
  deft::ext::infer_types(op, {in, n.attributes}, out);
  n.outputs = std::move(out);
  return n;
}

/// A kernel ready for inputs of these types.
struct prepared {
  deft::ext::node_def node;
  std::vector<deft::ext::tensor_type> in;
  deft::ext::kernel_ptr kernel;

  prepared(const deft::ext::op_def& op, deft::ext::attr_list attributes,
           std::vector<deft::ext::tensor_type> types)
      : node(node_of(op, std::move(attributes), types)), in(std::move(types)) {
    const deft::ext::kernel_entry* entry = deft::ext::find_cpu_kernel(op.name);
    if (!entry) deft::ext::fail(deft::errc::not_found, "no kernel for ", op.name);
    kernel = entry->make(node, in);
    kernel->prepare(in, node.outputs);
  }

  /// Also over each input that a result may overwrite.
  std::vector<any_array> run(const std::vector<any_array>& inputs, std::uint64_t step = 0) {
    std::vector<any_array> outputs;
    for (const auto& t : node.outputs) outputs.emplace_back(t.type, t.shape);
    run(inputs, outputs, step);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if (in[i] != node.outputs[o] || !kernel->may_overwrite(i, o)) continue;
        std::vector<any_array> given = inputs, again;
        for (const auto& t : node.outputs) again.emplace_back(t.type, t.shape);
        given[i] = inputs[i].clone();
        again[o] = given[i];
        run(given, again, step);
        if (std::memcmp(again[o].raw(), outputs[o].raw(), outputs[o].bytes()) != 0)
          deft::ext::fail(deft::errc::internal, "[", node.op->name, "] output ", o,
                          " is wrong when it is written over input ", i);
      }
    return outputs;
  }
  void run(const std::vector<any_array>& inputs, std::vector<any_array>& outputs,
           std::uint64_t step) {
    std::vector<const void*> from;
    std::vector<void*> to;
    for (const auto& i : inputs) from.push_back(i.raw());
    for (auto& o : outputs) to.push_back(const_cast<void*>(o.raw()));
    const deft::ext::step_context context{.draw = step};
    run({from.data(), to.data(), &context});
  }
  /// Runs the kernel with scratch memory.
  void run(deft::ext::kernel_call c) {
    const deft::ext::buffer scratch = deft::ext::buffer::host(kernel->scratch());
    c.scratch = scratch.data();
    kernel->run(c);
  }
};

inline std::vector<any_array> run_all(const deft::ext::op_def& op, deft::ext::attr_list attributes,
                                      const std::vector<any_array>& inputs,
                                      std::uint64_t step = 0) {
  return prepared(op, std::move(attributes), types_of(inputs)).run(inputs, step);
}
/// Whether a zero in the second operand of Op is an error.
template <class Op, class T>
inline constexpr bool divides_integers = std::is_integral_v<T> &&
                                         (Op::name == "div" || Op::name == "mod");
/// The first output of Op on `inputs`.
template <class Op>
any_array run_op(const Op& o, const std::vector<any_array>& inputs, std::uint64_t step = 0) {
  return run_all(deft::ext::record_of<Op>, deft::ext::encode(o), inputs, step)[0];
}

}  // namespace testing
