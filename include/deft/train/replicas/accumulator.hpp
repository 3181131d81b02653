// SPDX-License-Identifier: Apache-2.0
// deft/train/replicas/accumulator.hpp: gradients of one variable that several steps have computed.
#pragma once
#include <deft/kernels/resources.hpp>
#include <optional>

namespace deft::ext {

/// The gradients that contributors, such as sessions, have brought and nobody has taken: the newest
/// of each. A gradient is some tensors. Thread-safe.
class accumulator final : public resource {
 public:
  /// What a contributor holds as long as it may bring gradients; one that it has brought outlives
  /// it until the next time that some are taken.
  using membership = std::shared_ptr<const std::uint64_t>;
  membership join(std::uint64_t contributor);
  /// Brings that of a step. It is dropped if there is one of a later step.
  void apply(const membership& from, std::uint64_t step, std::vector<any_array> gradient);
  /// Takes the gradients of `contributors`, in that order. If one of them has none, takes nothing
  /// and returns nothing.
  std::optional<std::vector<std::vector<any_array>>> take(
      std::span<const std::uint64_t> contributors);

  void clear() override;
  bool empty() const override;
  std::size_t bytes() const override;
  std::string describe() const override;

 private:
  struct entry {
    std::weak_ptr<const std::uint64_t> owner;
    std::uint64_t step = 0;
    std::vector<any_array> gradient;
  };
  mutable std::mutex guard_;
  std::map<std::uint64_t, entry> entries_;  ///< by contributor
};

}  // namespace deft::ext
