// SPDX-License-Identifier: Apache-2.0
// deft/expr/written.ipp: from an expression as it was written to nodes of the graph.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <boost/container/small_vector.hpp>
#include <deft/expr/written.hpp>
#include <functional>
#include <utility>
#include <variant>

namespace deft::detail {

struct written_operation {
  struct literal {
    dtype type;
    std::int64_t bits;
  };
  using operand = std::variant<output, literal, written>;

  // Of blocks that a thread keeps: an expression that is written in a loop allocates nothing.
  static void* operator new(std::size_t n);
  static void operator delete(void* block);

  std::span<const operand> operands() const { return {places.data(), count}; }

  const op_def* op;
  attr_list (*attributes)();
  scope_ref scope;
  source_location location;
  std::array<operand, 3> places;  ///< of which there are `count`
  std::size_t count = 0;
  mutable std::atomic<std::uint32_t> references{1};
};

namespace {

/// Blocks that a thread has freed.
struct kept_blocks {
  std::array<void*, 64> all;
  std::size_t count = 0;
  bool ended = false;  ///< globals may be destroyed later than this
};
thread_local constinit kept_blocks kept{};
thread_local const struct free_kept_blocks {
  bool used = true;
  free_kept_blocks() = default;
  ~free_kept_blocks() {
    while (kept.count > 0) ::operator delete(kept.all[--kept.count]);
    kept.ended = true;
  }
} frees_kept_blocks;

}  // namespace

void* written_operation::operator new(std::size_t n) {
  return kept.count > 0 ? kept.all[--kept.count] : ::operator new(n);
}
void written_operation::operator delete(void* block) {
  if (!kept.ended && frees_kept_blocks.used && kept.count < kept.all.size())
    kept.all[kept.count++] = block;
  else
    ::operator delete(block);
}

namespace {

/// Where an operation within was called by name.
source_location named_location(const written_operation& x) {
  if (x.location.known()) return x.location;
  for (const auto& o : x.operands())
    if (const auto* inner = std::get_if<written>(&o))
      if (const source_location w = named_location(**inner); w.known()) return w.nearby();
  return {};
}
/// Where the first tensor was made.
source_location operand_location(const written_operation& x) {
  for (const auto& o : x.operands()) {
    source_location w;
    if (const auto* tensor = std::get_if<output>(&o))
      w = tensor->node ? tensor->node->location() : w;
    else if (const auto* inner = std::get_if<written>(&o))
      w = operand_location(**inner);
    if (w.known()) return w.nearby();
  }
  return {};
}
/// An operator does not know its line, but its operands know theirs.
source_location location_near(const written_operation& x) {
  const source_location w = named_location(x);
  return w.known() ? w : operand_location(x);
}

}  // namespace

written::written(const op_def& op, attr_list (*attributes)(), source_location w,
                 std::initializer_list<written_operand> operands) {
  auto made = std::make_unique<written_operation>();
  made->op = &op;
  made->attributes = attributes;
  made->scope = current_scope();
  made->location = w;
  for (const auto& o : operands) {
    auto& to = made->places[made->count++];
    if (o.tensor_)
      to = *o.tensor_;
    else if (o.expression_)
      to = *o.expression_;
    else
      to = written_operation::literal{o.type_, o.bits_};
  }
  std::size_t number = 0;
  for (const auto& o : operands) {
    ++number;
    if (o.tensor_ && !o.tensor_->node)
      refuse_empty_operand(op.name, number, location_near(*made), *o.tensor_);
    if (!o.fits_) refuse_literal(o.unfit_, o.type_, std::string(op.name), location_near(*made));
  }
  operation_ = made.release();
}
written::written(const written& o) noexcept : operation_(o.operation_) {
  if (operation_) operation_->references.fetch_add(1, std::memory_order_relaxed);
}
written::written(written&& o) noexcept : operation_(std::exchange(o.operation_, nullptr)) {}
written& written::operator=(written o) noexcept {
  std::swap(operation_, o.operation_);
  return *this;
}
written::~written() {
  if (operation_ && operation_->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete operation_;
}

namespace {

/// Whether two scopes ask for the same device and the same control dependencies.
bool equivalent(const scope_ref& a, const scope_ref& b) {
  node_info nothing{};
  return resolve_device(a, nothing) == resolve_device(b, nothing) &&
         std::ranges::equal(controls_of(a), controls_of(b)) &&
         (a && a->functions) == (b && b->functions);
}

bool written_together(const written_operation& x, const scope_ref& s) {
  if (!(x.scope == s) && !equivalent(x.scope, s)) return false;
  return std::ranges::all_of(x.operands(), [&](const auto& o) {
    const written* w = std::get_if<written>(&o);
    return !w || written_together(**w, s);
  });
}

/// Most expressions have fewer, for which no memory is allocated.
using few_outputs = boost::container::small_vector<output, 8>;
using few_literals = boost::container::small_vector<std::int64_t, 8>;

/// Inputs and literals by occurrence, as the program of the type numbers them.
void gather(const written_operation& x, few_outputs& inputs, few_literals& literals) {
  for (const auto& o : x.operands())
    if (const auto* w = std::get_if<written>(&o))
      gather(**w, inputs, literals);
    else if (const auto* l = std::get_if<written_operation::literal>(&o))
      literals.push_back(l->bits);
    else
      inputs.push_back(std::get<output>(o));
}

/// A node per operation, each in the scopes that it was written in: an expression over
/// several devices is split between them; the plan fuses each part again.
output lower_apart(const written_operation& x, const source_location& w) {
  few_outputs in;
  for (const auto& o : x.operands())
    if (const auto* inner = std::get_if<written>(&o)) {
      in.push_back(lower_apart(**inner, w));
    } else if (const auto* l = std::get_if<written_operation::literal>(&o)) {
      auto there = adopt_scope(x.scope);
      in.push_back(add_constant(literal_value(l->type, l->bits), w).handle());
    } else {
      in.push_back(std::get<output>(o));
    }
  return add_node(*x.op, x.attributes(), in, x.location.known() ? x.location : w, &x.scope)
      .handle();
}

/// Those of a fused node. A thread keeps the last ones: an expression that is written in a loop has
/// the same each time.
attr_list attributes_of(const program_ref& program, const few_literals& literals) {
  struct last {
    const void* program = nullptr;
    attr_list list;
  };
  thread_local std::array<last, 32> kept_lists;
  last& there = kept_lists[std::hash<const void*>()(program.get()) / 64 % kept_lists.size()];
  const auto same = [&] {
    return there.program == program.get() &&
           std::ranges::equal(std::get<integers>(there.list[1]), literals);
  };
  if (!same()) there = {program.get(), {program, integers(literals.begin(), literals.end())}};
  return there.list;
}

}  // namespace

output lower_written(const written& expression, const program_ref& (*program)(),
                     const source_location& w) {
  const written_operation& x = *expression;
  if (!written_together(x, x.scope)) return lower_apart(x, w);
  few_outputs inputs;
  few_literals literals;
  gather(x, inputs, literals);
  const source_location location = w.known() ? w : location_near(x);
  if (!program) return add_node(*x.op, x.attributes(), inputs, location, &x.scope).handle();
  static const op_def& fused = *find_op("fused");
  return add_node(fused, attributes_of(program(), literals), inputs, location, &x.scope).handle();
}

program_ref make_program(std::span<const token> tokens) {
  static const op_def& cast = *find_op("cast");
  program_builder p;
  const auto cast_to = [&p](dtype t, program_builder::value v) {
    return p.apply(cast, t, {&v, 1});
  };
  // Operands of later steps, none of them half: what is written as one expression is rounded once.
  std::vector<program_builder::value> values;
  const auto push = [&](dtype t, program_builder::value v) {
    values.push_back(is_half(t) ? cast_to(dtype::float32, v) : v);
  };
  for (const token& t : tokens) {
    if (!t.op) {
      push(t.type, t.literal ? p.immediate(t.type) : p.input(t.type));
      continue;
    }
    const bool casts = t.op == &cast, last = &t == &tokens.back();
    const dtype type = is_half(t.type) && !casts ? dtype::float32 : t.type;
    const auto made = p.apply(*t.op, type, std::span(values).last(t.operands));
    values.resize(values.size() - t.operands);
    if (!last)
      push(type, made);
    else if (type != t.type)
      cast_to(t.type, made);
  }
  return p.finish();
}

}  // namespace deft::detail
