// SPDX-License-Identifier: Apache-2.0
// deft/graph/program.ipp: signatures and checks of portable programs.
#pragma once
#include <algorithm>
#include <deft/core/hash.hpp>
#include <deft/graph/op_def.hpp>
#include <deft/graph/program.hpp>
#include <map>
#include <numeric>

namespace deft::ext {

any_array literal_value(dtype t, std::int64_t bits) {
  any_array v(t, dims{});
  visit_dtype(t, [&]<class T>() { *v.mutable_data<T>() = from_immediate<T>(bits); });
  return v;
}

namespace {
/// As written in a signature.
const char* name_of(extent_class c) {
  constexpr const char* names[] = {"", "_row", "_column", "_whole"};
  return names[static_cast<std::size_t>(c)];
}
}  // namespace

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
    signature += str("t", i, "=", c.op->name);
    if (c.is_fold()) signature += name_of(c.leaves);
    signature += '(';
    for (int a = 0; a < c.count; ++a) {
      if (a) signature += ',';
      signature += value(c.args[a]);
    }
    signature += str("):", c.type);
  }
  for (const auto& o : outputs)
    signature += str(" out ", value(o.value), name_of(o.where), o.keepdims ? " keepdims" : "");
  if (row_axes) signature += str(" rows of ", int{row_axes});
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
program_builder::value program_builder::fold(const op_def& op, dtype type, value of,
                                             extent_class leaves) {
  const value v = apply(op, type, {&of, 1});
  program_.code.back().leaves = leaves;
  return v;
}
void program_builder::output(value v, extent_class where, bool keep) {
  outputs_.push_back(v);
  program_.outputs.push_back({0, where, keep});
}
void program_builder::end_piece(std::size_t first) {
  program_.pieces.push_back(
      {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(program_.code.size())});
}

std::uint16_t program_builder::number(value v) const {
  const std::size_t first[] = {0, program_.inputs.size(),
                               program_.inputs.size() + program_.immediates.size()};
  return static_cast<std::uint16_t>(first[static_cast<std::size_t>(v.what)] + v.number);
}

program_ref program_builder::finish() {
  for (std::size_t i = 0; i < args_.size(); ++i)
    for (std::size_t a = 0; a < program_.code[i].count; ++a)
      program_.code[i].args[a] = number(args_[i][a]);
  for (std::size_t o = 0; o < outputs_.size(); ++o) program_.outputs[o].value = number(outputs_[o]);
  program_.seal();
  return std::make_shared<const program>(std::move(program_));
}

namespace {

/// Copies instructions in depth-first order, operands before their uses, as expressions are
/// lowered.
class extraction {
 public:
  using operand_test = std::function<bool(std::uint16_t)>;
  /// `keep_pieces`: an expression within the program stays a piece.
  extraction(const program& p, const operand_test& is_operand, bool keep_pieces)
      : p_(p),
        is_operand_(is_operand),
        operands_(p.inputs.size() + p.immediates.size()),
        ends_(p.code.size()) {
    if (keep_pieces)
      for (const auto& piece : p.pieces) ends_[piece.last - 1u] = &piece;
  }

  program_part run(std::span<const std::uint16_t> results) {
    for (auto r : results) {
      const auto v = visit(r);
      if (results.size() > 1) builder_.output(v, extent_class::element, false);
    }
    inputs_.insert(inputs_.end(), immediates_.begin(), immediates_.end());
    return {builder_.finish(), std::move(inputs_)};
  }

 private:
  program_builder::value visit(std::uint16_t v) {
    if (is_operand_(v)) {
      const bool literal = v >= p_.inputs.size() && v < operands_;
      (literal ? immediates_ : inputs_).push_back(v);
      return literal ? builder_.immediate(p_.type_of(v)) : builder_.input(p_.type_of(v));
    }
    if (auto at = done_.find(v); at != done_.end()) return at->second;
    const std::size_t number = v - operands_;
    if (const program_piece* piece = ends_[number]; piece && is_whole(*piece))
      return visit_piece(*piece);
    return done_[v] = add(p_.code[number], [&](std::uint16_t a) { return visit(a); });
  }
  bool is_whole(const program_piece& piece) const {
    for (std::size_t i = piece.first; i < piece.last; ++i) {
      const auto v = static_cast<std::uint16_t>(operands_ + i);
      if (done_.contains(v) || is_operand_(v)) return false;
    }
    return true;
  }
  /// Its operands first, so that its own instructions are consecutive.
  program_builder::value visit_piece(const program_piece& piece) {
    const std::size_t first = operands_ + piece.first;
    std::vector<program_builder::value> outside;
    for (std::size_t i = piece.first; i < piece.last; ++i)
      for (int a = 0; a < p_.code[i].count; ++a)
        if (const auto v = p_.code[i].args[a]; v < first) outside.push_back(visit(v));
    const std::size_t begin = builder_.operations();
    auto next = outside.begin();
    for (std::size_t i = piece.first; i < piece.last; ++i)
      done_[static_cast<std::uint16_t>(operands_ + i)] =
          add(p_.code[i], [&](std::uint16_t a) { return a < first ? *next++ : done_.at(a); });
    builder_.end_piece(begin);
    return done_.at(static_cast<std::uint16_t>(operands_ + piece.last - 1));
  }
  template <class F>
  program_builder::value add(const instruction& c, F&& argument) {
    std::array<program_builder::value, 3> args;
    for (int a = 0; a < c.count; ++a) args[static_cast<std::size_t>(a)] = argument(c.args[a]);
    return builder_.apply(*c.op, c.type, std::span(args).first(c.count));
  }

