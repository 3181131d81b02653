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

namespace deft::exec {

/// What decides the lane of an item.
struct lane_choice {
  std::uint32_t device = ~std::uint32_t{0};  ///< memory that it works on; the default: the host's
  bool quick = false;                        ///< the item only starts work
  bool asynchronous = false;                 ///< which may go on when the next item is run
  bool waits = false;                        ///< it may wait for something outside the step
  bool alone = false;                        ///< a lane of its own, so that nothing waits with it
  double cost = 0;                           ///< estimated nanoseconds
  /// A node right behind whose item it comes, in the same lane: a value leaves when it is made.
  std::uint32_t follows = ~std::uint32_t{0};
};

/// An item of a lane; a signal that it gives or waits for; or that what this item has started, and
/// all before it, is to be done.
struct lane_entry {
  enum kind : std::uint8_t { item, signal, wait, drain } what = item;
  std::uint32_t number = 0;
};
struct lane_plan {
  struct lane {
    std::vector<lane_entry> entries;
    bool quick = false;
    bool parallel = false;  ///< a part of the host's work that another thread may do
  };
  std::vector<lane> lanes;
  std::uint32_t signals = 0;
};

/// Takes the nodes of a part in their order. What may wait for something outside the step has a
/// lane of its own, with what follows from it only: everything else goes on.
class lane_planner {
 public:
  explicit lane_planner(const graph_def& g) : graph_(g) {}

  /// The next node has no item: a constant, a feed, a group.
  void skip(std::uint32_t node);
  /// The next node has this item.
  void add(std::uint32_t node, std::uint32_t item, const lane_choice& c);
  /// A further item, of the value of `node`, after all nodes.
  void add_fetch(std::uint32_t node, std::uint32_t item, const lane_choice& c);

  /// `threads`: most lanes of the host's work that pay at the same time.
  lane_plan take(int threads = 1);

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// Position in the global order: the node's number, then what comes right behind it.
  using place = std::pair<std::uint32_t, std::uint32_t>;
  struct work {
    std::uint32_t node, item, lane;
    place at;
    std::uint32_t index = 0;  ///< in its lane
    double cost = 0;
    std::uint32_t behind = none;         ///< work right behind which it comes
    std::vector<std::uint32_t> after;    ///< works
    std::vector<std::uint32_t> drained;  ///< works elsewhere that are to be done, not only started
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
                place at, std::vector<std::uint32_t> after);

  const graph_def& graph_;
  std::vector<work> works_;
  std::vector<std::uint32_t> work_of_;  ///< of each node; none: it has no item
  std::map<std::uint32_t, std::vector<std::uint32_t>> through_;  ///< works behind such a node
  std::vector<place> places_;                                    ///< of each node
  plan::wait_sets waits_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> lane_numbers_;
  std::vector<bool> quick_;
  std::vector<std::uint32_t> parallel_;
};

}  // namespace deft::exec
