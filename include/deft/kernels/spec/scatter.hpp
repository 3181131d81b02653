// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/scatter.hpp: what adds or writes rows by their indices, in a fixed order:
// scatter_add, sum_rows, scatter_sub, scatter_update,
// scatter_max, scatter, scatter_maximum.
#pragma once
#include <deft/kernels/spec/fold_levels.hpp>
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/op/gather.hpp>
#include <deft/op/scatter.hpp>

namespace deft::ext::spec {

/// The rows before input `Indices` go to rows of the result.
template <class Op, int Indices>
class scatter
    : public kernel_spec<Op, numeric_dtypes, by_input<0>, among<by_input<Indices>, index_dtypes>> {
 protected:
  void ready() override {
    rows_ = this->out()[0];
    n_ = elements_from(this->out(), 1);
    count_ = this->in(Indices).elements();
  }
  std::int64_t rows_ = 0, n_ = 0, count_ = 0;  ///< rows, elements of each, and indices
};
using scatter_add = scatter<op::scatter_add, 1>;
/// What becomes of a row: it is replaced by another, or folded with the sum of several, or each of
/// them.
enum class row_change { replaced, subtracted, maximum };
template <class Op>
inline constexpr row_change change_by = row_change::replaced;
template <>
inline constexpr row_change change_by<op::scatter_sub> = row_change::subtracted;
template <>
inline constexpr row_change change_by<op::scatter_max> = row_change::maximum;
template <>
inline constexpr row_change change_by<op::scatter_maximum> = row_change::maximum;
/// Of the first input, which may be a variable, and need not share the result's memory.
template <class Op>
using row_update = scatter<Op, 2>;

class sum_rows : public kernel_spec<op::sum_rows, numeric_dtypes, by_input<0>,
                                    among<by_input<1>, index_dtypes>> {
 protected:
  void ready() override {
    n_ = elements_from(in(0), in(1).rank());
    count_ = in(1).elements();
  }
  std::int64_t n_ = 0, count_ = 0;
};

using scatter_kernels = kernel_list<scatter_add, sum_rows, row_update<op::scatter_sub>,
                                    row_update<op::scatter_update>, row_update<op::scatter_max>,
                                    row_update<op::scatter>, row_update<op::scatter_maximum>>;

}  // namespace deft::ext::spec