  const program& p_;
  const operand_test& is_operand_;
  const std::size_t operands_;
  std::vector<const program_piece*> ends_;  ///< of each instruction, the piece that ends with it
  program_builder builder_;
  std::vector<std::uint16_t> inputs_, immediates_;
  std::map<std::uint16_t, program_builder::value> done_;
};

}  // namespace

program_part extract(const program& p, std::span<const std::uint16_t> results,
                     const std::function<bool(std::uint16_t)>& is_operand) {
  return extraction(p, is_operand, true).run(results);
}

program_part separate(const program& p, const program_piece& piece) {
  const std::size_t operands = p.inputs.size() + p.immediates.size();
  const std::size_t first = operands + piece.first, last = operands + piece.last;
  auto inside = [&](std::size_t v) { return v >= first && v + 1 < last; };
  for (std::size_t i = piece.last; i < p.code.size(); ++i)
    for (int a = 0; a < p.code[i].count; ++a)
      if (inside(p.code[i].args[a])) return {};
  for (const auto& o : p.outputs)
    if (inside(o.value)) return {};
  const std::function<bool(std::uint16_t)> outside = [&](std::uint16_t v) { return v < first; };
  const auto result = static_cast<std::uint16_t>(last - 1);
  program_part alone = extraction(p, outside, false).run({&result, 1});
  if (alone.program->code.size() != static_cast<std::size_t>(piece.last - piece.first)) return {};
  return alone;
}

program canonical(const program& region) {
  constexpr std::uint16_t unknown = 0xffff;
  const std::size_t operands = region.inputs.size() + region.immediates.size();
  program made = region;
  made.code.clear();
  made.pieces.clear();
  std::vector<std::uint16_t> number(region.values(), unknown);
  std::iota(number.begin(), number.begin() + static_cast<std::ptrdiff_t>(operands),
            std::uint16_t{0});
  auto visit = [&](auto& self, std::uint16_t v) {
    if (number[v] != unknown) return number[v];
    instruction c = region.code[v - operands];
    for (int a = 0; a < c.count; ++a) c.args[a] = self(self, c.args[a]);
    made.code.push_back(c);
    return number[v] = static_cast<std::uint16_t>(operands + made.code.size() - 1);
  };
  for (auto& o : made.outputs) o.value = visit(visit, o.value);
  made.seal();
  return made;
}

namespace {

class program_checker {
 public:
  explicit program_checker(const program& p)
      : p_(p), operands_(p.inputs.size() + p.immediates.size()) {}

  void run() {
    if (p_.code.empty()) bad("a program without instructions");
    if (p_.code.size() > max_fused_operations)
      bad("a program of ", p_.code.size(), " operations, more than ", max_fused_operations);
    if (operands_ > 3 * max_fused_operations) bad("a program with too many inputs");
    for (auto t : p_.inputs)
      if (!plain_dtypes.has(t)) bad("an input of dtype ", t);
    for (auto t : p_.immediates)
      if (!plain_dtypes.has(t)) bad("an immediate of dtype ", t);
    for (std::size_t i = 0; i < p_.code.size(); ++i) instruct(i);
    put_out();
    pieces();
  }

 private:
  template <class... T>
  [[noreturn]] static void bad(const T&... text) {
    fail(errc::invalid_argument, "[fused] ", text...);
  }

