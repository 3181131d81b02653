// SPDX-License-Identifier: Apache-2.0
// deft/execute/segments.hpp: kernels that are launched together, and what a frame keeps to launch
// them again at once.
#pragma once
#include <deft/execute/schedule.hpp>

namespace deft::exec {

/// Finds the segments of a part whose lanes and memory are planned.
void plan_segments(executable::compiled& c);

/// The launches of a segment in one run: gathered, then started. With the addresses of an earlier
/// run they are what a graph of the device has kept.
class segment_launches {
 public:
  explicit segment_launches(const segment_info& s) : info_(s) {}

  /// Nothing is gathered yet. `step`: what the frame keeps on the device.
  void begin(device_runtime& device, device_step* step);
  /// Launches what has been gathered now; the rest follows by itself.
  void interrupt();
  void add(const launch_request& r);
  /// Memory for one launch after the other.
  void* scratch(std::size_t bytes);
  /// Holds what a launch uses until it is started.
  void hold(buffer b) { held_.push_back(std::move(b)); }
  bool is_locked(const void* elements) const;
  /// Starts all; graphs of kernels that were prepared anew are gone.
  void start(bool prepared_anew);
  /// After a run, however it went.
  void end();

  /// The item whose kernel was launched last.
  std::uint32_t last() const { return last_; }

 private:
  struct known_run {
    std::vector<const void*> key;
    std::unique_ptr<launch_graph> graph;
    std::uint64_t used = 0;
  };
  /// Runs that alternate between so many sets of addresses.
  static constexpr std::size_t most_known = 4;
  static constexpr std::size_t own_words = 4;  ///< of a key, before the addresses

  void launch_gathered();
  known_run* find_known();

  const segment_info& info_;
  device_runtime* device_ = nullptr;
  device_step* step_ = nullptr;
  std::vector<launch_request> gathered_;
  std::vector<const void*> key_;
  std::vector<known_run> known_;
  std::vector<buffer> held_;
  buffer scratch_;
  std::size_t scratch_bytes_ = 0;  ///< of the launch that needs most
  std::uint32_t last_ = 0;
  std::uint64_t runs_ = 0;
  bool alike_ = true;     ///< another run may launch the same
  bool captures_ = true;  ///< the device can
};

}  // namespace deft::exec
