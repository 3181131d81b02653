// SPDX-License-Identifier: Apache-2.0
// deft/execute/memory_plan.ipp: last uses, offsets and slots.
#pragma once
#include <algorithm>
#include <deft/execute/memory_plan.hpp>
#include <deft/kernels/spec/offset_allocator.hpp>
#include <unordered_map>

namespace deft::ext::exec {
namespace {

/// Feeds up to here are copied into the arena, where kernels always find them.
constexpr std::size_t small_feed = 256;

std::size_t bytes_of(const tensor_type& t) {
  return static_cast<std::size_t>(t.shape.elements()) * size_of_dtype(t.type);
}
std::size_t aligned(std::size_t bytes) { return offset_allocator<>::aligned(bytes); }

class memory_planner {
 public:
  explicit memory_planner(executable::compiled& c)
      : c_(c), lane_of_(c.values.size(), none), taken_over_(c.values.size()) {}

  void run() {
    for (auto& [v, elements] : c_.constants) is_constant_[v] = true;
    find_last_uses();
    place_feeds();
    for (std::uint32_t l = 0; l < c_.lanes.size(); ++l) place_lane(c_.lanes[l]);
    for (std::uint32_t v = 0; v < c_.values.size(); ++v)
      if (root(v).where == storage::shared && !is_constant(c_.values[v].root))
        c_.holders.push_back(v);
    find_bindable();
  }

 private:
  value_info& root(std::uint32_t v) { return c_.values[c_.values[v].root]; }
  bool is_constant(std::uint32_t v) const { return is_constant_.contains(v); }

  /// The memory of a value is used as long as any value that shares it is: until an item of the one
  /// lane that uses it, or as long as the run.
  void find_last_uses() {
    for (std::uint32_t l = 0; l < c_.lanes.size(); ++l)
      for (std::uint32_t k = c_.lanes[l].first; k < c_.lanes[l].end; ++k) {
        const item& i = c_.items[k];
        for (std::uint32_t a = 0; a < i.ins; ++a) use(c_.inputs[i.first_in + a], l, k);
        for (std::uint32_t o = 0; o < i.outs; ++o) use(i.first_out + o, l, k);
      }
    for (auto v : c_.fetch_values)
      if (v != none) root(v).last_use = none;
  }
  void use(std::uint32_t v, std::uint32_t lane, std::uint32_t item) {
    const std::uint32_t r = c_.values[v].root;
    auto& first = lane_of_[r];
    if (first == none) first = lane;
    auto& last = c_.values[r].last_use;
    if (last != none) last = first == lane ? std::max(last, item) : none;
  }

  /// Small ones are copied into the arena; others stay where they are, or have a buffer on their
  /// device, where those of rank 0 come in one block with the step's number.
  void place_feeds() {
    for (const item& i : c_.items)  // whose kernels ask for the step's number
      if (i.what == action::run && i.outs && !i.on_host && c_.label(i).op->is(op_traits::stateful))
        begin_block(c_.spaces[c_.values[i.first_out].space]);
    for (auto v : c_.feed_values) {
      value_info& i = c_.values[v];
      space_info& space = c_.spaces[i.space];
      if (i.where == storage::buffer && c_.type(i).shape.rank() == 0 && !i.escapes) {
        begin_block(space);
        i.where = storage::arena_static;
        i.event = none;
        i.last_use = none;
        i.offset = space.bytes;
        space.bytes = space.block_bytes += sizeof(std::uint64_t);
      } else if (i.where == storage::buffer) {
        i.offset = c_.owned++;
        i.last_use = none;
      }
    }
    for (auto& s : c_.spaces) s.bytes = s.bytes ? aligned(s.bytes) : 0;
    for (auto v : c_.feed_values) {
      value_info& i = c_.values[v];
      if (i.where == storage::shared && c_.type(i).shape.is_static() && !i.escapes &&
          plain_dtypes.has(c_.type(i).type) && c_.device(i).space().on_host() &&
          bytes_of(c_.type(i)) <= small_feed) {
        i.where = storage::arena_static;
        i.last_use = none;
        i.offset = c_.spaces[i.space].bytes;
        c_.spaces[i.space].bytes += aligned(bytes_of(c_.type(i)));
      }
    }
  }

  static void begin_block(space_info& s) {
    if (!s.block_bytes) s.bytes = s.block_bytes = sizeof(std::uint64_t);
  }

