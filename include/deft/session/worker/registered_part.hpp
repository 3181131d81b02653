// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/registered_part.hpp: a part of a plan, registered on a task.
#pragma once
#include <atomic>
#include <deft/execute/frame_pool.hpp>
#include <deft/session/wire/messages.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace deft::ext {

/// A part that a master has registered, with the tasks it exchanges values with and how long its
/// segments take. A segment is the work of a step without a wait: segment 0 starts the step,
/// segment i + 1 resumes lane i.
class registered_part : public frame_pool {
 public:
  /// `master`: the name of the task whose master it is; empty for a master of this process.
  registered_part(plan::part part, const task_resources& task, const incarnation_list& peers,
                  const std::string& master);

  /// The stream of random numbers.
  std::uint64_t stream() const { return stream_; }
  /// A task to which the part sends values.
  struct destination {
    placement task = nullptr;
    std::uint64_t incarnation = 0;  ///< 0 if unknown
    bool is_master = false;  ///< values for it go on the connection by which it runs the part
  };
  const std::vector<destination>& destinations() const { return destinations_; }
  /// The index of the destination of send number `send`.
  std::size_t destination_of(std::size_t send) const { return receivers_[send]; }
  /// The number of the receive that takes the value sent with `key`; nothing if none does.
  std::optional<std::size_t> receive_of(std::uint32_t key) const;
  /// Whether receive number `receive` takes its value from that incarnation of task `name`.
  bool expects(std::size_t receive, const std::string& name, std::uint64_t incarnation) const;
  /// Whether `segment`, in a step that has been given `bytes` bytes, may take long: if it did
  /// lately, or if it was not quick with as many bytes yet. Then it must not run on a thread that
  /// reads messages.
  bool slow(std::size_t segment, std::size_t bytes) const {
    const segment_time& s = times_[segment];
    return s.slowness.load(std::memory_order_relaxed) > 0 ||
           bytes > s.quick_bytes.load(std::memory_order_relaxed);
  }
  /// Notes how long `segment` took in a step that has been given `bytes` bytes.
  void took(std::size_t segment, std::size_t bytes, std::chrono::nanoseconds time);

 private:
  struct segment_time {
    std::atomic<std::int8_t> slowness{1};
    std::atomic<std::size_t> quick_bytes{0};  ///< with so many, it was quick
  };
  std::uint64_t stream_;
  std::vector<destination> destinations_;
  std::vector<std::size_t> receivers_;  ///< by send: index of the destination
  std::vector<std::uint64_t> senders_;  ///< by receive: incarnation, 0 if unknown
  std::vector<std::pair<std::uint32_t, std::size_t>> receives_;  ///< keys, sorted, and numbers
  std::vector<segment_time> times_;                              ///< by segment
};

}  // namespace deft::ext
