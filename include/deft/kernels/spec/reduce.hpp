// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/reduce.hpp: sum, mean, max and min over any axes, and sum_to.
#pragma once
#include <deft/kernels/spec/fold_levels.hpp>
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/kernels/spec/reducers.hpp>
#include <deft/op/max.hpp>
#include <deft/op/mean.hpp>
#include <deft/op/min.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/sum_to.hpp>

namespace deft::ext::spec {

template <class Op>
inline constexpr fold_kind folds_of = Op::folds;
template <>
inline constexpr fold_kind folds_of<op::sum_to> = fold_kind::sum;

template <class Op, fold_kind Folds = folds_of<Op>>
class reduction
    : public kernel_spec<Op, Folds == fold_kind::mean ? floating_dtypes : numeric_dtypes,
                         by_input<0>> {
 protected:
  using how = typename join_of<Folds>::type;
  static constexpr bool mean = Folds == fold_kind::mean;

  void ready() override {
    if constexpr (std::is_same_v<Op, op::sum_to>)
      axes_ = summed_axes(this->in(0), this->in(1));
    else
      axes_ = this->op_.axes;
    if (!std::is_same_v<how, plus>) need_elements(Op::name, this->in(0), this->out());
  }
  dims axes_;
};

using reduce_kernels = kernel_list<reduction<op::sum>, reduction<op::mean>, reduction<op::max>,
                                   reduction<op::min>, reduction<op::sum_to>>;

}  // namespace deft::ext::spec
