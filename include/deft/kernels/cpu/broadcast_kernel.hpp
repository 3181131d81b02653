// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/broadcast_kernel.hpp: a program over operands that are broadcast together,
// iterated by groups of rows: what kernels of expressions and of folds over all elements share.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/kernels/cpu/interpreter.hpp>
#include <deft/kernels/cpu/kernel_base.hpp>
#include <deft/kernels/spec/region_extents.hpp>
#include <deft/kernels/spec/row_layout.hpp>
#include <deft/kernels/team.hpp>
#include <deft/plan/thresholds.hpp>
#include <memory>

namespace deft::ext::cpu {

/// Each of `count` elements, `times` times.
void repeat(char* to, const void* from, std::size_t size, std::int64_t count, std::int64_t times);

/// The literals of a part of a region, whose own are `all`.
integers literals_of(const program_part& part, const program& region,
                     std::span<const std::int64_t> all);

/// Literals, each as often as the code that takes them asks for.
class literal_copies {
 public:
  literal_copies() = default;
  literal_copies(std::span<const dtype> types, std::span<const std::int64_t> bits, int span);

  std::size_t size() const { return sizes_.size(); }
  const void* operator[](std::size_t i) const {
    return static_cast<const char*>(copies_.raw()) + offset(i);
  }
  /// Another value, of the same dtype.
  void set(std::size_t i, const void* value) {
    repeat(static_cast<char*>(copies_.mutable_raw()) + offset(i), value, sizes_[i], 1, span_);
  }

 private:
  std::int64_t offset(std::size_t i) const { return static_cast<std::int64_t>(i) * 8 * span_; }

  any_array copies_;
  std::vector<std::size_t> sizes_;
  int span_ = 1;
};

using thresholds::chunk_elements;

class broadcast_kernel : public kernel {
 public:
  double cost() const override { return cost_; }

 protected:
  /// `late`: the literals are further inputs of each run.
  broadcast_kernel(const program_code& code, double element_cost, std::size_t inputs,
                   std::span<const dtype> literal_types, std::span<const std::int64_t> literals,
                   bool late);

  /// For inputs that are broadcast to `extents`; `result_bytes` are those of an element in memory.
  void walk(std::span<const tensor_type> in, const dims& extents, std::size_t result_bytes);
  /// What only this run knows.
  void begin(const kernel_call& c) {
    if (late_)
      for (std::size_t i = 0; i < literals_.size(); ++i) literals_.set(i, c.in[inputs_ + i]);
  }

  std::int64_t elements() const { return layout_.elements(); }
  bool is_one_row() const { return layout_.rows() * layout_.planes() == 1; }
  /// Groups of rows, counted through all planes.
  std::int64_t units() const { return layout_.planes() * groups(); }
  std::int64_t unit_elements() const { return layout_.n() * together_; }
  /// The group that has element number `e`.
  std::int64_t unit_of(std::int64_t e) const {
    const std::int64_t row = e / layout_.n();
    return row / layout_.rows() * groups() + row % layout_.rows() / together_;
  }

  /// The addresses of the only row, its single elements copied to `room`.
  void one_row(const kernel_call& c, char* room);
  /// Calls `code(row_call, element)` for the groups of rows number `begin` to `end`: operands of a
  /// run of elements in a line from number `element` on; `out` is for the caller to fill in. What
  /// changes from group to group is in `room`.
  template <class F>
  void some_rows(const kernel_call& c, std::int64_t begin, std::int64_t end, char* room,
                 F&& code) const;
  /// Bytes of room that one of the two needs, in whole lines.
  std::size_t room() const {
    return (static_cast<std::size_t>(room_) + 64 +
            (addresses_.size() + 2 * inputs_) * sizeof(void*) + 63) /
           64 * 64;
  }

  program_code code_;
  std::size_t inputs_;
  row_layout layout_;
  std::vector<const void*> addresses_;
  std::vector<std::uintptr_t> masks_;
  double cost_ = 0;
  bool late_;
  bool single_ = true;  ///< one row, every operand as it is
  bool split_ = false;

 private:
  /// Where an operand's elements for the next rows come from.
  enum class source : std::uint8_t {
    direct,  ///< from where they are
    filled,  ///< one element, copied as often as the code asks for
    tiled,   ///< a row, copied for each of the rows that go together
    spread,  ///< an element for each of them, copied along its row
  };

  std::int64_t fill_bytes() const { return std::int64_t{8} * code_.span(); }
  /// Of the copies that are made of an operand.
  std::int64_t copy_bytes(source w) const {
    if (w == source::direct) return 0;
    return w == source::filled ? fill_bytes() : (together_ * layout_.n() * 8 + 63) / 64 * 64;
  }
  std::int64_t groups() const { return (layout_.rows() + together_ - 1) / together_; }
  void choose_sources(std::int64_t width);
  void copy(std::size_t k, const char* from, std::int64_t count, char* to) const;

  double element_cost_;
  std::vector<source> sources_;
  std::vector<std::uint8_t> sizes_;
  literal_copies literals_;
  std::int64_t together_ = 1, room_ = 0;
};

template <class F>
void broadcast_kernel::some_rows(const kernel_call& c, std::int64_t begin, std::int64_t end,
                                 char* room, F&& code) const {
  const std::size_t operands = addresses_.size();
  auto** in = reinterpret_cast<const void**>(room + room_);
  auto** at = reinterpret_cast<const char**>(in + operands);
  auto** copied = at + inputs_;  // what is in `room` for an operand
  std::copy(addresses_.begin(), addresses_.end(), in);
  std::fill(copied, copied + inputs_, nullptr);
  const std::int64_t n = layout_.n(), rows = layout_.rows(), per_plane = groups();
  for (std::int64_t u = begin; u < end; ++u) {
    const std::int64_t plane = u / per_plane, first = u % per_plane * together_;
    if (u == begin || first == 0) layout_.addresses(plane, c.in, at);
    const std::int64_t count = std::min(together_, rows - first);
    char* to = room;
    for (std::size_t k = 0; k < inputs_; ++k) {
      const char* from = at[k] + first * layout_.rise(k);
      if (sources_[k] == source::direct) {
        in[k] = from;
        continue;
      }
      if (copied[k] != from || sources_[k] == source::spread) copy(k, from, count, to);
      copied[k] = from;
      in[k] = to;
      to += copy_bytes(sources_[k]);
    }
    code(row_call{in, masks_.data(), nullptr, count * n}, (plane * rows + first) * n);
  }
}

}  // namespace deft::ext::cpu
