// SPDX-License-Identifier: Apache-2.0
// deft/graph/program.ipp: signatures and checks of portable programs.
#pragma once
#include <algorithm>
#include <deft/core/hash.hpp>
#include <deft/graph/op_def.hpp>
#include <deft/graph/program.hpp>
#include <map>

namespace deft {

any_array literal_value(dtype t, std::int64_t bits) {
  any_array v(t, dims{});
  visit_dtype(t, [&]<class T>() { *v.mutable_data<T>() = from_immediate<T>(bits); });
  return v;
}

void program::seal() {
  auto value = [&](std::size_t v) {
    if (v < inputs.size()) return str("i", v, ":", inputs[v]);
    v -= inputs.size();
    if (v < immediates.size()) return str("k", v, ":", immediates[v]);
    return str("t", v - immediates.size());
  };
  signature.clear();
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto& c = code[i];
    if (i) signature += ' ';
    signature += str("t", i, "=", c.op->name, "(");
    for (int a = 0; a < c.count; ++a) {
      if (a) signature += ',';
      signature += value(c.args[a]);
    }
    signature += str("):", c.type);
  }
  hash = hash_text(signature);
}

program_builder::value program_builder::input(dtype t) {
  program_.inputs.push_back(t);
  return {value::kind::input, static_cast<std::uint16_t>(program_.inputs.size() - 1)};
}
program_builder::value program_builder::immediate(dtype t) {
  program_.immediates.push_back(t);
  return {value::kind::immediate, static_cast<std::uint16_t>(program_.immediates.size() - 1)};
}
program_builder::value program_builder::apply(const op_def& op, dtype type,
                                              std::span<const value> args) {
  instruction c;
  c.op = &op;
  c.type = type;
  c.count = static_cast<std::uint8_t>(args.size());
  program_.code.push_back(c);
  std::ranges::copy(args, args_.emplace_back().begin());
  return {value::kind::result, static_cast<std::uint16_t>(program_.code.size() - 1)};
}
void program_builder::end_piece(std::size_t first) {
  program_.pieces.push_back(
      {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(program_.code.size())});
}

program_ref program_builder::finish() {
  const std::size_t first[] = {0, program_.inputs.size(),
                               program_.inputs.size() + program_.immediates.size()};
  for (std::size_t i = 0; i < args_.size(); ++i)
    for (std::size_t a = 0; a < program_.code[i].count; ++a)
      program_.code[i].args[a] = static_cast<std::uint16_t>(
          first[static_cast<std::size_t>(args_[i][a].what)] + args_[i][a].number);
  program_.seal();
  return std::make_shared<const program>(std::move(program_));
}

namespace {

/// The walk by which expressions are written, over a piece.
class piece_walk {
 public:
  piece_walk(const program& p, const program_piece& piece)
      : p_(p), operands_(p.inputs.size() + p.immediates.size()), piece_(piece) {}

  separate_piece run() {
    visit(operands_ + piece_.last - 1);
    if (builder_.operations() != static_cast<std::size_t>(piece_.last - piece_.first)) return {};
    inputs_.insert(inputs_.end(), immediates_.begin(), immediates_.end());
    return {builder_.finish(), std::move(inputs_)};
  }

 private:
  program_builder::value visit(std::size_t v) {
    if (v < operands_ + piece_.first) {
      const bool literal = v >= p_.inputs.size() && v < operands_;
      (literal ? immediates_ : inputs_).push_back(static_cast<std::uint16_t>(v));
      return literal ? builder_.immediate(p_.type_of(v)) : builder_.input(p_.type_of(v));
    }
    if (auto at = done_.find(v); at != done_.end()) return at->second;
    const instruction& c = p_.code[v - operands_];
    std::array<program_builder::value, 3> args;
    for (int a = 0; a < c.count; ++a) args[static_cast<std::size_t>(a)] = visit(c.args[a]);
    return done_[v] = builder_.apply(*c.op, c.type, std::span(args).first(c.count));
  }

  const program& p_;
  const std::size_t operands_;
  const program_piece piece_;
  program_builder builder_;
  std::vector<std::uint16_t> inputs_, immediates_;
  std::map<std::size_t, program_builder::value> done_;
};

}  // namespace

separate_piece separate(const program& p, const program_piece& piece) {
  const std::size_t operands = p.inputs.size() + p.immediates.size();
  for (std::size_t i = piece.last; i < p.code.size(); ++i)
    for (int a = 0; a < p.code[i].count; ++a)
      if (const std::size_t v = p.code[i].args[a];
          v >= operands + piece.first && v + 1 < operands + piece.last)
        return {};
  return piece_walk(p, piece).run();
}

void check(const program& p) {
  if (p.code.empty()) fail(errc::invalid_argument, "[fused] a program without instructions");
  if (p.code.size() > max_fused_operations)
    fail(errc::invalid_argument, "[fused] a program of ", p.code.size(), " operations, more than ",
         max_fused_operations);
  if (p.inputs.size() + p.immediates.size() > 3 * max_fused_operations)
    fail(errc::invalid_argument, "[fused] a program with too many inputs");
  for (auto t : p.inputs)
    if (!is_valid(t)) fail(errc::invalid_argument, "[fused] an input without a dtype");
  for (auto t : p.immediates)
    if (!is_valid(t)) fail(errc::invalid_argument, "[fused] an immediate without a dtype");
  std::size_t first = p.inputs.size() + p.immediates.size();
  std::vector<tensor_type> in, out;
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    const auto& c = p.code[i];
    if (!c.op || !c.op->is(op_traits::elementwise) || c.count > 3)
      fail(errc::invalid_argument, "[fused] instruction ", i, " is not elementwise");
    in.clear();
    for (int a = 0; a < c.count; ++a) {
      if (c.args[a] >= first + i)
        fail(errc::invalid_argument, "[fused] instruction ", i, " uses value ", c.args[a],
             " before it is there");
      in.push_back({dims{}, p.type_of(c.args[a])});
    }
    std::vector<attr_value> attributes;
    if (!c.op->attributes.empty()) attributes.emplace_back(static_cast<std::int64_t>(c.type));
    infer_types(*c.op, {in, attributes}, out);
    if (out.size() != 1 || out[0].type != c.type)
      fail(errc::invalid_argument, "[fused] instruction ", i, " (", c.op->name, ") gives ",
           out.empty() ? dtype::none : out[0].type, ", not ", c.type);
  }
  std::size_t end = 0;
  for (const auto& piece : p.pieces) {
    if (piece.first < end || piece.first >= piece.last || piece.last > p.code.size())
      fail(errc::invalid_argument, "[fused] instructions ", piece.first, " to ", piece.last,
           " are no piece of the program");
    end = piece.last;
  }
}

}  // namespace deft
