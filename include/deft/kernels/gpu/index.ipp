// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/index.ipp: what looks elements up or finds their places: gather, one_hot,
// argmax, argmin, first_max, first_min.
#pragma once
#include <bit>
#include <deft/kernels/gpu/indices.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/gpu/strided_index.hpp>
#include <deft/kernels/spec/index.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// Rows of units, which are the largest that addresses and rows allow.
template <class Unit, class Index>
struct gathered_units {
  row_indices<Index> indices;
  const Unit* from;
  Unit* to;
  divider n;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t i = number;
    const std::int64_t column = n.cut(i);
    if (indices.check(i)) to[number] = from[indices.of[i] * n.by() + column];
  }
};

template <class Index>
class kernel_of<spec::gather, Index> final : public queued<spec::gather> {
  void queue(const kernel_call& c, stream& s) override {
    if (count_ == 0) return;
    const row_indices<Index> indices{s.in<Index>(c.in[1]), rows_, fault_kind::gathered, s.faults()};
    if (bytes_ == 0) return s.launch(count_, indices);
    const auto grain = reinterpret_cast<std::uintptr_t>(c.in[0]) |
                       reinterpret_cast<std::uintptr_t>(c.out[0]) |
                       static_cast<std::uintptr_t>(bytes_);
    if (grain % 16 == 0) return queue_units<sixteen_bytes>(c, s, indices);
    if (grain % 8 == 0) return queue_units<std::uint64_t>(c, s, indices);
    if (grain % 4 == 0) return queue_units<std::uint32_t>(c, s, indices);
    queue_units<std::uint8_t>(c, s, indices);
  }

  template <class Unit>
  void queue_units(const kernel_call& c, stream& s, const row_indices<Index>& indices) const {
    const std::int64_t units = bytes_ / static_cast<std::int64_t>(sizeof(Unit));
    s.launch(count_ * units, gathered_units<Unit, Index>{indices, s.in<Unit>(c.in[0]),
                                                         s.out<Unit>(c.out[0]), divider(units)});
  }
};

/// Unit: an unsigned integer of an element's size.
template <class Unit, class Index>
struct hot_elements {
  const Index* index;
  Unit* to;
  Unit one;
  divider depth;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t r = number;
    const std::int64_t i = depth.cut(r);
    to[number] = static_cast<std::int64_t>(index[r]) == i ? one : Unit(0);
  }
};
template <class T, class Index>
class kernel_of<spec::one_hot, T, Index> final : public queued<spec::one_hot> {
  void queue(const kernel_call& c, stream& s) override {
    using unit = integer_of<sizeof(T)>;
    if (out().elements() == 0) return;
    s.launch(out().elements(),
             hot_elements<unit, Index>{s.in<Index>(c.in[0]), s.out<unit>(c.out[0]),
                                       std::bit_cast<unit>(T(1)), divider(op_.depth)});
  }
};

/// The first of the elements that How, largest or smallest, prefers, or the first NaN.
template <class T, class How>
struct preferred_place {
  T value;
  std::int64_t at;  ///< -1: of none

  DEFT_HD bool is_nan() const { return value != value; }
  DEFT_HD bool beats(const preferred_place& o) const {
    if (at < 0 || o.at < 0) return o.at < 0;
    if (is_nan() || o.is_nan()) return is_nan() && (!o.is_nan() || at < o.at);
    const bool better = std::is_same_v<How, largest> ? value > o.value : value < o.value;
    return better || (value == o.value && at < o.at);
  }
};
template <class T, class How>
struct preferred_rows {
  using state = preferred_place<T, How>;
  const T* x;
  std::int64_t* to;
  walk kept, along;

  /// Enough of them to make up a sector of memory.
  bool rows_are_adjacent() const {
    return kept.count > 0 && kept.stride[0] == 1 && kept.extent[0].by() >= 8;
  }
  DEFT_HD state start() const { return {T(0), -1}; }
  DEFT_HD state add(state s, std::int64_t r, std::int64_t c) const {
    return join(s, {x[kept.offset(r) + along.offset(c)], c});
  }
  DEFT_HD state join(state a, state b) const { return b.beats(a) ? b : a; }
  DEFT_HD void end(std::int64_t r, state s) const { to[r] = s.at; }
};
/// Elements whose place in their row is the row's.
struct marked_places {
  const std::int64_t* at;
  bool* to;
  int levels;  ///< the innermost first; each has rows or columns
  divider extent[max_rank];
  std::int64_t row_step[max_rank], column_step[max_rank];

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t rest = number, r = 0, c = 0;
    for (int l = 0; l < levels; ++l) {
      const std::int64_t i = extent[l].cut(rest);
      r += i * row_step[l];
      c += i * column_step[l];
    }
    to[number] = at[r] == c;
  }
};

/// What has `marks` marks in every row what others give for it.
template <class Spec, class T, class How, bool Marks>
class place_kernel : public queued<Spec> {
 public:
  std::size_t scratch() const override { return own_ + row_room(f_, rows_, n_); }
  void queue(const kernel_call& c, stream& s) override {
    if (rows_ * n_ == 0) return;
    preferred_rows<T, How> f = f_;
    f.x = s.in<T>(c.in[0]);
    f.to = s.out<std::int64_t>(Marks ? c.scratch : c.out[0]);
    s.over_rows(f, rows_, n_, static_cast<char*>(c.scratch) + own_);
    if (!Marks) return;
    marked_places m = m_;
    m.at = f.to;
    m.to = s.out<bool>(c.out[0]);
    s.launch(rows_ * n_, m);
  }

 private:
  void ready() override {
    Spec::ready();
    f_ = {};
    m_ = {};
    rows_ = n_ = 0;
    own_ = 0;
    if (this->in(0).elements() == 0) return;
    const fold_levels l(this->in(0), this->axes());
    for (int i = l.count; i-- > 0;) {
      walk& to = l.folded[i] ? f_.along : f_.kept;
      (l.folded[i] ? m_.column_step : m_.row_step)[m_.levels] = to.size();
      m_.extent[m_.levels++] = divider(l.extent[i]);
      to.add(l.extent[i], l.stride[i]);
    }
    rows_ = f_.kept.size(), n_ = f_.along.size();
    if (Marks) own_ = (static_cast<std::size_t>(rows_) * sizeof(std::int64_t) + 255) / 256 * 256;
  }

  preferred_rows<T, How> f_{};
  marked_places m_{};
  std::int64_t rows_ = 0, n_ = 0;
  std::size_t own_ = 0;  ///< bytes of scratch for the places
};
template <class Op, class How, class T>
class kernel_of<spec::first_place<Op, How>, T> final
    : public place_kernel<spec::first_place<Op, How>, T, How, false> {};
template <class Op, class How, class T>
class kernel_of<spec::first_mark<Op, How>, T> final
    : public place_kernel<spec::first_mark<Op, How>, T, How, true> {};

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
