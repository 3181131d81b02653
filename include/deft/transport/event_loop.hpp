// SPDX-License-Identifier: Apache-2.0
// deft/transport/event_loop.hpp: Asio contexts that are run by the threads that wait. Internal.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deft/transport/asio.hpp>
#include <deft/transport/message.hpp>
#include <memory>
#include <mutex>
#include <vector>

namespace deft::detail {

/// What takes part in a loop without a thread of its own.
class loop_member {
 public:
  virtual ~loop_member() = default;
  /// Asks for the next event; nothing if it has been asked for. From any thread.
  virtual void arm() = 0;
  /// By the loop's thread, every now and then: says that we live, and looks whether the peer does.
  virtual void beat(std::chrono::steady_clock::time_point now) = 0;
  /// How often beat wants to be called; zero: never.
  virtual std::chrono::milliseconds beat_interval() const = 0;
};

/// An Asio context, which one thread at a time runs: one that waits for something of it, so that
/// what comes for it needs no other thread to be woken; where none does, the loop's own, the
/// keeper, which runs no kernels. Threads that attend the loop poll it while they look at their
/// streams themselves; nobody sleeps in it meanwhile, as each segment that arrives would wake who
/// does. Handlers never run at the same time. There are two in a process, never destroyed:
/// connections may outlive main's statics. Thread-safe.
class event_loop {
 public:
  /// For what connected to this process, and for the channels of those who call.
  static event_loop& of_servers();
  static event_loop& of_callers();

  boost::asio::io_context& context() { return context_; }

  /// Where a thread sleeps until something wakes it.
  class sleeper {
    friend class event_loop;
    std::condition_variable changed_;
    bool woken_ = false;
  };

  /// A thread that polls the loop while it looks for what it waits for.
  class attendance {
   public:
    explicit attendance(event_loop& l) : loop_(l) { loop_.enter(); }
    ~attendance() { loop_.leave(); }
    attendance(const attendance&) = delete;

   private:
    event_loop& loop_;
  };

  /// Runs the handlers that are ready, unless another thread does.
  void poll();
  /// By a thread that attends: sleeps until it is woken or the time is over, and now and then
  /// before. Runs handlers meanwhile, unless another thread does.
  void sleep(sleeper& s, deadline until);
  void wake(sleeper& s);
  /// Sleeps until `ready()`; false if the time was over first. Whoever makes it true wakes `s`.
  template <class Ready>
  bool wait(sleeper& s, Ready&& ready, deadline until) {
    attendance here(*this);
    while (!ready()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      sleep(s, until);
    }
    return true;
  }
  /// Something is to be done that nobody may be waiting for.
  void wake_keeper();

  /// `m` is not armed: it is before anyone sleeps in the loop.
  void add_unarmed(std::weak_ptr<loop_member> m);
  /// Calls `m`'s beat from now on, until it is gone.
  void add_beating(const std::shared_ptr<loop_member>& m);

  /// A thread that attends does not for a while.
  void step_out() { leave(); }
  void step_in() { enter(); }

  /// Whether the calling thread is a keeper, which must not be kept.
  static bool is_keeper();

 private:
  /// `patience`: how long after the last thread that attended the keeper takes its place.
  explicit event_loop(std::chrono::milliseconds patience);
  void enter();
  void leave();
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
  bool wanted_ = false;        ///< the keeper is to look
  bool polled_ = false;        ///< since the keeper looked last
  sleeper* leader_ = nullptr;  ///< who runs it asleep
  int attending_ = 0;
  const std::chrono::milliseconds patience_;
  std::chrono::steady_clock::time_point attended_{};  ///< until then
  std::vector<sleeper*> sleepers_;                    ///< who would run it
  std::condition_variable keeper_;

  std::mutex members_guard_;
  std::vector<std::weak_ptr<loop_member>> unarmed_, beating_;
  std::chrono::milliseconds interval_{0};
  boost::asio::steady_timer beat_;
};

}  // namespace deft::detail
