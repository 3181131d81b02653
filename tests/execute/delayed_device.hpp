// SPDX-License-Identifier: Apache-2.0
// tests/execute/delayed_device.hpp: a device with memory of its own whose work really runs later: a
// thread and a queue for each of its streams, with random delays or held back by the test.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "null_device.hpp"

namespace testing {

/// What the streams of all delayed devices do, and how they were used.
struct delays {
  std::atomic<int> longest_us{0};  ///< random delay before each piece of work
  std::atomic<std::size_t> launches{0}, copies_in{0}, copies_out{0}, allocations{0}, waits{0},
      blocked{0};
  void reset() { launches = copies_in = copies_out = allocations = waits = blocked = 0; }

  /// Nothing runs while the streams are held.
  void hold() {
    std::lock_guard lock(guard);
    held = true;
  }
  void go_on() {
    {
      std::lock_guard lock(guard);
      held = false;
    }
    changed.notify_all();
  }
  void pass() {
    std::unique_lock lock(guard);
    changed.wait(lock, [&] { return !held; });
  }

  std::mutex guard;
  std::condition_variable changed;
  bool held = false;
};
inline delays& device_delays() {
  static auto& d = *new delays;
  return d;
}

class delayed_event final : public deft::device_event {
 public:
  bool done() const override { return done_.load(std::memory_order_acquire); }
  void when_done(std::function<void()> f) override {
    ++device_delays().waits;
    {
      std::lock_guard lock(guard_);
      if (!done_) return callbacks_.push_back(std::move(f));
    }
    f();
  }
  void synchronize() override {
    ++device_delays().blocked;
    wait();
  }
  /// As a stream waits.
  void wait() {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [&] { return done_.load(); });
  }
  void set() {
    std::vector<std::function<void()>> callbacks;
    {
      std::lock_guard lock(guard_);
      done_ = true;
      callbacks.swap(callbacks_);
    }
    changed_.notify_all();
    for (auto& f : callbacks) f();
  }

 private:
  std::mutex guard_;
  std::condition_variable changed_;
  std::atomic<bool> done_{false};
  std::vector<std::function<void()>> callbacks_;
};
using delayed_event_ptr = std::shared_ptr<delayed_event>;

/// Work in order, on a thread of its own.
class delayed_stream {
 public:
  explicit delayed_stream(unsigned seed) : dice_(seed), thread_([this] { run(); }) {}
  ~delayed_stream() {
    push({});
    thread_.join();
  }
  void push(std::function<void()> work) {
    {
      std::lock_guard lock(guard_);
      queue_.push_back(std::move(work));
    }
    changed_.notify_one();
  }
  delayed_event_ptr record() {
    auto e = std::make_shared<delayed_event>();
    push([e] { e->set(); });
    return e;
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(guard_);
        changed_.wait(lock, [&] { return !queue_.empty(); });
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      if (!work) return;
      device_delays().pass();
      // Nobody waits for this: it only makes other orders of events likely.
      if (const int most = device_delays().longest_us)
        for (auto until = std::chrono::steady_clock::now() +
                          std::chrono::microseconds(std::uniform_int_distribution(0, most)(dice_));
             std::chrono::steady_clock::now() < until;)
          std::this_thread::yield();
      work();
    }
  }

  std::mutex guard_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::minstd_rand dice_;
  std::thread thread_;
};

/// Blocks are given back to be used again in the order of the stream, as a GPU's allocator does.
class delayed_memory final : public deft::memory {
 public:
  ~delayed_memory() override {
    for (auto* b : free_) source().release(b);
  }
  deft::block* allocate(std::size_t bytes) override {
    std::lock_guard lock(guard_);
    for (std::size_t i = free_.size(); i-- > 0;)
      if (free_[i]->capacity >= bytes && free_[i]->capacity <= 2 * bytes + 256) {
        deft::block* b = free_[i];
        free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
        b->references = 1;
        return b;
      }
    ++device_delays().allocations;
    deft::block* b = source().allocate(bytes);
    b->home = this;
    return b;
  }
  void release(deft::block* b) noexcept override {
    std::lock_guard lock(guard_);
    free_.push_back(b);
  }
  bool on_host() const override { return false; }

 private:
  static null_memory& source() {
    static auto& m = *new null_memory;
    return m;
  }
  std::mutex guard_;
  std::vector<deft::block*> free_;
};

