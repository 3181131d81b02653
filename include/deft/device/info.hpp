// SPDX-License-Identifier: Apache-2.0
// deft/device/info.hpp: the name, kernels and other properties of a device.
#pragma once
#include <cstdint>
#include <deft/core/dtype.hpp>
#include <deft/core/hash.hpp>
#include <deft/device/placement.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace deft {

namespace ext {

/// The operations that a device can run, each with its dtypes.
class kernel_set {
 public:
  /// Adds kernels of `op` for `types`.
  void add(std::string_view op, dtype_set types) {
    auto at = types_.find(op);
    if (at == types_.end())
      at = types_.emplace(op, dtype_set()).first;
    else
      hash_ -= hash_of(*at);
    at->second = at->second | types;
    hash_ += hash_of(*at);
  }
  /// Removes all kernels of `op`.
  void remove(std::string_view op) {
    const auto at = types_.find(op);
    if (at == types_.end()) return;
    hash_ -= hash_of(*at);
    types_.erase(at);
  }
  /// The dtypes for which there is a kernel of `op`; empty if there is none.
  dtype_set types_of(std::string_view op) const {
    auto at = types_.find(op);
    return at == types_.end() ? dtype_set() : at->second;
  }
  /// Whether there is a kernel of `op` for `t`.
  bool has(std::string_view op, dtype t) const { return types_of(op).has(t); }

  /// All operations with their dtypes, by name.
  const auto& entries() const { return types_; }
  /// The same for the same entries, in any process.
  std::uint64_t hash() const { return hash_; }

 private:
  using entry_map = std::map<std::string, dtype_set, std::less<>>;
  static std::uint64_t hash_of(const entry_map::value_type& e) {
    return mix(hash_text(e.first), e.second.bits);
  }

  entry_map types_;
  std::uint64_t hash_ = 0;  ///< the sum of the entries' hashes
};

}  // namespace ext

/// A device that nodes can be placed on.
struct device_info {
  ext::placement name;       ///< full: "/job:worker/replica:0/task:1/cpu:0"
  std::string description;   ///< "AMD EPYC, 2 cores", "simulated", …
  std::uint64_t memory = 0;  ///< bytes; 0 if unknown
  std::string bus_id;        ///< PCI bus id; empty for processors
  /// As its kind says: nodes without a request prefer lower ranks; whether it is a processor.
  /// @{
  int rank = 2;
  bool host = false;
  /// @}
  /// The operations that it runs, each with its dtypes.
  std::shared_ptr<const ext::kernel_set> kernels;
};
/// The device in lists: "/job:…/cpu:0 (AMD EPYC, 2 cores, 25.2 GB)".
std::string to_string(const device_info& d);

}  // namespace deft
