// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/interpreter.ipp: selecting steps, allocating temporaries, running blocks.
#pragma once
#include <algorithm>
#include <deft/execute/cpu/interpreter.hpp>

namespace deft::cpu {

interpreter::interpreter(const program& p) : operands_(p.inputs.size() + p.immediates.size()) {
  for (auto t : p.inputs) input_sizes_.push_back(static_cast<std::uint8_t>(size_of_dtype(t)));
  select(p);
  allocate(p);
}

/// One step for each instruction, or for a pair of them; arguments are the program's values.
void interpreter::select(const program& p) {
  std::vector<int> uses(p.values());
  for (const auto& c : p.code)
    for (int a = 0; a < c.count; ++a) ++uses[c.args[a]];
  std::vector<bool> absorbed(p.code.size()), ends(p.code.size());
  for (const auto& piece : p.pieces) ends[piece.last - 1] = piece.last - piece.first >= least_piece;
  std::vector<step> reversed;
  auto piece = p.pieces.rbegin();
  for (std::size_t i = p.code.size(); i-- > 0;) {
    while (piece != p.pieces.rend() && piece->last > i + 1) ++piece;
    if (absorbed[i]) continue;
    const instruction& c = p.code[i];
    step s;
    s.result = static_cast<std::uint16_t>(operands_ + i);
    if (piece != p.pieces.rend() && piece->last == i + 1 && select_piece(p, *piece, s)) {
      span_ = std::max(span_, s.row.span);
      reversed.push_back(std::move(s));
      i = piece->first;
      continue;
    }
    // The argument computed last can be part of this step if nobody else needs it.
    int best = -1;
    compiled_row pair;
    for (int a = 0; a < c.count; ++a) {
      if (c.args[a] < operands_ || uses[c.args[a]] != 1 || ends[c.args[a] - operands_]) continue;
      if (best >= 0 && c.args[a] < c.args[best]) continue;
      const instruction& first = p.code[c.args[a] - operands_];
      if (first.type != c.type || p.type_of(first.args[0]) != c.type) continue;
      if (compiled_row r = find_pair(*first.op, *c.op, a, c.type); r.run) best = a, pair = r;
    }
    auto append = [&](const instruction& from) {
      s.args.insert(s.args.end(), from.args, from.args + from.count);
    };
    if (best >= 0) {
      s.row = pair;
      for (int a = 0; a < c.count; ++a)
        if (a == best)
          append(p.code[c.args[a] - operands_]);
        else
          s.args.push_back(c.args[a]);
      absorbed[c.args[best] - operands_] = true;
    } else {
      s.row = find_row(*c.op, p.type_of(c.args[c.count - 1]), c.type);
      if (!s.row.run)
        fail(errc::unimplemented, "[", c.op->name, "] has no kernel on the CPU for ",
             p.type_of(c.args[c.count - 1]));
      append(c);
    }
    span_ = std::max(span_, s.row.span);
    reversed.push_back(std::move(s));
  }
  steps_.assign(std::make_move_iterator(reversed.rbegin()),
                std::make_move_iterator(reversed.rend()));
}

bool interpreter::select_piece(const program& p, const program_piece& piece, step& s) const {
  if (piece.last - piece.first < least_piece) return false;
  separate_piece alone = separate(p, piece);
  const compiled_row* known = alone.program ? find_fused(*alone.program) : nullptr;
  if (!known) return false;
  s.row = *known;
  s.args = std::move(alone.operands);
  return true;
}

/// Turns the program's values into places, and gives a place again once its value is dead.
void interpreter::allocate(const program& p) {
  std::vector<std::size_t> last(p.values());
  std::size_t widest = 1;
  for (std::size_t i = 0; i < steps_.size(); ++i)
    for (auto a : steps_[i].args) last[a] = i;
  std::vector<std::uint16_t> place(p.values());
  for (std::size_t v = 0; v < operands_; ++v) place[v] = static_cast<std::uint16_t>(v);
  std::vector<std::uint16_t> idle;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    step& s = steps_[i];
    const std::size_t value = s.result, size = size_of_dtype(p.type_of(value));
    auto retire = [&](bool same_size) {
      for (auto a = s.args.begin(); a != s.args.end(); ++a) {
        const std::size_t v = *a;
        if (v < operands_ || last[v] != i || (size_of_dtype(p.type_of(v)) == size) != same_size)
          continue;
        if (std::find(s.args.begin(), a, v) == a) idle.push_back(place[v]);
      }
    };
    retire(true);  // such a one may be overwritten by this step, element by element
    if (i + 1 == steps_.size())
      place[value] = 0xffff;
    else if (idle.empty())
      place[value] = static_cast<std::uint16_t>(operands_ + temporaries_++);
    else
      place[value] = idle.back(), idle.pop_back();
    if (i + 1 < steps_.size()) widest = std::max(widest, size);
    retire(false);
  }
  const auto result = static_cast<std::uint16_t>(operands_ + temporaries_);
  for (step& s : steps_) {
    s.result = s.result == operands_ + p.code.size() - 1 ? result : place[s.result];
    for (auto& a : s.args) a = place[a];
  }
  // Everything that a block touches stays in the first-level cache.
  std::size_t bytes = widest * temporaries_ + size_of_dtype(p.result());
  for (auto b : input_sizes_) bytes += b;
  block_ = 1024;
  while (block_ > 256 && static_cast<std::size_t>(block_) * bytes > temporary_bytes) block_ /= 2;
  while (block_ > 32 && static_cast<std::size_t>(block_) * widest * temporaries_ > temporary_bytes)
    block_ /= 2;
  result_size_ = static_cast<std::int64_t>(size_of_dtype(p.result()));
  slot_bytes_ = static_cast<std::size_t>(block_) * widest;
}