  void place_lane(const lane_info& lane) {
    // What dies at each item.
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> dying;
    for (std::uint32_t v = 0; v < c_.values.size(); ++v) {
      const value_info& i = c_.values[v];
      if (i.root == v && i.last_use != none && i.last_use >= lane.first && i.last_use < lane.end)
        dying[i.last_use].push_back(v);
    }
    std::vector<offset_allocator<>> regions(c_.spaces.size());
    std::vector<std::uint32_t> placed, idle;  // values with offsets; slots
    for (std::uint32_t k = lane.first; k < lane.end; ++k) {
      item& i = c_.items[k];
      for (std::uint32_t o = i.first_out; o < i.first_out + i.outs; ++o) {
        value_info& v = c_.values[o];
        if (v.root != o) continue;
        if (v.where == storage::buffer)
          v.offset = c_.owned++;
        else if (i.what == action::run && !take_over(k, o, placed))
          assign_offset(o, v, regions[v.space], placed, idle);
      }
      i.first_release = static_cast<std::uint32_t>(c_.releases.size());
      if (auto at = dying.find(k); at != dying.end())
        for (auto v : at->second) retire(v, regions, idle);
      i.releases = static_cast<std::uint32_t>(c_.releases.size()) - i.first_release;
    }
    // Lanes run at the same time: each has a region of its own.
    for (auto v : placed) c_.values[v].offset += c_.spaces[c_.values[v].space].bytes;
    for (std::size_t s = 0; s < regions.size(); ++s) c_.spaces[s].bytes += regions[s].size();
  }
  /// Places a result of item `k` over an input that is used for the last time, if its kernel allows
  /// that: less memory passes through the caches.
  bool take_over(std::uint32_t k, std::uint32_t result, std::vector<std::uint32_t>& placed) {
    const item& i = c_.items[k];
    value_info& v = c_.values[result];
    const kernel* const what = c_.kernels[i.number].get();
    if (!what || v.escapes || v.shape != none) return false;
    const auto allowed = [&](std::uint32_t a) {
      return what->may_overwrite(a, result - i.first_out);
    };
    for (std::uint32_t a = 0; a < i.ins; ++a) {
      const std::uint32_t in = c_.inputs[i.first_in + a], r = c_.values[in].root;
      const value_info& before = c_.values[r];
      if (before.where != storage::arena_static || before.last_use != k || taken_over_[r] ||
          before.space != v.space || c_.values[in].type != v.type ||
          bytes_of(c_.type(before)) != bytes_of(c_.type(v)))
        continue;
      bool all = true;  // of the inputs that share this memory
      for (std::uint32_t b = 0; b < i.ins && all; ++b)
        if (c_.values[c_.inputs[i.first_in + b]].root == r) all = allowed(b);
      if (!all) continue;
      taken_over_[r] = true;
      v.where = storage::arena_static;
      v.offset = before.offset;
      placed.push_back(result);
      return true;
    }
    return false;
  }
  void assign_offset(std::uint32_t number, value_info& v, offset_allocator<>& r,
                     std::vector<std::uint32_t>& placed, std::vector<std::uint32_t>& idle) {
    if (v.escapes) {
      v.where = storage::buffer;
      v.offset = c_.owned++;
    } else if (v.shape == none) {
      v.where = storage::arena_static;
      v.offset = r.take(bytes_of(c_.type(v)));
      placed.push_back(number);
    } else {
      v.where = storage::arena_dynamic;
      for (std::size_t f = idle.size(); f-- > 0;) {
        const value_info& before = c_.values[idle[f]];
        if (before.space != v.space || before.type != v.type) continue;
        v.offset = before.offset;
        idle.erase(idle.begin() + static_cast<std::ptrdiff_t>(f));
        return;
      }
      v.offset = c_.spaces[v.space].slots++;
    }
  }
  void retire(std::uint32_t v, std::vector<offset_allocator<>>& regions,
              std::vector<std::uint32_t>& idle) {
    const value_info& i = c_.values[v];
    if (taken_over_[v]) return;
    if (i.where == storage::arena_static)
      regions[i.space].give(i.offset, bytes_of(c_.type(i)));
    else if (i.where == storage::arena_dynamic)
      idle.push_back(v);
    else if (i.where == storage::shared && !is_constant(v))
      for (auto s : sharers(v)) c_.releases.push_back(s);
  }
  const std::vector<std::uint32_t>& sharers(std::uint32_t r) {
    if (sharers_.empty())
      for (std::uint32_t v = 0; v < c_.values.size(); ++v) sharers_[c_.values[v].root].push_back(v);
    return sharers_[r];
  }

  void find_bindable() {
    auto stays = [&](std::uint32_t v) {
      const value_info& r = root(v);
      return r.where == storage::arena_static || is_constant(c_.values[v].root);
    };
    for (item& i : c_.items) {
      i.bindable = i.what == action::run && i.on_host && !i.dynamic && !i.releases;
      for (std::uint32_t a = 0; a < i.ins && i.bindable; ++a)
        i.bindable = stays(c_.inputs[i.first_in + a]);
      for (std::uint32_t o = i.first_out; o < i.first_out + i.outs && i.bindable; ++o)
        i.bindable = stays(o) && c_.values[o].uses > 0;
    }
  }

  executable::compiled& c_;
  std::vector<std::uint32_t> lane_of_;  ///< of each root, the first lane that uses it
  std::unordered_map<std::uint32_t, bool> is_constant_;
  std::vector<bool> taken_over_;  ///< by a result of the item at which they die
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> sharers_;
};

}  // namespace

void plan_memory(executable::compiled& c) { memory_planner(c).run(); }

}  // namespace deft::ext::exec
