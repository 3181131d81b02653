// SPDX-License-Identifier: Apache-2.0
// deft/kernels/row_call_list.hpp: the row calls of a lane, one behind the other.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deft/kernels/compiled_row_registry.hpp>
#include <memory>
#include <span>
#include <vector>

namespace deft::ext::exec {

/// A row function with its arguments, which follow it in memory, and a link to the next call.
struct bound_call {
  void (*run)(const row_call&);
  row_call row;
  const bound_call* next;

  void run_all() const {
    const bound_call* c = this;
    do c->run(c->row);
    while ((c = c->next));
  }
};

/// Copies of bound rows with their operands, in the order in which they run: a long lane reads them
/// sequentially, while the kernels that made them are scattered over the heap.
class bound_rows {
 public:
  /// Copies `bound`, and returns the first of the linked calls; null for none. The copies refer
  /// only to memory of the kernel, not to the kernel itself.
  const bound_call* add(std::span<const bound_row> bound) {
    const bound_call* first = nullptr;
    const bound_call** link = &first;
    for (const auto& b : bound) {
      bound_call* made = add_one(b);
      *link = made;
      link = &made->next;
    }
    return first;
  }
  /// Removes all rows, but keeps the memory.
  void clear() { chunk_ = 0, used_ = 0; }

 private:
  bound_call* add_one(const bound_row& bound) {
    void** const at = take(call_words + 2 * bound.operands);
    const void** in = const_cast<const void**>(at + call_words);
    auto* mask = reinterpret_cast<std::uintptr_t*>(at + call_words + bound.operands);
    std::copy_n(bound.call.in, bound.operands, in);
    std::copy_n(bound.call.mask, bound.operands, mask);
    return new (at) bound_call{bound.run, {in, mask, bound.call.out, bound.call.n}, nullptr};
  }

  static constexpr std::size_t call_words = sizeof(bound_call) / sizeof(void*);
  static constexpr std::size_t chunk_words = 4096;

  void** take(std::size_t words) {
    if (chunks_.empty() || used_ + words > chunk_words) {
      if (!chunks_.empty()) ++chunk_;
      used_ = 0;
    }
    if (chunk_ == chunks_.size())
      chunks_.push_back(std::make_unique<void*[]>(std::max(chunk_words, words)));
    void** const at = &chunks_[chunk_][used_];
    used_ += words;
    return at;
  }

  std::vector<std::unique_ptr<void*[]>> chunks_;
  std::size_t chunk_ = 0, used_ = 0;
};

}  // namespace deft::ext::exec