void interpreter::run(const row_call& c) const {
  alignas(64) char temporaries[temporary_bytes];
  // All calls of a block are written down once; from block to block only inputs and result move.
  row_call calls[max_fused_operations];
  const void* in[most_operands];
  std::uintptr_t mask[most_operands];
  struct move {
    const void** address;
    std::uintptr_t bytes;
  } moves[most_operands];
  // From memory, short blocks leave the caches to what was asked for ahead.
  const std::int64_t block = far_ ? std::min<std::int64_t>(block_, 256) : block_;
  const std::size_t inputs = input_sizes_.size(), result = operands_ + temporaries_;
  std::size_t moving = 0, next = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const step& s = steps_[i];
    void* out = s.result == result ? c.out : temporaries + (s.result - operands_) * slot_bytes_;
    calls[i] = {in + next, mask + next, out, std::min(block, c.n)};
    for (const std::size_t place : s.args) {
      mask[next] = place < inputs ? c.mask[place] : place < operands_ ? 0 : ~std::uintptr_t{0};
      in[next] = place < operands_ ? c.in[place] : temporaries + (place - operands_) * slot_bytes_;
      if (place < inputs && mask[next])
        moves[moving++] = {&in[next], static_cast<std::uintptr_t>(block) * input_sizes_[place]};
      ++next;
    }
  }
  row_call& last = calls[steps_.size() - 1];
  const std::int64_t result_bytes = block * result_size_;
  for (std::int64_t left = c.n; left > 0; left -= block) {
    if (left < std::min(block, c.n))
      for (std::size_t i = 0; i < steps_.size(); ++i) calls[i].n = left;
    if (far_ && left >= 2 * block) {
      constexpr std::int64_t line = 64;
      for (std::size_t m = 0; m < moving; ++m) {
        const auto bytes = static_cast<std::int64_t>(moves[m].bytes);
        const char* ahead = static_cast<const char*>(*moves[m].address) + bytes;
        for (std::int64_t b = 0; b < bytes; b += line) __builtin_prefetch(ahead + b);
      }
      char* ahead = static_cast<char*>(last.out) + result_bytes;
      for (std::int64_t b = 0; b < result_bytes; b += line) __builtin_prefetch(ahead + b, 1);
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i].row.run(calls[i]);
    for (std::size_t m = 0; m < moving; ++m)
      *moves[m].address = static_cast<const char*>(*moves[m].address) + moves[m].bytes;
    last.out = static_cast<char*>(last.out) + result_bytes;
  }
}

}  // namespace deft::cpu
