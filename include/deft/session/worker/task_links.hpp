// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/task_links.hpp: a task's channels to the other tasks of its cluster.
#pragma once
#include <condition_variable>
#include <deft/device/placement.hpp>
#include <deft/session/cluster/cluster_spec.hpp>
#include <deft/session/threads/background_work.hpp>
#include <deft/transport/channel_group.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

namespace deft {

/// A duration in messages: "60 s", "1.2 s", "250 ms".
std::string duration_text(std::chrono::nanoseconds d);
/// "timed out after 60 s waiting for 10.0.0.1:2222: Connection refused". `why` is what the last
/// attempt to connect failed with.
std::string timeout_message(const std::string& address, std::chrono::nanoseconds waited,
                            const std::string& why);

/// How long task_links::reach waits.
struct reach_options {
  std::chrono::nanoseconds patience = std::chrono::nanoseconds::max();  ///< then: unavailable
  deadline until = no_deadline;                                         ///< then: deadline_exceeded
};

/// Told the channel to a task, or why there is none.
using link_callback =
    std::function<void(std::shared_ptr<channel>, std::shared_ptr<const error> failure)>;

/// One channel to each task, connected when it is first needed. Thread-safe.
class task_links {
 public:
  /// How long a task that was there a moment ago is tried.
  static constexpr std::chrono::seconds reconnect_time{2};

  /// `dialling`: where threads that connect come from.
  task_links(cluster_spec cluster, process_identity self, background_work& dialling);

  const cluster_spec& cluster() const { return cluster_; }
  channel_group& channels() { return channels_; }
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
  /// Calls `then` as get returns or throws: at once if the channel stands, else on a thread that
  /// connects, one for each task however many wait, and however late the task comes up. Where
  /// `given_up` is requested first, it may not be called at all.
  void when_linked(placement task, deadline until, std::uint64_t incarnation,
                   std::stop_token given_up, link_callback then);
  /// Connects to all of `tasks`, however late they come up. Throws with the names of all that are
  /// missing once the time is over; at once what the handshake with one refused, or stop() was
  /// given. Returns early if `give_up` says so.
  void reach(const std::vector<placement>& tasks, const reach_options& options,
             const std::function<bool()>& give_up);
  /// Calls `then` with what reach throws, or null; as when_linked.
  void when_reached(const std::vector<placement>& tasks, const reach_options& options,
                    std::stop_token given_up,
                    std::function<void(std::shared_ptr<const error>)> then);
  /// The channel to `task`, for which it waits as reach does; interrupt() ends it, too.
  std::shared_ptr<channel> wait_for(placement task, deadline until);
  /// The channel if there is one that stands, to that incarnation (0: any); never waits.
  std::shared_ptr<channel> standing(placement task, std::uint64_t incarnation = 0);
  /// The incarnations of the tasks to which a channel stands; never waits.
  std::map<placement, std::uint64_t> standing();

  /// Sends a call, and waits for its answer. Throws the error that came, what stop() or interrupt()
  /// was given, or deadline_exceeded with the sentence `late()`.
  template <class Late>
  message call(channel& c, message&& m, deadline until, Late&& late) {
    auto p = c.call(std::move(m));
    const bool in_time =
        channels_.wait_until([&] { return p->done() || stopped_ || interrupted_; }, until);
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
  struct waiting {
    deadline until;
    std::chrono::steady_clock::time_point since;
    std::uint64_t incarnation;
    std::stop_token given_up;
    link_callback then;
  };
  struct entry {
    std::mutex guard;
    std::condition_variable changed;
    bool connecting = false;
    deadline until{};                      ///< of the last try
    std::uint64_t tries = 0;               ///< that have ended
    std::shared_ptr<const error> failure;  ///< of the last one
    std::shared_ptr<deft::channel> channel;
    std::string why_lost;   ///< of the last channel
    bool dialling = false;  ///< a thread connects for those who wait
    std::vector<task_links::waiting> waiting;
  };
  void dial(placement task, entry& e);
  static bool leads_to(const entry& e, std::uint64_t incarnation);
  std::shared_ptr<entry> entry_of(placement task);
  /// `since`: when the waiting for the task began.
  std::shared_ptr<channel> get(placement task, deadline until, std::uint64_t incarnation,
                               std::chrono::steady_clock::time_point since);
  /// Throws what stop() or interrupt() was given.
  void check_running() const;

  const cluster_spec cluster_;
  background_work& dialling_;
  channel_group channels_;
  std::function<void(message&&)> on_message_;
  std::function<void(placement, const error&)> on_lost_;
  std::atomic<bool> stopped_{false}, interrupted_{false};
  std::shared_ptr<const error> stopped_error_;      ///< once stopped_
  std::shared_ptr<const error> interrupted_error_;  ///< once interrupted_
  std::mutex guard_;
  std::map<placement, std::shared_ptr<entry>> entries_;
};

}  // namespace deft
