// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_normalization.ipp: normalization as expressions.
#pragma once
#include <deft/op/abs.hpp>
#include <deft/op/add.hpp>
#include <deft/op/cast.hpp>
#include <deft/op/div.hpp>
#include <deft/op/greater.hpp>
#include <deft/op/less_equal.hpp>
#include <deft/op/maximum.hpp>
#include <deft/op/mean.hpp>
#include <deft/op/minimum.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/not_equal.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/sqrt.hpp>
#include <deft/op/square.hpp>
#include <deft/op/stop_gradient.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/where.hpp>
#include <deft/train/layers_normalization.hpp>
#include <limits>
#include <optional>

namespace deft {
namespace detail {
namespace {

constexpr std::string_view updates_of_averages = "moving averages";

void check_epsilon(const layer_scope& s, const any_tensor& x, double epsilon) {
  if (!(epsilon >= 0))
    refuse_layer(s, x, str("expects an epsilon that is not negative, and got ", epsilon));
}
/// Vectors as long as the last axis of x.
void check_features(const layer_scope& s, const any_tensor& x,
                    std::initializer_list<const any_tensor*> vectors) {
  if (x.rank() < 1 || !is_floating(x.type()))
    refuse_layer(s, x, str("expects a floating tensor, and got ", x.handle().type()));
  const dims last{x.shape()[x.rank() - 1]};
  for (const any_tensor* v : vectors)
    if (v->type() != x.type() || !may_equal(v->shape(), last))
      refuse_layer(s, *v,
                   str("expects vectors as long as the last axis of ", x.handle().type(),
                       ", and got ", v->handle().type()));
}

/// A power of two for each mean over these axes, by which x is to be multiplied so that sums of its
/// squares do not overflow: 1 unless its elements are large. Of what is multiplied, the squares of
/// the smallest differences are no denormal numbers either. (Sums of up to 2^23 squares of float.)
template <class... Keep>
any_tensor scale_for_squares(const any_tensor& x, const axes& over, Keep... keep) {
  const bool single = x.type() == dtype::float32;
  const double large = single ? 0x1p40 : 0x1p400, scale = single ? 0x1p-76 : 0x1p-560;
  return stop_gradient(
      where(mean(abs(x), over, keep...) > large, scale, literal_like(1, x.type(), {})));
}
double largest_of(dtype t) {
  double largest = 0;
  visit_dtype(t, [&]<class T>() { largest = static_cast<double>(highest_of<T>); });
  return largest;
}

/// What normalizations need of x: for a number c near its mean, left = (x - c) fit, and the mean
/// and the variance of that.
///
/// The variance is mean(left²) - mean(left)² for every c. So it, and what is computed of all these,
/// have the right derivatives of every order, although c and fit have none. But with c near the
/// mean little is lost by rounding, also where that is far from 0; and what means pass on to the
/// gradient of x is computed of them alone.
struct moments {
  any_tensor fit, c, left, mean, variance;
};
template <class... Keep>
moments moments_of(const any_tensor& x, const axes& over, Keep... keep) {
  moments m;
  m.fit = scale_for_squares(x, over, keep...);
  const any_tensor near = mean(x, over, keep...);
  // Not that of nothing, nor an infinite one.
  m.c = stop_gradient(where(abs(near) <= largest_of(x.type()), near, 0));
  m.left = x * m.fit - m.c * m.fit;
  m.mean = mean(m.left, over, keep...);
  m.variance = maximum(mean(square(m.left), over, keep...) - square(m.mean), 0);
  return m;
}

/// What is computed with in place of bfloat16 and float16; variables of layers of these are float.
any_tensor wide(const any_tensor& x) { return cast(x, dtype::float32); }

}  // namespace

any_tensor add_layer_norm(const any_tensor& x, const any_tensor& scale, const any_tensor& offset,
                          double epsilon, source_location w) {
  const layer_scope s{"layer_norm", {}, false, w};
  check_features(s, x, {&scale, &offset});
  check_epsilon(s, x, epsilon);
  const location_scope on_behalf(w);
  if (is_half(x.type()))
    return cast(add_layer_norm(wide(x), wide(scale), wide(offset), epsilon, w), x.type());
  const moments m = moments_of(x, axes{-1}, keepdims);
  return (m.left - m.mean) * (1 / sqrt(m.variance + epsilon * square(m.fit))) * scale + offset;
}

any_tensor add_rms_norm(const any_tensor& x, const any_tensor& scale, double epsilon,
                        source_location w) {
  const layer_scope s{"rms_norm", {}, false, w};
  check_features(s, x, {&scale});
  check_epsilon(s, x, epsilon);
  const location_scope on_behalf(w);
  const dtype type = x.type(), wide = is_narrow(type) ? dtype::float32 : type;
  const any_tensor v = cast(x, wide);
  const any_tensor m = mean(square(v), axes{-1}, keepdims);
  return cast(v * (1 / sqrt(m + epsilon)) * cast(scale, wide), type);
}

any_tensor add_batch_norm(const any_tensor& x, const any_tensor& mean, const any_tensor& variance,
                          const any_tensor& scale, const any_tensor& offset, double epsilon,
                          source_location w) {
  const layer_scope s{"batch_norm", {}, false, w};
  check_features(s, x, {&mean, &variance, &scale, &offset});
  check_epsilon(s, x, epsilon);
  const location_scope on_behalf(w);
  if (is_half(x.type()))
    return cast(
        add_batch_norm(wide(x), wide(mean), wide(variance), wide(scale), wide(offset), epsilon, w),
        x.type());
  return (x - mean) * (scale / sqrt(variance + epsilon)) + offset;
}

any_tensor add_layer_norm(const any_tensor& x, std::string_view name,
                          const layer_norm_options& options, source_location w) {
  if (is_half(x.type())) return cast(add_layer_norm(wide(x), name, options, w), x.type());
  const layer_scope s{"layer_norm", name, options.shared, w};
  const auto in_graph = as_default(graph_of(x));
  const tensor_type of{{layer_features(s, x, 1)}, x.type()};
  const any_tensor gamma = layer_variable(s, "gamma", of, ones());
  const any_tensor beta = layer_variable(s, "beta", of, zeros());
  return add_layer_norm(x, gamma, beta, options.epsilon, w);
}

any_tensor add_batch_norm(const any_tensor& x, std::string_view name,
                          const batch_norm_options& options, source_location w) {
  if (is_half(x.type())) return cast(add_batch_norm(wide(x), name, options, w), x.type());
  const layer_scope s{"batch_norm", name, options.shared, w};
  const auto in_graph = as_default(graph_of(x));
  const tensor_type of{{layer_features(s, x, 2)}, x.type()};
  check_epsilon(s, x, options.epsilon);
  if (!(options.momentum >= 0 && options.momentum <= 1))
    refuse_layer(s, x, str("expects a momentum from 0 to 1, and got ", options.momentum));
  const any_tensor gamma = layer_variable(s, "gamma", of, ones());
  const any_tensor beta = layer_variable(s, "beta", of, zeros());
  const any_variable average = layer_variable(s, "moving_mean", of, zeros(), false);
  const any_variable average_variance = layer_variable(s, "moving_variance", of, ones(), false);
  const training_flag& training = options.training;
  if (training.is_known() && !training.value())
    return add_batch_norm(x, average, average_variance, gamma, beta, options.epsilon, w);

  const location_scope on_behalf(w);
  const axes over(op::all_axes_of(x.rank() - 1));
  const moments m = moments_of(x, over);
  const bool may_be_empty = !x.shape().is_static() || x.shape().elements() == 0;
  const any_tensor some = may_be_empty ? any_tensor(size_of(x) != 0) : any_tensor();
  const auto of_some = [&](const any_tensor& t) {
    return some.valid() ? any_tensor(where(some, t, 0)) : t;
  };
  const any_tensor d = of_some(m.mean), v = of_some(m.variance);
  const scope_ref around = current_scope();
  const std::string prefix = around ? around->name_prefix : std::string();
  auto move = [&](const any_variable& a, const any_tensor& batch) {
    // A layer that is used again in its scope moves its averages once more, after its earlier uses.
    const std::string of_average = str(updates_of_averages, "/", a.name(), " in ", prefix);
    std::vector<node_ref> before;
    for (const output& o : graph_of(x).collected(of_average, "")) before.push_back(o.node);
    std::optional<control_scope> after;
    if (!before.empty()) after.emplace(std::move(before));
    const any_tensor old = after ? a.read(w) : any_tensor(a);
    const any_tensor step = (old - stop_gradient(batch)) * (1 - options.momentum);
    const any_tensor moved =
        of_some(training.is_known() ? step : any_tensor(where(training.tensor(), step, 0)));
    const auto update = a.assign_sub(moved, w);
    graph_of(x).collect(updates_of_averages, prefix, output{update.handle(), 0});
    graph_of(x).collect(of_average, "", output{update.handle(), 0});
  };
  move(average, m.c + d / m.fit);
  move(average_variance, minimum(v / m.fit / m.fit, largest_of(x.type())));
  const any_tensor y_fit =
      training.choose([&] { return m.fit; }, [&] { return literal_like(1, x.type(), w); });
  const any_tensor y_mean =
      training.choose([&] { return any_tensor(m.c * m.fit); }, [&] { return any_tensor(average); });
  const any_tensor y_variance =
      training.choose([&] { return v; }, [&] { return any_tensor(average_variance); });
  const any_tensor scale = gamma / sqrt(y_variance + options.epsilon * square(y_fit));
  const any_tensor offset =
      training.choose([&] { return any_tensor(beta - d * scale); }, [&] { return beta; });
  return (x * y_fit - y_mean) * scale + offset;
}

}  // namespace detail

operation update_moving_averages(std::string_view scope, ext::source_location w) {
  std::string prefix(scope);
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  std::vector<ext::node_ref> updates;
  for (const ext::output& o : current_graph().collected(detail::updates_of_averages, prefix))
    updates.push_back(o.node);
  if (updates.empty())
    throw error(errc::not_found,
                ext::str("[update_moving_averages] no batch_norm was written in training",
                         scope.empty() ? "" : " in the name scope ", scope),
                {}, w);
  return detail::make_group(std::move(updates), w);
}

}  // namespace deft
