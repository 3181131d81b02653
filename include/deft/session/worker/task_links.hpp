// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/task_links.hpp: a task's channels to the other tasks of its cluster.
#pragma once
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

namespace deft::ext {

/// How long task_links::when_reached waits.
struct reach_options {
  std::chrono::nanoseconds patience = std::chrono::nanoseconds::max();  ///< then: unavailable
  deadline until = no_deadline;                                         ///< then: deadline_exceeded
};

/// One channel to each task, connected when it is first needed. Thread-safe.
class task_links {
 public:
  /// How long to try to reconnect to a task that was connected before.
  static constexpr std::chrono::seconds reconnect_time{2};

  /// `self`: how this task introduces itself to others. `work` lets the owner wait until nothing is
  /// being connected any more.
  task_links(cluster_spec cluster, process_identity self, background_work& work);

  const cluster_spec& cluster() const { return cluster_; }
  channel_group& channels() { return channels_; }
  /// Handlers for messages that are not answers, and for lost channels. Set before the first
  /// connection.
  void on_message(std::function<void(message&&)> f) { on_message_ = std::move(f); }
  void on_lost(std::function<void(placement, const error&)> f) { on_lost_ = std::move(f); }

  /// Calls `then` with the channel to a task. Connects if there is none yet, or if it leads to
  /// another incarnation than the one wanted (0: any), and keeps trying until `until`. The error is
  /// not_found if the cluster has no such task, deadline_exceeded, aborted if another incarnation
  /// answers, or the one with which the handshake was refused; all of them name the task. If the
  /// task is connected, `then` is called at once, else on the thread that reads the channels. If
  /// `given_up` is requested first, it may never be called.
  void when_linked(placement task, deadline until, std::uint64_t incarnation,
                   std::stop_token given_up, link_callback then);
  /// Connects to all of `tasks`, and keeps trying until the time is over; then the error names all
  /// missing tasks. Calls `reached` for each task that is connected, and `then` with null or the
  /// error, as when_linked does: once all tasks are over, or at once if a handshake is refused.
  void when_reached(const std::vector<placement>& tasks, const reach_options& options,
                    std::stop_token given_up,
                    const std::function<void(placement, const std::shared_ptr<channel>&)>& reached,
                    std::function<void(std::shared_ptr<const error>)> then);
  /// Waits for what when_linked gives. Throws its error, or the one given to stop() or interrupt().
  std::shared_ptr<channel> wait_for(placement task, deadline until);
  /// The channel if the task is connected and has that incarnation (0: any), else null; never
  /// waits.
  std::shared_ptr<channel> standing(placement task, std::uint64_t incarnation = 0);
  /// The incarnations of the tasks that are connected; never waits.
  std::map<placement, std::uint64_t> standing();
  /// A task has said that it ends, or, if `ended` is false, one of its name is there again. One
  /// that has ended is not waited for if it does not answer: the error is unavailable.
  void note_end(placement task, bool ended);
  /// The error of waiting for a task that has ended.
  static error ended_error(const device_name& task);
  /// Whether the task has said that it ends.
  bool has_ended(placement task);

  /// Sends a call, and waits for its answer. Throws the error that was answered, the one given to
  /// stop() or interrupt(), or deadline_exceeded with the message `late()`.
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

  /// Ends every wait with `why`, and later ones too. Channels stay open, and new ones can be made.
  void interrupt(const error& why);
  /// Closes every channel, ends every wait with `why`, and refuses new channels.
  void stop(const error& why);

 private:
  struct waiting {
    deadline until;
    std::chrono::steady_clock::time_point since;
    std::uint64_t incarnation;
    std::stop_token given_up;
    link_callback then;
    /// Calls `then`, unless the caller has given up. Logs what it throws.
    void tell(std::shared_ptr<channel> c, const std::shared_ptr<const error>& why) const;
  };
  struct entry {
    std::mutex guard;
    std::shared_ptr<deft::ext::channel> channel;
    std::string why_lost;   ///< why the last channel was lost
    bool ended = false;     ///< see note_end
    bool dialling = false;  ///< for the callers in `waiting`
    /// Since when the task has been waited for in vain, with short breaks; when that was tried
    /// last, and when it is to be logged next.
    std::chrono::steady_clock::time_point missing_since{}, last_tried{}, log_next{};
    std::vector<task_links::waiting> waiting;
  };
  struct dialled_task;
  void dial(const std::shared_ptr<dialled_task>& d);
  template <class F>
  void or_fail_all(entry& e, F f);
  void on_dialled(const std::shared_ptr<dialled_task>& d, std::shared_ptr<channel> c,
                  std::shared_ptr<const error> failure);
  static bool leads_to(const entry& e, std::uint64_t incarnation);
  std::shared_ptr<entry> entry_of(placement task);
  /// Throws the error given to stop() or interrupt(), if any.
  void check_running() const;

  const cluster_spec cluster_;
  background_work& work_;
  channel_group channels_;
  std::function<void(message&&)> on_message_;
  std::function<void(placement, const error&)> on_lost_;
  std::atomic<bool> stopped_{false}, interrupted_{false};
  std::shared_ptr<const error> stopped_error_;      ///< once stopped_
  std::shared_ptr<const error> interrupted_error_;  ///< once interrupted_
  std::mutex guard_;
  std::map<placement, std::shared_ptr<entry>> entries_;
};

}  // namespace deft::ext
