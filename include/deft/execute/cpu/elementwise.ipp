// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/elementwise.ipp: the kernel of fused nodes and of every elementwise operation.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/execute/cpu/interpreter.hpp>
#include <deft/execute/cpu/kernel_base.hpp>
#include <deft/execute/cpu/layout.hpp>
#include <deft/execute/cpu/tables.hpp>
#include <deft/execute/team.hpp>
#include <deft/op/assign.hpp>
#include <deft/op/catalog.hpp>
#include <memory>

namespace deft::cpu {
namespace {

/// Each of `count` elements, `times` times.
void repeat(char* to, const void* from, std::size_t size, std::int64_t count, std::int64_t times) {
  auto as = [&]<class U>(U v) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(&v, static_cast<const char*>(from) + i * std::int64_t{sizeof v}, sizeof v);
      for (std::int64_t t = 0; t < times; ++t, to += sizeof v) std::memcpy(to, &v, sizeof v);
    }
  };
  if (size == 4)
    as(std::uint32_t());
  else if (size == 8)
    as(std::uint64_t());
  else
    as(std::uint8_t());
}

/// Elements that a chunk of a split run has at least: the same whatever the number of threads.
constexpr std::int64_t chunk_elements = 1 << 15;

class elementwise_kernel final : public kernel {
 public:
  /// `late`: the literals are further inputs of each run.
  elementwise_kernel(compiled_row row, std::unique_ptr<interpreter> steps, double cost,
                     std::size_t inputs, std::span<const dtype> literal_types = {},
                     std::span<const std::int64_t> literals = {}, bool late = false)
      : row_(row),
        steps_(std::move(steps)),
        element_cost_(cost),
        inputs_(inputs),
        span_(row.run ? row.span : steps_->span()),
        addresses_(inputs + literals.size()),
        masks_(inputs + literals.size()),
        walks_(inputs) {
    literals_ =
        any_array(dtype::uint8, {static_cast<std::int64_t>(literals.size()) * fill_bytes()});
    for (std::size_t i = 0; i < literals.size(); ++i) {
      const std::size_t size = size_of_dtype(literal_types[i]);
      addresses_[inputs_ + i] = literal_copies(i);
      repeat(literal_copies(i), literal_value(literal_types[i], literals[i]).raw(), size, 1, span_);
      if (late) late_.push_back(size);
    }
  }

  void prepare(std::span<const tensor_type> all, std::span<const tensor_type> out) override {
    const auto in = all.first(inputs_);
    layout_ = row_layout(in, out[0]);
    in_.assign(in.begin(), in.end());
    out_ = out[0];
    out_size_ = static_cast<std::int64_t>(size_of_dtype(out_.type));
    std::int64_t bytes = out_size_ * layout_.elements(), width = out_size_;
    for (const auto& t : in) {
      width += static_cast<std::int64_t>(size_of_dtype(t.type));
      bytes += static_cast<std::int64_t>(size_of_dtype(t.type)) * t.shape.elements();
    }
    choose_walks(width);
    const double work = element_cost_ * static_cast<double>(layout_.elements());
    const auto calls = static_cast<double>(layout_.planes() * (layout_.rows() / together_ + 1));
    cost_ = 10 * calls + std::max(work, static_cast<double>(bytes) / 40);
    // Splitting what fits one core's cache loses more by moving it than it gains.
    split_ = work > 2e4 || bytes > 500'000;
    if (steps_) steps_->set_far(bytes > 4'000'000);
  }

  void run(const kernel_call& c) override {
    for (std::size_t i = 0; i < late_.size(); ++i)
      repeat(literal_copies(i), c.in[inputs_ + i], late_[i], 1, span_);
    if (single_) {
      for (std::size_t k = 0; k < inputs_; ++k) addresses_[k] = c.in[k];
      return row({addresses_.data(), masks_.data(), c.out[0], layout_.n()});
    }
    if (layout_.elements() == 0) return;
    const bool split = split_ && worth_splitting(cost_);
    if (layout_.rows() * layout_.planes() == 1) return one_row(c, split);
    const std::int64_t units = layout_.planes() * groups();
    if (!split) return some_rows(c, 0, units);
    const std::int64_t each =
        std::max<std::int64_t>({1, chunk_elements / (layout_.n() * together_), (units + 63) / 64});
    parallel_chunks((units + each - 1) / each, [&](std::int64_t i) {
      some_rows(c, i * each, std::min(units, (i + 1) * each));
    });
  }

  double cost() const override { return cost_; }
  bound_row bind(const kernel_call& c) override {
    if (!single_ || !late_.empty() || !row_.run) return {};
    for (std::size_t k = 0; k < inputs_; ++k) addresses_[k] = c.in[k];
    bound_ = {addresses_.data(), masks_.data(), c.out[0], layout_.n()};
    return {row_.run, &bound_, static_cast<std::uint32_t>(addresses_.size())};
  }

