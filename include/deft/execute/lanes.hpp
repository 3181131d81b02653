// SPDX-License-Identifier: Apache-2.0
// deft/execute/lanes.hpp: which items of a part run in the same in-order lane, and what the lanes
// tell each other. The numbers of nodes are the global order that every part keeps; lanes keep it
// too, so that the earliest item that has not ended can always go on.
#pragma once
#include <cstdint>
#include <deft/plan/waits.hpp>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace deft::ext::exec {

/// What decides the lane of an item.
struct lane_choice {
  std::uint32_t device = ~std::uint32_t{0};  ///< whose memory it works on; default: the host's
  bool quick = false;                        ///< the item only starts work
  bool asynchronous = false;                 ///< the work may still run when the next item does
  bool waits = false;                        ///< it may wait for something outside the step
  bool alone = false;  ///< gets a separate lane, so that no other item waits with it
  double cost = 0;     ///< estimated nanoseconds
  /// The node whose item it directly follows, in the same lane: a value is sent once computed.
  std::uint32_t follows = ~std::uint32_t{0};
};

/// An entry of a lane: an item, a signal to give or to wait for, or a drain, which waits for the
/// work that the item and all items before it have started.
struct lane_entry {
  enum kind : std::uint8_t { item, signal, wait, drain } what = item;
  std::uint32_t number = 0;
};
struct lane_plan {
  struct lane {
    std::vector<lane_entry> entries;
    bool quick = false;
    bool parallel = false;  ///< a share of the host's work that another thread may do
  };
  std::vector<lane> lanes;
  std::uint32_t signals = 0;
};

/// Assigns the nodes of a part, in their order, to lanes. A node that may wait for an event outside
/// the step gets a separate lane, with the nodes that depend on it alone, so that all others go on.
class lane_planner {
 public:
  explicit lane_planner(const graph_def& g) : graph_(g) {}

  /// The next node has no item: a constant, a feed, a group.
  void skip(std::uint32_t node);
  /// The next node has this item.
  void add(std::uint32_t node, std::uint32_t item, const lane_choice& c);
  /// Adds a further item, for the value of `node`. Called after all nodes were added.
  void add_fetch(std::uint32_t node, std::uint32_t item, const lane_choice& c);

  /// Returns the plan. `threads`: the most lanes into which the host's work is split.
  lane_plan take(int threads = 1);

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// Position in the global order: the node's number, then what comes right behind it.
  using position = std::pair<std::uint32_t, std::uint32_t>;
  struct work {
    std::uint32_t node, item, lane;
    position at;
    std::uint32_t index = 0;  ///< in its lane
    double cost = 0;
    std::uint32_t behind = none;       ///< work right behind which it comes
    std::vector<std::uint32_t> after;  ///< works
    std::vector<std::uint32_t>
        drained;  ///< works of other lanes that must be done, not only started
    std::uint32_t device = none;
    bool asynchronous = false, waits = false;
  };
  std::uint32_t lane_of(const lane_choice& c, std::uint32_t waits, std::uint32_t alone);
  static constexpr double enough = 50'000;  ///< nanoseconds of work that a lane has at least
  void split_host_work(int threads);
  std::size_t split_host_work(std::size_t lanes, std::uint32_t host,
                              std::span<const std::uint32_t> list, double total);
  void depend(std::uint32_t on, std::vector<std::uint32_t>& works) const;
  void add_work(std::uint32_t node, std::uint32_t item, const lane_choice& c, std::uint32_t waits,
                position at, std::vector<std::uint32_t> after);

  const graph_def& graph_;
  std::vector<work> works_;
  std::vector<std::uint32_t> work_of_;  ///< of each node; none: it has no item
  std::map<std::uint32_t, std::vector<std::uint32_t>> through_;  ///< works behind such a node
  std::vector<position> positions_;                              ///< of each node
  plan::wait_sets waits_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> lane_numbers_;
  std::vector<bool> quick_;
  std::vector<std::uint32_t> parallel_;
};

}  // namespace deft::ext::exec
