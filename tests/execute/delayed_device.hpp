// SPDX-License-Identifier: Apache-2.0
// tests/execute/delayed_device.hpp: a device with the processor's kernels and separate memory,
// whose work runs later, on the streams of simulated GPUs: after random delays, or when the test
// permits.
#pragma once
#include <deft/kernels/gpu/simulated/queue.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <mutex>

#include "null_device.hpp"
#include "op/modeling.hpp"

namespace testing {

using deft::ext::gpu::simulated::simulated_gpus;

/// Blocks are freed and reused in the order of the stream, as in a GPU's allocator.
class delayed_memory final : public deft::ext::memory {
 public:
  ~delayed_memory() override {
    for (auto* b : free_) source().release(b);
  }
  deft::ext::block* allocate(std::size_t bytes) override {
    std::lock_guard lock(guard_);
    for (std::size_t i = free_.size(); i-- > 0;)
      if (free_[i]->capacity >= bytes && free_[i]->capacity <= 2 * bytes + 256) {
        deft::ext::block* b = free_[i];
        free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
        b->references = 1;
        return b;
      }
    ++simulated_gpus().allocations;
    deft::ext::block* b = source().allocate(bytes);
    b->home = this;
    return b;
  }
  void release(deft::ext::block* b) noexcept override {
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
  std::vector<deft::ext::block*> free_;
};

/// The first error of a frame's run.
class delayed_step final : public deft::ext::device_step {
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
  deft::ext::memory& space() override { return memory_; }
  deft::ext::arena_pool& arenas() override { return arenas_; }

  deft::ext::event_ptr copy_in(void* to, const void* from, std::size_t bytes,
                               deft::ext::buffer keep) override {
    ++simulated_gpus().copies_in;
    return copy(in_, null_memory::hidden(to), from, bytes, std::move(keep));
  }
  deft::ext::event_ptr copy_out(void* to, const void* from, std::size_t bytes,
                                deft::ext::buffer keep) override {
    ++simulated_gpus().copies_out;
    return copy(out_, to, null_memory::hidden(from), bytes, std::move(keep));
  }
  bool copy_between(void* to, device_runtime& source, const void* from, std::size_t bytes,
                    deft::ext::buffer keep, std::span<const deft::ext::event_ptr> after,
                    deft::ext::event_ptr& done) override {
    if (source.info().name->type != info().name->type) return false;
    for (const auto& e : after)
      if (e && !e->done()) in_.push([e] { static_cast<event&>(*e).wait(); });
    done = copy(in_, null_memory::hidden(to), null_memory::hidden(from), bytes, std::move(keep));
    return true;
  }
  void copy_within(void* to, const void* from, std::size_t bytes,
                   deft::ext::device_step* step) override {
    compute_.push([=, word = step ? static_cast<delayed_step*>(step)->current() : nullptr] {
      if (delayed_step::failed(word)) return;
      std::memcpy(null_memory::hidden(to), null_memory::hidden(from), bytes);
    });
  }
  std::unique_ptr<deft::ext::device_step> make_step() override {
    return std::make_unique<delayed_step>();
  }
  void launch(const deft::ext::launch_request& r, deft::ext::device_step* step) override {
    ++simulated_gpus().launches;
    auto word = static_cast<delayed_step*>(step)->current();
    std::vector<const void*> in(r.call.in, r.call.in + r.ins);
    std::vector<void*> out(r.call.out, r.call.out + r.outs);
    compute_.push([&kernel = r.what, in = std::move(in), out = std::move(out), call = r.call,
                   item = r.item, word]() mutable {
      if (delayed_step::failed(word)) return;  // a failed step changes nothing any more
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
  deft::ext::event_ptr record() override { return compute_.record(); }
  void wait(const deft::ext::event_ptr& e) override {
    if (e) compute_.push([e = std::static_pointer_cast<event>(e)] { e->wait(); });
  }

 private:
  using event = deft::ext::gpu::simulated::event;
  using queue = deft::ext::gpu::simulated::queue;

  /// Copies on a separate stream, after everything that was launched.
  deft::ext::event_ptr copy(queue& s, void* to, const void* from, std::size_t bytes,
                            deft::ext::buffer keep) {
    auto done = std::make_shared<event>();
    s.push([=, before = compute_.record(), keep = std::move(keep)]() mutable {
      before->wait();
      std::memcpy(to, from, bytes);
      keep.reset();
      done->set();
    });
    return done;
  }

  delayed_memory memory_;
  deft::ext::arena_pool arenas_{memory_};
  queue compute_, in_, out_;
};

/// Of each task two, which only explicit requests use.
inline constexpr deft::ext::device_kind slow_kind{
    .type = "slow", .make = [](const deft::device_name& task, const deft::ext::device_settings&) {
      std::vector<std::unique_ptr<deft::ext::device_runtime>> all;
      for (int i = 0; i < 2; ++i) all.push_back(std::make_unique<delayed_device>(task, i));
      return all;
    }};

/// A graph for one test case, and delayed devices: "/slow:0" and "/slow:1" of every task.
struct with_slow_devices : own_graph {
  with_slow_devices() {
    [[maybe_unused]] static const deft::ext::registered_device_kind once = slow_kind;
  }
  ~with_slow_devices() { simulated_gpus().go_on(), simulated_gpus().longest_us = 0; }
};

}  // namespace testing
