// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/fused_update.ipp: the variables of a fused_update, and its shape rule.
#pragma once
#include <algorithm>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>

namespace deft {
namespace {

/// What is written in place is not read later. Throws invalid_argument for the number of a variable
/// whose old value is used after its new one.
void check_order(const ext::program& p) {
  for (std::size_t k = 0; k < p.outputs.size(); ++k) {
    const ext::instruction* made = p.made_by(p.outputs[k].value);
    if (!made || p.outputs[k].where != ext::extent_class::element)
      ext::fail(errc::invalid_argument, "[fused_update] result ", k,
                " is not a new value for each element");
    for (const auto& c :
         std::span(p.code).subspan(static_cast<std::size_t>(made - p.code.data()) + 1))
      if (std::ranges::count(std::span(c.args, c.count), k))
        ext::fail(errc::invalid_argument, "[fused_update] the old value of variable ", k,
                  " is used after its new one");
  }
}

}  // namespace

std::vector<ext::resource_ref> op::fused_update::resources() const {
  if (names.empty() || names.size() > ext::program::most_outputs ||
      containers.size() != names.size() || names.size() > program->inputs.size())
    ext::fail(errc::invalid_argument, "[fused_update] ", names.size(), " variables in ",
              containers.size(), " containers, and a program of ", program->inputs.size(),
              " inputs");
  std::vector<ext::resource_ref> all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const variable_state v{containers[i], names[i], program->inputs[i], shape, {}};
    if (std::ranges::find(all, v.resource().key, &ext::resource_ref::key) != all.end())
      ext::fail(errc::invalid_argument, "[fused_update] variable \"", names[i], "\" occurs twice");
    all.push_back(v.resource());
  }
  return all;
}

std::vector<ext::tensor_type> op::fused_update::infer(std::span<const ext::tensor_type> in) const {
  std::vector<ext::tensor_type> all, made;
  for (const auto& r : resources()) all.push_back(r.holds);
  const std::vector<ext::tensor_type> own = all;
  all.insert(all.end(), in.begin(), in.end());
  if (all.size() != program->inputs.size())
    ext::fail(errc::invalid_argument, "[fused_update] the program takes ", program->inputs.size(),
              " inputs, not ", all.size());
  made = op::fused{program, immediates}.infer(all);
  check_order(*program);
  if (made.size() != own.size())
    ext::fail(errc::invalid_argument, "[fused_update] ", made.size(), " results for ", own.size(),
              own.size() == 1 ? " variable" : " variables");
  if (!operands.empty() && operands.size() != own.size())
    ext::fail(errc::invalid_argument, "[fused_update] ", operands.size(), " operands for ",
              own.size(), own.size() == 1 ? " variable" : " variables");
  if (shape.is_static() && !operands.empty()) {
    const std::vector<dims> extents = detail::shapes_of(*program, all);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i] < 0 || operands[i] >= std::ssize(extents))
        ext::fail(errc::invalid_argument, "[fused_update] has no value ", operands[i]);
      else if (const dims& x = extents[static_cast<std::size_t>(operands[i])]; x != shape)
        ext::fail(errc::invalid_argument, "[fused_update] ", ext::tensor_type{x, own[i].type},
                  " does not fit variable \"", names[i], "\", which is ", own[i]);
  }
  for (std::size_t i = 0; i < own.size(); ++i)
    made[i] = variable_state{containers[i], names[i], own[i].type, shape, {}}.checked_update(
        name, made[i], true);
  return made;
}

}  // namespace deft
