// SPDX-License-Identifier: Apache-2.0
// deft/execute/lanes.ipp: assigning lanes, and the fewest signals between them.
#pragma once
#include <algorithm>
#include <deft/execute/lanes.hpp>
#include <functional>
#include <tuple>

namespace deft::ext::exec {

std::uint32_t lane_planner::lane_of(const lane_choice& c, std::uint32_t waits,
                                    std::uint32_t alone) {
  auto [at, fresh] = lane_numbers_.try_emplace({c.device, waits, alone},
                                               static_cast<std::uint32_t>(quick_.size()));
  if (fresh) quick_.push_back(c.quick);
  return at->second;
}

void lane_planner::depend(std::uint32_t on, std::vector<std::uint32_t>& works) const {
  if (work_of_[on] != none) {
    works.push_back(work_of_[on]);
  } else if (auto at = through_.find(on); at != through_.end()) {
    works.insert(works.end(), at->second.begin(), at->second.end());
  }
}

void lane_planner::skip(std::uint32_t node) {
  const node_def& n = graph_.nodes[node];
  std::vector<std::uint32_t> behind;
  position at{0, 0};
  auto look = [&](std::uint32_t from) {
    depend(from, behind);
    at = std::max(at, positions_[from]);
  };
  for (auto e : n.inputs) look(e.node);
  for (auto c : n.controls) look(c);
  // Of each lane the last one tells enough.
  std::ranges::sort(behind, [&](auto a, auto b) {
    return std::tie(works_[a].lane, works_[a].at) < std::tie(works_[b].lane, works_[b].at);
  });
  std::vector<std::uint32_t> last;
  for (std::size_t i = 0; i < behind.size(); ++i)
    if (i + 1 == behind.size() || works_[behind[i]].lane != works_[behind[i + 1]].lane)
      last.push_back(behind[i]);
  waits_.add(n, false);
  positions_.push_back(at);
  work_of_.push_back(none);
  if (!last.empty()) through_.emplace(node, std::move(last));
}

void lane_planner::add_work(std::uint32_t node, std::uint32_t item, const lane_choice& c,
                            std::uint32_t waits, position at, std::vector<std::uint32_t> after) {
  std::uint32_t lane = none;
  // Right behind the item that makes its value, where that is.
  if (c.follows != none && !c.alone && work_of_[c.follows] != none)
    lane = works_[work_of_[c.follows]].lane;
  if (lane == none) lane = lane_of(c, waits, c.alone ? node + 1 : 0);
  const std::uint32_t behind =
      c.follows != none && !c.alone ? work_of_[c.follows] : std::uint32_t{none};
  works_.push_back({node,
                    item,
                    lane,
                    at,
                    0,
                    c.cost,
                    behind,
                    std::move(after),
                    {},
                    c.device,
                    c.asynchronous,
                    c.waits});
}

void lane_planner::add(std::uint32_t node, std::uint32_t item, const lane_choice& c) {
  const node_def& n = graph_.nodes[node];
  std::vector<std::uint32_t> after, controls, drained;
  // What has no item only waits for others.
  for (auto e : n.inputs) depend(e.node, work_of_[e.node] == none ? controls : after);
  for (auto d : n.controls) depend(d, controls);
  for (auto w : controls)
    (works_[w].asynchronous && works_[w].device != c.device ? drained : after).push_back(w);
  const std::uint32_t waits = waits_.add(n, c.waits);
  const position at =
      c.follows != none ? position(positions_[c.follows].first, node + 1) : position(node + 1, 0);
  add_work(node, item, c, waits, at, std::move(after));
  works_.back().drained = std::move(drained);
  positions_.push_back(at);
  work_of_.push_back(static_cast<std::uint32_t>(works_.size() - 1));
}

void lane_planner::add_fetch(std::uint32_t node, std::uint32_t item, const lane_choice& c) {
  std::vector<std::uint32_t> after;
  depend(node, after);
  lane_choice behind = c;
  behind.follows = node;
  add_work(
      node, item, behind, waits_.of(node),
      position(positions_[node].first, static_cast<std::uint32_t>(graph_.nodes.size()) + item + 1),
      std::move(after));
}

/// In as many lanes as pay.
void lane_planner::split_host_work(int threads) {
  const auto at = lane_numbers_.find({none, 0, 0});
  if (threads < 2 || at == lane_numbers_.end()) return;
  const std::uint32_t host = at->second;
  std::vector<std::uint32_t> list;
  double total = 0;
  for (std::uint32_t w = 0; w < works_.size(); ++w)
    if (works_[w].lane == host) list.push_back(w), total += works_[w].cost;
  if (total < 2 * enough) return;
  std::ranges::sort(list, {}, [&](std::uint32_t w) { return works_[w].at; });
  auto lanes = static_cast<std::size_t>(std::min<double>(threads, total / enough));
  while (lanes > 1) lanes = split_host_work(lanes, host, list, total);
}

/// Gives each piece of the host's work, in order, to the lane where it would end first. Kernels
/// that the team splits stay in the first. Nothing is done unless every lane gets enough, and the
/// whole ends much earlier. Yields how many lanes are worth another try, fewer than these.
std::size_t lane_planner::split_host_work(std::size_t lanes, std::uint32_t host,
                                          std::span<const std::uint32_t> list, double total) {
  constexpr double handover = 2'000, splits = 100'000;  // nanoseconds
  std::vector<double> free_at(lanes), busy(lanes), end(works_.size());
  std::vector<std::uint32_t> chosen(works_.size(), none);
  for (auto w : list) {
    const work& x = works_[w];
    auto ends = [&](std::uint32_t l) {
      double begin = free_at[l];
      for (auto d : x.after)
        begin = std::max(begin, end[d] + (chosen[d] == l || chosen[d] == none ? 0 : handover));
      return begin + x.cost;
    };
    std::uint32_t best = 0;
    if (x.behind != none && chosen[x.behind] != none)
      best = chosen[x.behind];
    else if (x.cost < splits)
      for (std::uint32_t l = 1; l < lanes; ++l)
        if (ends(l) < ends(best)) best = l;
    chosen[w] = best;
    end[w] = free_at[best] = ends(best);
    busy[best] += x.cost;
  }
  if (*std::ranges::max_element(free_at) > 0.75 * total) return 0;
  if (std::ranges::any_of(busy, [](double b) { return b > 0 && b < enough; }))
    return static_cast<std::size_t>(
        std::ranges::count_if(busy, [](double b) { return b >= enough; }));
  std::vector<std::uint32_t> number(lanes, host);
  for (std::size_t l = 1; l < lanes; ++l)
    if (busy[l] > 0) {
      number[l] = static_cast<std::uint32_t>(quick_.size());
      quick_.push_back(false);
      parallel_.push_back(number[l]);
    }
  for (auto w : list) works_[w].lane = number[chosen[w]];
  return 0;
}

lane_plan lane_planner::take(int threads) {
  split_host_work(threads);
  lane_plan plan;
  std::vector<std::vector<std::uint32_t>> in_lane(quick_.size());
  for (std::uint32_t w = 0; w < works_.size(); ++w) in_lane[works_[w].lane].push_back(w);
  for (auto& list : in_lane) {
    std::ranges::sort(list, {}, [&](std::uint32_t w) { return works_[w].at; });
    for (std::uint32_t i = 0; i < list.size(); ++i) works_[list[i]].index = i;
  }
  // What a lane has waited for of another it need not wait for again.
  std::vector<std::vector<std::uint32_t>> gives(works_.size()), drains(works_.size()),
      waits(works_.size());
  if (in_lane.size() > 1)
    for (const auto& list : in_lane) {
      std::map<std::uint32_t, std::uint32_t> run, done;  // lane: how many of its items are
      auto wait = [&](std::uint32_t w, std::uint32_t d, auto& known, auto& give) {
        const work& before = works_[d];
        if (before.lane == works_[w].lane || before.index < known[before.lane]) return;
        known[before.lane] = before.index + 1;
        run[before.lane] = std::max(run[before.lane], before.index + 1);
        give[d].push_back(plan.signals);
        waits[w].push_back(plan.signals++);
      };
      for (auto w : list) {
        std::ranges::sort(works_[w].drained, std::greater<>());  // of each lane the last one first
        for (auto d : works_[w].drained) wait(w, d, done, drains);
        for (auto d : works_[w].after) wait(w, d, run, gives);
      }
    }
  // While others may wait for ever, an error that only a device sees ends the run all the same.
  const bool watched = in_lane.size() > 1 && std::ranges::any_of(works_, &work::waits);
  for (std::size_t l = 0; l < in_lane.size(); ++l) {
    auto& lane = plan.lanes.emplace_back();
    lane.quick = quick_[l];
    lane.parallel = std::ranges::count(parallel_, l) != 0;
    for (auto w : in_lane[l]) {
      for (auto s : waits[w]) lane.entries.push_back({lane_entry::wait, s});
      lane.entries.push_back({lane_entry::item, works_[w].item});
      for (auto s : gives[w]) lane.entries.push_back({lane_entry::signal, s});
      if (!drains[w].empty()) lane.entries.push_back({lane_entry::drain, works_[w].item});
      for (auto s : drains[w]) lane.entries.push_back({lane_entry::signal, s});
    }
    if (watched && std::ranges::any_of(in_lane[l], [&](auto w) { return works_[w].asynchronous; }))
      lane.entries.push_back({lane_entry::drain, works_[in_lane[l].back()].item});
  }
  return plan;
}

}  // namespace deft::ext::exec
