// SPDX-License-Identifier: Apache-2.0
// deft/transport/spin.ipp: spinning, sleeping and changing the processor.
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

/// The calling thread runs on another processor from here on, for as long as the system likes.
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
  const bool beside = slept_ && s.beside_peer();
  spin_.came(slept_, waited, beside);
  // While others spin, there is no processor to go to.
  const bool crowded = began_ < crowded_until_;
  beside_soon_ = beside && !crowded && waited < 2 * most_ ? beside_soon_ + 1 : 0;
  if (beside_soon_ >= often && last_ >= move_again_) {
    leave_processor();
    beside_soon_ = 0;
    move_again_ = last_ + rest;
  }
  restart();
}

}  // namespace deft::detail
