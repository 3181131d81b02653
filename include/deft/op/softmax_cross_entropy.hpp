// SPDX-License-Identifier: Apache-2.0
// deft/op/softmax_cross_entropy.hpp: the loss of a classifier, stable for large logits.
#pragma once
#include <array>
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct softmax_cross_entropy {
  static constexpr std::string_view name = "softmax_cross_entropy";
  static constexpr int arity = 2;  ///< logits; labels: dense (probabilities) or sparse (classes)
  static constexpr op_traits traits = op_traits::keeps_axes;

  /// The shape rule of the loss; false if the labels do not match the logits.
  static constexpr bool shape(const dims& logits, const dims& labels, dims& loss) {
    loss = {};
    if (logits.n < 1) return false;
    const int last = logits.n - 1;
    dims rows = without_axis(logits, last);
    if (labels.n == logits.n - 1) return unify(rows, labels, loss);
    return may_equal(logits, labels) && unify(rows, without_axis(labels, last), loss);
  }

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};

/// The gradient of the loss, dz * (sum(labels) softmax(logits) - labels), where sum(labels) is 1
/// for a class; and the loss, which costs almost nothing more while a row is in cache. dz is an
/// input rather than a factor of the result: that would be a second pass over memory.
struct softmax_cross_entropy_grad {
  using subsumes = softmax_cross_entropy;
  static constexpr std::string_view name = "softmax_cross_entropy_grad";
  static constexpr int arity = 3;  ///< logits; labels; dz, for each row or one for all

  /// The gradient, and the loss, which may be omitted.
  std::array<tensor_type, 2> infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor du);
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <class L, class Y>
inline constexpr bool is_sparse_label = extents_of<Y>.n + 1 == extents_of<L>.n;
template <class L, class Y>
inline constexpr bool label_dtype_fits =
    is_sparse_label<L, Y>
        ? dtype_of<value_type_of<Y>> == dtype::int32 || dtype_of<value_type_of<Y>> == dtype::int64
        : std::is_same_v<value_type_of<L>, value_type_of<Y>>;
template <class L, class Y>
struct cross_entropy_shape : typed_shape<cross_entropy_shape<L, Y>> {
  static constexpr bool make(dims& out) {
    return op::softmax_cross_entropy::shape(L::value, Y::value, out);
  }
};
template <class L, class Y>
inline constexpr bool label_shape_fits =
    cross_entropy_shape<shape_type_of<L>, shape_type_of<Y>>::possible;
}  // namespace detail

/// For each row of `logits` (all axes but the last), -sum(labels * log(softmax(logits))). `labels`
/// are probabilities, of the logits' shape and dtype, or classes, int32 or int64 and of one rank
/// less. The loss has one value for each row, in the dtype of the logits. Throws invalid_argument
/// for labels that do not match (a compile error where the types show it). The run throws
/// out_of_range for a class that is not one.
template <ext::expression L, ext::expression Y, class K = ext::kernels_for<L>>
auto softmax_cross_entropy(const L& logits, const Y& labels, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<L> && ext::typed_expression<Y>) {
    if constexpr (!detail::is_floating_expression<L>) {
      static_assert(detail::takes<op::softmax_cross_entropy, detail::got<L>, detail::got<Y>>,
                    "[softmax_cross_entropy] expects floating logits, and got another dtype: use "
                    "cast<float>(x)");
      return detail::refused();
    } else if constexpr (!detail::label_shape_fits<L, Y>) {
      static_assert(
          detail::takes<op::softmax_cross_entropy, detail::got<L>, detail::got<Y>>,
          "[softmax_cross_entropy] expects labels of the logits' shape, or a class per row, "
          "and got another shape");
      return detail::refused();
    } else if constexpr (!detail::label_dtype_fits<L, Y> && !detail::is_sparse_label<L, Y> &&
                         detail::is_integer_expression<Y>) {
      static_assert(
          detail::takes<op::softmax_cross_entropy, detail::got<L>, detail::got<Y>>,
          "[softmax_cross_entropy] expects classes, int32 or int64, of one axis less than "
          "the logits, and got as many axes: reshape or slice them");
      return detail::refused();
    } else if constexpr (!detail::label_dtype_fits<L, Y> && detail::is_sparse_label<L, Y>) {
      static_assert(
          detail::takes<op::softmax_cross_entropy, detail::got<L>, detail::got<Y>>,
          "[softmax_cross_entropy] expects classes as int32 or int64, or probabilities of the "
          "logits' shape, and got one label of another dtype per row: use "
          "cast<std::int32_t>(labels) if these are classes");
      return detail::refused();
    } else if constexpr (!detail::label_dtype_fits<L, Y>) {
      static_assert(detail::takes<op::softmax_cross_entropy, detail::got<L>, detail::got<Y>>,
                    "[softmax_cross_entropy] expects labels of the logits' dtype, and got another "
                    "dtype: use cast<float>(labels)");
      return detail::refused();
    } else {
      return detail::apply_typed<
          ext::value_type_of<L>,
          detail::cross_entropy_shape<ext::shape_type_of<L>, ext::shape_type_of<Y>>, K>(
          op::softmax_cross_entropy{}, w, logits, labels);
    }
  } else
    return detail::apply<K>(op::softmax_cross_entropy{}, w, logits, labels);
}

}  // namespace deft

#include <deft/op/broadcast_to.hpp>
#include <deft/op/expand_dims.hpp>
#include <deft/op/log_softmax.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/softmax.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/sum.hpp>
template <class N>
auto deft::op::softmax_cross_entropy::grad(const N& n, any_tensor dz) {
  any_tensor x = n.template in<0>(), y = n.template in<1>(), dy;
  if (is_floating(y.type()))
    dy = deft::expand_dims(dz, deft::axis<-1>) * (0 - deft::log_softmax(x));
  const output in[] = {x.handle(), y.handle(), dz.handle()};
  return std::tuple{detail::apply_any(softmax_cross_entropy_grad{}, in, {}), dy};
}

// With p = softmax(x), its derivative is that of dz * (sum(y) p - y).
template <class N>
auto deft::op::softmax_cross_entropy_grad::grad(const N& n, any_tensor du) {
  constexpr auto last = deft::axis<-1>;
  any_tensor x = n.template in<0>(), y = n.template in<1>(), dz = n.template in<2>();
  any_tensor p = deft::softmax(x), w = du * deft::expand_dims(dz, last);
  any_tensor along = deft::sum(w * p, last, deft::keepdims), dx = p * (w - along);
  any_tensor one = deft::broadcast_to(detail::literal_like(1, dz.type(), {}), dz);
  const output in[] = {x.handle(), y.handle(), one.handle()};
  any_tensor ddz = deft::sum(du * detail::apply_any(softmax_cross_entropy_grad{}, in, {}), last);
  any_tensor dy;
  if (is_floating(y.type())) {
    dx = dx * deft::sum(y, last, deft::keepdims);
    dy = along - w;
  }
  return std::tuple{dx, dy, ddz};
}
