// SPDX-License-Identifier: Apache-2.0
// deft/session/options.hpp: how sessions plan and run.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deft/transport/credentials.hpp>
#include <optional>
#include <stop_token>

namespace deft {

/// Of a session. Every member has a default.
struct session_options {
  bool log_device_placement = false;  ///< a line "name: (op): device" for each node of a new plan
  bool allow_soft_placement = false;  ///< take what device there is, and log
  bool fold = true;                   ///< compute constants when the plan is made
  bool fuse = true;                   ///< join elementwise nodes
  int intra_op_threads = 0;           ///< threads of one kernel, for the whole process; 0: as it is
  int cpu_devices = 1;                ///< "/cpu:0", "/cpu:1", … of a session in this process
  /// "/gpu:0", "/gpu:1", … of such a session, played by the processor. Unset: as many as the
  /// environment's DEFT_SIMULATED_GPUS says, else the GPUs that there are.
  std::optional<int> simulated_gpus = {};
  /// On GPUs of such a session, products of float matrices may take TF32, which is quicker, and
  /// rounds their elements to 11 significant bits before it multiplies them. Unset: as the
  /// environment's DEFT_ALLOW_TF32 says, 0 or 1, else not.
  std::optional<bool> allow_tf32 = {};
  /// What tensors may take of each GPU of such a session: up to 1 a part of its memory, else bytes.
  /// Beyond it runs throw resource_exhausted. Unset: as the environment's DEFT_GPU_MEMORY_LIMIT
  /// says, else all.
  std::optional<double> gpu_memory_limit = {};
  std::chrono::nanoseconds timeout{0};  ///< of a run; 0: none
  /// How long to wait for tasks that have not come up yet; then they are unavailable.
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(60);
  /// A server of which nothing comes for so long is lost, and what waits for it fails as
  /// unavailable; heartbeats come from one that is only busy. Zero: never. For a session to another
  /// process; tasks have theirs (server_options).
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(20);
  std::size_t cached_plans = 256;  ///< least recently used go first
  /// Of random numbers: sessions with different streams draw different ones. Unset: the number of
  /// the task that opens the session, and that of the session on its graph; the first one of a
  /// single process and of worker 0 has stream 0.
  std::optional<std::uint64_t> stream = {};
  /// Steps that were done before: a session that goes on where another of the same stream was lost
  /// draws what that one would have drawn.
  std::uint64_t first_step = 0;
  deft::credentials credentials = {};  ///< the servers'
};

/// Stops runs that were given it, from any thread.
class cancel_source {
 public:
  void cancel() { source_.request_stop(); }
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
};

/// Of one run; goes first: `s.run(run_options{.timeout = 5s}, loss)`.
struct run_options {
  std::chrono::nanoseconds timeout{0};  ///< 0: the session's
  std::stop_token cancel = {};          ///< of a cancel_source, or of any std::stop_source
};

}  // namespace deft
