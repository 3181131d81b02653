// SPDX-License-Identifier: Apache-2.0
// deft/op/catalog.hpp: the one list of operations; registries, wire names, kernels of elementwise
// operations, gradients and test sweeps come from it.
#pragma once
#include <deft/op/abs.hpp>
#include <deft/op/add.hpp>
#include <deft/op/all_reduce.hpp>
#include <deft/op/arange.hpp>
#include <deft/op/argmax.hpp>
#include <deft/op/argmin.hpp>
#include <deft/op/assign.hpp>
#include <deft/op/assign_slice.hpp>
#include <deft/op/avg_pool.hpp>
#include <deft/op/bernoulli.hpp>
#include <deft/op/broadcast_to.hpp>
#include <deft/op/cast.hpp>
#include <deft/op/categorical.hpp>
#include <deft/op/clip.hpp>
#include <deft/op/compute_in.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/constant.hpp>
#include <deft/op/conv2d.hpp>
#include <deft/op/cos.hpp>
#include <deft/op/cumsum.hpp>
#include <deft/op/div.hpp>
#include <deft/op/dot.hpp>
#include <deft/op/einsum.hpp>
#include <deft/op/elu.hpp>
#include <deft/op/ensure_shape.hpp>
#include <deft/op/equal.hpp>
#include <deft/op/erf.hpp>
#include <deft/op/exp.hpp>
#include <deft/op/expand_dims.hpp>
#include <deft/op/expm1.hpp>
#include <deft/op/extents.hpp>
#include <deft/op/eye.hpp>
#include <deft/op/fill.hpp>
#include <deft/op/flatten.hpp>
#include <deft/op/flip.hpp>
#include <deft/op/floor.hpp>
#include <deft/op/gather.hpp>
#include <deft/op/gelu.hpp>
#include <deft/op/global_step.hpp>
#include <deft/op/greater.hpp>
#include <deft/op/greater_equal.hpp>
#include <deft/op/group.hpp>
#include <deft/op/identity.hpp>
#include <deft/op/initialized.hpp>
#include <deft/op/isfinite.hpp>
#include <deft/op/isinf.hpp>
#include <deft/op/isnan.hpp>
#include <deft/op/leaky_relu.hpp>
#include <deft/op/less.hpp>
#include <deft/op/less_equal.hpp>
#include <deft/op/linspace.hpp>
#include <deft/op/log.hpp>
#include <deft/op/log1p.hpp>
#include <deft/op/log_softmax.hpp>
#include <deft/op/logical_and.hpp>
#include <deft/op/logical_not.hpp>
#include <deft/op/logical_or.hpp>
#include <deft/op/logsumexp.hpp>
#include <deft/op/matmul.hpp>
#include <deft/op/max.hpp>
#include <deft/op/max_pool.hpp>
#include <deft/op/maximum.hpp>
#include <deft/op/mean.hpp>
#include <deft/op/min.hpp>
#include <deft/op/minimum.hpp>
#include <deft/op/mod.hpp>
#include <deft/op/move_axis.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/name.hpp>
#include <deft/op/neg.hpp>
#include <deft/op/no_op.hpp>
#include <deft/op/normal_cdf.hpp>
#include <deft/op/not_equal.hpp>
#include <deft/op/one_hot.hpp>
#include <deft/op/outer.hpp>
#include <deft/op/pad.hpp>
#include <deft/op/placeholder.hpp>
#include <deft/op/plan/agree.hpp>
#include <deft/op/plan/copy.hpp>
#include <deft/op/plan/feed.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_fold.hpp>
#include <deft/op/plan/fused_update.hpp>
#include <deft/op/plan/recv.hpp>
#include <deft/op/plan/send.hpp>
#include <deft/op/pow.hpp>
#include <deft/op/prod.hpp>
#include <deft/op/random_normal.hpp>
#include <deft/op/random_uniform.hpp>
#include <deft/op/reciprocal.hpp>
#include <deft/op/reduce_all.hpp>
#include <deft/op/reduce_any.hpp>
#include <deft/op/relu.hpp>
#include <deft/op/repeat.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/roll.hpp>
#include <deft/op/rsqrt.hpp>
#include <deft/op/save.hpp>
#include <deft/op/scatter.hpp>
#include <deft/op/shape_of.hpp>
#include <deft/op/sigmoid.hpp>
#include <deft/op/sigmoid_cross_entropy.hpp>
#include <deft/op/sign.hpp>
#include <deft/op/silu.hpp>
#include <deft/op/sin.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/softmax.hpp>
#include <deft/op/softmax_cross_entropy.hpp>
#include <deft/op/softplus.hpp>
#include <deft/op/sort.hpp>
#include <deft/op/split.hpp>
#include <deft/op/sqrt.hpp>
#include <deft/op/square.hpp>
#include <deft/op/squeeze.hpp>
#include <deft/op/stack.hpp>
#include <deft/op/stop_gradient.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/subscript.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/sum_to.hpp>
#include <deft/op/swap_axes.hpp>
#include <deft/op/take_along.hpp>
#include <deft/op/tanh.hpp>
#include <deft/op/tile.hpp>
#include <deft/op/transpose.hpp>
#include <deft/op/tril.hpp>
#include <deft/op/triu.hpp>
#include <deft/op/truncated_normal.hpp>
#include <deft/op/unstack.hpp>
#include <deft/op/variable.hpp>
#include <deft/op/variance.hpp>
#include <deft/op/where.hpp>

namespace deft::op {

template <class... Op>
struct op_list {
  template <class F>
  static constexpr void each(F&& f) {
    (f.template operator()<Op>(), ...);
  }
  static constexpr std::size_t size = sizeof...(Op);

 private:
  struct all : std::type_identity<Op>... {};

 public:
  /// Whether O is one of them. By base classes: O is not compared with each.
  template <class O>
  static constexpr bool has = std::is_base_of_v<std::type_identity<O>, all>;
};

/// The library's own operations. Their wire names, gradients and kernels are found by this list.
using catalog = op_list<
    // elementwise
    add, sub, mul, div, mod, neg, equal, not_equal, less, less_equal, greater, greater_equal,
    logical_and, logical_or, logical_not, where, cast, exp, expm1, log, tanh, sigmoid, relu, square,
    sqrt, maximum, minimum, abs, sign, floor, pow, sin, cos, log1p, erf, normal_cdf, gelu, silu,
    softplus, sigmoid_cross_entropy,
    // shapes
    sum, mean, max, first_max, min, first_min, prod, sum_to, size_of, extents, reshape,
    broadcast_to, transpose, concat, concat_part, slice, pad, argmax, argmin, cumsum, sort, gather,
    scatter_add, sum_rows, scatter, scatter_maximum, one_hot,
    // algorithms of their own
    matmul, conv2d, conv2d_input_gradient, conv2d_filter_gradient, max_pool, max_pool_gradient,
    max_pool_pick, avg_pool, avg_pool_gradient, softmax, softmax_cross_entropy,
    softmax_cross_entropy_grad,
    // values and state
    constant, placeholder, arange, random_uniform, random_normal, truncated_normal, variable,
    read_variable, assign, initialize, assign_add, assign_sub, assign_slice, assign_add_slice,
    assign_sub_slice, scatter_sub, scatter_update, scatter_max, is_initialized, await_initialized,
    value_generation, begin_restoring, end_restoring, save_tensors, snapshot_variables,
    restore_tensors,
    // order, and what plans are made of
    all_reduce, agree, group, no_op, identity, stop_gradient, ensure_shape, fused, fused_fold,
    fused_update, feed, send, recv, copy>;

}  // namespace deft::op
