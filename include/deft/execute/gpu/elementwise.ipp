// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/elementwise.ipp: every elementwise operation alone, for every dtype that it
// takes.
#pragma once
#include <deft/execute/catalog_calls.hpp>
#include <deft/execute/gpu/elements.hpp>
#include <deft/execute/gpu/kernels.hpp>
#include <deft/op/assign.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>

namespace deft::gpu::DEFT_GPU_SYSTEM {
namespace {

/// X over whole arrays, with 16-byte accesses where addresses and rows allow.
template <class X>
class element_kernel final : public queued_kernel {
 public:
  void queue(const kernel_call& c, stream& s) override {
    if (layout_.elements() == 0) return;
    const bool groups = has_groups(4, layout_, c, in_, out_);
    groups ? queue_groups<4>(c, s) : queue_groups<1>(c, s);
  }

 private:
  template <int N>
  using functor = elements<X, N>;
  static constexpr std::size_t K = functor<1>::K;

  void ready() override {
    layout_ = row_layout(in_, out_[0]);
    if (layout_.elements() > 0) places_ = places<K>(layout_, in_);
  }

  template <int N>
  void queue_groups(const kernel_call& c, stream& s) const {
    functor<N> f;
    f.where = places_;
    for (std::size_t k = 0; k < K; ++k) f.in[k] = s.in<void>(c.in[k]);
    f.out = s.out<typename X::value_type>(c.out[0]);
    f.count = layout_.elements();
    f.report = s.faults();
    s.launch((f.count + N - 1) / N, f);
  }

  row_layout layout_;
  places<K> places_;
};

using element_factory = queued_kernel_ptr (*)();

struct factory_of {
  template <class X>
  element_factory operator()() const {
    return []() -> queued_kernel_ptr { return std::make_unique<element_kernel<X>>(); };
  }
};

kernel_ptr make_single(const node_def& n, std::span<const tensor_type> in) {
  queued_kernel_ptr made = make_element(*n.op, in.back().type, n.outputs.at(0).type);
  if (!made) no_kernel(n, in.back().type);
  return made;
}
/// Of a variable's elements, input 0, and a value.
kernel_ptr make_update(const node_def& n, std::span<const tensor_type> in) {
  queued_kernel_ptr made = make_element(*n.op->joins, in.back().type, in.back().type);
  if (!made) no_kernel(n, in.back().type);
  return made;
}

}  // namespace

queued_kernel_ptr make_element(const op_def& op, dtype operand, dtype result) {
  static const auto& all = *new deft::detail::catalog_calls<element_factory>(factory_of());
  const element_factory* made = all.find(op.name, operand, result);
  return made ? (*made)() : nullptr;
}

kernel_table elementwise_kernels() {
  static const auto& table = *new std::vector<kernel_entry>([] {
    std::vector<kernel_entry> made{
        {op::fused::name, all_dtypes, &make_program},
        {op::fused_update::name, all_dtypes, &make_program},
        {op::assign_add::name, numeric_dtypes, &make_update},
        {op::assign_sub::name, numeric_dtypes, &make_update},
    };
    op::catalog::each([&]<class Op>() {
      if (record_of<Op>.is(op_traits::elementwise))
        made.push_back({Op::name, deft::detail::operand_types<Op>(), &make_single});
    });
    return made;
  }());
  return table;
}

}  // namespace deft::gpu::DEFT_GPU_SYSTEM
