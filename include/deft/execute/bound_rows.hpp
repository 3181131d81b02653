// SPDX-License-Identifier: Apache-2.0
// deft/execute/bound_rows.hpp: the row calls of a lane, one behind the other.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deft/execute/fused.hpp>
#include <memory>
#include <vector>

namespace deft::exec {

/// A row function, with all that it is called with behind it.
struct bound_call {
  void (*run)(const row_call&);
  row_call row;
};

/// Copies of bound rows with their operands, in the order in which they are run: a long lane reads
/// them as a stream, where the kernels that made them are all over the heap.
class bound_rows {
 public:
  /// It refers to nothing of the kernel any more; null for no row.
  const bound_call* add(const bound_row& bound) {
    if (!bound.run) return nullptr;
    void** const at = take(call_words + 2 * bound.operands);
    const void** in = const_cast<const void**>(at + call_words);
    auto* mask = reinterpret_cast<std::uintptr_t*>(at + call_words + bound.operands);
    std::copy_n(bound.call->in, bound.operands, in);
    std::copy_n(bound.call->mask, bound.operands, mask);
    return new (at) bound_call{bound.run, {in, mask, bound.call->out, bound.call->n}};
  }
  /// Forgets all rows, and keeps the memory.
  void clear() { chunk_ = 0, used_ = 0; }

 private:
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

}  // namespace deft::exec
