// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/registered_part.hpp: a part as it is registered on a task.
#pragma once
#include <atomic>
#include <deft/execute/frame_pool.hpp>
#include <deft/session/wire/messages.hpp>
#include <memory>
#include <string>
#include <vector>

namespace deft {

/// What a master has registered.
class registered_part : public frame_pool {
 public:
  /// `master`: the task it came from; empty for a master of this process.
  registered_part(plan::part part, const task_resources& task, const incarnation_list& peers,
                  const std::string& master);

  /// Of random numbers.
  std::uint64_t stream() const { return stream_; }
  /// Of the task that send `number` goes to; 0 if the master did not say.
  std::uint64_t receiver(std::size_t send) const { return receivers_[send]; }
  /// Whether send `number` goes to the task of the master, which reads what comes on the connection
  /// by which it runs the part.
  bool goes_to_master(std::size_t send) const { return to_master_[send]; }
  /// Whether receive `number` waits for that incarnation of task `name`.
  bool expects(std::size_t receive, const std::string& name, std::uint64_t incarnation) const;
  /// Whether stretch `s` of the work takes long, as far as is known: not for a thread that reads
  /// messages. Stretch 0 is the first, i + 1 the one with which lane i goes on.
  bool slow(std::size_t s) const { return slowness_[s].load(std::memory_order_relaxed) > 0; }
  void took(std::size_t s, std::chrono::nanoseconds time);

 private:
  std::uint64_t stream_;
  std::vector<std::uint64_t> receivers_, senders_;
  std::vector<bool> to_master_;
  std::unique_ptr<std::atomic<std::int8_t>[]> slowness_;  ///< of the stretches
};

}  // namespace deft
