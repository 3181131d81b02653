// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/queues.ipp: a GPU's streams, pinned memory and events. The first use makes
// the context: a process that only counts its GPUs has none.
#pragma once
#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deft/core/buffer.hpp>
#include <deft/core/thread.hpp>
#include <deft/kernels/gpu/cuda/runtime.ipp>
#include <deft/kernels/gpu/fault.hpp>
#include <deque>
#include <thread>
#include <unordered_map>

namespace deft::ext::gpu::cuda {
namespace {

/// Pinned memory of the host, for copies of what is not: recycled by size, which is a power of two.
class pinned_memory final : public memory {
 public:
  block* allocate(std::size_t bytes) override {
    const std::size_t c =
        static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(bytes, smallest) - 1));
    {
      std::lock_guard lock(guard_);
      if (auto& free = free_[c]; !free.empty()) {
        block* b = free.back();
        free.pop_back();
        b->references = 1;
        return b;
      }
    }
    auto b = std::make_unique<block>();
    b->capacity = std::size_t{1} << c;
    b->home = this;
    check(cudaHostAlloc(&b->data, b->capacity, cudaHostAllocPortable), "to pin memory");
    return b.release();
  }
  void release(block* b) noexcept override {
    std::lock_guard lock(guard_);
    free_[static_cast<std::size_t>(std::bit_width(b->capacity) - 1)].push_back(b);
  }

 private:
  static constexpr std::size_t smallest = 4096;
  std::mutex guard_;
  std::array<std::vector<block*>, 64> free_;
};
/// That of the process. Blocks live as long as it does.
pinned_memory& pinned() {
  static auto& p = *new pinned_memory;
  return p;
}

/// Faults of one run: kernels look at a record in the GPU's memory, the host at its mirror in its
/// own.
struct fault_slot {
  fault_record* on_device = nullptr;
  fault_record* mirror = nullptr;
};

/// Streams of one GPU and what belongs to them, shared by the device and its events.
class queues : public std::enable_shared_from_this<queues> {
 public:
  explicit queues(int number) : number_(number), log_(number) {}
  ~queues();
  queues(const queues&) = delete;

  int number() const { return number_; }
  launch_log& log() { return log_; }

  /// Makes the GPU that of this thread, and with the first call its context. Whoever calls the
  /// runtime calls this before.
  void use() {
    std::call_once(started_, [this] { start(); });
    check(cudaSetDevice(number_), "to use a GPU");
  }
  bool is_used() const { return used_.load(std::memory_order_acquire); }

  /// Calls f on a GPU that works. One that has stopped does nothing more: steps are told by the
  /// log, with the node that was running.
  template <class F>
  auto attempt(F&& f) -> decltype(f()) {
    if (!log_.is_broken()) try {
        use();
        return f();
      } catch (const failed_call& e) {
        if (!is_sticky(e.code)) throw;
        log_.broke(e.code);
      }
    return decltype(f())();
  }

  cudaStream_t compute() const { return compute_; }
  cudaStream_t in() const { return in_; }
  cudaStream_t out() const { return out_; }
  /// For copies from other GPUs, which wait for those.
  cudaStream_t across() const { return across_; }
  /// What graphs are made on, by who holds the guard.
  cudaStream_t capture() const { return capture_; }
  std::mutex& capture_guard() { return capture_guard_; }
  /// How often code was loaded that kernels launch from then on.
  std::uint64_t code_version() const { return code_version_.load(std::memory_order_acquire); }
  void note_code() { code_version_.fetch_add(1, std::memory_order_release); }
  /// Null where the GPU has none.
  cudaMemPool_t pool() const { return pool_; }

