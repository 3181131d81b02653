// SPDX-License-Identifier: Apache-2.0
// deft/device/name.hpp: names of devices, in TensorFlow's grammar.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deft/core/config.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace deft {

/// A device, or a pattern of devices: `/job:worker/replica:0/task:1/gpu:0`. A part that is not set
/// matches anything.
struct device_name {
  std::string job;  ///< empty: any
  /// From 0; not set: any.
  /// @{
  std::optional<int> replica, task;
  /// @}
  std::string type;          ///< "cpu", "gpu", …, in lower case; empty: any
  std::optional<int> index;  ///< among the devices of its type on the task, from 0; not set: any

  /// Whether no part is set.
  bool empty() const { return job.empty() && !replica && !task && type.empty() && !index; }
  /// Whether every part is set, so that this is the name of one device.
  bool full() const { return !job.empty() && replica && task && !type.empty() && index; }
  /// Only job, replica and task, which identify the process.
  device_name task_name() const { return {job, replica, task, {}, {}}; }

  friend bool operator==(const device_name&, const device_name&) = default;
  friend std::strong_ordering operator<=>(const device_name&, const device_name&) = default;
};

/// Parses `/job:worker/replica:0/task:1/gpu:0`. Parts may be missing, `*`, and in any order, but
/// not repeated; `/device:GPU:0` is the same as `/gpu:0`; `/gpu` is any GPU; a type may be in upper
/// case. An empty text gives the empty name.
/// Throws invalid_argument with what is wrong and at which character.
device_name parse_device(std::string_view text);

/// The name as text, `/job:worker/replica:0/task:1/cpu:0`, without the parts that are not set. A
/// type without an index is printed as `/gpu:*`.
std::string to_string(const device_name& d);

namespace ext {

/// Takes each part from `inner` if it is set there, else from `outer`. An index belongs to its
/// type: `/cpu:*` within `/gpu:1` is any CPU.
device_name merge(const device_name& outer, const device_name& inner);

/// The type of processors. Every task has one, through which it sends and receives values: its
/// host.
inline constexpr std::string_view host_type = "cpu";
/// The host of the task of `d`: its first processor.
device_name host_of(const device_name& d);

/// Whether `full` has every part that `pattern` sets.
bool matches(const device_name& pattern, const device_name& full);

/// A 64-bit hash, the same on every platform.
std::uint64_t hash_of(const device_name& d);

}  // namespace ext

}  // namespace deft

/// @cond hash
template <>
struct std::hash<deft::device_name> {
  std::size_t operator()(const deft::device_name& d) const { return deft::ext::hash_of(d); }
};
/// @endcond