 private:
  /// Where an operand's elements for the next rows come from.
  enum class walk : std::uint8_t {
    direct,  ///< from where they are
    filled,  ///< one element, copied `span_` times
    tiled,   ///< a row, copied for each of the rows that go together
    spread,  ///< an element for each of them, copied along its row
  };

  std::int64_t fill_bytes() const { return std::int64_t{8} * span_; }
  char* literal_copies(std::size_t i) {
    return static_cast<char*>(literals_.mutable_raw()) +
           static_cast<std::int64_t>(i) * fill_bytes();
  }
  /// Of the copies that a walk makes of an operand.
  std::int64_t copy_bytes(walk w) const {
    if (w == walk::direct) return 0;
    return w == walk::filled ? fill_bytes() : (together_ * layout_.n() * 8 + 63) / 64 * 64;
  }
  std::int64_t groups() const { return (layout_.rows() + together_ - 1) / together_; }
  void row(const row_call& c) const { row_.run ? row_.run(c) : steps_->run(c); }

  /// Short rows go together: as many as stay in the first-level cache with all operands.
  void choose_walks(std::int64_t width) {
    const std::int64_t n = std::max<std::int64_t>(1, layout_.n());
    const std::int64_t most = std::clamp<std::int64_t>(24'000 / width, 64, 1024);
    together_ = std::clamp<std::int64_t>(most / n, 1, std::max<std::int64_t>(1, layout_.rows()));
    room_ = 0;
    single_ = layout_.elements() <= 1 || layout_.rows() * layout_.planes() == 1;
    for (std::size_t k = 0; k < inputs_; ++k) {
      const bool step = layout_.step(k) != 0, rise = layout_.rise(k) != 0;
      walk& w = walks_[k];
      if (together_ == 1)
        w = step ? walk::direct : walk::filled;
      else
        w = step ? rise ? walk::direct : walk::tiled : rise ? walk::spread : walk::filled;
      masks_[k] = w == walk::filled ? 0 : ~std::uintptr_t{0};
      single_ = single_ && (w == walk::direct || layout_.elements() == 1);
      room_ += copy_bytes(w);
    }
    single_ = single_ && layout_.elements() > 0 && !split_large();
  }
  bool split_large() const { return layout_.n() >= 2 * chunk_elements; }

  /// One long row, cut where it is worth it.
  void one_row(const kernel_call& c, bool split) {
    char* room = static_cast<char*>(thread_scratch(static_cast<std::size_t>(room_) + 1));
    for (std::size_t k = 0; k < inputs_; ++k) {
      addresses_[k] = c.in[k];
      if (walks_[k] != walk::filled) continue;
      repeat(room, c.in[k], size_of_dtype(in_[k].type), 1, span_);
      addresses_[k] = room;
      room += fill_bytes();
    }
    const std::int64_t n = layout_.n();
    if (!split || !split_large()) return row({addresses_.data(), masks_.data(), c.out[0], n});
    const std::int64_t chunks = std::min<std::int64_t>(n / chunk_elements, 64);
    const std::int64_t piece = ((n + chunks - 1) / chunks + 1023) / 1024 * 1024;
    parallel_chunks((n + piece - 1) / piece, [&](std::int64_t i) {
      const std::int64_t begin = i * piece;
      std::vector<const void*> at(addresses_);
      for (std::size_t k = 0; k < inputs_; ++k)
        at[k] = static_cast<const char*>(at[k]) + begin * layout_.step(k);
      row({at.data(), masks_.data(), static_cast<char*>(c.out[0]) + begin * out_size_,
           std::min(piece, n - begin)});
    });
  }

  /// Groups of rows number `begin` to `end`, counted through all planes.
  void some_rows(const kernel_call& c, std::int64_t begin, std::int64_t end) const {
    // Everything that changes from row to row, in memory of the thread.
    const std::size_t operands = addresses_.size();
    char* room = static_cast<char*>(thread_scratch(static_cast<std::size_t>(room_) + 64 +
                                                   (operands + 2 * inputs_) * sizeof(void*)));
    auto** in = reinterpret_cast<const void**>(room + room_);
    auto** at = reinterpret_cast<const char**>(in + operands);
    auto** copied = at + inputs_;  // what is in `room` for an operand
    std::copy(addresses_.begin(), addresses_.end(), in);
    std::fill(copied, copied + inputs_, nullptr);
    const std::int64_t n = layout_.n(), rows = layout_.rows(), per_plane = groups();
    for (std::int64_t u = begin; u < end; ++u) {
      const std::int64_t plane = u / per_plane, first = u % per_plane * together_;
      if (u == begin || first == 0) layout_.place(plane, c.in, at);
      const std::int64_t count = std::min(together_, rows - first);
      char* to = room;
      for (std::size_t k = 0; k < inputs_; ++k) {
        const char* from = at[k] + first * layout_.rise(k);
        if (walks_[k] == walk::direct) {
          in[k] = from;
          continue;
        }
        if (copied[k] != from || walks_[k] == walk::spread) copy(k, from, count, to);
        copied[k] = from;
        in[k] = to;
        to += copy_bytes(walks_[k]);
      }
      row({in, masks_.data(), static_cast<char*>(c.out[0]) + (plane * rows + first) * n * out_size_,
           count * n});
    }
  }

  void copy(std::size_t k, const char* from, std::int64_t count, char* to) const {
    const std::size_t size = size_of_dtype(in_[k].type);
    const std::int64_t n = layout_.n();
    if (walks_[k] == walk::filled)
      repeat(to, from, size, 1, span_);
    else if (walks_[k] == walk::spread)
      repeat(to, from, size, count, n);
    else
      for (std::int64_t r = 0; r < together_; ++r)
        std::memcpy(to + r * n * static_cast<std::int64_t>(size), from,
                    static_cast<std::size_t>(n) * size);
  }

  compiled_row row_;
  std::unique_ptr<interpreter> steps_;
  double element_cost_ = 0, cost_ = 0;
  std::size_t inputs_;
  int span_;
  row_layout layout_;
  std::vector<tensor_type> in_;
  tensor_type out_;
  std::int64_t out_size_ = 0;
  row_call bound_{};
  std::vector<const void*> addresses_;
  std::vector<std::uintptr_t> masks_;
  std::vector<walk> walks_;
  any_array literals_;             ///< their copies
  std::vector<std::size_t> late_;  ///< sizes of those that come with each run
  std::int64_t together_ = 1, room_ = 0;
  bool single_ = true;  ///< one row, every operand as it is
  bool split_ = false;
};

}  // namespace

