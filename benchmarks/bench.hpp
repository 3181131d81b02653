// SPDX-License-Identifier: Apache-2.0
// benchmarks/bench.hpp: measures in turns, and prints the rows of the table of scripts/bench.
#pragma once
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// One turn; returns seconds per call.
using measure = std::function<double()>;

/// Keeps the compiler from removing the computation of `v`.
template <class T>
void keep(const T& v) {
  asm volatile("" : : "r"(&v) : "memory");
}

template <class F>
double seconds_of(F&& f, int calls) {
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
}

/// Turns of `f`, which is called for about `turn` seconds, and once before to wake up threads.
template <class F>
measure timed(F f, double turn = 0.005) {
  return [f = std::move(f), turn, calls = 0]() mutable {
    if (calls == 0) {
      f();
      for (calls = 1; seconds_of(f, calls) * calls < turn / 2; calls *= 2) {
      }
    }
    f();
    return seconds_of(f, calls);
  };
}

/// Medians of seconds per call.
struct outcome {
  double deft, yardstick;
};
inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// Measures all in turns, so that a disturbance affects all; returns the median of each.
inline std::vector<double> in_turns(const std::vector<measure>& all, int turns) {
  std::vector<std::vector<double>> taken(all.size());
  for (const auto& m : all) m();  // warms up
  for (int i = 0; i < turns; ++i)
    for (std::size_t k = 0; k < all.size(); ++k) taken[k].push_back(all[k]());
  std::vector<double> medians;
  for (auto& v : taken) medians.push_back(median(std::move(v)));
  return medians;
}
inline outcome in_turns(const measure& deft, const measure& yardstick, int turns = 41) {
  const auto m = in_turns(std::vector{deft, yardstick}, turns);
  return {m[0], m[1]};
}

inline std::string text(double v, const char* unit) {
  char s[64];
  std::snprintf(s, sizeof s, v < 9.995 ? "%.2f %s" : v < 99.95 ? "%.1f %s" : "%.0f %s", v, unit);
  return s;
}
inline std::string time_text(double seconds) {
  return seconds < 1e-6   ? text(seconds * 1e9, "ns")
         : seconds < 1e-3 ? text(seconds * 1e6, "us")
         : seconds < 1    ? text(seconds * 1e3, "ms")
                          : text(seconds, "s");
}
inline std::string speed_text(double bytes, double seconds) {
  return text(bytes / seconds / 1e9, "GB/s");
}

/// The goal for the ratio of deft's figure to the yardstick's; a row may have none.
struct asked {
  bool at_most;
  double bound;
};
inline asked at_most(double bound) { return {true, bound}; }
inline asked at_least(double bound) { return {false, bound}; }

inline void row(const std::string& work, const std::string& deft, const std::string& yardstick,
                double ratio, std::optional<asked> a) {
  std::printf("| %-54s | %11s | %-30s | %6.2f |", work.c_str(), deft.c_str(), yardstick.c_str(),
              ratio);
  if (a) {
    const bool met = a->at_most ? ratio <= a->bound : ratio >= a->bound;
    std::printf(" %s %.4g%s", a->at_most ? "<=" : ">=", a->bound, met ? "" : ", missed");
  }
  std::printf(" |\n");
  std::fflush(stdout);
}
/// A figure without a yardstick.
inline void row(const std::string& work, const std::string& deft) {
  std::printf("| %-54s | %11s |\n", work.c_str(), deft.c_str());
  std::fflush(stdout);
}
/// A row with a ratio of times.
inline void time_row(const std::string& work, outcome o, const std::string& yardstick,
                     std::optional<asked> a) {
  row(work, time_text(o.deft), time_text(o.yardstick) + " " + yardstick, o.deft / o.yardstick, a);
}
/// A row with a ratio of speeds, for work that both measured in seconds.
inline void work_row(const std::string& work, outcome o, const std::string& yardstick,
                     std::optional<asked> a) {
  row(work, time_text(o.deft), time_text(o.yardstick) + " " + yardstick, o.yardstick / o.deft, a);
}
/// A row with a ratio of speeds, in bytes per second.
inline void speed_row(const std::string& work, double bytes, outcome o,
                      const std::string& yardstick, std::optional<asked> a) {
  row(work, speed_text(bytes, o.deft), speed_text(bytes, o.yardstick) + " " + yardstick,
      o.yardstick / o.deft, a);
}

/// A number that the system states of a process: kilobytes of "VmRSS" or "VmHWM", "Threads".
inline double status_of(pid_t pid, const std::string& what) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(what + ":")) return std::atof(line.c_str() + what.size() + 1);
  return 0;
}

/// The value of `--name value` on a command line; empty if absent.
inline std::string flag(int argc, char** argv, const std::string& name) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == "--" + name) return argv[i + 1];
  return {};
}

}  // namespace bench
