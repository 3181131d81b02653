// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/softmax.hpp: softmax along rows, and its cross entropy with classes or
// probabilities.
#pragma once
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/op/softmax.hpp>
#include <deft/op/softmax_cross_entropy.hpp>

namespace deft::ext::spec {

/// Of rows of `n_` elements.
template <class Op, class... By>
class row_kernel : public kernel_spec<Op, floating_dtypes, by_input<0>, By...> {
 protected:
  void ready() override {
    const dims& x = this->in(0);
    n_ = x.back();
    rows_ = op::without_axis(x, x.rank() - 1).elements();
  }
  std::int64_t rows_ = 0, n_ = 0;
};

using softmax = row_kernel<op::softmax>;

/// Labels are classes, or probabilities of the dtype of the logits, which T computes with.
struct by_labels {
  template <dtype_set, class T>
  static constexpr dtype_set types = index_dtypes | dtype_set{dtype_of<T>};
  static dtype of(const node_def&, std::span<const tensor_type> in) {
    return computing_dtype(in[1].type);
  }
};
/// The loss; or the gradient of the logits, and the loss where it is needed.
template <class Op>
class cross_entropy : public row_kernel<Op, by_labels> {
 public:
  bool optional_output(int o) const override { return gradient && o == 1; }

 protected:
  static constexpr bool gradient = std::is_same_v<Op, op::softmax_cross_entropy_grad>;
  /// The output that the loss is.
  static constexpr int loss_output = gradient ? 1 : 0;
};

using softmax_kernels = kernel_list<softmax, cross_entropy<op::softmax_cross_entropy>,
                                    cross_entropy<op::softmax_cross_entropy_grad>>;

}  // namespace deft::ext::spec
