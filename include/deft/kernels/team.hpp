// SPDX-License-Identifier: Apache-2.0
// deft/kernels/team.hpp: the threads of the process that share the work of one large kernel.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>
#include <type_traits>

namespace deft::ext {

/// Sets the number of threads that a kernel may use, including the caller's; 1 turns the team off.
/// 0, the default, means one thread per processor. Takes effect before the next kernel; must not be
/// called from within a kernel. Programs say session_options::intra_op_threads.
void set_intra_op_threads(int n);
int intra_op_threads();

/// Whether a kernel of `nanoseconds` on one thread is worth splitting now: from 5 µs on while the
/// team is awake, from 100 µs on where it must be woken first, by this kernel or by all from 10 µs
/// on that come one soon after the other.
bool worth_splitting(double nanoseconds);

/// A background task for a thread of the team, which runs while the caller goes on. Kernels in it
/// use that thread alone.
struct team_job {
  void (*run)(team_job&) = nullptr;
};
/// Offers `j` to the team. Returns false if no thread is free; otherwise `j` must stay valid until
/// it has run or was taken back.
bool offer(team_job& j);
/// Withdraws an offer. Returns true if no thread has begun `j`; then none will.
bool take_back(team_job& j);

}  // namespace deft::ext

namespace deft::detail {
void run_chunks(std::int64_t n, void (*run)(void*, std::int64_t), void* context);
}

namespace deft::ext {

/// Calls fn(0) … fn(chunks - 1), each once, on the caller's thread and on the team's, in any order;
/// returns when all are done. Chunks must not depend on each other or on the number of threads, so
/// that results do not either. Nested and concurrent calls run on the caller's thread alone. Throws
/// the exception of a chunk; if several threw, that of the lowest number.
template <class F>
void parallel_chunks(std::int64_t chunks, F&& fn) {
  using G = std::remove_reference_t<F>;
  detail::run_chunks(
      chunks, [](void* f, std::int64_t i) { (*static_cast<G*>(f))(i); },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

/// The same if worth_splitting(nanoseconds); otherwise all chunks run in order on this thread.
template <class F>
void parallel_chunks(std::int64_t chunks, double nanoseconds, F&& fn) {
  if (chunks > 1 && worth_splitting(nanoseconds))
    parallel_chunks(chunks, fn);
  else
    for (std::int64_t i = 0; i < chunks; ++i) fn(i);
}

}  // namespace deft::ext
