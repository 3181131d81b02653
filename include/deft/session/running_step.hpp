// SPDX-License-Identifier: Apache-2.0
// deft/session/running_step.hpp: one step of one part on a task, and what arrives for it.
#pragma once
#include <atomic>
#include <deft/execute/frame_pool.hpp>
#include <deft/session/errands.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace deft {

class connection;
class worker;

/// The incarnations of the tasks that a plan spans, as its master knows them.
using incarnation_list = std::vector<std::pair<std::string, std::uint64_t>>;

/// A part as it is registered on a task.
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

/// How a part of a step ended.
struct step_outcome {
  std::unique_ptr<executable::frame> frame;  ///< holds the fetched values; null if it failed
  std::shared_ptr<frame_pool> pool;
  std::shared_ptr<const error> failure;
};
using step_callback = std::function<void(step_outcome)>;

/// From the first value that arrives, or the order to run, until the part has ended.
class running_step final : public rendezvous,
                           public step_driver,
                           public std::enable_shared_from_this<running_step> {
 public:
  running_step(std::shared_ptr<worker> w, std::uint64_t session, std::uint64_t step);
  ~running_step() override;

  /// Runs until the end or until a value is missing. False if it was begun before.
  /// `master`: null for one of this process.
  bool begin(std::shared_ptr<registered_part> part, std::vector<feed_ref> feeds,
             std::shared_ptr<connection> master, step_callback& done);
  /// A value; kept if the step has not begun.
  void deliver(std::uint64_t key, any_array value);
  /// Ends the step with `why`: at once if it waits, else as soon as it can.
  void stop(const std::shared_ptr<const error>& why);
  /// That incarnation of task `name` can send nothing more: whoever waits for a value of it waits
  /// no longer.
  void peer_lost(const std::string& name, std::uint64_t incarnation, const error& why);

  void send(std::size_t number, const any_array& value) override;
  bool receive(std::size_t number, any_array& value, const waker& w) override;
  void wake(std::uint32_t lane) override;
  void ended() override;

 private:
  enum class phase { waiting, running, ended };

  /// Runs `f` on this thread if that is known to be short, else on another. `stretch`: 0 for the
  /// beginning, i + 1 for lane i.
  template <class F>
  void go(F f, std::size_t stretch);
  template <class F>
  void go_now(F f, std::size_t stretch);
  void finish(std::shared_ptr<const error> failure);
  void drop_early();

  errands::token under_way_;  ///< once begun; outlives its hold on the task, whose end waits for it
  const std::shared_ptr<worker> worker_;
  const std::uint64_t session_, step_;
  std::mutex guard_;
  phase phase_ = phase::waiting;
  std::shared_ptr<const error> why_;  ///< to be stopped
  struct lost_peer {
    std::string name;
    std::uint64_t incarnation;
    error why;
  };
  std::vector<lost_peer> lost_;
  std::vector<std::pair<std::uint64_t, any_array>> early_;
  std::size_t early_bytes_ = 0;
  struct arrival {
    any_array value;
    waker waiting;  ///< of the lane that was told to wait for it
  };
  std::vector<arrival> arrivals_;                           ///< by number of the receive
  std::unordered_map<std::uint64_t, std::size_t> numbers_;  ///< of the receives, by key
  std::stop_source stopping_;
  const std::stop_token stopping_token_ = stopping_.get_token();
  step_context context_;

  // Of whoever runs it.
  std::shared_ptr<running_step> self_;  ///< from its beginning to its end: a device may be at work
  std::shared_ptr<registered_part> part_;
  std::unique_ptr<executable::frame> frame_;
  std::vector<feed_ref> feeds_;
  std::shared_ptr<connection> master_;
  step_callback done_;
};

}  // namespace deft
