// SPDX-License-Identifier: Apache-2.0
// deft/kernels/program_table.hpp: what was compiled for programs. Objects with static storage add
// themselves before main, and are found by signature.
#pragma once
#include <atomic>
#include <deft/graph/program.hpp>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace deft::ext {

/// Entries that live as long as the process. Adding links a list and no more: signatures are
/// computed when a program is first looked for. An entry has `signature()`, a program, and
/// `next()`; `KindOf(entry)` is the number of the table that it belongs to.
template <class Entry, auto KindOf>
class program_table {
 public:
  void add(const Entry& e, const Entry*& next) {
    next = newest();
    while (!newest_.compare_exchange_weak(next, &e, std::memory_order_release)) {
    }
  }
  const Entry* newest() const { return newest_.load(std::memory_order_acquire); }

  /// Null if there is none.
  const Entry* find(const program& p, int kind) {
    std::lock_guard lock(guard_);
    const Entry* const now = newest();
    for (auto* e = now; e != seen_; e = e->next())
      by_signature_[KindOf(*e)].emplace(e->signature().signature, e);
    seen_ = now;
    const auto& all = by_signature_[kind];
    const auto at = all.find(p.signature);
    if (at == all.end()) return nullptr;
    // A signature does not tell of operands that nothing uses.
    const program& known = at->second->signature();
    return known.inputs == p.inputs && known.immediates == p.immediates ? at->second : nullptr;
  }

 private:
  std::atomic<const Entry*> newest_{nullptr};
  std::mutex guard_;
  std::map<int, std::unordered_map<std::string_view, const Entry*>> by_signature_;
  const Entry* seen_ = nullptr;  ///< the newest one in `by_signature_`
};

}  // namespace deft::ext
