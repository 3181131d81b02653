// SPDX-License-Identifier: Apache-2.0
// deft/transport/serving_threads.hpp: the threads that serve the connections that this process has
// accepted. Internal.
#pragma once
#include <cstdint>
#include <deft/transport/event_loop.hpp>
#include <memory>
#include <mutex>
#include <vector>

namespace deft::detail {

/// Something that one thread at a time serves, such as a connection.
class served {
 public:
  virtual ~served() = default;
  enum class work { none, all, some };
  /// Does what there is to do: none, all of it, or some of it.
  virtual work serve() = 0;
  /// After serve() found no work at `now`: whether to call it again at once.
  virtual bool look_again(std::chrono::steady_clock::time_point now) = 0;
  /// The thread leaves: from here on events say when there is something to serve.
  virtual void rest() = 0;
  /// Called while it rests because its peer waits for something: works on that until the peer sends
  /// again. `unseen`: how long before another thread takes over this one's other connections.
  /// Returns false if there is nothing to work on.
  virtual bool wait_until_heard(std::chrono::microseconds /*unseen*/) { return false; }
  /// The thread serves again, after wait_until_heard.
  virtual void resume() {}

 private:
  friend class serving_threads;
  enum class state { idle, ready, active, again } state_ = state::idle;
  std::shared_ptr<served> next_;  ///< the one that is ready after it
  std::uint64_t left_at_ = 0;     ///< how often anything had been served when the thread left
};

/// At most as many threads as the machine has processors. They are started when there is something
/// to serve, and end after a while without work; more are started only in place of threads that
/// block or compute, and up to `most_spare` of these stay as long. A thread stays with one
/// connection as long as spinning for its next message is worth it, which it is not if more
/// connections than there are threads take turns.
class serving_threads {
 public:
  static constexpr int most_spare = 32;
  static serving_threads& instance();

  /// Says that `s` may have something to do. From any thread.
  void serve(std::shared_ptr<served> s);

  /// While this object lives, the calling thread blocks or computes for long: if it is a serving
  /// thread, another takes its place meanwhile.
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

  /// A list, so that it needs no memory.
  class ready_queue {
   public:
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    void push(std::shared_ptr<served> s) {
      served* const last = s.get();
      (size_++ == 0 ? first_ : last_->next_) = std::move(s);
      last_ = last;
    }
    std::shared_ptr<served> pop() {
      --size_;
      auto s = std::move(first_);
      first_ = std::move(s->next_);
      return s;
    }

   private:
    std::shared_ptr<served> first_;
    served* last_ = nullptr;
    std::size_t size_ = 0;
  };

  void run();
  bool next(std::shared_ptr<served>& s);
  void stay_with(const std::shared_ptr<served>& s);
  bool serve_while_worth_it(served& s, bool spin, unsigned& turn);
  /// With the lock held: whether few others have been served since `s` was.
  bool is_one_of_few(const served& s) const;
  bool wait_until_heard(const std::shared_ptr<served>& s);
  /// With the lock held: whether fewer threads run than there are processors.
  bool has_processor() const;
  /// With the lock held: wakes or starts another thread for what is ready.
  void call_another();
  /// Whether the calling thread should serve something else: if others are ready, unless it is busy
  /// and another thread can be called.
  bool others_wait(bool busy);

  event_loop& loop_ = event_loop::of_servers();
  std::mutex guard_;
  ready_queue ready_;
  std::vector<idle_thread*> idle_;
  const served* last_rested_ = nullptr;  ///< the one that was last without work
  std::chrono::steady_clock::time_point
      rests_alone_since_{};   ///< since when that has always been last_rested_
  std::uint64_t served_ = 0;  ///< how often a thread has taken something to serve
  int threads_ = 0, blocked_ = 0;
};

}  // namespace deft::detail
