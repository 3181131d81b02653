// SPDX-License-Identifier: Apache-2.0
// deft/train/round_updates.hpp: what a monitored session ends before it makes its session anew.
#pragma once
#include <deft/core/config.hpp>

namespace deft::ext {

/// A hook that applies gradients by threads of its own. From its next after_create it does so
/// again.
class round_updates {
 public:
  /// Ends what is under way, and tells the others how.
  virtual void end_updates() = 0;

 protected:
  ~round_updates() = default;
};

}  // namespace deft::ext
