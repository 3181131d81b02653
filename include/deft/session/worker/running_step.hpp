// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/running_step.hpp: one step of one part on a task, and what arrives for it.
#pragma once
#include <atomic>
#include <deft/session/threads/background_work.hpp>
#include <deft/session/worker/registered_part.hpp>
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

/// How a part of a step ended.
struct step_outcome {
  std::unique_ptr<executable::frame> frame;  ///< holds the fetched values; null if it failed
  std::shared_ptr<frame_pool> pool;
  std::shared_ptr<const error> failure;
  /// What its master's own part waits for, to travel with the answer.
  std::vector<std::uint32_t> keys = {};
  std::vector<any_array> values = {};
};
using step_callback = std::function<void(step_outcome)>;

/// From the first value that arrives, or the order to run, until the part has ended.
class running_step final : public rendezvous,
                           public step_driver,
                           public std::enable_shared_from_this<running_step> {
 public:
  running_step(std::shared_ptr<worker> w, std::uint64_t session, std::uint64_t step);
  ~running_step() override;

  std::uint64_t number() const { return step_; }
  /// Runs until the end or until a value is missing. False if it was begun before.
  /// `master`: null for one of this process.
  bool begin(std::shared_ptr<registered_part> part, std::vector<feed_ref> feeds,
             std::shared_ptr<connection> master, step_callback& done);
  /// Values; kept if the step has not begun.
  void deliver(wire::tensors&& values);
  /// Ends the step with `why`: at once if it waits, else as soon as it can. False if it has ended.
  bool stop(const std::shared_ptr<const error>& why);
  /// That incarnation of task `name` can send nothing more: whoever waits for a value of it waits
  /// no longer.
  void peer_lost(const std::string& name, std::uint64_t incarnation, const error& why);

  /// Values for one task travel together.
  void send(std::size_t number, const any_array& value) override;
  void flush(bool ends) override;
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
  std::vector<wire::tensors> keep_early(wire::tensors&& values);
  std::vector<wire::tensors> take_early();
  std::vector<waker> take(wire::tensors& values);
  /// What is to leave for one task.
  struct outgoing {
    std::vector<std::uint32_t> keys;
    std::vector<any_array> values;
    std::size_t bytes = 0;
  };
  void post(const registered_part::destination& to, outgoing&& o);
  void could_not_send(placement task, const std::shared_ptr<const error>& why);

  background_work::token
      under_way_;  ///< once begun; outlives its hold on the task, whose end waits for it
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
  std::vector<wire::tensors> early_;
  std::size_t early_bytes_ = 0;
  struct arrival {
    any_array value;
    bool awaited = false;
    waker waiting;  ///< of the lane that was told to wait for it
  };
  std::vector<arrival> arrivals_;                           ///< by number of the receive
  std::unordered_map<std::uint32_t, std::size_t> numbers_;  ///< of the receives, by key
  std::stop_source stopping_;
  const std::stop_token stopping_token_ = stopping_.get_token();
  step_context context_;

  std::mutex sending_;              ///< guards what follows
  std::vector<outgoing> outgoing_;  ///< by destination
  std::shared_ptr<const error> unsent_;

  // Of whoever runs it.
  std::shared_ptr<running_step> self_;  ///< from its beginning to its end: a device may be at work
  std::shared_ptr<registered_part> part_;
  std::unique_ptr<executable::frame> frame_;
  std::vector<feed_ref> feeds_;
  std::shared_ptr<connection> master_;
  step_callback done_;
};

}  // namespace deft
