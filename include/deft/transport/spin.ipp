// SPDX-License-Identifier: Apache-2.0
// deft/transport/spin.ipp: spinning, sleeping and leaving a processor.
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <deft/core/thread.hpp>
#include <deft/transport/spin.hpp>
#include <deft/transport/stream.hpp>
#include <string_view>

namespace deft::detail {

bool threads_outnumber_processors() {
  static const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  static const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  // "0.42 0.37 0.35 3/514 9120": three averages, and the number of threads that are ready to run.
  char text[128];
  const auto n = pread(file, text, sizeof text, 0);
  std::string_view rest(text, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  for (int averages = 0; averages < 3; ++averages) {
    const auto end = rest.find(' ');
    if (end == rest.npos) return false;
    rest.remove_prefix(end + 1);
  }
  long ready = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), ready);
  return ready > processors;
}

arrival_wait::clock::time_point arrival_wait::crowded_until(const spinning_threads& others) {
  return others.count + 2 > usable_processors() ? others.until : clock::time_point{};
}

bool give_way() {
  using clock = std::chrono::steady_clock;
  constexpr auto long_wait = std::chrono::microseconds(300);
  constexpr auto rest = std::chrono::milliseconds(100);
  static std::atomic<clock::time_point> not_before{};
  const auto before = clock::now();
  if (before < not_before.load(std::memory_order_relaxed)) return false;
  sched_yield();
  const auto after = clock::now();
  if (after - before > long_wait) not_before.store(after + rest, std::memory_order_relaxed);
  return true;
}

bool arrival_wait::look_again(clock::time_point now) {
  // What answers soon is waited for in any case: to wake takes longer.
  constexpr auto gives_way_after = std::chrono::microseconds(10);
  constexpr auto ask_after = std::chrono::microseconds(40);
  constexpr auto ask_every = std::chrono::microseconds(10);
  if (began_ == clock::time_point{}) began_ = now, ask_again_ = now + ask_after;
  last_ = now;
  if (!slept_ && (in_part_ ? now - began_ < most_ : spin_.worth(now - began_))) {
    const bool others_spin = now < crowded_until_;
    if ((others_spin || now - began_ >= gives_way_after) && give_way_()) return true;
    const bool asks = now >= ask_again_;
    if (asks) ask_again_ = now + ask_every;
    if (!others_spin && !(asks && crowded_())) {
      relax();
      return true;
    }
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

void arrival_wait::on_arrival(const stream& s) {
  constexpr int often = 32;
  constexpr auto rest = std::chrono::milliseconds(100);
  if (began_ == clock::time_point{} || in_part_) return restart();
  const auto waited = last_ - began_;
  const bool shared = slept_ && s.shares_processor();
  spin_.on_arrival(slept_, waited, shared);
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

void arrival_wait::on_partial_arrival(const stream& s) {
  on_arrival(s);
  in_part_ = true;
}

}  // namespace deft::detail
