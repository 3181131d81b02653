// SPDX-License-Identifier: Apache-2.0
// deft/kernels/team.ipp: helpers that spin for 100 µs after their last work, then sleep. A wake-up
// costs 23 µs, a spinning helper answers in a tenth of one.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deft/core/thread.hpp>
#include <deft/kernels/team.hpp>
#include <deft/plan/thresholds.hpp>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace deft {
namespace ext {

namespace teamwork {
namespace {

constexpr std::chrono::microseconds spin_time{100}, soon_after = 2 * spin_time;

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// One per process, never destroyed: its threads are detached and sleep when there is no work.
class team {
 public:
  /// False if another call has the team.
  bool run(int helpers, std::int64_t n, void (*f)(void*, std::int64_t), void* context) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    grow(helpers);
    run_ = f;
    helpers_ = helpers;
    context_ = context;
    chunks_ = n;
    failed_at_ = n;
    next_.store(0, std::memory_order_relaxed);
    inside_.fetch_or(open, std::memory_order_release);
    round_.fetch_add(1);
    round_.notify_all();
    work();
    // Whoever comes in from here on finds the door closed; the others finish what they took.
    inside_.fetch_and(~open, std::memory_order_acq_rel);
    for (int i = 1; inside_.load(std::memory_order_acquire) != 0; ++i)
      i % 1024 ? pause() : std::this_thread::yield();
    last_.store(now(), std::memory_order_relaxed);
    std::exception_ptr error = std::exchange(error_, nullptr);
    busy_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
    return true;
  }

  bool offer(team_job& j, int helpers) {
    grow(helpers);
    if (size_.load(std::memory_order_relaxed) == 0) return false;
    for (auto& slot : jobs_) {
      team_job* nothing = nullptr;
      if (!slot.compare_exchange_strong(nothing, &j, std::memory_order_release)) continue;
      round_.fetch_add(1);
      round_.notify_all();
      return true;
    }
    return false;
  }
  bool take_back(team_job& j) {
    for (auto& slot : jobs_)
      if (team_job* mine = &j; slot.compare_exchange_strong(mine, nullptr)) return true;
    return false;
  }

  bool awake() const {
    return now() - last_.load(std::memory_order_relaxed) <
           std::chrono::nanoseconds(spin_time).count() / 2;
  }
  /// Takes note of a kernel that the team would have shared if it were awake. Returns whether so
  /// many have come, one soon after the other, that waking it pays.
  bool missed(double nanoseconds) {
    const std::int64_t t = now();
    const bool soon = t - missed_at_.exchange(t, std::memory_order_relaxed) <
                      std::chrono::nanoseconds(soon_after).count();
    const double all = nanoseconds + (soon ? missed_.load(std::memory_order_relaxed) : 0);
    const bool enough = all >= thresholds::asleep_team;
    missed_.store(enough ? 0 : all, std::memory_order_relaxed);
    return enough;
  }

 private:
  static constexpr std::uint32_t open = std::uint32_t{1} << 31;

  void grow(int helpers) {
    if (size_.load(std::memory_order_relaxed) >= helpers) return;
    std::lock_guard lock(guard_);
    try {
      for (; size_ < helpers; ++size_)
        start_thread([this, me = size_.load()] { help(me); }).detach();
    } catch (const std::exception&) {  // no more threads to be had: those there are will do
    }
  }

  void work() {
    for (;;) {
      std::int64_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= chunks_) return;
      try {
        run_(context_, i);
      } catch (...) {
        std::lock_guard lock(guard_);
        if (i < failed_at_) failed_at_ = i, error_ = std::current_exception();
      }
    }
  }

  static void do_job(team_job& j);

  void help(int me) {
    for (std::uint32_t seen = 0;;) {
      seen = wait(seen);
      if ((inside_.fetch_add(1, std::memory_order_acq_rel) & open) && me < helpers_) work();
      inside_.fetch_sub(1, std::memory_order_release);
      for (auto& slot : jobs_)
        if (team_job* j = slot.load(std::memory_order_relaxed))
          if (slot.compare_exchange_strong(j, nullptr, std::memory_order_acquire)) do_job(*j);
    }
  }

  /// The next round's number: spins first, then sleeps.
  std::uint32_t wait(std::uint32_t seen) {
    std::int64_t until = now() + std::chrono::nanoseconds(spin_time).count();
    for (int i = 0;; ++i) {
      if (std::uint32_t r = round_.load(std::memory_order_acquire); r != seen) return r;
      pause();
      if (i % 64 == 63 && now() > until) break;
    }
    round_.wait(seen);
    return round_.load(std::memory_order_acquire);
  }

  // What a round is about; written before the door opens.
  void (*run_)(void*, std::int64_t) = nullptr;
  void* context_ = nullptr;
  std::int64_t chunks_ = 0, failed_at_ = 0;
  int helpers_ = 0;  ///< that may take part
  std::exception_ptr error_;
  std::mutex guard_;
  std::atomic<int> size_{0};                       ///< helpers that there are
  std::array<std::atomic<team_job*>, 16> jobs_{};  ///< that nobody has begun

  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<std::uint32_t> inside_{
      0};  ///< helpers at work, and whether more may come
  alignas(64) std::atomic<std::uint32_t> round_{0};
  std::atomic<std::int64_t> last_{0}, missed_at_{0};
  std::atomic<double> missed_{0};  ///< nanoseconds of kernels that came without the team
  std::atomic<bool> busy_{false};
};

team& the_team() {
  static auto& t = *new team;
  return t;
}

std::atomic<int> chosen_threads{0};
thread_local bool in_chunk = false;

struct chunk_scope {
  bool outer = std::exchange(in_chunk, true);
  ~chunk_scope() { in_chunk = outer; }
};

void team::do_job(team_job& j) {
  chunk_scope scope;
  j.run(j);
}

}  // namespace
}  // namespace teamwork

bool offer(team_job& j) {
  const int helpers = intra_op_threads() - 1;
  return helpers > 0 && teamwork::the_team().offer(j, helpers);
}
bool take_back(team_job& j) { return teamwork::the_team().take_back(j); }

void set_intra_op_threads(int n) { teamwork::chosen_threads = n; }

int intra_op_threads() {
  const int n = teamwork::chosen_threads.load(std::memory_order_relaxed);
  return n > 0 ? n : usable_processors();
}

bool worth_splitting(double nanoseconds) {
  if (nanoseconds < thresholds::awake_team || teamwork::in_chunk || intra_op_threads() <= 1)
    return false;
  return nanoseconds >= thresholds::asleep_team || teamwork::the_team().awake() ||
         (nanoseconds >= thresholds::missed_team && teamwork::the_team().missed(nanoseconds));
}

}  // namespace ext

void detail::run_chunks(std::int64_t n, void (*run)(void*, std::int64_t), void* context) {
  int helpers = static_cast<int>(std::min<std::int64_t>(ext::intra_op_threads(), n)) - 1;
  if (helpers > 0 && !ext::teamwork::in_chunk) {
    struct job {
      void (*run)(void*, std::int64_t);
      void* context;
    } j{run, context};
    auto inside = [](void* p, std::int64_t i) {
      ext::teamwork::chunk_scope scope;
      auto* of = static_cast<job*>(p);
      of->run(of->context, i);
    };
    if (ext::teamwork::the_team().run(helpers, n, inside, &j)) return;
  }
  for (std::int64_t i = 0; i < n; ++i) run(context, i);
}

}  // namespace deft
