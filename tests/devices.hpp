// SPDX-License-Identifier: Apache-2.0
// tests/devices.hpp: where nodes go by themselves: to GPUs where there are some, simulated ones
// included.
#pragma once
#include <deft/session/session.hpp>
#include <string>
#include <vector>

namespace testing {

/// The full names of a session's GPUs; of its processors where there is none.
inline std::vector<std::string> usual_devices(deft::session& s) {
  std::vector<std::string> gpus, processors;
  for (const auto& d : s.devices())
    if (d.name->type == "gpu")
      gpus.push_back(to_string(*d.name));
    else if (d.name->type == "cpu")
      processors.push_back(to_string(*d.name));
  return gpus.empty() ? processors : gpus;
}
/// "gpu:0" or "cpu:0", the same on every task of this process and of those that it starts.
inline const std::string& usual_device() {
  static const std::string name = [] {
    deft::session s;
    const std::string full = usual_devices(s).at(0);
    return full.substr(full.rfind('/') + 1);
  }();
  return name;
}

}  // namespace testing
