// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_normalization.hpp: normalization of features and of batches.
#pragma once
#include <deft/op/group.hpp>
#include <deft/train/layers_common.hpp>

namespace deft {

namespace op {
struct layer_norm;  ///< several operations; only messages use these names
struct batch_norm;
struct rms_norm;
}  // namespace op

namespace detail {
/// Whether each of V is a vector of X's dtype as long as its last axis.
template <class X, class... V>
inline constexpr bool are_features_of = [] {
  const dims& x = extents_of<X>;
  auto fits = [&](const dims& v) {
    return v.n == 1 && (v.e[0] == x.e[x.n - 1] || v.e[0] == dyn || x.e[x.n - 1] == dyn);
  };
  return x.n > 0 && (fits(extents_of<V>) && ...) && is_floating_type<value_type_of<X>> &&
         (std::is_same_v<value_type_of<X>, value_type_of<V>> && ...);
}();

any_tensor add_layer_norm(const any_tensor& x, const any_tensor& scale, const any_tensor& offset,
                          double epsilon, source_location w);
any_tensor add_rms_norm(const any_tensor& x, const any_tensor& scale, double epsilon,
                        source_location w);
any_tensor add_batch_norm(const any_tensor& x, const any_tensor& mean, const any_tensor& variance,
                          const any_tensor& scale, const any_tensor& offset, double epsilon,
                          source_location w);
}  // namespace detail

/// scale (x - m) / sqrt(v + epsilon) + offset, where m and v are the mean and the variance along
/// the last axis, of d elements, as many as scale and offset have. (Ba, Kiros, Hinton: Layer
/// normalization, 2016.)
template <ext::expression X, ext::expression S, ext::expression O, class K = ext::kernels_for<X>>
auto layer_norm(const X& x, const S& scale, const O& offset, double epsilon = 0.001,
                ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<S> && ext::typed_expression<O>) {
    if constexpr (!detail::are_features_of<X, S, O>) {
      static_assert(detail::takes<op::layer_norm, detail::got<X>, detail::got<S>, detail::got<O>>,
                    "[layer_norm] expects a floating tensor, and a scale and an offset as long as "
                    "its last axis");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
          detail::add_layer_norm(any_tensor(detail::any_lower<K>(x, w)), any_tensor(scale),
                                 any_tensor(offset), epsilon, w)
              .handle());
  } else
    return detail::add_layer_norm(any_tensor(x), any_tensor(scale), any_tensor(offset), epsilon, w);
}

/// scale x / sqrt(m + epsilon), where m is the mean of the squares of x along the last axis, of d
/// elements, as many as scale has; squares must not overflow. Of float16 and bfloat16 it is
/// computed in float, and rounded once. (Zhang, Sennrich: Root mean square layer normalization,
/// NeurIPS 2019.)
template <ext::expression X, ext::expression S, class K = ext::kernels_for<X>>
auto rms_norm(const X& x, const S& scale, double epsilon = 1e-6,
              ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<S>) {
    if constexpr (!detail::are_features_of<X, S>) {
      static_assert(detail::takes<op::rms_norm, detail::got<X>, detail::got<S>>,
                    "[rms_norm] expects a floating tensor, and a scale as long as its last axis");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
          detail::add_rms_norm(any_tensor(detail::any_lower<K>(x, w)), any_tensor(scale), epsilon,
                               w)
              .handle());
  } else
    return detail::add_rms_norm(any_tensor(x), any_tensor(scale), epsilon, w);
}

/// scale (x - mean) / sqrt(variance + epsilon) + offset, for vectors as long as the last axis of x.
/// (Ioffe, Szegedy: Batch normalization, ICML 2015.)
template <ext::expression X, ext::expression M, ext::expression V, ext::expression S,
          ext::expression O, class K = ext::kernels_for<X>>
