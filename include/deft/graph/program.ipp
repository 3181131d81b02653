// SPDX-License-Identifier: Apache-2.0
// deft/graph/program.ipp: signatures and checks of portable programs.
#pragma once
#include <deft/core/hash.hpp>
#include <deft/graph/op_def.hpp>
#include <deft/graph/program.hpp>

namespace deft {

any_array literal_value(dtype t, std::int64_t bits) {
  any_array v(t, dims{});
  visit_dtype(t, [&]<class T>() { *v.mutable_data<T>() = from_immediate<T>(bits); });
  return v;
}

void program::seal() {
  auto value = [&](std::size_t v) {
    if (v < inputs.size()) return str("i", v, ":", inputs[v]);
    v -= inputs.size();
    if (v < immediates.size()) return str("k", v, ":", immediates[v]);
    return str("t", v - immediates.size());
  };
  signature.clear();
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto& c = code[i];
    if (i) signature += ' ';
    signature += str("t", i, "=", c.op->name, "(");
    for (int a = 0; a < c.count; ++a) {
      if (a) signature += ',';
      signature += value(c.args[a]);
    }
    signature += str("):", c.type);
  }
  hash = hash_text(signature);
}

void check(const program& p) {
  if (p.code.empty()) fail(errc::invalid_argument, "[fused] a program without instructions");
  if (p.code.size() > max_fused_operations)
    fail(errc::invalid_argument, "[fused] a program of ", p.code.size(), " operations, more than ",
         max_fused_operations);
  if (p.inputs.size() + p.immediates.size() > 3 * max_fused_operations)
    fail(errc::invalid_argument, "[fused] a program with too many inputs");
  for (auto t : p.inputs)
    if (!is_valid(t)) fail(errc::invalid_argument, "[fused] an input without a dtype");
  for (auto t : p.immediates)
    if (!is_valid(t)) fail(errc::invalid_argument, "[fused] an immediate without a dtype");
  std::size_t first = p.inputs.size() + p.immediates.size();
  std::vector<tensor_type> in, out;
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    const auto& c = p.code[i];
    if (!c.op || !c.op->is(op_traits::elementwise) || c.count > 3)
      fail(errc::invalid_argument, "[fused] instruction ", i, " is not elementwise");
    in.clear();
    for (int a = 0; a < c.count; ++a) {
      if (c.args[a] >= first + i)
        fail(errc::invalid_argument, "[fused] instruction ", i, " uses value ", c.args[a],
             " before it is there");
      in.push_back({dims{}, p.type_of(c.args[a])});
    }
    std::vector<attr_value> attributes;
    if (!c.op->attributes.empty()) attributes.emplace_back(static_cast<std::int64_t>(c.type));
    infer_types(*c.op, {in, attributes}, out);
    if (out.size() != 1 || out[0].type != c.type)
      fail(errc::invalid_argument, "[fused] instruction ", i, " (", c.op->name, ") gives ",
           out.empty() ? dtype::none : out[0].type, ", not ", c.type);
  }
}

}  // namespace deft
