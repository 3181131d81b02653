// SPDX-License-Identifier: Apache-2.0
// deft/transport/spin.ipp: spinning, sleeping and leaving a processor.
#pragma once
#include <sched.h>

#include <deft/transport/spin.hpp>
#include <deft/transport/stream.hpp>

namespace deft::detail {

arrival_wait::clock::time_point arrival_wait::crowded_until(const spinning_threads& others) {
  static const int processors = [] {
    cpu_set_t all;
    return sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 1;
  }();
  return others.count + 2 > processors ? others.until : clock::time_point{};
}

bool arrival_wait::look_again(clock::time_point now) {
  if (began_ == clock::time_point{}) began_ = now;
  last_ = now;
  if (!slept_ && now >= crowded_until_ && spin_.worth(now - began_)) {
    relax();
    return true;
  }
  slept_ = true;
  return false;
}

/// Moves the calling thread to another processor, where the system need not keep it.
inline void leave_processor() {
  cpu_set_t all;
  const int here = sched_getcpu();
  if (here < 0 || sched_getaffinity(0, sizeof all, &all) != 0) return;
  cpu_set_t others = all;
  CPU_CLR(here, &others);
  if (CPU_COUNT(&others) == 0) return;
  sched_setaffinity(0, sizeof others, &others);
  sched_setaffinity(0, sizeof all, &all);
}

void arrival_wait::came(const stream& s) {
  constexpr int often = 32;
  constexpr auto rest = std::chrono::milliseconds(100);
  if (began_ == clock::time_point{}) return;
  const auto waited = last_ - began_;
  const bool shared = slept_ && s.shares_processor();
  spin_.came(slept_, waited, shared);
  // While others spin, there is no free processor to move to.
  const bool crowded = began_ < crowded_until_;
  shared_soon_ = shared && !crowded && waited < 2 * most_ ? shared_soon_ + 1 : 0;
  if (shared_soon_ >= often && last_ >= move_again_) {
    leave_processor();
    shared_soon_ = 0;
    move_again_ = last_ + rest;
  }
  restart();
}

}  // namespace deft::detail
