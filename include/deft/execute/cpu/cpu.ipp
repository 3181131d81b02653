// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/cpu.ipp: the table of the CPU's kernels, and those that cpu_elementwise.ipp and
// cpu_linear.ipp leave to it.
#pragma once
#include <algorithm>
#include <deft/execute/cpu/elementwise.ipp>
#include <deft/execute/cpu/index.ipp>
#include <deft/execute/cpu/interpreter.ipp>
#include <deft/execute/cpu/kernel_base.ipp>
#include <deft/execute/cpu/layout.ipp>
#include <deft/execute/cpu/random.ipp>
#include <deft/execute/cpu/reduce.ipp>
#include <deft/execute/cpu/shapes.ipp>
#include <deft/execute/cpu/softmax.ipp>
#include <deft/execute/fused.ipp>
#include <deft/execute/team.ipp>
#include <deft/op/catalog.hpp>
#include <map>

namespace deft {

template <int RegisterBytes, bool FusedMultiplyAdd>
const char cpu::built_for<RegisterBytes, FusedMultiplyAdd>::tag = 0;
template struct cpu::built_for<cpu::register_bytes, cpu::fused_multiply_add>;

namespace cpu_table {
namespace {

/// Operations with an algorithm of their own; elementwise ones come from the catalog.
constexpr std::pair<std::string_view, kernel_factory> own_algorithms[] = {
    {op::fused::name, &cpu::make_fused},
    {op::matmul::name, &cpu::make_matmul},
    {op::sum::name, &cpu::make_sum},
    {op::mean::name, &cpu::make_mean},
    {op::max::name, &cpu::make_max},
    {op::sum_to::name, &cpu::make_sum_to},
    {op::softmax::name, &cpu::make_softmax},
    {op::softmax_cross_entropy::name, &cpu::make_softmax_cross_entropy},
    {op::softmax_cross_entropy_grad::name, &cpu::make_softmax_cross_entropy_grad},
    {op::argmax::name, &cpu::make_argmax},
    {op::first_max::name, &cpu::make_first_max},
    {op::broadcast_to::name, &cpu::make_broadcast_to},
    {op::transpose::name, &cpu::make_transpose},
    {op::concat::name, &cpu::make_concat},
    {op::concat_part::name, &cpu::make_concat_part},
    {op::gather::name, &cpu::make_gather},
    {op::scatter_add::name, &cpu::make_scatter_add},
    {op::one_hot::name, &cpu::make_one_hot},
    {op::size_of::name, &cpu::make_size_of},
    {op::random_uniform::name, &cpu::make_random_uniform},
    {op::random_normal::name, &cpu::make_random_normal},
    {op::truncated_normal::name, &cpu::make_truncated_normal},
    {op::assign_add::name, &cpu::make_update},
    {op::assign_sub::name, &cpu::make_update},
};

using table = std::map<std::string_view, kernel_factory>;

const table& kernels() {
  static auto& made = *new table([] {
    table t(std::begin(own_algorithms), std::end(own_algorithms));
    op::catalog::each([&]<class Op>() {
      if (record_of<Op>.is(op_traits::elementwise)) t.emplace(Op::name, &cpu::make_elementwise);
    });
    return t;
  }());
  return made;
}

}  // namespace
}  // namespace cpu_table

kernel_factory find_cpu_kernel(std::string_view op) {
  const auto& t = cpu_table::kernels();
  auto at = t.find(op);
  return at == t.end() ? nullptr : at->second;
}

std::vector<std::string_view> cpu_kernel_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, make] : cpu_table::kernels()) names.push_back(name);
  return names;
}

}  // namespace deft
