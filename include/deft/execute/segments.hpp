// SPDX-License-Identifier: Apache-2.0
// deft/execute/segments.hpp: segments of kernels that are launched together, and the device graphs
// that a frame keeps to launch them again.
#pragma once
#include <deft/execute/schedule.hpp>

namespace deft::ext::exec {

/// Finds the segments of a part. Lanes and memory must have been planned.
void plan_segments(executable::compiled& c);

/// Gathers the launches of a segment in one run, then starts them. If all addresses are those of an
/// earlier run, it starts the device graph captured then.
class segment_launches {
 public:
  explicit segment_launches(const segment_info& s) : info_(s) {}

  /// Begins to gather. `step`: the frame's state on the device; `stop`: cancels the run.
  void begin(device_runtime& device, device_step* step,
             const std::stop_token& stop = never_stopped());
  /// Starts the launches gathered so far; this run then uses no captured graph.
  void interrupt();
  void add(const launch_request& r);
  /// Scratch memory, which the launches use one after the other.
  void* scratch(std::size_t bytes);
  /// Keeps a buffer that a launch uses alive until it is started.
  void hold(buffer b) { held_.push_back(std::move(b)); }
  bool is_locked(const void* elements) const;
  /// Starts all launches. `prepared_anew`: kernels were prepared again, so captured graphs are
  /// dropped. Throws cancelled between two launches if the run is to stop.
  void start(bool prepared_anew);
  /// Called after a run, successful or not.
  void end();

  /// The item whose kernel was launched last.
  std::uint32_t last() const { return last_; }

 private:
  struct known_run {
    std::vector<const void*> key;
    std::unique_ptr<launch_graph> graph;
    std::uint64_t used = 0;
  };
  /// The most sets of addresses for which graphs are kept.
  static constexpr std::size_t most_known = 4;
  static constexpr std::size_t own_words = 4;  ///< of a key, before the addresses

  void launch_gathered();
  known_run* find_known();

  const segment_info& info_;
  device_runtime* device_ = nullptr;
  device_step* step_ = nullptr;
  const std::stop_token* stop_ = nullptr;
  std::vector<launch_request> gathered_;
  std::vector<const void*> key_;
  std::vector<known_run> known_;
  std::vector<buffer> held_;
  buffer scratch_;
  std::size_t scratch_bytes_ = 0;  ///< largest of any launch
  std::uint32_t last_ = 0;
  std::uint64_t runs_ = 0;
  bool alike_ = true;     ///< another run may make equal launches
  bool captures_ = true;  ///< the device can capture
};

}  // namespace deft::ext::exec
