// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/reduce.ipp: sum, mean, max, min and prod over any axes, and sum_to.
#pragma once
#include <deft/kernels/gpu/empty_fold.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/gpu/strided_index.hpp>
#include <deft/kernels/spec/reduce.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// Where an element is, by a step for each of row and column: loops over it unroll well.
struct even_steps {
  std::int64_t row, column;
  bool adjacent;
  DEFT_HD std::int64_t operator()(std::int64_t r, std::int64_t c) const {
    return r * row + c * column;
  }
  bool rows_are_adjacent() const { return adjacent; }
};
/// The same along any levels. Out of line: loops that hold it several times compile too long.
struct uneven_steps {
  walk kept, along;
  DEFT_NOINLINE DEFT_HD std::int64_t operator()(std::int64_t r, std::int64_t c) const {
    return kept.offset(r) + along.offset(c);
  }
  /// Enough of them to fill a sector of memory.
  bool rows_are_adjacent() const {
    return kept.count > 0 && kept.stride[0] == 1 && kept.extent[0].by() >= 8;
  }
};

/// Elements of x folded into one for each place of the axes that are kept.
template <class T, class How, class Steps>
struct folded {
  using state = T;
  const T* x;
  T* to;
  T count;  ///< what a fold is divided by
  bool divided;
  Steps at;

  DEFT_HD T start() const { return How::template neutral<T>(); }
  DEFT_HD T add(T s, std::int64_t r, std::int64_t c) const { return How::combine(s, x[at(r, c)]); }
  DEFT_HD T join(T a, T b) const { return How::combine(a, b); }
  DEFT_HD void end(std::int64_t r, T s) const { to[r] = divided ? s / count : s; }
  bool rows_are_adjacent() const { return at.rows_are_adjacent(); }
};
template <class Op, class T>
class kernel_of<spec::reduction<Op>, T> final : public queued<spec::reduction<Op>> {
  using base = spec::reduction<Op>;
  using how = typename base::how;

  std::size_t scratch() const override { return row_room(folded<T, how, even_steps>(), rows_, n_); }
  void queue(const kernel_call& c, stream& s) override {
    if (rows_ == 0) return;
    T* const to = s.out<T>(c.out[0]);
    if (n_ == 0) return s.launch(rows_, of_nothing<T, how>(to, base::mean));
    auto fold_by = [&]<class Steps>(const Steps& at) {
      const folded<T, how, Steps> f{s.in<T>(c.in[0]), to, static_cast<T>(n_), base::mean, at};
      s.over_rows(f, rows_, n_, c.scratch);
    };
    const walk &kept = steps_.kept, &along = steps_.along;
    if (kept.count <= 1 && along.count <= 1)
      fold_by(even_steps{kept.stride[0], along.stride[0], steps_.rows_are_adjacent()});
    else
      fold_by(steps_);
  }
  void ready() override {
    base::ready();
    steps_ = {};
    rows_ = this->out().elements();
    n_ = 0;
    if (this->in(0).elements() == 0) return;
    const fold_levels l(this->in(0), this->axes_);
    for (int i = l.count; i-- > 0;)
      (l.folded[i] ? steps_.along : steps_.kept).add(l.extent[i], l.stride[i]);
    n_ = steps_.along.size();
  }

  uneven_steps steps_;
  std::int64_t rows_ = 0, n_ = 0;
};

}  // namespace

kernel_ptr make_reduction(const op_def& op, const dims& axes, dtype type) {
  node_def n;
  n.op = &op;
  n.attributes = encode(op::reduction{axes});
  const tensor_type in{{}, type};
  for (const kernel_entry& e : table_of<this_device>(spec::reduce_kernels()))
    if (e.op == op.name) return e.make(n, {&in, 1});
  no_kernel_on(this_device::name, n, type);
}

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
