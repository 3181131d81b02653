// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/elementwise.ipp: every elementwise operation alone, for every dtype that it
// takes.
#pragma once
#include <deft/core/hash.hpp>
#include <deft/execute/gpu/elements.hpp>
#include <deft/execute/gpu/kernels.hpp>
#include <deft/op/assign.hpp>
#include <deft/op/catalog.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>
#include <unordered_map>

namespace deft::gpu::DEFT_GPU_SYSTEM {
namespace {

/// X over whole arrays, with 16-byte accesses where addresses and rows allow.
template <class X>
class element_kernel final : public queued_kernel {
 public:
  void queue(const kernel_call& c, stream& s) override {
    if (layout_.elements() == 0) return;
    wide(c) ? queue_groups<4>(c, s) : queue_groups<1>(c, s);
  }

 private:
  using inputs = typename inputs_of<X>::type;
  template <int N>
  using functor = elements<X, N>;
  static constexpr std::size_t K = functor<1>::K;

  void ready() override {
    layout_ = row_layout(in_, out_[0]);
    if (layout_.elements() > 0) places_ = places<K>(layout_, in_);
    cost_ = 1000;
  }

  /// Whether groups of four elements are aligned in every operand.
  bool wide(const kernel_call& c) const {
    if (places_.levels > 1 && layout_.n() % 4 != 0) return false;
    auto aligned = [](const void* p, dtype t) {
      return reinterpret_cast<std::uintptr_t>(p) %
                 std::min<std::size_t>(16, 4 * size_of_dtype(t)) ==
             0;
    };
    for (std::size_t k = 0; k < K; ++k)
      if (!(places_.broadcast >> k & 1) && !aligned(c.in[k], in_[k].type)) return false;
    return aligned(c.out[0], out_[0].type);
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

template <class X>
queued_kernel_ptr make_kernel_of() {
  return std::make_unique<element_kernel<X>>();
}

// The operations of the catalog.

using element_factory = queued_kernel_ptr (*)();

std::uint64_t key(std::string_view op, dtype operand, dtype result) {
  return mix(hash_text(op),
             static_cast<std::uint64_t>(operand) * 16 + static_cast<std::uint64_t>(result));
}

template <class F>
void each_dtype(F&& f) {
  for (int t = 1; t < dtype_count; ++t) visit_dtype(static_cast<dtype>(t), f);
}

using factories = std::unordered_map<std::uint64_t, element_factory>;

template <class Op>
void add_operation(factories& all) {
  if constexpr (std::is_same_v<Op, op::cast>) {
    each_dtype([&]<class From>() {
      each_dtype([&]<class To>() {
        using X = call<op::cast_to<To>, deft::detail::leaf<From, shape_t<dyn>>>;
        all.emplace(key(Op::name, dtype_of<From>, dtype_of<To>), &make_kernel_of<X>);
      });
    });
  } else if constexpr (requires { Op::typing_rule; }) {
    each_dtype([&]<class T>() {
      if constexpr (accepts(Op::typing_rule, dtype_of<T>)) {
        using X = deft::detail::single_call<Op, T>;
        all.emplace(key(Op::name, dtype_of<T>, dtype_of<typename X::value_type>),
                    &make_kernel_of<X>);
      }
    });
  }
}

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
  static const auto& all = *new factories([] {
    factories made;
    op::catalog::each([&]<class Op>() { add_operation<Op>(made); });
    return made;
  }());
  auto at = all.find(key(op.name, operand, result));
  return at == all.end() ? nullptr : at->second();
}

kernel_table elementwise_kernels() {
  static const auto& table = *new std::vector<kernel_entry>([] {
    std::vector<kernel_entry> made{
        {op::fused::name, all_dtypes, &make_fused},
        {op::fused_update::name, all_dtypes, &make_fused_update},
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
