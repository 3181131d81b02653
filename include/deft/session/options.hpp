// SPDX-License-Identifier: Apache-2.0
// deft/session/options.hpp: how sessions plan and run.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deft/core/step_trace.hpp>
#include <deft/device/kind.hpp>
#include <deft/transport/credentials.hpp>
#include <optional>
#include <stop_token>

namespace deft {

/// Options of a session; every member has a default: `session s({.timeout = 5s});`.
struct session_options {
  bool log_device_placement = false;  ///< a line "name: (op): device" for each node of a new plan
  bool allow_soft_placement = false;  ///< fall back to an available device, and log it
  bool fold = true;                   ///< compute constants when the plan is made
  bool fuse = true;                   ///< fuse elementwise nodes into one kernel
  int intra_op_threads = 0;           ///< threads of one kernel, process-wide; 0: unchanged
  int cpu_devices = 1;                ///< "/cpu:0", "/cpu:1", … of a session in this process
  /// Number of GPUs ("/gpu:0", "/gpu:1", …) that the CPU simulates in a session of this process.
  /// Unset: as many as the environment variable DEFT_SIMULATED_GPUS says, else the real GPUs.
  std::optional<int> simulated_gpus = {};
  /// Whether products of float matrices and convolutions on GPUs of a session of this process may
  /// use TF32: faster, but elements are rounded to 11 significant bits before they are multiplied.
  /// Unset: as the environment variable DEFT_ALLOW_TF32 says (0 or 1), else false.
  std::optional<bool> allow_tf32 = {};
  /// How much memory of each GPU tensors may use in a session of this process: a value up to 1 is a
  /// fraction of the GPU's memory, a larger one a number of bytes. A run that needs more throws
  /// resource_exhausted. Unset: as the environment variable DEFT_GPU_MEMORY_LIMIT says, else all.
  std::optional<double> gpu_memory_limit = {};
  /// Settings of other kinds of devices, by the names of their flags: `{{"npu_devices", 2}}`.
  ext::device_settings device_settings = {};
  std::chrono::nanoseconds timeout{0};  ///< of each run; 0: no limit
  /// How long to wait for tasks that are not up yet before throwing unavailable.
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(60);
  /// A server from which nothing arrives for this long counts as lost, and runs that wait for it
  /// throw unavailable; a server that is only busy still sends heartbeats. Zero: no limit. For
  /// sessions on another process; servers have their own (server_options).
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(20);
  std::size_t cached_plans = 256;  ///< the least recently used plan is dropped first
  /// The stream of random numbers: sessions with different streams draw different numbers. Unset:
  /// derived from the index of the task that opens the session and the number of the session on its
  /// graph; the first session of a single process and of worker 0 has stream 0.
  std::optional<std::uint64_t> stream = {};
  /// The number of steps done before that drew random numbers: a session that continues a lost one
  /// with the same stream draws those which that one would have drawn next.
  std::uint64_t first_step = 0;
  deft::credentials credentials = {};  ///< as the servers' credentials
};

namespace ext {
/// What a session's or a server's options say about devices.
template <class Options>
device_settings settings_of(const Options& o) {
  device_settings s{{"cpu_devices", o.cpu_devices}};
  s.set("simulated_gpus", o.simulated_gpus);
  s.set("allow_tf32", o.allow_tf32);
  s.set("gpu_memory_limit", o.gpu_memory_limit);
  return merge(s, o.device_settings);
}
}  // namespace ext

/// Cancels runs from any thread: those whose run_options carry its token throw cancelled.
///
///     cancel_source c;
///     s.run(run_options{.cancel = c.token()}, loss);  // until another thread calls c.cancel()
class cancel_source {
 public:
  /// Cancels the runs under way, and all later ones that use the token.
  void cancel() { source_.request_stop(); }
  /// For run_options::cancel. It stays valid after the source is gone.
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
};

/// How a step that failed ended for the variables that it updates.
enum class step_fate : std::uint8_t {
  unknown,    ///< a task has restarted since, cannot be reached, or no longer remembers the step
  applied,    ///< all updates were made
  in_part,    ///< some of them may have been made, and others not
  unchanged,  ///< none was made, and none will be
};

/// Options of one run, as its first argument: `s.run(run_options{.timeout = 5s}, loss)`.
struct run_options {
  std::chrono::nanoseconds timeout{0};  ///< 0: that of the session's options
  std::stop_token cancel = {};          ///< from a cancel_source or any std::stop_source
  /// Receives when each node ran, on all tasks, if the run succeeds; must live until it has ended.
  step_trace* trace = nullptr;
  /// Receives the number of the step, by which session::fate_of knows it, or 0 if it did not begin;
  /// must live as long.
  std::uint64_t* step = nullptr;
};

}  // namespace deft
