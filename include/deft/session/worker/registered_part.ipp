// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/registered_part.ipp: the peers of a part, and how long its segments take.
#pragma once
#include <algorithm>
#include <deft/session/worker/registered_part.hpp>

namespace deft::ext {

registered_part::registered_part(plan::part part, const task_resources& task,
                                 const incarnation_list& peers, const std::string& master)
    : frame_pool(std::move(part), task),
      stream_(part.stream),
      times_(code().lanes() + 2) {  // the start, the lanes, and the end
  auto incarnation_of = [&](const transfer& c) {
    auto at = std::ranges::find(peers, to_string(*c.peer), &incarnation_list::value_type::first);
    return at == peers.end() ? 0 : at->second;
  };
  for (const auto& s : code().sends()) {
    const auto known = std::ranges::find(destinations_, s.peer, &destination::task);
    receivers_.push_back(static_cast<std::size_t>(known - destinations_.begin()));
    if (known == destinations_.end())
      destinations_.push_back({s.peer, incarnation_of(s), to_string(*s.peer) == master});
  }
  for (const auto& r : code().receives()) {
    receives_.emplace_back(static_cast<std::uint32_t>(r.key), senders_.size());
    senders_.push_back(incarnation_of(r));
  }
  std::ranges::sort(receives_);
}

std::optional<std::size_t> registered_part::receive_of(std::uint32_t key) const {
  const auto at = std::ranges::lower_bound(receives_, key, {}, [](auto& r) { return r.first; });
  if (at == receives_.end() || at->first != key) return std::nullopt;
  return at->second;
}

bool registered_part::expects(std::size_t receive, const std::string& name,
                              std::uint64_t incarnation) const {
  const std::uint64_t sender = senders_[receive];
  return (!sender || !incarnation || sender == incarnation) &&
         to_string(*code().receives()[receive].peer) == name;
}

void registered_part::took(std::size_t segment, std::size_t bytes, std::chrono::nanoseconds time) {
  // Changing threads costs some 25 µs, which is not worth it for shorter work.
  constexpr auto long_time = std::chrono::milliseconds(1);
  segment_time& s = times_[segment];
  const bool quick = time <= long_time;
  const int now = s.slowness.load(std::memory_order_relaxed);
  const int next = quick ? std::max(now - 1, 0) : 2;
  if (next != now) s.slowness.store(static_cast<std::int8_t>(next), std::memory_order_relaxed);
  if (quick && bytes > s.quick_bytes.load(std::memory_order_relaxed))
    s.quick_bytes.store(bytes, std::memory_order_relaxed);
}

}  // namespace deft::ext
