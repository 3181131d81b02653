// SPDX-License-Identifier: Apache-2.0
// deft/core/thread.hpp: threads of deft's own, and processes that are left without them.
#pragma once
#include <thread>
#include <utility>

namespace deft {

/// Whether fork() made this process of one in which deft had threads. They are not here, what they
/// held locked stays locked, and sockets are shared with the other process.
bool is_forked();
/// Throws failed_precondition if so.
void check_not_forked();

namespace detail {
void note_threads();
}

template <class F>
std::thread start_thread(F&& f) {
  detail::note_threads();
  return std::thread(std::forward<F>(f));
}

}  // namespace deft
