// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/simulated/device.ipp: GPUs that the processor plays: each with its own
// memory, a thread for each stream, and the kernels of all GPUs.
#pragma once
// Whatever else a program does with Thrust: this never meets symbols of another system, or version.
#ifndef THRUST_CUB_WRAPPED_NAMESPACE
#define THRUST_CUB_WRAPPED_NAMESPACE deft_thrust
#endif
#ifndef THRUST_DEVICE_SYSTEM
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#ifdef _OPENMP
#include <thrust/system/omp/execution_policy.h>
#else
#include <thrust/system/cpp/execution_policy.h>
#endif

#include <unistd.h>

#include <algorithm>
#include <deft/kernels/gpu/devices.hpp>
#include <deft/kernels/gpu/fault.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/gpu/simulated/memory.ipp>
#include <deft/kernels/gpu/simulated/queue.ipp>
#include <deft/kernels/gpu/simulated/stream.hpp>

namespace deft::ext::gpu::simulated {

namespace {
namespace thrust = THRUST_NS_QUALIFIER;

/// How Thrust's algorithms run.
const auto& system() {
#ifdef _OPENMP
  return thrust::omp::par;
#else
  return thrust::cpp::par;
#endif
}

}  // namespace

void stream::add(std::int64_t n, std::int64_t some, range_work work) {
  if (n <= 0) return;
  call([n, some, work = std::move(work)] {
    const std::int64_t pieces = (n + some - 1) / some;
    if (pieces == 1) return work(0, n);
    thrust::for_each_n(system(), thrust::counting_iterator<std::int64_t>(0), pieces,
                       [&](std::int64_t p) { work(p * some, std::min(n, (p + 1) * some)); });
  });
}
void stream::sort_by_key(const std::uint32_t* keys, std::uint32_t* sorted_keys,
                         const std::uint32_t* values, std::uint32_t* sorted_values, std::int64_t n,
                         int bits, void* room) {
  if (n <= 0) return;
  call([=, used = out<char>(room)] {
    std::memset(used, 0xa5, sort_room(n));
    // By the bits that a radix sort looks at, then by position. Thrust's own sort on the processor
    // binds references to null, which stops programs under UndefinedBehaviorSanitizer.
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    std::vector<std::uint64_t> order(static_cast<std::size_t>(n));
    for (std::uint64_t i = 0; i < order.size(); ++i) order[i] = (keys[i] & mask) << 32 | i;
    std::ranges::sort(order);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto from = static_cast<std::uint32_t>(order[i]);
      sorted_keys[i] = keys[from];
      sorted_values[i] = values[from];
    }
  });
}
/// Does what was queued for a run, unless that is over.
void perform(const std::function<void()>& f, bool update, run_record* of) {
  if (of && (of->stopped || (update && std::atomic_ref(of->faults.taken).load()))) return;
  if (of && update) of->updated = true;
  if (const auto before = simulated_gpus().before_kernel.load()) before();
  f();
}
void stream::call(std::function<void()> f) {
  if (captured_) return captured_->push_back({std::move(f), update_});
  ++simulated_gpus().launches;
  queue_.push(
      [record = record_, update = update_, f = std::move(f)] { perform(f, update, record.get()); });
}

namespace {

/// The faults of a frame's runs.
class step final : public device_step {
 public:
  /// Work of an earlier run that failed may still look at its own record.
  void begin() override {
    if (!record_ || record_.use_count() > 1 || record_->stopped ||
        std::atomic_ref(record_->faults.taken).load())
      record_ = std::make_shared<run_record>();
    record_->updated = false;
  }
  std::shared_ptr<const error> failure(std::uint32_t& item) const override {
    if (!record_ || !record_->faults.taken) return nullptr;
    item = record_->faults.item;
    return std::make_shared<const error>(error_of(record_->faults));
  }
  void stop() override {
    if (record_) record_->stopped = true;
  }
  bool has_updated() const override { return record_ && record_->updated; }
  const void* block_address() const override { return record_.get(); }
  const std::shared_ptr<run_record>& record() const { return record_; }

 private:
  std::shared_ptr<run_record> record_;
};

struct captured_calls final : launch_graph {
  std::shared_ptr<std::vector<captured_call>> calls =
      std::make_shared<std::vector<captured_call>>();
};

class device final : public device_runtime {
 public:
  device(device_info info, int number, std::size_t memory_limit)
      : device_runtime(std::move(info)), memory_(number, compute_, this->info(), memory_limit) {}
  ~device() override { synchronize(*this); }

