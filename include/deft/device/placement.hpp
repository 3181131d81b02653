// SPDX-License-Identifier: Apache-2.0
// deft/device/placement.hpp: where a node is placed, or is requested to be.
#pragma once
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deft/device/name.hpp>
#include <functional>
#include <utility>

namespace deft::ext {}  // namespace deft::ext

namespace deft::detail {
/// A name and the number of placements that refer to it. It is forgotten with the last one, so that
/// names from peers do not accumulate.
using interned_name = std::pair<const device_name, std::atomic<std::uint32_t>>;
/// Called for what may be the last placement.
void drop_interned(interned_name& n) noexcept;
/// How many names placements refer to.
std::size_t interned_names();
}  // namespace deft::detail

namespace deft::ext {

/// A device, a pattern of devices, or nothing: a small value that is cheap to copy and to compare.
/// Equal names give equal placements.
class placement {
 public:
  /// No placement: anywhere.
  constexpr placement() = default;
  constexpr placement(std::nullptr_t) {}  // NOLINT: implicit on purpose
  placement(const placement& o) noexcept : name_(o.name_) {
    if (name_) name_->second.fetch_add(1, std::memory_order_relaxed);
  }
  placement(placement&& o) noexcept : name_(std::exchange(o.name_, nullptr)) {}
  placement& operator=(placement o) noexcept {
    std::swap(name_, o.name_);
    return *this;
  }
  ~placement() {
    if (name_) drop();
  }

  explicit operator bool() const { return name_ != nullptr; }
  /// The device's name. The placement must not be empty.
  const device_name& operator*() const { return name_->first; }
  const device_name* operator->() const { return &name_->first; }

  friend bool operator==(const placement& a, const placement& b) { return a.name_ == b.name_; }
  /// An arbitrary order, different in each process.
  friend std::strong_ordering operator<=>(const placement& a, const placement& b) {
    return a.id() <=> b.id();
  }
  /// A number that is unique to this placement while it exists.
  std::uintptr_t id() const { return reinterpret_cast<std::uintptr_t>(name_); }

 private:
  friend placement intern(const device_name& d);
  explicit placement(detail::interned_name& name) : name_(&name) {}

  void drop() noexcept {
    auto& users = name_->second;
    for (std::uint32_t n = users.load(std::memory_order_relaxed); n > 1;)
      if (users.compare_exchange_weak(n, n - 1, std::memory_order_release,
                                      std::memory_order_relaxed))
        return;
    detail::drop_interned(*name_);
  }

  detail::interned_name* name_ = nullptr;
};

/// The placement for a name; an empty one for the empty name. Thread-safe.
placement intern(const device_name& d);

}  // namespace deft::ext

/// @cond hash
template <>
struct std::hash<deft::ext::placement> {
  std::size_t operator()(const deft::ext::placement& p) const { return p.id(); }
};
/// @endcond
