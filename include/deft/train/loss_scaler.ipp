// SPDX-License-Identifier: Apache-2.0
// deft/train/loss_scaler.ipp: the scale, and steps that are skipped.
#pragma once
#include <cmath>
#include <deft/op/catalog.hpp>
#include <deft/train/loss_scaler.hpp>

namespace deft {
namespace {

/// Of the graph, made where it is not there yet.
any_variable scalar_of(graph g, std::string_view name, const any_array& first) {
  if (ext::node_ref there = g.find_variable(name)) return any_variable(there);
  const auto in_graph = as_default(g);
  const auto top = name_scope("");
  variable_options options;
  options.trainable = false;
  return any_variable(detail::make_variable(std::string(name), {dims{}, first.type()},
                                            any_tensor(detail::add_constant(first, ext::here())),
                                            options, ext::here())
                          .node);
}

/// What updates by another optimizer, in steps where a condition is true.
class conditional final : public optimizer {
 public:
  conditional(const optimizer& inner, any_tensor condition)
      : inner_(inner), condition_(std::move(condition)) {}

 protected:
  operation update(const update_target& v, const any_tensor& gradient) const override {
    return update_by(inner_, v.only_if(condition_), gradient);
  }

 private:
  const optimizer& inner_;
  const any_tensor condition_;
};

constexpr std::string_view name_of_scale = "loss_scale", name_of_count = "loss_scale/good_steps";

}  // namespace

loss_scaler::loss_scaler(std::shared_ptr<const optimizer> inner, loss_scaler_options options,
                         ext::source_location w)
    : inner_(std::move(inner)), options_(options) {
  if (!(options_.initial >= 1 && options_.initial <= 0x1p126))
    throw error(
        errc::invalid_argument,
        ext::str("[loss_scaler] expects a first scale from 1 to 2^126, and got ", options_.initial),
        {}, w);
  if (options_.period < 1)
    throw error(
        errc::invalid_argument,
        ext::str("[loss_scaler] expects a period of at least 1 step, and got ", options_.period),
        {}, w);
}

any_variable loss_scaler::scale(graph g) const {
  return scalar_of(g, name_of_scale, any_array::scalar(static_cast<float>(options_.initial)));
}

any_tensor loss_scaler::scaled(const any_tensor& loss) const {
  return loss * cast(any_tensor(scale(graph_of(loss))), loss.type());
}
any_tensor loss_scaler::unscaled(const any_tensor& gradient) const {
  const any_tensor by = scale(graph_of(gradient));
  return detail::each_value(gradient, [&](const any_tensor& g) {
    const dtype type = ext::computing_dtype(g.type());
    return any_tensor(cast(g, type) / cast(by, type));
  });
}

operation loss_scaler::apply(const std::vector<gradient_of_variable>& gradients,
                             const variable<std::int64_t>* step, ext::source_location w) const {
  const ext::location_scope on_behalf(w);
  any_tensor finite;
  for (const auto& [v, g] : gradients) {
    if (!g.valid()) continue;
    const auto slices = detail::slices_of(g);
    const any_tensor x = slices ? slices->rows : g;
    const any_tensor own = sum(x - x) == 0;  // the difference is 0, or NaN
    finite = finite.valid() ? finite && own : own;
  }
  if (!finite.valid()) return inner_->apply_gradients(gradients, w);  // which says what is wrong
  const auto in_graph = as_default(graph_of(finite));
  std::vector<ext::node_ref> updates{
      conditional(*inner_, finite).apply_gradients(gradients, w).handle()};

  const any_variable scale = this->scale(graph_of(finite)),
                     count = scalar_of(graph_of(finite), name_of_count,
                                       any_array::scalar(std::int64_t{0}));
  const any_tensor old = scale, good = count + 1;
  const any_tensor grows = good >= options_.period && old <= 0x1p126;
  const any_tensor now = where(finite, where(grows, old * 2, old), maximum(old / 2, 1));
  updates.push_back(scale.assign(now).handle());
  updates.push_back(
      count.assign(where(finite && !(good >= options_.period), good, any_tensor(good * 0)))
          .handle());
  ext::control_scope after(updates);
  if (!step) return no_op(w);
  return step->assign_add(tensor<std::int64_t>(cast(finite, dtype::int64)), w);
}

}  // namespace deft
