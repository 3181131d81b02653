// SPDX-License-Identifier: Apache-2.0
// deft/core/thread.hpp: processors, the threads of deft, and processes that lost them in fork().
#pragma once
#include <deft/core/config.hpp>
#include <thread>
#include <utility>

namespace deft::ext {

/// The number of processors that this process may use, by its affinity at the first call.
int usable_processors();

/// Whether fork() made this process from one in which deft had threads. The threads do not exist in
/// this process, their locks stay locked, and sockets are shared with the other process.
bool is_forked();
/// Throws failed_precondition if so.
void check_not_forked();

}  // namespace deft::ext

namespace deft::detail {
void note_threads();
}

namespace deft::ext {

template <class F>
std::thread start_thread(F&& f) {
  detail::note_threads();
  return std::thread(std::forward<F>(f));
}

}  // namespace deft::ext
