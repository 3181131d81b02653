// SPDX-License-Identifier: Apache-2.0
// deft/execute/team.hpp: the process's threads for parts of one large kernel.
#pragma once
#include <cstdint>
#include <type_traits>

namespace deft {

/// Threads that a kernel may use, the caller's among them; 1 turns the team off. 0, the default:
/// one for each processor. Takes effect before the next kernel; not to be called from within one.
void set_intra_op_threads(int n);
int intra_op_threads();

/// Whether a kernel of `nanoseconds` on one thread is worth splitting now: from 5 µs on while the
/// team is awake, from 100 µs on where it must be woken first.
bool worth_splitting(double nanoseconds);

/// Something that a helper of the team may do while the caller goes on; kernels within it run on
/// its thread alone.
struct team_job {
  void (*run)(team_job&) = nullptr;
};
/// False: nobody is there to do it. Else `j` stays until it is run or taken back.
bool offer(team_job& j);
/// True: no helper has begun it, and none will.
bool take_back(team_job& j);

namespace detail {
void run_chunks(std::int64_t n, void (*run)(void*, std::int64_t), void* context);
}

/// Calls fn(0) … fn(chunks - 1), each once, on the caller's thread and on the team's, in any order;
/// returns when all are done. Chunks must not depend on each other nor on the number of threads, so
/// that results do not. Nested and concurrent calls run on the caller's thread alone. Throws what a
/// chunk has thrown, the one of lowest number if several.
template <class F>
void parallel_chunks(std::int64_t chunks, F&& fn) {
  using G = std::remove_reference_t<F>;
  detail::run_chunks(
      chunks, [](void* f, std::int64_t i) { (*static_cast<G*>(f))(i); },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

/// The same where `nanoseconds` warrant it, else one after another here.
template <class F>
void parallel_chunks(std::int64_t chunks, double nanoseconds, F&& fn) {
  if (chunks > 1 && worth_splitting(nanoseconds))
    parallel_chunks(chunks, fn);
  else
    for (std::int64_t i = 0; i < chunks; ++i) fn(i);
}

}  // namespace deft
