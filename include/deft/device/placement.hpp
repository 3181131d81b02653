// SPDX-License-Identifier: Apache-2.0
// deft/device/placement.hpp: where a node is, or is asked to be.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deft/device/name.hpp>
#include <functional>

namespace deft {

/// Nothing, a device, or a pattern of devices, as a value: cheap to copy, compared at once. Equal
/// names give equal placements. (One device today; a mesh of them has its place here.)
class placement {
 public:
  /// Anywhere.
  constexpr placement() = default;
  constexpr placement(std::nullptr_t) {}  // NOLINT: implicit on purpose

  explicit constexpr operator bool() const { return name_ != nullptr; }
  /// The device's name. There must be one.
  constexpr const device_name& operator*() const { return *name_; }
  constexpr const device_name* operator->() const { return name_; }

  friend constexpr bool operator==(placement, placement) = default;
  /// Some order, another one in each process.
  friend std::strong_ordering operator<=>(placement a, placement b) { return a.id() <=> b.id(); }
  /// A number that no other placement of this process has.
  std::uintptr_t id() const { return reinterpret_cast<std::uintptr_t>(name_); }

 private:
  friend placement intern(const device_name& d);
  explicit constexpr placement(const device_name* name) : name_(name) {}

  const device_name* name_ = nullptr;  ///< the process's one copy
};

/// The placement of that name, which is kept as long as the process lives; anywhere for the empty
/// name. Safe from many threads.
placement intern(const device_name& d);

}  // namespace deft

template <>
struct std::hash<deft::placement> {
  std::size_t operator()(deft::placement p) const { return p.id(); }
};
