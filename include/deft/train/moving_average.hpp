// SPDX-License-Identifier: Apache-2.0
// deft/train/moving_average.hpp: averages of variables over training steps.
#pragma once
#include <deft/train/optimizer.hpp>
#include <map>
#include <string>
#include <vector>

namespace deft {

/// Options of an exponential_moving_average.
struct moving_average_options {
  /// If it is not empty, a scalar n that counts updates, such as global_step(): the decay is
  /// min(decay, (1 + n) / (10 + n)), so that the average follows fast in the beginning. As any
  /// plain read, it is the number from before the run: 0 in the first one, also under
  /// `control_dependencies(train)`. `global_step().read()`, written there, is that after the step.
  any_tensor num_updates = {};
  std::string name = "moving_average";  ///< of the averages: "w/moving_average"
};

/// Averages s of variables v, updated once a training step: s <- s - (1 - decay) (s - v). They
/// begin at the variables' first values, are not trainable, and are placed with their variables.
class exponential_moving_average {
 public:
  /// Throws invalid_argument if `decay` is not in [0, 1], or num_updates not a scalar of numbers.
  explicit exponential_moving_average(double decay, moving_average_options options = {},
                                      ext::source_location w = ext::here());

  /// Updates the averages of these variables, or of all trainable floating ones of the current
  /// graph. Called under `control_dependencies(train)`, it includes the training step, and averages
  /// the values after it. Throws invalid_argument if there are none, or one is not floating.
  ///
  ///     auto train = adam(0.001).minimize(loss);
  ///     exponential_moving_average averages(0.999);
  ///     auto after = control_dependencies(train);
  ///     const operation step = averages.apply();
  /// @{
  operation apply(const std::vector<any_variable>& variables, ext::source_location w = ext::here());
  operation apply(ext::source_location w = ext::here());
  /// @}

  /// The average of `v`. Throws not_found if `apply` was not given it.
  any_variable average(const any_variable& v, ext::source_location w = ext::here()) const;
  /// Exchanges the values of all variables that `apply` was given with their averages. Run it
  /// before an evaluation that uses the averages, and once more before training continues.
  operation swap(ext::source_location w = ext::here()) const;
  /// For a program that evaluates with the averages: from the name in a checkpoint to each variable
  /// of the graph, which for trainable floating ones is that of its average.
  ///
  ///     saver averaged({.named = exponential_moving_average(0.999).variables_to_restore()});
  std::map<std::string, any_variable> variables_to_restore(graph g = current_graph()) const;

 private:
  double decay_;
  moving_average_options options_;
  std::vector<any_variable> variables_;
};

}  // namespace deft
