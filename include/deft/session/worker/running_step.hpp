// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/running_step.hpp: one step of one part on a task, and the values that arrive
// for it.
#pragma once
#include <atomic>
#include <deft/execute/trace_recorder.hpp>
#include <deft/session/threads/background_work.hpp>
#include <deft/session/worker/registered_part.hpp>
#include <deft/session/worker/step_journal.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace deft::ext {

class connection;
class worker;

/// How a part of a step ended.
struct step_outcome {
  std::unique_ptr<executable::frame> frame;  ///< holds the fetched values; null if it failed
  std::shared_ptr<frame_pool> pool;
  std::shared_ptr<const error> failure;
  /// Values for the own part of the master, which travel with the answer.
  std::vector<std::uint32_t> keys = {};
  std::vector<any_array> values = {};
  std::vector<trace_event> trace = {};
};
using step_callback = std::function<void(step_outcome)>;

/// The size of all values that wait for steps of a session that have not begun.
using early_bytes = std::atomic<std::size_t>;

/// One step of one part on this task. It exists from the first value that arrives for it, or the
/// order to run it, until the part has ended.
class running_step final : public rendezvous,
                           public step_driver,
                           public std::enable_shared_from_this<running_step> {
 public:
  running_step(std::shared_ptr<worker> w, std::uint64_t session, std::uint64_t step,
               std::shared_ptr<step_journal> journal, std::shared_ptr<early_bytes> early);
  ~running_step() override;

  std::uint64_t number() const { return step_; }
  /// The last connection of another task that was accepted before the step began.
  std::uint64_t begun_after() const { return begun_after_; }
  /// Runs the part until its end, or until a value is missing. Returns false if the step was
  /// stopped before. `master`: the connection by which the master asked; null for a master of this
  /// process.
  bool begin(const wire::run_part& order, std::shared_ptr<registered_part> part,
             std::vector<feed_ref> feeds, std::shared_ptr<connection> master, step_callback& done);
  /// Takes values that arrived; keeps them if the step has not begun.
  void deliver(wire::tensors&& values);
  /// Ends the step with `why`, at once if it has not begun, else as soon as possible. Returns false
  /// if it has ended.
  bool stop(const std::shared_ptr<const error>& why);
  /// That incarnation of task `name` is lost: receives that wait for a value from it fail with
  /// `why`.
  void peer_lost(const std::string& name, std::uint64_t incarnation, const error& why);

  // rendezvous and step_driver. Values for one task are sent together.
  void send(std::size_t number, const any_array& value) override;
  void flush(bool ends) override;
  bool receive(std::size_t number, any_array& value, const waker& w) override;
  void wake(std::uint32_t lane) override;
  void ended() override;

 private:
  enum class phase { waiting, running, ended };

  /// Runs `f`, which is `segment` of the part, on this thread if it is known to be short, else on
  /// another.
  template <class F>
  void go(F f, std::size_t segment);
  template <class F>
  void go_now(F f, std::size_t segment);
  void add_bytes(std::size_t n) { bytes_.fetch_add(n, std::memory_order_relaxed); }
  void prepare(const wire::run_part& order);
  void finish(std::shared_ptr<const error> failure);
  std::vector<wire::tensors> keep_early(wire::tensors&& values);
  std::vector<wire::tensors> take_early();
  std::vector<waker> take(wire::tensors& values);
  /// Values that have not been sent to a task yet.
  struct outgoing {
    std::vector<std::uint32_t> keys;
    std::vector<any_array> values;
    std::size_t bytes = 0;
  };
  void post(const registered_part::destination& to, outgoing&& o);
  void could_not_send(placement task, const std::shared_ptr<const error>& why);

  background_work::token
      under_way_;  ///< once begun; declared first, as the end of the worker waits for it
  const std::shared_ptr<worker> worker_;
  const std::uint64_t session_, step_, begun_after_;
  const std::shared_ptr<step_journal> journal_;
  const std::shared_ptr<early_bytes> all_early_;  ///< those of the session
  std::mutex guard_;
  phase phase_ = phase::waiting;
  std::shared_ptr<const error> why_;  ///< why the step is to stop; null if it is not
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
    waker waiting;  ///< wakes the lane that waits for it
  };
  std::vector<arrival> arrivals_;      ///< by receive
  std::atomic<std::size_t> bytes_{0};  ///< of the feeds and arrivals so far
  std::stop_source stopping_;
  const std::stop_token stopping_token_ = stopping_.get_token();
  step_context context_;
  std::unique_ptr<trace_recorder> recorder_;  ///< null if the step is not traced

  std::mutex sending_;              ///< guards outgoing_ and unsent_
  std::vector<outgoing> outgoing_;  ///< by destination
  std::shared_ptr<const error> unsent_;

  // Used by the thread that runs the step.
  std::shared_ptr<running_step> self_;  ///< from begin to end, as a device may be busy with it
  std::shared_ptr<registered_part> part_;
  std::unique_ptr<executable::frame> frame_;
  std::vector<feed_ref> feeds_;
  std::shared_ptr<connection> master_;
  step_callback done_;
};

}  // namespace deft::ext