  /// An event recorded on `on`.
  cudaEvent_t record(cudaStream_t on) {
    cudaEvent_t e = nullptr;
    {
      std::lock_guard lock(guard_);
      if (!events_.empty()) e = events_.back(), events_.pop_back();
    }
    if (!e) check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "to make an event");
    if (const cudaError_t r = cudaEventRecord(e, on); r != cudaSuccess) {
      give(e);
      check(r, "to record an event");
    }
    return e;
  }
  void give(cudaEvent_t e) noexcept {
    std::lock_guard lock(guard_);
    events_.push_back(e);
  }
  /// `later` runs after what was queued on `earlier` so far.
  void order(cudaStream_t later, cudaStream_t earlier) {
    cudaEvent_t e = record(earlier);
    const cudaError_t r = cudaStreamWaitEvent(later, e, 0);
    give(e);
    check(r, "to order streams");
  }

  /// Something that is needed until an event is done that no other code queries any more.
  void keep(cudaEvent_t until, std::shared_ptr<void> what) noexcept {
    std::lock_guard lock(guard_);
    kept_.push_back({until, std::move(what)});
  }
  /// Drops what is no longer needed. Called now and then, by what queues copies.
  void drop_kept() {
    std::vector<kept> over;  // dropped without the lock
    std::lock_guard lock(guard_);
    std::erase_if(kept_, [&](kept& k) {
      if (cudaEventQuery(k.until) == cudaErrorNotReady) {
        cudaGetLastError();
        return false;
      }
      events_.push_back(k.until);
      over.push_back(std::move(k));
      return true;
    });
  }

  /// One that holds no fault, once what is queued now is done.
  fault_slot take_slot() {
    fault_slot s;
    {
      std::lock_guard lock(guard_);
      if (slots_.empty()) add_slots();
      s = slots_.back();
      slots_.pop_back();
    }
    check(cudaMemsetAsync(&s.on_device->taken, 0, sizeof s.on_device->taken, compute_),
          "to clear a word");
    return s;
  }
  /// To be used again once what was queued so far is done.
  void give_slot(fault_slot s) noexcept {
    auto put = [self = weak_from_this(), s](void*) {
      if (auto q = self.lock()) q->put_slot(s);
    };
    try {
      attempt([&] { keep(record(compute_), std::shared_ptr<void>(nullptr, put)); });
    } catch (const error&) {  // one slot less
    }
  }

 private:
  struct kept {
    cudaEvent_t until;
    std::shared_ptr<void> what;
  };
  static constexpr int slots_at_once = 256;

  void start();
  void add_slots();
  void put_slot(fault_slot s) noexcept {
    s.mirror->taken = 0;
    std::lock_guard lock(guard_);
    slots_.push_back(s);
  }

  const int number_;
  launch_log log_;
  std::once_flag started_;
  std::atomic<bool> used_{false};
  std::atomic<std::uint64_t> code_version_{0};
  cudaStream_t compute_ = nullptr, in_ = nullptr, out_ = nullptr, across_ = nullptr;
  cudaStream_t capture_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
  std::mutex guard_, capture_guard_;
  std::vector<cudaEvent_t> events_;
  std::vector<kept> kept_;
  std::vector<fault_slot> slots_;
  std::vector<void*> slot_memory_;
};

void queues::start() {
  check(cudaSetDevice(number_), "to use a GPU");
  int pools = 0;
  check(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, number_), "to be asked");
  if (pools && !pool_) {
    cudaMemPoolProps p{};
    p.allocType = cudaMemAllocationTypePinned;
    p.location = {cudaMemLocationTypeDevice, number_};
    check(cudaMemPoolCreate(&pool_, &p), "to make a pool of memory");
    std::uint64_t all = UINT64_MAX;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &all),
          "to set up a pool of memory");
  }
  for (cudaStream_t* s : {&in_, &out_, &across_, &capture_, &compute_})
    if (!*s) check(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking), "to make a stream");
  used_.store(true, std::memory_order_release);
}
void queues::add_slots() {
  constexpr std::size_t bytes = slots_at_once * sizeof(fault_record);
  void *mirrors = nullptr, *seen = nullptr, *records = nullptr;
  check(cudaHostAlloc(&mirrors, bytes, cudaHostAllocMapped | cudaHostAllocPortable),
        "to pin memory");
  slot_memory_.push_back(mirrors);
  check(cudaMalloc(&records, bytes), "to allocate memory");
  slot_memory_.push_back(records);
  check(cudaHostGetDevicePointer(&seen, mirrors, 0), "to map memory");
  auto* const to = static_cast<fault_record*>(mirrors);
  for (int i = 0; i < slots_at_once; ++i) {
    to[i] = {};
    to[i].mirror = static_cast<fault_record*>(seen) + i;
    slots_.push_back({static_cast<fault_record*>(records) + i, to + i});
  }
  // The mirrors are as the records begin.
  check(cudaMemcpyAsync(records, mirrors, bytes, cudaMemcpyHostToDevice, compute_), "to copy");
}
queues::~queues() {
  if (!is_used() || cudaSetDevice(number_) != cudaSuccess) return;
  for (cudaStream_t s : {in_, out_, across_, compute_}) cudaStreamSynchronize(s);
  kept_.clear();
  for (auto e : events_) cudaEventDestroy(e);
  for (std::size_t i = 0; i < slot_memory_.size(); ++i)
    i % 2 ? cudaFree(slot_memory_[i]) : cudaFreeHost(slot_memory_[i]);
  for (cudaStream_t s : {in_, out_, across_, capture_, compute_}) cudaStreamDestroy(s);
  if (pool_) cudaMemPoolDestroy(pool_);
}

