// SPDX-License-Identifier: Apache-2.0
// deft/device/name.hpp: names of devices, in TensorFlow's grammar.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace deft {

/// A device, or a pattern of devices: `/job:worker/replica:0/task:1/gpu:0`. A part that is not set
/// stands for any.
struct device_name {
  std::string job;  ///< empty: any
  std::optional<int> replica, task;
  std::string type;  ///< "cpu", "gpu", …, in lower case; empty: any
  std::optional<int> index;

  /// Nothing is set.
  bool empty() const { return job.empty() && !replica && !task && type.empty() && !index; }
  /// Everything is set: the name of one device.
  bool full() const { return !job.empty() && replica && task && !type.empty() && index; }
  /// Job, replica and task: the part of the name that says in which process the device is.
  device_name task_name() const { return {job, replica, task, {}, {}}; }

  friend bool operator==(const device_name&, const device_name&) = default;
  friend std::strong_ordering operator<=>(const device_name&, const device_name&) = default;
};

/// Reads `/job:worker/replica:0/task:1/gpu:0`. Any part may be missing or `*`, in any order, once;
/// `/device:GPU:0` is the same as `/gpu:0`; `/gpu` is any GPU; a type may be in upper case. The
/// empty text is the empty name.
/// Throws invalid_argument that says what was wrong, and where.
device_name parse_device(std::string_view text);

/// `/job:worker/replica:0/task:1/cpu:0`; parts that are not set are left out. A type without an
/// index is `/gpu:*`.
std::string to_string(const device_name& d);

/// Part by part: what `inner` sets, else what `outer` does. An index goes with its type: `/cpu:*`
/// within `/gpu:1` is any CPU.
device_name merge(const device_name& outer, const device_name& inner);

/// Whether `full` agrees with everything that `pattern` sets.
bool matches(const device_name& pattern, const device_name& full);

/// A 64-bit hash, the same on every platform.
std::uint64_t hash_of(const device_name& d);

}  // namespace deft

template <>
struct std::hash<deft::device_name> {
  std::size_t operator()(const deft::device_name& d) const { return deft::hash_of(d); }
};
