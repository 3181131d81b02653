// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/interpreter.ipp: selecting steps, allocating temporaries, running blocks.
#pragma once
#include <algorithm>
#include <deft/kernels/cpu/interpreter.hpp>
#include <deft/plan/thresholds.hpp>

namespace deft::ext::cpu {

interpreter::interpreter(const program& p, bool in_place)
    : operands_(p.inputs.size() + p.immediates.size()) {
  for (auto t : p.inputs) input_sizes_.push_back(static_cast<std::uint8_t>(size_of_dtype(t)));
  select(p, in_place);
  allocate(p);
}

/// One step for each instruction, or for a pair of them; arguments are the program's values.
void interpreter::select(const program& p, bool in_place) {
  std::vector<int> uses(p.values());
  for (const auto& c : p.code)
    for (int a = 0; a < c.count; ++a) ++uses[c.args[a]];
  std::vector<bool> absorbed(p.code.size()), ends(p.code.size());
  for (const auto& piece : p.pieces) ends[piece.last - 1] = piece.last - piece.first >= least_piece;
  for (const auto& o : p.outputs) ++uses[o.value];
  // What is absorbed is computed later, when a result may have been written over what it reads.
  auto overtakes = [&](std::size_t first, std::size_t second) {
    return in_place && std::ranges::any_of(p.outputs, [&](const program_output& o) {
             return first < o.value && o.value < second;
           });
  };
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
    // The argument computed last can be part of this step if no other step needs it.
    int best = -1;
    compiled_row pair;
    for (int a = 0; a < c.count; ++a) {
      if (c.args[a] < operands_ || uses[c.args[a]] != 1 || ends[c.args[a] - operands_]) continue;
      if (best >= 0 && c.args[a] < c.args[best]) continue;
      if (overtakes(c.args[a], operands_ + i)) continue;
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

bool interpreter::may_overwrite(std::size_t input, std::size_t result) const {
  const std::size_t slot = operands_ + temporaries_ + result;
  const auto writes = std::ranges::find(steps_, slot, &step::result);
  return writes != steps_.end() && std::none_of(writes + 1, steps_.end(), [&](const step& s) {
           return std::ranges::count(s.args, input) != 0;
         });
}

bool interpreter::select_piece(const program& p, const program_piece& piece, step& s) const {
  if (piece.last - piece.first < least_piece) return false;
  program_part alone = separate(p, piece);
  const compiled_row* known = alone.program ? find_fused(*alone.program) : nullptr;
  if (!known) return false;
  s.row = *known;
  s.args = std::move(alone.operands);
  return true;
}

/// Turns the program's values into slots, and gives a slot again once its value is dead.
void interpreter::allocate(const program& p) {
  constexpr std::uint16_t no_slot = 0xffff;
  std::vector<std::size_t> last(p.values());
  std::size_t widest = 1;
  for (std::size_t i = 0; i < steps_.size(); ++i)
    for (auto a : steps_[i].args) last[a] = i;
  std::vector<std::uint16_t> results;
  for (const auto& o : p.outputs) results.push_back(o.value);
  if (results.empty()) results.push_back(static_cast<std::uint16_t>(p.values() - 1));
  auto is_result = [&](std::size_t v) { return std::ranges::count(results, v) != 0; };
  std::vector<std::uint16_t> slot(p.values(), no_slot);
  for (std::size_t v = 0; v < operands_; ++v) slot[v] = static_cast<std::uint16_t>(v);
  std::vector<std::uint16_t> idle;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    step& s = steps_[i];
    const std::size_t value = s.result, size = size_of_dtype(p.type_of(value));
    auto retire = [&](bool same_size) {
      for (auto a = s.args.begin(); a != s.args.end(); ++a) {
        const std::size_t v = *a;
        if (slot[v] < operands_ || slot[v] == no_slot || last[v] != i ||
            (size_of_dtype(p.type_of(v)) == size) != same_size)
          continue;
        if (std::find(s.args.begin(), a, v) == a) idle.push_back(slot[v]);
      }
    };
    retire(true);  // such a one may be overwritten by this step, element by element
    if (!is_result(value)) {
      if (idle.empty())
        slot[value] = static_cast<std::uint16_t>(operands_ + temporaries_++);
      else
        slot[value] = idle.back(), idle.pop_back();
      widest = std::max(widest, size);
    }
    retire(false);
  }
  std::size_t bytes = widest * temporaries_;
  for (std::size_t r = 0; r < results.size(); ++r) {
    slot[results[r]] = static_cast<std::uint16_t>(operands_ + temporaries_ + r);
    result_sizes_.push_back(static_cast<std::uint8_t>(size_of_dtype(p.type_of(results[r]))));
    bytes += result_sizes_.back();
  }
  for (step& s : steps_) {
    s.result = slot[s.result];
    for (auto& a : s.args) a = slot[a];
  }
  // Everything that a block touches stays in the first-level cache.
  for (auto b : input_sizes_) bytes += b;
  block_ = thresholds::largest_block;
  while (block_ > 256 && static_cast<std::size_t>(block_) * bytes > temporary_bytes) block_ /= 2;
  while (block_ > 32 && static_cast<std::size_t>(block_) * widest * temporaries_ > temporary_bytes)
    block_ /= 2;
  slot_bytes_ = static_cast<std::size_t>(block_) * widest;
}

void interpreter::run(const program_call& c) const {
  if (steps_.size() == 1 && c.rows == 1) {  // no blocks are needed
    const std::vector<std::uint16_t>& args = steps_[0].args;
    const void* in[most_operands];
    std::uintptr_t mask[most_operands];
    for (std::size_t a = 0; a < args.size(); ++a) {
      in[a] = c.in[args[a]];
      mask[a] = args[a] < input_sizes_.size() ? c.mask[args[a]] : 0;
    }
    return steps_[0].row.run({in, mask, c.out[0], c.n});
  }
  run_blocks(c);
}

std::span<const bound_row> interpreter::bind(const program_call& c, bound_steps& to) const {
  // Of one interpreter, always as much: calls that were bound before have it, too.
  if (temporaries_ > 0 && !to.temporaries)
    to.temporaries = buffer::host(temporaries_ * slot_bytes_);
  char* const temporaries = to.temporaries ? static_cast<char*>(to.temporaries.data()) : nullptr;
  std::size_t operands = 0;
  for (const step& s : steps_) operands += s.args.size();
  to.rows.clear();
  to.in.resize(operands);
  to.mask.resize(operands);
  std::size_t next = 0;
  for (const step& s : steps_) {
    to.rows.push_back(
        {s.row.run,
         {&to.in[next], &to.mask[next], const_cast<void*>(address(c, temporaries, s.result)), c.n},
         static_cast<std::uint32_t>(s.args.size())});
    for (const std::size_t slot : s.args) {
      to.mask[next] = mask(c, slot);
      to.in[next++] = address(c, temporaries, slot);
    }
  }
  return to.rows;
}

void interpreter::run_blocks(const program_call& c) const {
  alignas(64) char temporaries[temporary_bytes];
  // All calls of a block are written down once; from block to block only inputs and results move.
  row_call calls[max_fused_operations];
  const void* in[most_operands];
  std::uintptr_t masks[most_operands];
  struct move {
    const void** address;
    std::int64_t bytes, stride;  ///< to the next block, from the first to the next row's
    void by(std::int64_t distance) { *address = static_cast<const char*>(*address) + distance; }
  } moves[most_operands];
  // From memory, short blocks leave the caches to what was asked for ahead.
  const std::int64_t block = far_ ? std::min<std::int64_t>(block_, 128) : block_;
  const std::size_t inputs = input_sizes_.size(), first_result = operands_ + temporaries_;
  auto result_bytes = [&](std::size_t index) {
    return std::int64_t{result_sizes_[steps_[index].result - first_result]};
  };
  /// The operands in memory, each once; an output only if it is not also an input.
  struct stream {
    const void* const* at;
    std::int64_t bytes;  ///< to the next block
  } streams[most_operands + program::most_outputs];
  std::size_t moving = 0, next = 0, ending = 0, read = 0;
  std::size_t ends[max_fused_operations];  ///< steps that write results
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const step& s = steps_[i];
    calls[i] = {in + next, masks + next, const_cast<void*>(address(c, temporaries, s.result)),
                std::min(block, c.n)};
    if (s.result >= first_result) ends[ending++] = i;
    for (const std::size_t slot : s.args) {
      masks[next] = mask(c, slot);
      in[next] = address(c, temporaries, slot);
      const std::int64_t size = slot < inputs          ? masks[next] ? input_sizes_[slot] : 0
                                : slot >= first_result ? result_sizes_[slot - first_result]
                                                       : 0;
      const std::int64_t stride = c.rows == 1            ? 0
                                  : slot < inputs        ? c.in_strides[slot]
                                  : slot >= first_result ? c.out_strides[slot - first_result]
                                                         : 0;
      if (size || stride) moves[moving++] = {&in[next], block * size, stride};
      auto known = [&](const stream& asked) { return *asked.at == in[next]; };
      if (far_ && size && slot < inputs && std::none_of(streams, streams + read, known))
        streams[read++] = {&in[next], block * size};
      ++next;
    }
  }
  std::size_t touched = read;
  for (std::size_t e = 0; e < ending && far_; ++e) {
    const void* const* out = const_cast<const void* const*>(&calls[ends[e]].out);
    auto known = [&](const stream& s) { return *s.at == *out; };
    if (std::none_of(streams, streams + read, known))
      streams[touched++] = {out, block * result_bytes(ends[e])};
  }
  const auto count = static_cast<std::int64_t>(steps_.size());
  // Some before each step: they are answered while it computes.
  auto ask_for_next_block = [&](std::int64_t index) {
    constexpr std::int64_t line = 64;
    for (std::size_t s = 0; s < touched; ++s) {
      const char* ahead = static_cast<const char*>(*streams[s].at) + streams[s].bytes;
      std::int64_t i = streams[s].bytes * index / count & -line;
      const std::int64_t end = streams[s].bytes * (index + 1) / count & -line;
      if (s < read)
        for (; i < end; i += line) __builtin_prefetch(ahead + i);
      else
        for (; i < end; i += line) __builtin_prefetch(ahead + i, 1);
    }
  };
  const std::int64_t blocks = (c.n + block - 1) / block, short_block = c.n - (blocks - 1) * block;
  auto set_length = [&](std::int64_t n) {
    for (std::size_t i = 0; i < steps_.size(); ++i) calls[i].n = n;
  };
  for (std::int64_t row = 0; row < c.rows; ++row) {
    if (row > 0 && blocks > 1) set_length(block);
    for (std::int64_t b = 0; b < blocks; ++b) {
      if (b > 0 && b + 1 == blocks) set_length(short_block);
      const bool more = far_ && b + 1 < blocks;
      for (std::int64_t i = 0; i < count; ++i) {
        if (more) ask_for_next_block(i);
        steps_[static_cast<std::size_t>(i)].row.run(calls[i]);
      }
      if (b + 1 == blocks) break;
      for (std::size_t m = 0; m < moving; ++m) moves[m].by(moves[m].bytes);
      for (std::size_t e = 0; e < ending; ++e)
        calls[ends[e]].out = static_cast<char*>(calls[ends[e]].out) + block * result_bytes(ends[e]);
    }
    if (row + 1 == c.rows) return;
    for (std::size_t m = 0; m < moving; ++m)
      moves[m].by(moves[m].stride - (blocks - 1) * moves[m].bytes);
    for (std::size_t e = 0; e < ending; ++e)
      calls[ends[e]].out = static_cast<char*>(calls[ends[e]].out) +
                           c.out_strides[steps_[ends[e]].result - first_result] -
                           (blocks - 1) * block * result_bytes(ends[e]);
  }
}

void program_code::run_rows(const program_call& c) const {
  const void* in[interpreter::most_operands];
  const auto operands = inputs_ + literals_;
  std::copy(c.in, c.in + operands, in);
  char* out = static_cast<char*>(c.out[0]);
  for (std::int64_t row = 0; row < c.rows; ++row) {
    row_.run({in, c.mask, out, c.n});
    if (row + 1 == c.rows) return;
    for (std::size_t k = 0; k < inputs_; ++k)
      in[k] = static_cast<const char*>(in[k]) + c.in_strides[k];
    out += c.out_strides[0];
  }
}

void program_code::find_fold(const program& p, fold_kind kind) {
  if (p.is_region()) return;
  if (const compiled_row* known = find_fused(p, kind)) {
    fold_ = *known;
    return;
  }
  const auto args = find_last(p, kind);
  if (!fold_.run) return;
  for (auto t : p.inputs) sizes_.push_back(static_cast<std::uint8_t>(size_of_dtype(t)));
  lane_bytes_ = static_cast<std::size_t>(fold_.span) * size_of_dtype(p.result());
  const std::size_t operands = inputs_ + literals_;
  std::vector<std::uint16_t> results;
  for (const std::uint16_t v : args) {
    const auto at = std::ranges::find(results, v) - results.begin();
    if (v >= operands && static_cast<std::size_t>(at) == results.size()) results.push_back(v);
    last_.push_back(v < operands ? v : static_cast<std::uint16_t>(operands + at));
  }
  if (results.empty()) return;
  program_part part = extract(p, results, [&](std::uint16_t v) { return v < operands; });
  before_ = std::make_shared<interpreter>(*part.program);
  before_operands_ = std::move(part.operands);
}

std::vector<std::uint16_t> program_code::find_last(const program& p, fold_kind kind) {
  const instruction& last = p.code.back();
  std::vector<std::uint16_t> args(last.args, last.args + last.count);
  const bool twice = args.size() == 2 && args[0] == args[1];
  for (std::size_t a = 0; a < args.size(); ++a) {
    const instruction* first = p.made_by(args[a]);
    if (!first || first->type != last.type || p.type_of(first->args[0]) != last.type) continue;
    std::ptrdiff_t uses = 0;
    for (const auto& c : p.code) uses += std::count(c.args, c.args + c.count, args[a]);
    if (uses != (twice ? 2 : 1)) continue;
    fold_ = find_pair_fold(*first->op, *last.op, twice ? both_positions : static_cast<int>(a),
                           last.type, kind);
    if (!fold_.run) continue;
    const auto here = args.erase(args.begin() + static_cast<std::ptrdiff_t>(a),
                                 args.begin() + static_cast<std::ptrdiff_t>(twice ? 2 : a + 1));
    args.insert(here, first->args, first->args + first->count);
    return args;
  }
  fold_ = find_row_fold(*last.op, p.result(), kind);
  return args;
}

void program_code::fold_last(const fold_call& c) const {
  constexpr std::int64_t most = 1024;
  alignas(64) char values[3][most * 8];
  // From memory, a short block is read while the one before it is folded.
  const std::int64_t block = before_ && before_->is_far() ? 128 : most;
  const std::size_t operands = inputs_ + literals_;
  const void* in[interpreter::most_operands];
  const void* taken[interpreter::most_operands];
  std::uintptr_t mask[interpreter::most_operands];
  void* const results[] = {values[0], values[1], values[2]};
  std::copy(c.in, c.in + operands, in);
  for (std::size_t k = 0; k < before_operands_.size(); ++k) mask[k] = c.mask[before_operands_[k]];
  const void* args[3];
  std::uintptr_t arg_masks[3];
  char* lanes = static_cast<char*>(c.out);
  for (std::int64_t row = 0;; lanes += lane_bytes_) {
    for (std::int64_t done = 0; done < c.n; done += block) {
      const std::int64_t n = std::min(block, c.n - done);
      if (before_) {
        for (std::size_t k = 0; k < before_operands_.size(); ++k)
          taken[k] = in[before_operands_[k]];
        before_->run({taken, mask, results, n});
      }
      for (std::size_t a = 0; a < last_.size(); ++a) {
        const bool operand = last_[a] < operands;
        args[a] = operand ? in[last_[a]] : results[last_[a] - operands];
        arg_masks[a] = operand ? c.mask[last_[a]] : ~std::uintptr_t{0};
      }
      fold_.run(fold_call{{args, arg_masks, lanes, n}});
      for (std::size_t k = 0; k < inputs_; ++k)
        if (c.mask[k]) in[k] = static_cast<const char*>(in[k]) + n * sizes_[k];
    }
    if (++row == c.rows) return;
    for (std::size_t k = 0; k < inputs_; ++k)
      in[k] = static_cast<const char*>(in[k]) + c.to_next[k];
  }
}

double element_cost(const program& p) {
  double cost = 0;
  for (const auto& c : p.code)
    if (!c.is_fold()) cost += row_cost(*c.op, p.type_of(c.args[0]));
  return cost;
}

}  // namespace deft::ext::cpu