/// The first error of a frame's run.
class delayed_step final : public deft::device_step {
 public:
  struct word {
    std::mutex guard;
    std::shared_ptr<const deft::error> failure;
    std::uint32_t item = 0;
  };
  void begin() override { word_ = std::make_shared<word>(); }
  std::shared_ptr<const deft::error> failure(std::uint32_t& item) const override {
    std::lock_guard lock(word_->guard);
    item = word_->item;
    return word_->failure;
  }
  std::shared_ptr<word> current() const { return word_; }
  static bool failed(const std::shared_ptr<word>& w) {
    if (!w) return false;
    std::lock_guard lock(w->guard);
    return w->failure != nullptr;
  }

 private:
  std::shared_ptr<word> word_ = std::make_shared<word>();
};

class delayed_device final : public hidden_device {
 public:
  delayed_device(const deft::device_name& task, int number) : hidden_device(task, "slow", number) {}

  bool asynchronous() const override { return true; }
  deft::memory& space() override { return memory_; }
  deft::arena_pool& arenas() override { return arenas_; }

  deft::event_ptr copy_in(void* to, const void* from, std::size_t bytes,
                          deft::buffer keep) override {
    ++device_delays().copies_in;
    return copy(in_, null_memory::hidden(to), from, bytes, std::move(keep));
  }
  deft::event_ptr copy_out(void* to, const void* from, std::size_t bytes,
                           deft::buffer keep) override {
    ++device_delays().copies_out;
    return copy(out_, to, null_memory::hidden(from), bytes, std::move(keep));
  }
  bool copy_between(void* to, device_runtime& source, const void* from, std::size_t bytes,
                    deft::buffer keep, deft::event_ptr& done) override {
    if (source.info().name->type != info().name->type) return false;
    done = copy(in_, null_memory::hidden(to), null_memory::hidden(from), bytes, std::move(keep));
    return true;
  }
  void copy_within(void* to, const void* from, std::size_t bytes,
                   deft::device_step* step) override {
    compute_.push([=, word = step ? static_cast<delayed_step*>(step)->current() : nullptr] {
      if (delayed_step::failed(word)) return;
      std::memcpy(null_memory::hidden(to), null_memory::hidden(from), bytes);
    });
  }
  std::unique_ptr<deft::device_step> make_step() override {
    return std::make_unique<delayed_step>();
  }
  void launch(const deft::launch_request& r, deft::device_step* step) override {
    ++device_delays().launches;
    auto word = static_cast<delayed_step*>(step)->current();
    std::vector<const void*> in(r.call.in, r.call.in + r.ins);
    std::vector<void*> out(r.call.out, r.call.out + r.outs);
    compute_.push([&kernel = r.what, in = std::move(in), out = std::move(out), call = r.call,
                   item = r.item, word]() mutable {
      if (delayed_step::failed(word)) return;  // what failed changes nothing more
      call.in = in.data();
      call.out = out.data();
      try {
        kernel.run(call);
      } catch (const deft::error& e) {
        std::lock_guard lock(word->guard);
        word->failure = std::make_shared<const deft::error>(e);
        word->item = item;
      }
    });
  }
  deft::event_ptr record() override { return compute_.record(); }
  void wait(const deft::event_ptr& e) override {
    if (e) compute_.push([e = std::static_pointer_cast<delayed_event>(e)] { e->wait(); });
  }

 private:
  /// After all that was launched, on a stream of its own.
  deft::event_ptr copy(delayed_stream& s, void* to, const void* from, std::size_t bytes,
                       deft::buffer keep) {
    auto done = std::make_shared<delayed_event>();
    s.push([=, before = compute_.record(), keep = std::move(keep)]() mutable {
      before->wait();
      std::memcpy(to, from, bytes);
      keep.reset();
      done->set();
    });
    return done;
  }
  delayed_memory memory_;
  deft::arena_pool arenas_{memory_};
  delayed_stream compute_{1}, in_{2}, out_{3};
};

/// Two of them, as register_device_maker takes it.
inline std::vector<std::unique_ptr<deft::device_runtime>> make_delayed_devices(
    const deft::device_name& task) {
  std::vector<std::unique_ptr<deft::device_runtime>> all;
  for (int i = 0; i < 2; ++i) all.push_back(std::make_unique<delayed_device>(task, i));
  return all;
}

}  // namespace testing
