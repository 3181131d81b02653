// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/elementwise.ipp: the kernel of fused nodes and of every elementwise operation.
#pragma once
#include <algorithm>
#include <deft/kernels/cpu/broadcast_kernel.hpp>
#include <deft/kernels/cpu/kernel_base.hpp>
#include <deft/kernels/cpu/tables.hpp>
#include <deft/kernels/spec/elementwise_table.hpp>
#include <deft/op/plan/fused_fold.hpp>

namespace deft::ext::cpu {
namespace {

class elementwise_kernel final : public broadcast_kernel {
 public:
  /// `late`: the literals are further inputs of each run.
  elementwise_kernel(const program_code& code, double cost, std::size_t inputs,
                     std::span<const dtype> literal_types = {},
                     std::span<const std::int64_t> literals = {}, bool late = false)
      : broadcast_kernel(code, cost, inputs, literal_types, literals, late) {}

  void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) override {
    sizes_.clear();
    std::size_t bytes = 0;
    for (const auto& o : out) bytes += sizes_.emplace_back(size_of_dtype(o.type));
    walk(in, out[0].shape, bytes);
    single_ = single_ && elements() > 0 && !split_large();
  }

  bool may_overwrite(std::size_t i, std::size_t o) const override {
    return i < inputs_ && code_.may_overwrite(i, o);
  }

  void run(const kernel_call& c) override {
    begin(c);
    if (single_) {
      for (std::size_t k = 0; k < inputs_; ++k) addresses_[k] = c.in[k];
      return code_.run(program_call{addresses_.data(), masks_.data(), c.out, layout_.n()});
    }
    if (elements() == 0) return;
    const bool split = split_ && worth_splitting(cost_);
    if (is_one_row()) return one_row(c, split);
    if (!split) return rows(c, 0, units());
    const std::int64_t each =
        std::max<std::int64_t>({1, chunk_elements / unit_elements(), (units() + 63) / 64});
    parallel_chunks((units() + each - 1) / each,
                    [&](std::int64_t i) { rows(c, i * each, std::min(units(), (i + 1) * each)); });
  }

  std::span<const bound_row> bind(const kernel_call& c) override {
    if (!single_ || late_) return {};
    for (std::size_t k = 0; k < inputs_; ++k) addresses_[k] = c.in[k];
    const program_call call{addresses_.data(), masks_.data(), c.out, layout_.n()};
    return code_.bind(call, addresses_.size(), bound_);
  }

 private:
  bool split_large() const { return layout_.n() >= 2 * chunk_elements; }

  /// The results from element `begin` on.
  void results(const kernel_call& c, std::int64_t begin, void** to) const {
    for (std::size_t o = 0; o < sizes_.size(); ++o)
      to[o] = static_cast<char*>(c.out[o]) + begin * static_cast<std::int64_t>(sizes_[o]);
  }

  /// One long row, cut where it is worth it.
  void one_row(const kernel_call& c, bool split) {
    broadcast_kernel::one_row(c, static_cast<char*>(thread_scratch(room())));
    const std::int64_t n = layout_.n();
    if (!split || !split_large())
      return code_.run(program_call{addresses_.data(), masks_.data(), c.out, n});
    const std::int64_t chunks = std::min<std::int64_t>(n / chunk_elements, 64);
    const std::int64_t piece = ((n + chunks - 1) / chunks + 1023) / 1024 * 1024;
    parallel_chunks((n + piece - 1) / piece, [&](std::int64_t i) {
      const std::int64_t begin = i * piece;
      const void* at[3 * max_fused_operations];
      std::ranges::copy(addresses_, at);
      for (std::size_t k = 0; k < inputs_; ++k)
        at[k] = static_cast<const char*>(at[k]) + begin * layout_.step(k);
      void* to[program::most_outputs];
      results(c, begin, to);
      code_.run(program_call{at, masks_.data(), to, std::min(piece, n - begin)});
    });
  }

  void rows(const kernel_call& c, std::int64_t begin, std::int64_t end) const {
    char* room = static_cast<char*>(thread_scratch(this->room()));
    some_rows(c, begin, end, room, [&](const row_call& r, std::int64_t element) {
      void* to[program::most_outputs];
      results(c, element, to);
      code_.run(program_call{r.in, r.mask, to, r.n});
    });
  }

  bound_steps bound_;
  std::vector<std::size_t> sizes_;  ///< of an element of each result
};

}  // namespace

kernel_ptr make_fused(const node_def& n, std::span<const tensor_type> in) {
  const auto o = decode<op::fused>(n.attributes);
  const program& p = *o.program;
  if (p.is_region() && (p.row_axes > 0 || std::ranges::any_of(p.code, &instruction::is_fold)))
    return make_region(p, o.immediates);
  const bool late = in.size() > p.inputs.size();
  return std::make_unique<elementwise_kernel>(program_code(p), element_cost(p), p.inputs.size(),
                                              p.immediates, o.immediates, late);
}
kernel_ptr make_fused_update(const node_def& n, std::span<const tensor_type>) {
  const auto o = decode<op::fused_update>(n.attributes);
  const program& p = *o.program;
  return std::make_unique<elementwise_kernel>(program_code(p, true), element_cost(p),
                                              p.inputs.size(), p.immediates, o.immediates);
}

kernel_ptr make_elementwise(const node_def& n, std::span<const tensor_type> in) {
  if (in.back().type == dtype::string) return make_string_equality(n);
  const dtype operand = in.back().type, result = n.outputs.at(0).type;
  compiled_row row = find_row(*n.op, operand, result);
  if (!row.run) no_kernel_on(this_device::name, n, operand);
  return std::make_unique<elementwise_kernel>(program_code(row), row_cost(*n.op, operand),
                                              in.size());
}

/// Of a variable's elements, input 0, and a value.
kernel_ptr make_update(const node_def& n, std::span<const tensor_type> in) {
  const op_def& how = *n.op->joins;
  const dtype t = in.back().type;
  const compiled_row row = find_row(how, t, t);
  if (!row.run) no_kernel_on(this_device::name, n, t);
  return std::make_unique<elementwise_kernel>(program_code(row), row_cost(how, t), 2);
}

kernel_ptr make_cast(dtype from, dtype to) {
  const op_def& cast = record_of<op::cast>;
  return std::make_unique<elementwise_kernel>(program_code(find_row(cast, from, to)),
                                              row_cost(cast, from), 1);
}

kernel_table elementwise_kernels() {
  static const auto& table = *new auto([] {
    auto made = deft::detail::elementwise_entries(&make_elementwise, &make_fused, &make_update,
                                                  &make_fused_update);
    for (auto& e : made)
      if (e.op == op::equal::name || e.op == op::not_equal::name)
        e.types = e.types | dtype_set{dtype::string};
    made.push_back({op::fused_fold::name, computing_dtypes, &make_fused_fold});
    return made;
  }());
  return table;
}

}  // namespace deft::ext::cpu
