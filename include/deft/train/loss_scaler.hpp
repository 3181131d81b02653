// SPDX-License-Identifier: Apache-2.0
// deft/train/loss_scaler.hpp: dynamic loss scaling, which keeps small gradients of float16 from
// becoming 0.
#pragma once
#include <deft/train/optimizer.hpp>
#include <memory>

namespace deft {
/// Options of loss_scaler.
struct loss_scaler_options {
  double initial = 32768;      ///< the first scale
  std::int64_t period = 2000;  ///< steps in a row with finite gradients, after which it doubles
};

/// An optimizer that differentiates the loss times a scale and divides the gradients by it, in
/// float. A step one of whose gradients is not finite is skipped: variables, slots and the global
/// step stay as they are, and the scale is halved, but not below 1; after `period` steps without
/// one it is doubled.
///
///     const loss_scaler o(adam(1e-3f));
///     auto train = o.minimize(loss, global_step());
///
/// Gradients of compute_gradients have been divided, and can be clipped as others are. The scale is
/// the variable "loss_scale" of the graph, float, which loss scalers of one graph share, and the
/// number of steps since it last changed is "loss_scale/good_steps"; both are in checkpoints.
class loss_scaler final : public optimizer {
 public:
  /// Throws invalid_argument unless the first scale is finite and at least 1, and the period at
  /// least 1.
  template <std::derived_from<optimizer> O>
  explicit loss_scaler(O inner, loss_scaler_options options = {},
                       ext::source_location w = ext::here())
      : loss_scaler(std::make_shared<const O>(std::move(inner)), options, w) {}

  /// The scale, float, in a graph where gradients have been computed, by default the current one.
  any_variable scale(graph g = current_graph()) const;

 protected:
  any_tensor scaled(const any_tensor& loss) const override;
  any_tensor unscaled(const any_tensor& gradient) const override;
  operation update(const update_target& v, const any_tensor& gradient) const override {
    return update_by(*inner_, v, gradient);
  }
  operation apply(const std::vector<gradient_of_variable>& gradients,
                  const variable<std::int64_t>* step, ext::source_location w) const override;

 private:
  loss_scaler(std::shared_ptr<const optimizer> inner, loss_scaler_options options,
              ext::source_location w);

  const std::shared_ptr<const optimizer> inner_;
  const loss_scaler_options options_;
};

}  // namespace deft
