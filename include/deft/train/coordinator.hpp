// SPDX-License-Identifier: Apache-2.0
// deft/train/coordinator.hpp: threads of the program that end together.
#pragma once
#include <deft/core/config.hpp>
#include <functional>
#include <memory>

namespace deft {

/// Runs threads of the program, such as those that read data, and ends them together: when one
/// throws, or somebody asks, all are asked to stop. Thread-safe.
///
///     coordinator threads;
///     threads.start([&] { while (!threads.should_stop()) work(); });
///     …
///     threads.request_stop();
///     threads.join();
class coordinator {
 public:
  coordinator();
  /// Asks the threads to stop and waits for them. What they threw is logged if join did not throw
  /// it.
  ~coordinator();
  coordinator(const coordinator&) = delete;

  /// Runs `f` on a new thread, whose current graph is the caller's. What it throws asks all threads
  /// to stop; the first exception counts. Throws failed_precondition once the threads were joined.
  void start(std::function<void()> f);
  /// Asks all threads to stop, and returns at once.
  void request_stop();
  /// Whether a thread has thrown, or request_stop was called: what the loop of a thread asks.
  bool should_stop() const;
  /// Waits until somebody asks to stop.
  void wait_for_stop();
  /// Waits until all threads have ended, and throws the first exception.
  void join();

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace deft
