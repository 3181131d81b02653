// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/elementwise.ipp: the kernel of fused nodes and of every elementwise operation.
#pragma once
#include <cstring>
#include <deft/execute/cpu/interpreter.hpp>
#include <deft/execute/cpu/kernels.hpp>
#include <deft/execute/cpu/layout.hpp>
#include <deft/execute/team.hpp>
#include <deft/op/add.hpp>
#include <deft/op/assign.hpp>
#include <deft/op/sub.hpp>
#include <memory>

namespace deft::cpu {
namespace {

/// `count` copies of the element at `from`.
void fill(char* to, const void* from, std::size_t size, int count) {
  auto as = [&]<class U>(U v) {
    std::memcpy(&v, from, sizeof v);
    for (int i = 0; i < count; ++i)
      std::memcpy(to + static_cast<std::size_t>(i) * sizeof v, &v, sizeof v);
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
  elementwise_kernel(compiled_row row, std::unique_ptr<interpreter> steps, double cost,
                     std::size_t inputs, std::span<const dtype> literal_types,
                     std::span<const std::int64_t> literals)
      : row_(row),
        steps_(std::move(steps)),
        element_cost_(cost),
        inputs_(inputs),
        operands_(inputs + literals.size()),
        span_(row.run ? row.span : steps_->span()),
        addresses_(operands_),
        masks_(operands_),
        rows_(inputs_) {
    fills_ = any_array(dtype::uint8, {static_cast<std::int64_t>(operands_ * fill_bytes())});
    for (std::size_t i = 0; i < literals.size(); ++i)
      visit_dtype(literal_types[i], [&]<class T>() {
        T v = from_immediate<T>(literals[i]);
        fill(fill_of(inputs_ + i), &v, sizeof v, span_);
      });
    for (std::size_t i = inputs_; i < operands_; ++i) addresses_[i] = fill_of(i);
  }

  void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) override {
    layout_ = row_layout(in, out[0]);
    in_.assign(in.begin(), in.end());
    out_ = out[0];
    dense_ = true;
    double bytes = static_cast<double>(size_of_dtype(out_.type) * layout_.elements());
    for (std::size_t k = 0; k < inputs_; ++k) {
      masks_[k] = layout_.dense(k) ? ~std::uintptr_t{0} : 0;
      dense_ = dense_ && layout_.dense(k);
      bytes += static_cast<double>(size_of_dtype(in[k].type) * in[k].shape.elements());
    }
    cost_ = 10.0 + 10.0 * static_cast<double>(layout_.rows()) +
            std::max(element_cost_ * static_cast<double>(layout_.elements()), bytes / 40);
    // Splitting what fits one core's cache loses more by moving it than it gains.
    split_ = element_cost_ * static_cast<double>(layout_.elements()) > 2e4 || bytes > 5e5;
  }

  void run(const kernel_call& c) override {
    const std::int64_t n = layout_.n();
    if (layout_.rows() == 1) {
      if (n == 0) return;
      for (std::size_t k = 0; k < inputs_; ++k) addresses_[k] = c.in[k];
      if (n > 1 && !dense_)
        fill_broadcast(addresses_.data(), addresses_.data(), fills_.mutable_raw());
      if (n < 2 * chunk_elements || !split_ || !worth_splitting(cost_))
        row({addresses_.data(), masks_.data(), c.out[0], n});
      else
        run_pieces(c.out[0]);
    } else if (n * layout_.rows() > 0) {
      run_rows(c);
    }
  }

  bool in_place(int i) const override {
    const auto& t = in_[static_cast<std::size_t>(i)];
    return t.shape == out_.shape && size_of_dtype(t.type) == size_of_dtype(out_.type);
  }
  double cost() const override { return cost_; }

 private:
  std::size_t fill_bytes() const { return static_cast<std::size_t>(span_) * 8; }
  char* fill_of(std::size_t operand) {
    return static_cast<char*>(fills_.mutable_raw()) + operand * fill_bytes();
  }

  void row(const row_call& c) const { row_.run ? row_.run(c) : steps_->run(c); }

  /// Copies of the elements that stand for a whole row, where `to` then points.
  void fill_broadcast(const void** to, const void* const* from, void* room) const {
    for (std::size_t k = 0; k < inputs_; ++k) {
      if (masks_[k]) continue;
      char* filled = static_cast<char*>(room) + k * fill_bytes();
      fill(filled, from[k], size_of_dtype(in_[k].type), span_);
      to[k] = filled;
    }
  }

  /// One long row, cut.
  void run_pieces(void* out) {
    const std::int64_t n = layout_.n();
    const std::int64_t chunks = std::min<std::int64_t>(n / chunk_elements, 64);
    const std::int64_t piece = ((n + chunks - 1) / chunks + 1023) / 1024 * 1024;
    parallel_chunks((n + piece - 1) / piece, [&](std::int64_t i) {
      const std::int64_t begin = i * piece;
      std::vector<const void*> at(addresses_);
      for (std::size_t k = 0; k < inputs_; ++k)
        if (masks_[k]) at[k] = advanced(at[k], begin, in_[k].type);
      row({at.data(), masks_.data(), const_cast<void*>(advanced(out, begin, out_.type)),
           std::min(piece, n - begin)});
    });
  }
  static const void* advanced(const void* p, std::int64_t elements, dtype t) {
    return static_cast<const char*>(p) + elements * static_cast<std::int64_t>(size_of_dtype(t));
  }

  void run_rows(const kernel_call& c) {
    const std::int64_t n = layout_.n(), rows = layout_.rows();
    // On this thread alone, with room of the kernel's own: nothing is allocated.
    if (!split_ || !worth_splitting(cost_))
      return run_rows(c, 0, rows, addresses_.data(), rows_.data(), fills_.mutable_raw());
    const std::int64_t chunk = std::max<std::int64_t>({1, chunk_elements / n, (rows + 63) / 64});
    parallel_chunks((rows + chunk - 1) / chunk, [&](std::int64_t i) {
      std::vector<const void*> in(addresses_);
      std::vector<const char*> at(inputs_);
      any_array room;
      if (!dense_)
        room = any_array(dtype::uint8, {static_cast<std::int64_t>(inputs_ * fill_bytes())});
      run_rows(c, i * chunk, std::min(rows, (i + 1) * chunk), in.data(), at.data(),
               room.mutable_raw());
    });
  }
  void run_rows(const kernel_call& c, std::int64_t begin, std::int64_t end, const void** in,
                const char** at, void* room) const {
    const std::int64_t n = layout_.n();
    row_layout::cursor cursor(layout_, c.in, at, begin);
    void* out = const_cast<void*>(advanced(c.out[0], begin * n, out_.type));
    for (std::int64_t r = begin; r < end; ++r) {
      for (std::size_t k = 0; k < inputs_; ++k) in[k] = at[k];
      if (!dense_ && n > 1) fill_broadcast(in, in, room);
      row({in, masks_.data(), out, n});
      out = const_cast<void*>(advanced(out, n, out_.type));
      cursor.next();
    }
  }

  compiled_row row_;
  std::unique_ptr<interpreter> steps_;
  double element_cost_ = 0, cost_ = 0;
  std::size_t inputs_, operands_;
  int span_;
  row_layout layout_;
  std::vector<tensor_type> in_;
  tensor_type out_;
  std::vector<const void*> addresses_;
  std::vector<std::uintptr_t> masks_;
  std::vector<const char*> rows_;
  any_array fills_;  ///< copies of literals and of broadcast elements
  bool dense_ = true, split_ = false;
};

}  // namespace

kernel_ptr make_fused(const node_def& n, std::span<const tensor_type> in) {
  const program& p = *std::get<program_ref>(n.attributes.at(0));
  const integers& literals = std::get<integers>(n.attributes.at(1));
  double cost = 0;
  for (const auto& c : p.code) cost += row_cost(*c.op, p.type_of(c.args[0]));
  compiled_row row;
  std::unique_ptr<interpreter> steps;
  if (const compiled_row* known = find_fused(p))
    row = *known;
  else
    steps = std::make_unique<interpreter>(p);
  return std::make_unique<elementwise_kernel>(row, std::move(steps), cost, in.size(), p.immediates,
                                              literals);
}

kernel_ptr make_elementwise(const node_def& n, std::span<const tensor_type> in) {
  const dtype operand = in.back().type, result = n.outputs.at(0).type;
  compiled_row row = find_row(*n.op, operand, result);
  if (!row.run)
    fail(errc::unimplemented, "[", n.op->name, "] has no kernel on the CPU for ", operand);
  return std::make_unique<elementwise_kernel>(row, nullptr, row_cost(*n.op, operand), in.size(),
                                              std::span<const dtype>(),
                                              std::span<const std::int64_t>());
}

kernel_ptr make_update(const node_def& n, std::span<const tensor_type> in) {
  const op_def& how = n.op->name == op::assign_sub::name ? record_of<op::sub> : record_of<op::add>;
  const dtype t = in.back().type;
  const compiled_row row = find_row(how, t, t);
  if (!row.run) fail(errc::unimplemented, "[", n.op->name, "] has no kernel on the CPU for ", t);
  return std::make_unique<elementwise_kernel>(
      row, nullptr, row_cost(how, t), 2, std::span<const dtype>(), std::span<const std::int64_t>());
}

}  // namespace deft::cpu
