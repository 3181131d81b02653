// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/registered.ipp: the table of compiled expressions, and which of them a program
// is.
#pragma once
#include <algorithm>
#include <deft/kernels/gpu/registered.hpp>
#include <deft/kernels/program_table.hpp>
#include <numeric>

namespace deft::ext::gpu {
namespace {

constexpr int kind_of(kernels_of system, fold_kind fold) {
  return static_cast<int>(system) * 8 + static_cast<int>(fold);
}
auto& registered_kernels() {
  constexpr auto kind = [](const registered_kernel& k) { return kind_of(k.system(), k.fold()); };
  static auto& t = *new program_table<registered_kernel, kind>;
  return t;
}

kernel_ptr make_expression(kernels_of system, const program& p,
                           std::span<const std::int64_t> literals) {
  const registered_kernel* known = registered_kernels().find(p, kind_of(system, fold_kind::none));
  if (!known) return nullptr;
  std::vector<std::uint16_t> operands(p.inputs.size() + p.immediates.size());
  std::iota(operands.begin(), operands.end(), std::uint16_t{0});
  return known->make()({p, operands, literals});
}

/// Of a region whose result is the fold of one expression, for each row or over all.
kernel_ptr make_fold(kernels_of system, const program& p, std::span<const std::int64_t> literals) {
  const instruction& fold = p.code.back();
  const std::size_t operands = p.inputs.size() + p.immediates.size();
  if (p.outputs.size() != 1 || p.outputs[0].value + 1u != p.values() ||
      std::ranges::count_if(p.code, &instruction::is_fold) != 1 || !fold.is_fold() ||
      fold.leaves == extent_class::column || fold.args[0] < operands)
    return nullptr;
  const program_part part =
      extract(p, {fold.args, 1}, [&](std::uint16_t v) { return v < operands; });
  const fold_kind how = fold.op->folds == fold_kind::mean ? fold_kind::sum : fold.op->folds;
  const registered_kernel* known = registered_kernels().find(*part.program, kind_of(system, how));
  return known ? known->make()({p, part.operands, literals}) : nullptr;
}

}  // namespace

constinit registry<registered_kernel> registered_kernel::all;

registered_kernel::registered_kernel(kernels_of system, const program_ref& (*program)(), maker m,
                                     fold_kind fold, const op_def* alone)
    : system_(system), program_(program), make_(m), fold_(fold), alone_(alone) {
  all.add(*this);
}

kernel_ptr make_registered(kernels_of system, const program& p,
                           std::span<const std::int64_t> literals) {
  return p.is_region() ? make_fold(system, p, literals) : make_expression(system, p, literals);
}

kernel_ptr make_registered(kernels_of system, const op_def& op, dtype operand, dtype result) {
  for (const auto& k : registered_kernel::all) {
    if (k.system() != system || k.alone() != &op) continue;
    const program& p = k.signature();
    if (p.inputs.back() == operand && p.result() == result) return make_expression(system, p, {});
  }
  return nullptr;
}

std::vector<std::pair<const op_def*, dtype_set>> registered_operations(kernels_of system) {
  std::vector<std::pair<const op_def*, dtype_set>> all;
  for (const auto& k : registered_kernel::all) {
    if (k.system() != system || !k.alone()) continue;
    auto at = std::ranges::find(all, k.alone(), [](const auto& e) { return e.first; });
    if (at == all.end()) at = all.insert(at, {k.alone(), dtype_set()});
    at->second = at->second | dtype_set{k.signature().inputs.back()};
  }
  return all;
}

}  // namespace deft::ext::gpu
