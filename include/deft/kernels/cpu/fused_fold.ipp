// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/fused_fold.ipp: reductions of expressions over broadcast operands: some elements
// are computed at a time, and reduced while they are in cache.
#pragma once
#include <algorithm>
#include <array>
#include <deft/kernels/cpu/broadcast_kernel.hpp>
#include <deft/kernels/cpu/device.hpp>
#include <deft/kernels/cpu/tables.hpp>
#include <deft/op/plan/fused_fold.hpp>

namespace deft::ext::cpu {
namespace {

/// Axes before the first reduced one are cut: what lies behind them is a unit, and some units at a
/// time are computed and handed to the reduction's own kernel. Its bits do not depend on how many
/// they are.
class fused_fold_kernel final : public broadcast_kernel {
 public:
  fused_fold_kernel(const op::fused_fold& o, bool late)
      : broadcast_kernel(program_code(*o.program), element_cost(*o.program),
                         o.program->inputs.size(), o.program->immediates, o.immediates, late),
        fold_(*find_op(o.reduction)),
        axes_(o.axes),
        type_(o.program->result()) {
    for (auto t : o.program->inputs)
      input_sizes_.push_back(static_cast<std::int64_t>(size_of_dtype(t)));
  }

  void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) override {
    dims extents;
    for (const auto& t : in.first(inputs_)) {
      dims wider;
      ext::broadcast(extents, t.shape, wider);
      extents = wider;
    }
    walk(in, extents, size_of_dtype(type_));
    units_ = inner_ = 1;
    for (int d = 0; d < extents.rank(); ++d) (d < axes_[0] ? units_ : inner_) *= extents[d];
    results_ = out[0].shape.elements() / std::max<std::int64_t>(1, units_);
    each_ = std::clamp<std::int64_t>(thresholds::folded_unit / std::max<std::int64_t>(1, inner_), 1,
                                     std::max<std::int64_t>(1, units_));
    reduce_ = reduction(extents, each_);
    rest_ = units_ % each_ ? reduction(extents, units_ % each_) : nullptr;
    const std::int64_t blocks = (units_ + each_ - 1) / each_;
    pieces_ = std::min<std::int64_t>(blocks, most_pieces);
    blocks_each_ = pieces_ ? (blocks + pieces_ - 1) / pieces_ : 0;
    cost_ += reduce_->cost() * static_cast<double>(blocks);
  }
  std::size_t scratch() const override { return static_cast<std::size_t>(pieces_) * own_bytes(); }

  void run(const kernel_call& c) override {
    begin(c);
    if (units_ == 0 || results_ == 0) return;
    parallel_chunks(pieces_, cost_, [&](std::int64_t p) {
      char* room = static_cast<char*>(c.scratch) + p * static_cast<std::int64_t>(own_bytes());
      const std::int64_t end = std::min(units_, (p + 1) * blocks_each_ * each_);
      for (std::int64_t u = p * blocks_each_ * each_; u < end; u += each_)
        block(c, u, std::min(each_, units_ - u), room);
    });
  }

 private:
  /// Few, as each has memory of its own; their number does not depend on that of threads.
  static constexpr std::int64_t most_pieces = 16;

  /// The kernel that reduces `count` units.
  kernel_ptr reduction(const dims& extents, std::int64_t count) const {
    dims shape{count}, axes;
    for (int d = axes_[0]; d < extents.rank(); ++d) shape.push_back(extents[d]);
    for (auto a : axes_) axes.push_back(a - axes_[0] + 1);
    const std::array<tensor_type, 1> in{{{shape, type_}}};
    node_def n;
    n.op = &fold_;
    n.attributes = encode(op::reduction{axes, false});
    std::vector<tensor_type> out;
    infer_types(fold_, {in, n.attributes}, out);
    n.outputs = std::move(out);
    kernel_ptr made = find_cpu_kernel(fold_.name)->make(n, in);
    made->prepare(in, n.outputs);
    return made;
  }

  static std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  std::size_t block_bytes() const {
    return whole_lines(static_cast<std::size_t>(each_ * inner_) * size_of_dtype(type_));
  }
  /// Of a piece: what changes from group to group of rows, the elements, the reduction's scratch.
  std::size_t own_bytes() const {
    return room() + block_bytes() +
           whole_lines(std::max(reduce_->scratch(), rest_ ? rest_->scratch() : 0));
  }

  void block(const kernel_call& c, std::int64_t first, std::int64_t count, char* room) const {
    const auto size = static_cast<std::int64_t>(size_of_dtype(type_));
    const std::int64_t begin = first * inner_, end = (first + count) * inner_;
    char* const elements = room + this->room();
    if (begin < end)
      some_rows(c, unit_of(begin), unit_of(end - 1) + 1, room,
                [&](const row_call& r, std::int64_t element) {
                  const std::int64_t from = std::max(begin, element);
                  const void* in[3 * max_fused_operations];
                  std::copy(r.in, r.in + addresses_.size(), in);
                  for (std::size_t k = 0; k < inputs_; ++k)
                    if (r.mask[k])
                      in[k] = static_cast<const char*>(in[k]) + (from - element) * input_sizes_[k];
                  void* to[] = {elements + (from - begin) * size};
                  code_.run(program_call{in, r.mask, to, std::min(end, element + r.n) - from});
                });
    kernel& how = count == each_ ? *reduce_ : *rest_;
    const void* in[] = {elements};
    void* out[] = {static_cast<char*>(c.out[0]) + first * results_ * size};
    how.run({in, out, c.step, elements + block_bytes()});
  }

  const op_def& fold_;
  const dims axes_;
  const dtype type_;
  std::vector<std::int64_t> input_sizes_;
  kernel_ptr reduce_, rest_;  ///< of each_ units, and of those that are left over
  std::int64_t units_ = 1, inner_ = 1;
  std::int64_t results_ = 1;  ///< of a unit
  std::int64_t each_ = 1, pieces_ = 1, blocks_each_ = 1;
};

}  // namespace

kernel_ptr make_fused_fold(const node_def& n, std::span<const tensor_type> in) {
  const auto o = decode<op::fused_fold>(n.attributes);
  return std::make_unique<fused_fold_kernel>(o, in.size() > o.program->inputs.size());
}

}  // namespace deft::ext::cpu