  bool asynchronous() const override { return true; }
  memory& space() override { return memory_; }
  arena_pool& arenas() override { return arenas_; }

  event_ptr copy_in(void* to, const void* from, std::size_t bytes, buffer keep) override {
    ++simulated_gpus().copies_in;
    return copy(in_, memory_.real(to), from, bytes, std::move(keep));
  }
  event_ptr copy_out(void* to, const void* from, std::size_t bytes, buffer keep) override {
    ++simulated_gpus().copies_out;
    return copy(out_, to, memory_.real(from), bytes, std::move(keep));
  }
  bool copy_between(void* to, device_runtime& source, const void* from, std::size_t bytes,
                    buffer keep, std::span<const event_ptr> after, event_ptr& done) override {
    auto* other = dynamic_cast<device*>(&source);
    if (!other) return false;
    ++simulated_gpus().copies_between;
    for (const auto& e : after) queue_wait(across_, e);
    done = copy(across_, memory_.real(to), other->memory_.real(from), bytes, std::move(keep));
    return true;
  }
  void copy_within(void* to, const void* from, std::size_t bytes, device_step* of) override {
    void* const real_to = memory_.real(to);
    const void* const real_from = memory_.real(from);
    stream s(compute_, memory_, of ? record_of(of) : nullptr, 0, of != nullptr);
    s.call([=] { std::memcpy(real_to, real_from, bytes); });
  }

  const kernel_entry* find_kernel(std::string_view op) const override {
    static const auto& kernels = *new kernel_index(kernel_tables());
    return kernels.find(op);
  }
  std::unique_ptr<device_step> make_step() override { return std::make_unique<step>(); }
  void launch(const launch_request& r, device_step* of) override { enqueue(r, of, nullptr); }
  std::unique_ptr<launch_graph> capture(std::span<const launch_request> launches,
                                        device_step* of) override {
    ++simulated_gpus().captures;
    auto g = std::make_unique<captured_calls>();
    for (const auto& r : launches) enqueue(r, of, g->calls.get());
    return g;
  }
  void launch(launch_graph& g, device_step* of) override {
    const auto& calls = static_cast<captured_calls&>(g).calls;
    ++simulated_gpus().replays;
    simulated_gpus().launches += calls->size();
    compute_.push([calls, record = record_of(of)] {
      for (const auto& c : *calls) perform(c.run, c.update, record.get());
    });
  }
  event_ptr record() override { return compute_.record(); }
  void wait(const event_ptr& e) override { queue_wait(compute_, e); }

 private:
  static void queue_wait(queue& on, const event_ptr& e) {
    if (!e || e->done()) return;
    on.push([e] {
      if (auto* own = dynamic_cast<event*>(e.get()))
        own->wait();
      else
        e->synchronize();
    });
  }
  static const std::shared_ptr<run_record>& record_of(device_step* of) {
    return static_cast<step*>(of)->record();
  }
  void enqueue(const launch_request& r, device_step* of, std::vector<captured_call>* captured) {
    stream s(compute_, memory_, record_of(of), r.item, r.update, captured);
    kernel_call call = r.call;
    call.stream = &s;
    const queueing now;
    r.what.run(call);
  }
  /// After all that was launched, on a stream of its own.
  event_ptr copy(queue& on, void* to, const void* from, std::size_t bytes, buffer keep) {
    auto done = std::make_shared<event>();
    on.push([=, before = compute_.record(), keep = std::move(keep)]() mutable {
      before->wait();
      std::memcpy(to, from, bytes);
      keep.reset();
      done->set();
    });
    return done;
  }

  queue compute_;
  tagged_memory memory_;
  arena_pool arenas_{memory_};
  queue in_, out_, across_;
};

}  // namespace

std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task, int count,
                                                          double memory_limit) {
  std::vector<std::unique_ptr<device_runtime>> all;
  static const auto& kernels = *new auto(announce(kernel_tables()));
  const auto pages = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES));
  const std::size_t limit =
      limited_memory(memory_limit, pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  for (int i = 0; i < count; ++i) {
    device_info info = describe(task, "gpu", i);
    info.description = "simulated";
    info.memory = limit;
    info.kernels = kernels;
    all.push_back(std::make_unique<device>(std::move(info), i, limit));
  }
  return all;
}

}  // namespace deft::ext::gpu::simulated
