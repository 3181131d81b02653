// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/index.hpp: what looks elements up or finds their places: gather, one_hot,
// argmax, argmin, first_max, first_min.
#pragma once
#include <deft/kernels/spec/fold_levels.hpp>
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/kernels/spec/reducers.hpp>
#include <deft/op/argmax.hpp>
#include <deft/op/argmin.hpp>
#include <deft/op/gather.hpp>
#include <deft/op/max.hpp>
#include <deft/op/min.hpp>
#include <deft/op/one_hot.hpp>

namespace deft::ext::spec {

class gather : public kernel_spec<op::gather, plain_dtypes, among<by_input<1>, index_dtypes>> {
 protected:
  void ready() override {
    rows_ = in(0)[0];
    bytes_ = elements_from(in(0), 1) * static_cast<std::int64_t>(size_of_dtype(type()));
    count_ = in(1).elements();
  }
  std::int64_t rows_ = 0, bytes_ = 0, count_ = 0;  ///< rows, the bytes of each, and indices
};

using one_hot =
    kernel_spec<op::one_hot, integer_dtypes, among<by_result, plain_dtypes>, by_input<0>>;

/// argmax or argmin: where along an axis the first of the elements is that How, largest or
/// smallest, prefers, or the first NaN.
template <class Op, class How>
class first_place : public kernel_spec<Op, numeric_dtypes, by_input<0>> {
 protected:
  void ready() override { need_elements(Op::name, this->in(0), this->out()); }
  dims axes() const { return dims{this->op_.axis}; }
};
/// first_max or first_min, which mark that element.
template <class Op, class How>
class first_mark : public kernel_spec<Op, numeric_dtypes, by_input<0>> {
 protected:
  dims axes() const { return this->op_.axes; }
};

using index_kernels =
    kernel_list<gather, one_hot, first_place<op::argmax, largest>,
                first_place<op::argmin, smallest>, first_mark<op::first_max, largest>,
                first_mark<op::first_min, smallest>>;

}  // namespace deft::ext::spec
