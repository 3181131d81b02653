// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/divider.hpp: division by a number that is known when a kernel is prepared.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>

namespace deft::ext::gpu {

/// Quotients and remainders of numbers below 2^31 by a product and a shift, of others by a
/// division. Granlund and Montgomery, "Division by invariant integers using multiplication", 1994.
class divider {
 public:
  divider() = default;
  /// by >= 1.
  explicit divider(std::int64_t by) : by_(by) {
    if (by >= std::int64_t{1} << 31) return;
    while ((std::int64_t{1} << shift_) < by) ++shift_;
    const std::uint64_t numerator = (std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift_) - by);
    multiplier_ = static_cast<std::uint32_t>(numerator / static_cast<std::uint64_t>(by) + 1);
  }

  DEFT_HD std::int64_t by() const { return by_; }
  DEFT_HD std::int64_t quotient(std::int64_t n) const {
    if (n >> 31 || by_ >> 31) return n / by_;
    const auto m = static_cast<std::uint32_t>(n);
    const auto high = static_cast<std::uint32_t>(std::uint64_t{m} * multiplier_ >> 32);
    return (high + m) >> shift_;
  }
  /// Divides n, and returns the remainder.
  DEFT_HD std::int64_t cut(std::int64_t& n) const {
    const std::int64_t q = quotient(n), rest = n - q * by_;
    n = q;
    return rest;
  }

 private:
  std::int64_t by_ = 1;
  std::uint32_t multiplier_ = 1, shift_ = 0;
};

}  // namespace deft::ext::gpu
