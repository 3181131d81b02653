// SPDX-License-Identifier: Apache-2.0
// deft/device/info.ipp: a device as text.
#pragma once
#include <deft/core/text.hpp>
#include <deft/device/info.hpp>

namespace deft {

std::string to_string(const device_info& d) {
  std::string s = to_string(*d.name) + " (" + d.description;
  if (d.memory) s += ext::str(", ", static_cast<double>(d.memory / 100'000'000) / 10, " GB");
  if (!d.bus_id.empty()) s += ", " + d.bus_id;
  return s + ")";
}

}  // namespace deft
