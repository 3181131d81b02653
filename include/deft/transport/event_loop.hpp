// SPDX-License-Identifier: Apache-2.0
// deft/transport/event_loop.hpp: Asio contexts, run by the threads that wait for their events.
// Internal.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deft/transport/asio.hpp>
#include <deft/transport/message.hpp>
#include <memory>
#include <mutex>
#include <vector>

namespace deft::detail {

/// A member of a loop: has no thread of its own.
class loop_member {
 public:
  virtual ~loop_member() = default;
  /// Requests the next event, unless one is requested already. From any thread.
  virtual void arm() = 0;
  /// Called at intervals by the loop: sends a heartbeat, and checks that the peer is alive.
  virtual void beat(std::chrono::steady_clock::time_point now) = 0;
  /// The interval at which to call beat; zero: never.
  virtual std::chrono::milliseconds beat_interval() const = 0;
};

/// An Asio context that one thread at a time runs: a thread that waits for one of its events, so
/// that no other thread has to be woken; if there is none, the loop's own thread, the keeper, which
/// runs no kernels. Threads that spin on their streams poll the loop meanwhile, and no thread
/// sleeps in it, since each TCP segment would wake that one. Handlers never run at the same time. A
/// process has two loops, which are never destroyed: connections may outlive main's statics.
/// Thread-safe.
class event_loop {
 public:
  /// The loop of the connections that this process has accepted, and that of its channels to
  /// servers.
  static event_loop& of_servers();
  static event_loop& of_callers();

  /// One that is not of those two must never be destroyed either. `patience`: how long after the
  /// last polling thread has left the keeper runs it.
  explicit event_loop(std::chrono::milliseconds patience);

  boost::asio::io_context& context() { return context_; }

  /// A place where a thread sleeps until it is woken.
  class sleeper {
    friend class event_loop;
    std::condition_variable changed_;
    bool woken_ = false;
  };

  /// While this object lives, its thread polls the loop as it looks for what it waits for.
  class polling_scope {
   public:
    explicit polling_scope(event_loop& l) : loop_(l) { loop_.enter(); }
    ~polling_scope() { loop_.leave(); }
    polling_scope(const polling_scope&) = delete;

   private:
    event_loop& loop_;
  };

  /// While this object lives, the keeper runs the loop whenever no other thread does, without
  /// patience: something is under way that perhaps nobody waits for.
  class upkeep {
   public:
    explicit upkeep(event_loop& l);
    ~upkeep();
    upkeep(const upkeep&) = delete;

   private:
    event_loop& loop_;
  };

  /// Runs the handlers that are ready, unless another thread is running them.
  void poll();
  /// Called by a polling thread: sleeps until it is woken or the deadline passes; may return
  /// earlier. Runs handlers meanwhile, unless another thread does.
  void sleep(sleeper& s, deadline until);
  void wake(sleeper& s);
  /// Sleeps until `ready()`; false if the deadline passed first. The thread that makes it true must
  /// wake `s`.
  template <class Ready>
  bool wait(sleeper& s, Ready&& ready, deadline until) {
    polling_scope here(*this);
    while (!ready()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      sleep(s, until);
    }
    return true;
  }
  /// There may be something to do that no thread is waiting for.
  void wake_keeper();

  /// `m` is not armed: arms it before a thread sleeps in the loop.
  void add_unarmed(std::weak_ptr<loop_member> m);
  /// Calls beat of `m` from now on, until `m` is destroyed.
  void add_beating(const std::shared_ptr<loop_member>& m);

  /// A polling thread leaves the loop for a while, and comes back.
  void step_out() { leave(); }
  void step_in() { enter(); }

  /// Whether the calling thread is a keeper, which must not be blocked.
  static bool is_keeper();

 private:
  void enter();
  void leave();
  // With the lock held:
  bool is_left_alone() const;
  void call_keeper();
  template <class F>
  void run(F f);
  void arm_all();
  void keep();
  void beat_all();
  void schedule_beat();

  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;

  std::mutex guard_;
  bool led_ = false;           ///< a thread runs the context
  bool keeper_leads_ = false;  ///< it is the keeper
  bool wanted_ = false;        ///< the keeper should check the loop
  bool polled_ = false;        ///< since the keeper last checked
  sleeper* leader_ = nullptr;  ///< the one that runs the context while asleep
  int polling_ = 0;
  int upkeeps_ = 0;
  const std::chrono::milliseconds patience_;
  std::chrono::steady_clock::time_point last_polling_{};  ///< when the last polling thread left
  std::vector<sleeper*> sleepers_;                        ///< that could run the context
  std::condition_variable keeper_;

  std::mutex members_guard_;
  std::vector<std::weak_ptr<loop_member>> unarmed_, beating_;
  std::chrono::milliseconds interval_{0};
  boost::asio::steady_timer beat_;
};

}  // namespace deft::detail