  void instruct(std::size_t i) {
    const auto& c = p_.code[i];
    if (c.op && c.is_fold()) return fold(i);
    if (!c.op || !c.op->is(op_traits::elementwise) || c.count > std::size(c.args))
      bad("instruction ", i, " is not elementwise");
    std::vector<tensor_type> in, out;
    for (int a = 0; a < c.count; ++a) {
      use(i, c.args[a]);
      in.push_back({dims{}, p_.type_of(c.args[a])});
    }
    std::vector<attr_value> attributes;
    if (!c.op->attributes.empty()) attributes.emplace_back(static_cast<std::int64_t>(c.type));
    infer_types(*c.op, {in, attributes}, out);
    if (out.size() != 1 || out[0].type != c.type)
      bad("instruction ", i, " (", c.op->name, ") gives ", out.empty() ? dtype::none : out[0].type,
          ", not ", c.type);
  }
  void use(std::size_t i, std::size_t v) const {
    if (v >= operands_ + i) bad("instruction ", i, " uses value ", v, " before it is computed");
    if (const instruction* made = p_.made_by(v);
        made && made->is_fold() && made->leaves != extent_class::row)
      bad("instruction ", i, " uses a fold over all or over columns, which is a result only");
  }
  void fold(std::size_t i) {
    const auto& c = p_.code[i];
    const bool all = c.leaves == extent_class::whole;
    if (c.op->folds == fold_kind::none || c.count != 1 || c.leaves > extent_class::whole)
      bad("instruction ", i, " (", c.op->name, ") is not a fold of one value");
    use(i, c.args[0]);
    const dtype of = p_.type_of(c.args[0]);
    if (c.type != of || !(c.op->folds == fold_kind::mean ? is_floating(of) : is_numeric(of)))
      bad("instruction ", i, " (", c.op->name, ") gives ", c.type, " of ", of);
    if (!p_.is_region() || all == (p_.row_axes > 0))
      bad("instruction ", i, " (", c.op->name, ") folds ",
          all                                ? "all"
          : c.leaves == extent_class::column ? "columns"
                                             : "rows",
          " in ",
          !p_.is_region() ? "an expression"
          : all           ? "a region of rows"
                          : "a region without rows");
  }

  void put_out() const {
    if (p_.row_axes > max_rank) bad("rows of ", int{p_.row_axes}, " axes");
    if (p_.outputs.size() > program::most_outputs)
      bad("a region has at most ", program::most_outputs, " results, not ", p_.outputs.size());
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (p_.code[i].is_fold() && p_.code[i].leaves != extent_class::row &&
          std::ranges::count(p_.outputs, operands_ + i, &program_output::value) == 0)
        bad("instruction ", i, " folds columns or all, and is not a result");
    for (const auto& o : p_.outputs) {
      if (o.value < operands_ || o.value >= p_.values())
        bad("value ", o.value, " is not a result of an instruction");
      if (std::ranges::count(p_.outputs, o.value, &program_output::value) > 1)
        bad("value ", o.value, " is a result twice");
      const instruction& made = *p_.made_by(o.value);
      if (made.is_fold()
              ? made.leaves != o.where
              : o.where > extent_class::row || (o.where == extent_class::row && p_.row_axes == 0))
        bad("value ", o.value, " is a result of another class");
    }
  }
  void pieces() const {
    std::size_t end = 0;
    for (const auto& piece : p_.pieces) {
      if (piece.first < end || piece.first >= piece.last || piece.last > p_.code.size())
        bad("instructions ", piece.first, " to ", piece.last, " are not a piece of the program");
      for (std::size_t i = piece.first; i < piece.last; ++i) {
        if (p_.code[i].is_fold()) bad("instruction ", i, " is a fold within an expression");
        if (i + 1 < piece.last && !is_inner(i, piece.last))
          bad("instruction ", i, " is not used within its expression alone");
      }
      end = piece.last;
    }
  }

  /// Whether instructions before `last` use the value of instruction `i`, and nothing else does.
  bool is_inner(std::size_t i, std::size_t last) const {
    const auto v = static_cast<std::uint16_t>(operands_ + i);
    bool used = false;
    for (std::size_t j = i + 1; j < p_.code.size(); ++j) {
      const auto& c = p_.code[j];
      if (std::count(c.args, c.args + c.count, v) == 0) continue;
      if (j >= last) return false;
      used = true;
    }
    return used && std::ranges::count(p_.outputs, v, &program_output::value) == 0;
  }

  const program& p_;
  const std::size_t operands_;
};

}  // namespace

void validate(const program& p) { program_checker(p).run(); }

region_shape shape_of(const program& region, std::span<const extent_class> inputs) {
  region_shape s;
  s.where.assign(inputs.begin(), inputs.end());
  s.where.resize(inputs.size() + region.immediates.size(), extent_class::whole);
  s.phase.resize(s.where.size());
  for (const auto& c : region.code) {
    auto where = extent_class::whole;
    std::uint8_t phase = 0;
    for (int a = 0; a < c.count; ++a) {
      where = join(where, s.where[c.args[a]]);
      phase = std::max(phase, s.phase[c.args[a]]);
    }
    // What is computed of columns is so for each row.
    if (where == extent_class::column && !c.is_fold()) where = extent_class::element;
    if (c.is_fold()) {
      if (where != extent_class::element)
        fail(errc::invalid_argument, "[", c.op->name,
             "] folds a value that is the same along what is folded");
      where = c.leaves;
      if (where == extent_class::row) ++phase;
    }
    s.where.push_back(where);
    s.phase.push_back(phase);
    s.phases = std::max<std::uint8_t>(s.phases, static_cast<std::uint8_t>(phase + 1));
  }
  for (const auto& o : region.outputs)
    if (s.where[o.value] != o.where)
      fail(errc::invalid_argument, "[fused] result ", o.value, " is not of the declared class");
  return s;
}

}  // namespace deft::ext
