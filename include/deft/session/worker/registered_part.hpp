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
  /// A task that values are sent to.
  struct destination {
    placement task = nullptr;
    std::uint64_t incarnation = 0;  ///< 0 if the master did not say
    bool is_master = false;  ///< it reads what comes on the connection by which it runs the part
  };
  const std::vector<destination>& destinations() const { return destinations_; }
  /// Of send `number`, among them.
  std::size_t destination_of(std::size_t send) const { return receivers_[send]; }
  /// Whether receive `number` waits for that incarnation of task `name`.
  bool expects(std::size_t receive, const std::string& name, std::uint64_t incarnation) const;
  /// Whether stretch `s` of the work takes long, as far as is known: not for a thread that reads
  /// messages. Stretch 0 is the first, i + 1 the one with which lane i goes on.
  bool slow(std::size_t s) const { return slowness_[s].load(std::memory_order_relaxed) > 0; }
  void took(std::size_t s, std::chrono::nanoseconds time);

 private:
  std::uint64_t stream_;
  std::vector<destination> destinations_;
  std::vector<std::size_t> receivers_;                    ///< of the sends, among the destinations
  std::vector<std::uint64_t> senders_;                    ///< incarnations, of the receives
  std::unique_ptr<std::atomic<std::int8_t>[]> slowness_;  ///< of the stretches
};

}  // namespace deft
