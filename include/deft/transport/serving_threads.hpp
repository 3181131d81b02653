// SPDX-License-Identifier: Apache-2.0
// deft/transport/serving_threads.hpp: the threads that serve what connected to this process.
// Internal.
#pragma once
#include <deft/transport/event_loop.hpp>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace deft::detail {

/// Something to serve, by one thread at a time.
class served {
 public:
  virtual ~served() = default;
  /// Does what there is to do. False if there was nothing.
  virtual bool serve() = 0;
  /// There was nothing at `now`: whether to look again at once.
  virtual bool look_again(std::chrono::steady_clock::time_point now) = 0;
  /// The thread goes: from here on events tell what is to be served.
  virtual void rest() = 0;
  /// While it rests, as its peer waits for something: brings that, until the peer is heard again.
  /// `unseen`: how long before other threads have to take this one's place. False if it cannot.
  virtual bool wait_until_heard(std::chrono::microseconds /*unseen*/) { return false; }
  /// A thread is back after wait_until_heard.
  virtual void resume() {}

 private:
  friend class serving_threads;
  enum class state { idle, ready, active, again } state_ = state::idle;
};

/// As many threads as the machine has processors at most, started when there is something to serve,
/// which end when there was nothing for a while; more only in the place of threads that wait or
/// compute. A thread stays with what it serves for as long as a spin is worth it.
class serving_threads {
 public:
  static serving_threads& instance();

  /// `s` may have something to do. From any thread.
  void serve(std::shared_ptr<served> s);

  /// The calling thread is about to wait, or to compute for long: where it is one of these, another
  /// takes its place meanwhile.
  class blocking_region {
   public:
    blocking_region();
    ~blocking_region();
    blocking_region(const blocking_region&) = delete;

   private:
    bool counts_;
  };

 private:
  struct idle_thread {
    event_loop::sleeper sleeper;
    bool called = false;
  };

  void run();
  bool next(std::shared_ptr<served>& s);
  void stay_with(const std::shared_ptr<served>& s);
  bool serve_while_worth_it(served& s, unsigned& turn);
  bool wait_until_heard(const std::shared_ptr<served>& s);
  /// With the lock: somebody else looks at what is ready.
  void call_another();
  /// Whether the calling thread should go on with something else: unless it is busy, and another
  /// thread can be called.
  bool others_wait(bool busy);

  event_loop& loop_ = event_loop::of_servers();
  std::mutex guard_;
  std::deque<std::shared_ptr<served>> ready_;
  std::vector<idle_thread*> idle_;
  const served* last_rested_ = nullptr;  ///< whose thread found nothing more to do
  std::chrono::steady_clock::time_point rests_alone_since_{};  ///< before, it was another one
  int threads_ = 0, blocked_ = 0;
};

}  // namespace deft::detail
