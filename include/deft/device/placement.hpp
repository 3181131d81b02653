// SPDX-License-Identifier: Apache-2.0
// deft/device/placement.hpp: where a node is placed, or is requested to be.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deft/device/name.hpp>
#include <functional>

namespace deft {

/// A device, a pattern of devices, or nothing: a small value that is cheap to copy and to compare.
/// Equal names give equal placements.
class placement {
 public:
  /// No placement: anywhere.
  constexpr placement() = default;
  constexpr placement(std::nullptr_t) {}  // NOLINT: implicit on purpose

  explicit constexpr operator bool() const { return name_ != nullptr; }
  /// The device's name. The placement must not be empty.
  constexpr const device_name& operator*() const { return *name_; }
  constexpr const device_name* operator->() const { return name_; }

  friend constexpr bool operator==(placement, placement) = default;
  /// An arbitrary order, different in each process.
  friend std::strong_ordering operator<=>(placement a, placement b) { return a.id() <=> b.id(); }
  /// A number that is unique to this placement within the process.
  std::uintptr_t id() const { return reinterpret_cast<std::uintptr_t>(name_); }

 private:
  friend placement intern(const device_name& d);
  explicit constexpr placement(const device_name* name) : name_(name) {}

  const device_name* name_ = nullptr;  ///< the interned name
};

/// The placement for a name, which is interned for the life of the process; an empty one for the
/// empty name. Thread-safe.
placement intern(const device_name& d);

}  // namespace deft

template <>
struct std::hash<deft::placement> {
  std::size_t operator()(deft::placement p) const { return p.id(); }
};
