// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/reduce.hpp: sum, mean, max, min and prod over any axes, and sum_to.
#pragma once
#include <deft/kernels/spec/fold_levels.hpp>
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/kernels/spec/reducers.hpp>
#include <deft/op/max.hpp>
#include <deft/op/mean.hpp>
#include <deft/op/min.hpp>
#include <deft/op/prod.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/sum_to.hpp>

namespace deft::ext::spec {

/// What a reduction folds with.
template <class Op>
struct folded_by : join_of<Op::folds> {
  static constexpr bool mean = Op::folds == fold_kind::mean;
};
template <>
struct folded_by<op::sum_to> : join_of<fold_kind::sum> {
  static constexpr bool mean = false;
};
template <>
struct folded_by<op::prod> {
  using type = times;
  static constexpr bool mean = false;
};

template <class Op>
class reduction
    : public kernel_spec<Op, folded_by<Op>::mean ? floating_dtypes : numeric_dtypes, by_input<0>> {
 protected:
  using how = typename folded_by<Op>::type;
  static constexpr bool mean = folded_by<Op>::mean;

  void ready() override {
    if constexpr (std::is_same_v<Op, op::sum_to>)
      axes_ = summed_axes(this->in(0), this->in(1));
    else
      axes_ = this->op_.axes;
    if (std::is_same_v<how, largest> || std::is_same_v<how, smallest>)
      need_elements(Op::name, this->in(0), this->out());
  }
  dims axes_;
};

using reduce_kernels = kernel_list<reduction<op::sum>, reduction<op::mean>, reduction<op::max>,
                                   reduction<op::min>, reduction<op::prod>, reduction<op::sum_to>>;

}  // namespace deft::ext::spec
