// SPDX-License-Identifier: Apache-2.0
// deft/core/thread.ipp: processors, and what fork() leaves behind.
#pragma once
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <deft/core/error.hpp>
#include <deft/core/thread.hpp>

namespace deft {
namespace {
std::atomic<bool> forked{false};
}

namespace ext {

int usable_processors() {
  static const int count = [] {
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) == 0) return CPU_COUNT(&usable);
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }();
  return count;
}

bool is_forked() { return forked.load(std::memory_order_relaxed); }

void check_not_forked() {
  if (is_forked())
    fail(errc::failed_precondition,
         "fork() made this process from one in which deft had started threads: fork before the "
         "first session "
         "or server, or call exec");
}

}  // namespace ext

void detail::note_threads() {
  [[maybe_unused]] static const int noted =
      pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
}

}  // namespace deft