auto batch_norm(const X& x, const M& mean, const V& variance, const S& scale, const O& offset,
                double epsilon = 0.001, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<M> && ext::typed_expression<V> &&
                ext::typed_expression<S> && ext::typed_expression<O>) {
    if constexpr (!detail::are_features_of<X, M, V, S, O>) {
      static_assert(detail::takes<op::batch_norm, detail::got<X>, detail::got<M>, detail::got<V>,
                                  detail::got<S>, detail::got<O>>,
                    "[batch_norm] expects a floating tensor, and a mean, a variance, a scale and "
                    "an offset as long as its last axis");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
          detail::add_batch_norm(any_tensor(detail::any_lower<K>(x, w)), any_tensor(mean),
                                 any_tensor(variance), any_tensor(scale), any_tensor(offset),
                                 epsilon, w)
              .handle());
  } else
    return detail::add_batch_norm(any_tensor(x), any_tensor(mean), any_tensor(variance),
                                  any_tensor(scale), any_tensor(offset), epsilon, w);
}

/// @cond refused
template <ext::expression X, class... Given>
requires(detail::no_parameters_or_name<2, Given...>) detail::refused
    layer_norm(const X&, const Given&...) {
  static_assert(detail::takes<op::layer_norm, detail::got<X>, detail::got<Given>...>,
                "[layer_norm] expects a name, as in layer_norm(x, \"norm\"), or layer_norm(x, "
                "\"norm\", {.epsilon = 1e-5}), or a scale and an offset");
  return {};
}
template <ext::expression X, class... Given>
requires(detail::no_parameters_or_name<4, Given...>) detail::refused
    batch_norm(const X&, const Given&...) {
  static_assert(detail::takes<op::batch_norm, detail::got<X>, detail::got<Given>...>,
                "[batch_norm] expects a name, as in batch_norm(x, \"norm\"), or batch_norm(x, "
                "\"norm\", {.training = training}), or a mean, a variance, a scale and an offset");
  return {};
}
/// @endcond

/// Options of a layer_norm with variables of its own.
struct layer_norm_options {
  double epsilon = 0.001;  ///< added to the variance; not negative
  bool shared = false;     ///< as in dense_options
};
/// Options of a batch_norm with variables of its own.
struct batch_norm_options {
  training_flag training = true;  ///< otherwise x is normalized with the moving averages
  double momentum = 0.99;         ///< of the moving averages, from 0 to 1
  double epsilon = 0.001;         ///< added to the variance; not negative
  bool shared = false;            ///< as in dense_options
};

namespace detail {
any_tensor add_layer_norm(const any_tensor& x, std::string_view name,
                          const layer_norm_options& options, source_location w);
any_tensor add_batch_norm(const any_tensor& x, std::string_view name,
                          const batch_norm_options& options, source_location w);
}  // namespace detail

/// layer_norm with variables NAME/gamma, the scale, at first 1, and NAME/beta, the offset, at first
/// 0. Throws invalid_argument if x is not floating or its last extent unknown, or if variables of
/// these names have other shapes.
template <ext::expression X, class K = ext::kernels_for<X>>
auto layer_norm(const X& x, std::string_view name, const layer_norm_options& options = {},
                ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>)
    return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
        detail::add_layer_norm(any_tensor(detail::any_lower<K>(x, w)), name, options, w).handle());
  else
    return detail::add_layer_norm(any_tensor(x), name, options, w);
}

/// batch_norm with variables NAME/gamma and NAME/beta, and NAME/moving_mean and
/// NAME/moving_variance, which are not trained. In training, x is normalized with the mean and the
/// variance over all axes but the last, and `update_moving_averages` moves the averages towards
/// them: a <- momentum a + (1 - momentum) b, unless the batch is empty. Otherwise it is normalized
/// with the averages. (The variance is the mean of the squares of what is left of the mean, in
/// both: that of one element is 0.) Throws as layer_norm does.
template <ext::expression X, class K = ext::kernels_for<X>>
auto batch_norm(const X& x, std::string_view name, const batch_norm_options& options = {},
                ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>)
    return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
        detail::add_batch_norm(any_tensor(detail::any_lower<K>(x, w)), name, options, w).handle());
  else
    return detail::add_batch_norm(any_tensor(x), name, options, w);
}

/// The updates of the moving averages of every batch_norm in training that was written within the
/// name scope `scope`, or all of the current graph for "": to be run together with the training
/// step. Where batch_norms of several scopes share their variables, it takes one of the scopes: a
/// step updates a variable once. Throws not_found if there is no such batch_norm.
operation update_moving_averages(std::string_view scope = "", ext::source_location w = ext::here());

}  // namespace deft
