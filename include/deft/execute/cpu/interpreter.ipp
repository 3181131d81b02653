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
  std::vector<bool> absorbed(p.code.size());
  std::vector<step> reversed;
  for (std::size_t i = p.code.size(); i-- > 0;) {
    if (absorbed[i]) continue;
    const instruction& c = p.code[i];
    step s;
    s.result = static_cast<std::uint16_t>(operands_ + i);
    // The argument computed last can be part of this step if nobody else needs it.
    int best = -1;
    compiled_row pair;
    for (int a = 0; a < c.count; ++a) {
      if (c.args[a] < operands_ || uses[c.args[a]] != 1) continue;
      if (best >= 0 && c.args[a] < c.args[best]) continue;
      const instruction& first = p.code[c.args[a] - operands_];
      if (first.type != c.type || p.type_of(first.args[0]) != c.type) continue;
      if (compiled_row r = find_pair(*first.op, *c.op, a, c.type); r.run) best = a, pair = r;
    }
    auto append = [&](const instruction& from) {
      for (int a = 0; a < from.count; ++a) s.args[s.count++] = from.args[a];
    };
    if (best >= 0) {
      s.row = pair;
      for (int a = 0; a < c.count; ++a)
        if (a == best)
          append(p.code[c.args[a] - operands_]);
        else
          s.args[s.count++] = c.args[a];
      absorbed[c.args[best] - operands_] = true;
    } else {
      s.row = find_row(*c.op, p.type_of(c.args[c.count - 1]), c.type);
      if (!s.row.run)
        fail(errc::unimplemented, "[", c.op->name, "] has no kernel on the CPU for ",
             p.type_of(c.args[c.count - 1]));
      append(c);
    }
    span_ = std::max(span_, s.row.span);
    reversed.push_back(s);
  }
  steps_.assign(reversed.rbegin(), reversed.rend());
}

/// Turns the program's values into places, and gives a place again once its value is dead.
void interpreter::allocate(const program& p) {
  std::vector<std::size_t> last(p.values());
  std::size_t widest = 1;
  for (std::size_t i = 0; i < steps_.size(); ++i)
    for (int a = 0; a < steps_[i].count; ++a) last[steps_[i].args[a]] = i;
  std::vector<std::uint16_t> place(p.values());
  for (std::size_t v = 0; v < operands_; ++v) place[v] = static_cast<std::uint16_t>(v);
  std::vector<std::uint16_t> idle;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    step& s = steps_[i];
    const std::size_t value = s.result, size = size_of_dtype(p.type_of(value));
    auto retire = [&](bool same_size) {
      for (int a = 0; a < s.count; ++a) {
        const std::size_t v = s.args[a];
        if (v < operands_ || last[v] != i || (size_of_dtype(p.type_of(v)) == size) != same_size)
          continue;
        if (std::find(s.args, s.args + a, v) == s.args + a) idle.push_back(place[v]);
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
    for (int a = 0; a < s.count; ++a) s.args[a] = place[s.args[a]];
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
  constexpr std::size_t most = max_fused_operations;
  alignas(64) char temporaries[temporary_bytes];
  // All calls of a block are written down once; from block to block only inputs and result move.
  row_call calls[most];
  const void* in[most][most_operands];
  std::uintptr_t mask[most][most_operands];
  struct move {
    const void** address;
    std::uintptr_t bytes;
  } moves[most * most_operands];
  const std::size_t inputs = input_sizes_.size(), result = operands_ + temporaries_;
  std::size_t moving = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const step& s = steps_[i];
    for (int a = 0; a < s.count; ++a) {
      const std::size_t place = s.args[a];
      mask[i][a] = place < inputs ? c.mask[place] : place < operands_ ? 0 : ~std::uintptr_t{0};
      in[i][a] = place < operands_ ? c.in[place] : temporaries + (place - operands_) * slot_bytes_;
      if (place < inputs && mask[i][a])
        moves[moving++] = {&in[i][a], static_cast<std::uintptr_t>(block_) * input_sizes_[place]};
    }
    void* out = s.result == result ? c.out : temporaries + (s.result - operands_) * slot_bytes_;
    calls[i] = {in[i], mask[i], out, std::min(block_, c.n)};
  }
  row_call& last = calls[steps_.size() - 1];
  for (std::int64_t left = c.n; left > 0; left -= block_) {
    if (left < std::min(block_, c.n))
      for (std::size_t i = 0; i < steps_.size(); ++i) calls[i].n = left;
    for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i].row.run(calls[i]);
    for (std::size_t m = 0; m < moving; ++m)
      *moves[m].address = static_cast<const char*>(*moves[m].address) + moves[m].bytes;
    last.out = static_cast<char*>(last.out) + block_ * result_size_;
  }
}

}  // namespace deft::cpu
