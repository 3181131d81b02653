// SPDX-License-Identifier: Apache-2.0
// deft/train/replicas/step_barrier.hpp: rounds in which steps arrive, and wait for their end.
#pragma once
#include <cstdint>
#include <deft/kernels/wait_list.hpp>
#include <string>
#include <utility>
#include <vector>

namespace deft::ext {

/// Counts who has arrived in a round, up to a number, and knows the steps that wait for its end.
/// The resource that has it says when a round ends, and holds a lock: only waiting() needs none.
class step_barrier {
 public:
  /// The task and the session of one that arrives.
  using participant = std::pair<std::string, std::uint64_t>;
  /// What a step has done by arriving.
  struct arrival {
    std::int64_t round = 0;
    bool counts = false;
  };

  /// The number of the current round, from 1.
  std::int64_t round() const { return round_; }
  /// Whether what began in the round `begun` belongs to a round that is over.
  bool is_stale(std::int64_t begun) const { return begun < round_; }
  bool is_over(const arrival& a) const { return a.round < round_; }

  /// Arrives in the current round. Counts if fewer than `most` others do; who arrives twice counts
  /// once.
  arrival arrive(const participant& who, std::int64_t most);
  /// Arrives without counting.
  arrival late() const { return {.round = round_, .counts = false}; }
  /// Counts no longer, if it did.
  void withdraw(const participant& who);
  /// Whether `n` count.
  bool has(std::int64_t n) const { return static_cast<std::int64_t>(counted_.size()) >= n; }
  /// Those that count, in the order of their tasks and sessions.
  std::vector<participant> arrived() const;

  /// Begins the next round, in which nobody has arrived. Then wake all of waiting().
  void begin_next();
  /// The steps that wait for the end of the round.
  wait_list& waiting() { return waiting_; }

 private:
  std::int64_t round_ = 1;
  std::vector<participant> counted_;
  wait_list waiting_;
};

}  // namespace deft::ext
