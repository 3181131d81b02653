// SPDX-License-Identifier: Apache-2.0
// deft/kernels/named_step.hpp: a device's step that knows the names of its frame's nodes.
#pragma once
#include <deft/kernels/device.hpp>
#include <string>

namespace deft::ext {

/// For devices that tell of a node when its step is over: in the log, or to a later step.
class named_step : public device_step {
 public:
  /// `name` gives the name of an item's node, on any thread, until the step is destroyed.
  void set_names(std::function<std::string(std::uint32_t item)> name) { name_ = std::move(name); }
  /// "" if nobody has set names.
  std::string name_of(std::uint32_t item) const { return name_ ? name_(item) : std::string(); }

 private:
  std::function<std::string(std::uint32_t)> name_;
};

}  // namespace deft::ext
