// SPDX-License-Identifier: Apache-2.0
// deft/core/thread.ipp: what fork() leaves behind.
#pragma once
#include <pthread.h>

#include <atomic>
#include <deft/core/error.hpp>
#include <deft/core/thread.hpp>

namespace deft {
namespace {
std::atomic<bool> forked{false};
}

bool is_forked() { return forked.load(std::memory_order_relaxed); }

void check_not_forked() {
  if (is_forked())
    fail(errc::failed_precondition,
         "fork() made this process from one in which deft had started threads: fork before the "
         "first session "
         "or server, or call exec");
}

void detail::note_threads() {
  [[maybe_unused]] static const int noted =
      pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
}

}  // namespace deft
