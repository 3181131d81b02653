// SPDX-License-Identifier: Apache-2.0
// deft/kernels/program_table.hpp: what was compiled for programs, found by signature.
#pragma once
#include <deft/core/registry.hpp>
#include <deft/graph/program.hpp>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace deft::ext {

/// The entries of the list Entry::all. An entry has `signature()`, a program, which is first asked
/// for when a program is looked for; `KindOf(entry)` is the number of the table that it belongs to.
template <class Entry, auto KindOf>
class program_table {
 public:
  /// Null if there is none.
  const Entry* find(const program& p, int kind) {
    std::lock_guard lock(guard_);
    Entry::all.each_new(seen_, [&](const Entry& e) {
      by_signature_[KindOf(e)].emplace(e.signature().signature, &e);
    });
    const auto& all = by_signature_[kind];
    const auto at = all.find(p.signature);
    if (at == all.end()) return nullptr;
    // A signature does not tell of operands that nothing uses.
    const program& known = at->second->signature();
    return known.inputs == p.inputs && known.immediates == p.immediates ? at->second : nullptr;
  }

 private:
  std::mutex guard_;
  std::map<int, std::unordered_map<std::string_view, const Entry*>> by_signature_;
  const Entry* seen_ = nullptr;  ///< the newest one in `by_signature_`
};

}  // namespace deft::ext
