// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/task_links.hpp: a task's channels to the other tasks of its cluster.
#pragma once
#include <condition_variable>
#include <deft/device/placement.hpp>
#include <deft/session/cluster/cluster_spec.hpp>
#include <deft/transport/hub.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace deft {

/// "timed out after 60 s waiting for 10.0.0.1:2222: Connection refused", where `why` is what the
/// hub says of the last try.
std::string timeout_message(const std::string& address, std::chrono::nanoseconds waited,
                            const std::string& why);

/// How task_links::reach waits.
struct reach_options {
  std::chrono::nanoseconds patience = std::chrono::nanoseconds::max();  ///< then: unavailable
  deadline until = no_deadline;                                         ///< then: deadline_exceeded
  std::function<void()> look = {};  ///< between tries; may throw
};

/// One channel to each task, connected when it is first needed. Thread-safe.
class task_links {
 public:
  /// How long a task that was there a moment ago is tried.
  static constexpr std::chrono::seconds reconnect_time{2};

  task_links(cluster_spec cluster, process_identity self);

  const cluster_spec& cluster() const { return cluster_; }
  deft::hub& hub() { return hub_; }
  /// What is done with a message that is no answer, and where a channel is lost; before the first
  /// channel.
  void on_message(std::function<void(message&&)> f) { on_message_ = std::move(f); }
  void on_lost(std::function<void(placement, const error&)> f) { on_lost_ = std::move(f); }

  /// The channel to a task, connected now if it is not yet, or if it led to another incarnation
  /// than the one that is wanted (0: any). All errors name the task: deadline_exceeded,
  /// unavailable, aborted for another incarnation, or what the handshake refused.
  std::shared_ptr<channel> get(placement task, deadline until, std::uint64_t incarnation = 0) {
    return get(task, until, incarnation, std::chrono::steady_clock::now());
  }
  /// Connects to all of `tasks`, however late they come up; stop() ends it. Throws with the names
  /// of all that are missing once the time is over; at once what the handshake with one refused.
  void reach(std::vector<placement> tasks, const reach_options& options);
  /// The channel to `task`, for which it waits as reach does; interrupt() ends it, too.
  std::shared_ptr<channel> wait_for(placement task, deadline until);
  /// The channel if there is one that stands; never waits.
  std::shared_ptr<channel> standing(placement task);
  /// The incarnations of the tasks to which a channel stands; never waits.
  std::map<placement, std::uint64_t> standing();

  /// Sends a call, and waits for its answer. Throws the error that came, what stop() or interrupt()
  /// was given, or deadline_exceeded with the sentence `late()`.
  template <class Late>
  message call(channel& c, message&& m, deadline until, Late&& late) {
    auto p = c.call(std::move(m));
    const bool in_time =
        hub_.wait_until([&] { return p->done() || stopped_ || interrupted_; }, until);
    if (!p->done()) check_running();
    if (in_time) return p->take();
    c.abandon(*p);
    fail(errc::deadline_exceeded, late());
  }

  /// Ends every wait with `why`; later ones fail too. Channels stay, and can be connected.
  void interrupt(const error& why);
  /// Ends every channel and every wait with `why`; nothing can be connected afterwards.
  void stop(const error& why);

 private:
  struct entry {
    std::mutex guard;
    std::condition_variable changed;
    bool connecting = false;
    deadline until{};                      ///< of the last try
    std::uint64_t tries = 0;               ///< that have ended
    std::shared_ptr<const error> failure;  ///< of the last one
    std::shared_ptr<deft::channel> channel;
    std::string why_lost;  ///< of the last channel
  };
  std::shared_ptr<entry> entry_of(placement task);
  /// `since`: when the waiting for the task began.
  std::shared_ptr<channel> get(placement task, deadline until, std::uint64_t incarnation,
                               std::chrono::steady_clock::time_point since);
  /// Throws what stop() or interrupt() was given.
  void check_running() const;

  const cluster_spec cluster_;
  deft::hub hub_;
  std::function<void(message&&)> on_message_;
  std::function<void(placement, const error&)> on_lost_;
  std::atomic<bool> stopped_{false}, interrupted_{false};
  std::shared_ptr<const error> stopped_error_;      ///< once stopped_
  std::shared_ptr<const error> interrupted_error_;  ///< once interrupted_
  std::mutex guard_;
  std::map<placement, std::shared_ptr<entry>> entries_;
};

}  // namespace deft