namespace {

/// `late`: the literals come with each run.
kernel_ptr make_program(const program& p, const integers& immediates, bool late) {
  double cost = 0;
  for (const auto& c : p.code) cost += row_cost(*c.op, p.type_of(c.args[0]));
  compiled_row row;
  std::unique_ptr<interpreter> steps;
  if (const compiled_row* known = find_fused(p))
    row = *known;
  else
    steps = std::make_unique<interpreter>(p);
  return std::make_unique<elementwise_kernel>(row, std::move(steps), cost, p.inputs.size(),
                                              p.immediates, immediates, late);
}

}  // namespace

kernel_ptr make_fused(const node_def& n, std::span<const tensor_type> in) {
  const auto o = decode<op::fused>(n.attributes);
  return make_program(*o.program, o.immediates, in.size() > o.program->inputs.size());
}
kernel_ptr make_fused_update(const node_def& n, std::span<const tensor_type>) {
  const auto o = decode<op::fused_update>(n.attributes);
  return make_program(*o.program, o.immediates, false);
}

kernel_ptr make_elementwise(const node_def& n, std::span<const tensor_type> in) {
  const dtype operand = in.back().type, result = n.outputs.at(0).type;
  compiled_row row = find_row(*n.op, operand, result);
  if (!row.run)
    fail(errc::unimplemented, "[", n.op->name, "] has no kernel on the CPU for ", operand);
  return std::make_unique<elementwise_kernel>(row, nullptr, row_cost(*n.op, operand), in.size());
}

/// Of a variable's elements, input 0, and a value.
kernel_ptr make_update(const node_def& n, std::span<const tensor_type> in) {
  const op_def& how = *n.op->joins;
  const dtype t = in.back().type;
  const compiled_row row = find_row(how, t, t);
  if (!row.run) fail(errc::unimplemented, "[", n.op->name, "] has no kernel on the CPU for ", t);
  return std::make_unique<elementwise_kernel>(row, nullptr, row_cost(how, t), 2);
}

namespace {

/// Of the dtypes that a typing rule takes.
constexpr dtype_set types_of(typing rule) {
  dtype_set set;
  for (int t = 1; t < dtype_count; ++t)
    if (accepts(rule, static_cast<dtype>(t))) set = set | dtype_set{static_cast<dtype>(t)};
  return set;
}
template <class Op>
constexpr dtype_set operand_types() {
  if constexpr (requires { Op::typing_rule; })
    return types_of(Op::typing_rule);
  else
    return all_dtypes;  // cast
}

}  // namespace

kernel_table elementwise_kernels() {
  static const auto& table = *new std::vector<kernel_entry>([] {
    std::vector<kernel_entry> made{
        {op::fused::name, all_dtypes, &make_fused},
        {op::fused_update::name, numeric_dtypes, &make_fused_update},
        {op::assign_add::name, numeric_dtypes, &make_update},
        {op::assign_sub::name, numeric_dtypes, &make_update},
    };
    op::catalog::each([&]<class Op>() {
      if (record_of<Op>.is(op_traits::elementwise))
        made.push_back({Op::name, operand_types<Op>(), &make_elementwise});
    });
    return made;
  }());
  return table;
}

}  // namespace deft::cpu
