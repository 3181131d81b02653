// SPDX-License-Identifier: Apache-2.0
// deft/execute/fused.ipp: the table of compiled expressions. Registration links a list and no more:
// signatures are computed when a program is first looked for.
#pragma once
#include <atomic>
#include <deft/execute/fused.hpp>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace deft {
namespace fused_table {
namespace {

std::atomic<const fused_registration*>& newest() {
  static auto& head = *new std::atomic<const fused_registration*>(nullptr);
  return head;
}

struct table {
  std::mutex guard;
  std::unordered_map<std::string_view, const fused_registration*> rows[4];  ///< by fold_kind
  const fused_registration* seen = nullptr;  ///< the newest one in `rows`
};
table& known() {
  static auto& t = *new table;
  return t;
}

}  // namespace
}  // namespace fused_table

fused_registration::fused_registration(const program_ref& (*program)(), compiled_row row,
                                       fold_kind fold)
    : program_(program), row_(row), fold_(fold) {
  auto& head = fused_table::newest();
  next_ = head.load(std::memory_order_relaxed);
  while (!head.compare_exchange_weak(next_, this, std::memory_order_release)) {
  }
}

const compiled_row* find_fused(const program& p, fold_kind fold) {
  if (fold == fold_kind::mean) fold = fold_kind::sum;
  auto& t = fused_table::known();
  std::lock_guard lock(t.guard);
  const fused_registration* newest = fused_table::newest().load(std::memory_order_acquire);
  for (auto* r = newest; r != t.seen; r = r->next())
    t.rows[static_cast<std::size_t>(r->fold())].emplace(r->signature().signature, r);
  t.seen = newest;
  const auto& rows = t.rows[static_cast<std::size_t>(fold)];
  auto at = rows.find(p.signature);
  if (at == rows.end()) return nullptr;
  // A signature does not tell of operands that nothing uses.
  const program& known = at->second->signature();
  return known.inputs == p.inputs && known.immediates == p.immediates ? &at->second->row()
                                                                      : nullptr;
}

}  // namespace deft