/// A point in a stream. What a copy needs is held until it was seen to be done.
class event final : public device_event, public std::enable_shared_from_this<event> {
 public:
  /// After what was queued on `on` so far.
  event(std::shared_ptr<queues> of, cudaStream_t on) : queues_(std::move(of)), on_(on) {
    launched_ = queues_->log().launched();
    native_ = queues_->record(on);
  }
  ~event() override {
    if (done_ || (!keep_ && !staging_))
      queues_->give(native_);
    else
      queues_->keep(native_, std::make_shared<std::pair<buffer, buffer>>(std::move(keep_),
                                                                         std::move(staging_)));
  }

  /// Before anybody else knows of it.
  void hold(buffer keep) { keep_ = std::move(keep); }
  /// The thread that sees the copy into `staging` done copies the elements on from there.
  void unpack(buffer staging, void* to = nullptr, std::size_t bytes = 0) {
    staging_ = std::move(staging), to_ = to, bytes_ = bytes;
  }

  bool done() const override {
    if (done_.load(std::memory_order_acquire)) return true;
    return const_cast<event*>(this)->query(false);
  }
  void when_done(std::function<void()> f) override;
  void synchronize() override { query(true); }

  cudaEvent_t native() const { return native_; }
  bool is_on(cudaStream_t s) const { return on_ == s; }
  /// It takes the host to be done.
  bool needs_host() const { return to_ != nullptr; }

 private:
  bool query(bool wait) {
    cudaError_t e = cudaSuccess;
    try {
      queues_->use();
      e = wait ? cudaEventSynchronize(native_) : cudaEventQuery(native_);
    } catch (const failed_call& f) {
      e = f.code;
    }
    if (e != cudaSuccess) cudaGetLastError();
    if (e == cudaErrorNotReady) return false;
    // Whoever waits shall look at its step, which then has an error to tell.
    if (e != cudaSuccess)
      queues_->log().broke(e);
    else
      queues_->log().done(launched_);
    std::lock_guard lock(guard_);
    if (done_) return true;
    if (to_ && e == cudaSuccess) std::memcpy(to_, staging_.data(), bytes_);
    keep_.reset();
    staging_.reset();
    done_.store(true, std::memory_order_release);
    return true;
  }

  const std::shared_ptr<queues> queues_;
  const cudaStream_t on_;
  cudaEvent_t native_;
  std::uint64_t launched_;  ///< launches before it
  std::atomic<bool> done_{false};
  std::mutex guard_;
  buffer keep_, staging_;
  void* to_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Calls back what waits for events. A thread of the process: the runtime's own callbacks may not
/// call the runtime, hold up their stream, and are left out once a device has stopped.
class watcher {
 public:
  void add(std::shared_ptr<event> e, std::function<void()> f) {
    {
      std::lock_guard lock(guard_);
      new_.push_back({std::move(e), std::move(f)});
      if (!std::exchange(started_, true)) start_thread([this] { run(); }).detach();
    }
    changed_.notify_one();
  }

 private:
  using clock = std::chrono::steady_clock;
  struct entry {
    std::shared_ptr<event> of;
    std::function<void()> f;
  };

  void run() {
    prctl(PR_SET_NAME, "deft gpu");
    prctl(PR_SET_TIMERSLACK, 1000);
    std::vector<entry> all, over;
    clock::time_point since{};
    for (;;) {
      {
        std::unique_lock lock(guard_);
        if (all.empty()) changed_.wait(lock, [&] { return !new_.empty(); });
        if (!new_.empty()) since = clock::now();
        for (auto& e : new_) all.push_back(std::move(e));
        new_.clear();
      }
      std::erase_if(all, [&](entry& e) {
        if (!e.of->done()) return false;
        over.push_back(std::move(e));
        return true;
      });
      if (over.empty()) {
        rest(clock::now() - since);
        continue;
      }
      for (auto& e : over) e.f();
      over.clear();
      since = clock::now();
    }
  }
  /// Spins at first, then sleeps a small part of what it has waited for.
  static void rest(clock::duration waited) {
    using namespace std::chrono_literals;
    if (waited < 50us)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::clamp<clock::duration>(waited / 32, 5us, 500us));
  }

  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<entry> new_;
  bool started_ = false;
};

void event::when_done(std::function<void()> f) {
  static auto& all = *new watcher;
  if (done()) return f();
  all.add(shared_from_this(), std::move(f));
}

}  // namespace
}  // namespace deft::ext::gpu::cuda
