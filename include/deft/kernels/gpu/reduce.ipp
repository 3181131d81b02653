// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/reduce.ipp: sum, mean, max and min over any axes, and sum_to.
#pragma once
#include <deft/kernels/gpu/empty_fold.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/gpu/strided_index.hpp>
#include <deft/kernels/spec/fold_levels.hpp>
#include <deft/kernels/spec/reducers.hpp>
#include <deft/op/max.hpp>
#include <deft/op/mean.hpp>
#include <deft/op/min.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/sum_to.hpp>

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
template <class T, class How>
class reduce_kernel final : public queued_kernel {
 public:
  /// Over `axes`, or where those are null, to the shape of the second input.
  reduce_kernel(std::string_view name, const dims* axes, bool mean)
      : name_(name), given_(axes != nullptr), mean_(mean) {
    if (axes) axes_ = *axes;
  }

  std::size_t scratch() const override { return row_room(folded<T, How, even_steps>(), rows_, n_); }
  void queue(const kernel_call& c, stream& s) override {
    if (rows_ == 0) return;
    T* const to = s.out<T>(c.out[0]);
    if (n_ == 0) return s.launch(rows_, of_nothing<T>(to, mean_));
    auto fold_by = [&]<class Steps>(const Steps& at) {
      const folded<T, How, Steps> f{s.in<T>(c.in[0]), to, static_cast<T>(n_), mean_, at};
      s.over_rows(f, rows_, n_, c.scratch);
    };
    const walk &kept = steps_.kept, &along = steps_.along;
    if (kept.count <= 1 && along.count <= 1)
      fold_by(even_steps{kept.stride[0], along.stride[0], steps_.rows_are_adjacent()});
    else
      fold_by(steps_);
  }

 private:
  void ready() override {
    if (!given_) axes_ = summed_axes(in(0), in(1));
    steps_ = {};
    rows_ = out().elements();
    n_ = 0;
    if (!std::is_same_v<How, plus> && in(0).elements() == 0 && rows_ != 0)
      fail(errc::invalid_argument, "[", name_, "] is undefined for zero elements: ", in(0));
    if (in(0).elements() == 0) return;
    const fold_levels l(in(0), axes_);
    for (int i = l.count; i-- > 0;)
      (l.folded[i] ? steps_.along : steps_.kept).add(l.extent[i], l.stride[i]);
    n_ = steps_.along.size();
  }

  std::string_view name_;
  bool given_, mean_;
  dims axes_;
  uneven_steps steps_;
  std::int64_t rows_ = 0, n_ = 0;
};

queued_kernel_ptr make_reduce(const op_def& op, const dims* axes, dtype t) {
  if (!numeric_dtypes.has(t)) return nullptr;
  if (is_narrow(t))
    return std::make_unique<other_kernel>(
        make_widened(make_reduce(op, axes, computing_dtype(t)), &make_cast));
  constexpr dtype_set types = numeric_dtypes & computing_dtypes;
  return visit_dtype_in<types>(t, [&]<class T>() -> queued_kernel_ptr {
    if (op.folds == fold_kind::max)
      return std::make_unique<reduce_kernel<T, largest>>(op.name, axes, false);
    else if (op.folds == fold_kind::min)
      return std::make_unique<reduce_kernel<T, smallest>>(op.name, axes, false);
    else
      return std::make_unique<reduce_kernel<T, plus>>(op.name, axes, op.folds == fold_kind::mean);
  });
}
template <class Op>
kernel_ptr make_of_axes(const node_def& n, std::span<const tensor_type> in) {
  const dims axes = decode<Op>(n.attributes).axes;
  queued_kernel_ptr made = make_reduce(*n.op, &axes, in[0].type);
  if (!made) no_kernel(n, in[0].type);
  return made;
}
kernel_ptr make_sum_to(const node_def& n, std::span<const tensor_type> in) {
  queued_kernel_ptr made = make_reduce(*n.op, nullptr, in[0].type);
  if (!made) no_kernel(n, in[0].type);
  return made;
}

}  // namespace

queued_kernel_ptr make_reduction(const op_def& op, const dims& axes, dtype type) {
  return make_reduce(op, &axes, type);
}

kernel_table reduce_kernels() {
  static constexpr kernel_entry table[] = {
      {op::sum::name, numeric_dtypes, &make_of_axes<op::sum>},
      {op::mean::name, floating_dtypes, &make_of_axes<op::mean>},
      {op::max::name, numeric_dtypes, &make_of_axes<op::max>},
      {op::min::name, numeric_dtypes, &make_of_axes<op::min>},
      {op::sum_to::name, numeric_dtypes, &make_sum_to},
  };
  return table;
}

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
