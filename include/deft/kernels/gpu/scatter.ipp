// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/scatter.ipp: what adds or writes rows by their indices, in a fixed order:
// scatter_add, sum_rows, scatter_sub, scatter_update,
// scatter_max, scatter, scatter_maximum.
#pragma once
#include <bit>
#include <deft/kernels/gpu/groups.hpp>
#include <deft/kernels/gpu/indices.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/gpu/segment_sum.hpp>
#include <deft/kernels/spec/reducers.hpp>
#include <deft/kernels/spec/scatter.hpp>
#include <deft/op/add.hpp>
#include <deft/op/sub.hpp>
#include <limits>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// Rows and positions are sorted as 32-bit numbers.
void check_sortable(std::string_view op, std::int64_t rows, std::int64_t indices) {
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  if (rows > most || indices > most)
    fail(errc::unimplemented, "[", op, "] on GPUs takes up to ", most,
         " rows and indices, and got ", rows, " and ", indices);
}

template <class T>
struct no_sums {
  T* to;
  DEFT_HD void operator()(std::int64_t i) const { to[i] = 0; }
};
/// A key for each index, its row, and its position. An index out of range has the key `rows`.
template <class Index>
struct index_keys {
  row_indices<Index> indices;
  std::uint32_t *keys, *positions;

  DEFT_HD void operator()(std::int64_t i) const {
    keys[i] = static_cast<std::uint32_t>(indices.check(i) ? indices.of[i] : indices.rows);
    positions[i] = static_cast<std::uint32_t>(i);
  }
};

/// What complete sums are added to, or subtracted from: rows by their keys.
template <class Op, class T>
struct to_rows {
  T* rows;
  std::int64_t count, n;

  DEFT_HD void operator()(std::int64_t, std::uint32_t key, std::int64_t column,
                          num::lane<T> sum) const {
    if (key >= count) return;
    T& element = rows[key * n + column];
    element = Op()(num::lane<T>(element), sum).v;
  }
};
/// The first of the rows that were added up becomes the sum.
template <class T>
struct to_first {
  T* rows;
  const std::uint32_t* positions;
  std::int64_t n;

  DEFT_HD T& element(std::int64_t i, std::int64_t column) const {
    return rows[positions[i] * n + column];
  }
  DEFT_HD void operator()(std::int64_t i, std::uint32_t, std::int64_t column,
                          num::lane<T> sum) const {
    element(i, column) = sum.v;
  }
};
/// The others become the same, or 0.
template <class T>
struct other_rows {
  to_first<T> to;
  const std::uint32_t* starts;
  divider n;
  bool repeat;

  DEFT_HD void operator()(std::int64_t i) const {
    const std::int64_t column = n.cut(i);
    if (starts[i] != i) to.element(i, column) = repeat ? to.element(starts[i], column) : T(0);
  }
};
template <class T>
struct replaced_rows {
  sorted_rows<T> rows;
  T* to;
  std::int64_t count;

  DEFT_HD void operator()(std::int64_t i) const {
    const std::int64_t column = rows.n.cut(i);
    const std::uint32_t key = rows.keys[i];
    if (key < count && !rows.has(i + 1, key))
      to[key * rows.n.by() + column] = rows.element(i, column).v;
  }
};
/// The greatest of a row and of those that have its index, which one thread looks at for each
/// column.
template <class T>
struct greatest_rows {
  sorted_rows<T> rows;
  T* to;
  std::int64_t count;

  DEFT_HD void operator()(std::int64_t i) const {
    const std::int64_t column = rows.n.cut(i);
    const std::uint32_t key = rows.keys[i];
    if (key >= count || (i > 0 && rows.keys[i - 1] == key)) return;
    T& element = to[key * rows.n.by() + column];
    T greatest = element;
    for (; rows.has(i, key); ++i) greatest = largest::combine(greatest, rows.element(i, column).v);
    element = greatest;
  }
};

/// Sorts rows by their indices, stably: their order, and that of sums, follows from the indices
/// alone.
template <class T, class Index>
class row_sorter {
 public:
  std::size_t scratch() const {
    return count_ == 0 || n_ == 0 ? 0 : parts_at() + sizeof(T) * static_cast<std::size_t>(parts_);
  }
  /// `sums`: rows are added up. `fault`: what an index out of range is reported as.
  void set(std::string_view op, fault_kind fault, std::int64_t rows, std::int64_t n,
           std::int64_t count, bool sums) {
    check_sortable(op, rows, count);
    fault_ = fault;
    rows_ = rows, n_ = n, count_ = count;
    parts_ = sums ? part_sums<T, to_first<T>>::parts_of(count) * n : 0;
  }
  /// Whether there are elements to sort. Indices are checked without, too.
  bool begin(stream& s, const void* index) const {
    if (n_ == 0) s.launch(count_, indices(s, index));
    return count_ > 0 && n_ > 0;
  }
  sorted_rows<T> sort(const kernel_call& c, stream& s, const void* index, const void* from) const {
    s.launch(count_, index_keys<Index>{indices(s, index), words(c, s, 0), words(c, s, 1)});
    s.sort_by_key(words(c, s, 0), words(c, s, 2), words(c, s, 1), words(c, s, 3), count_,
                  static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows_) | 1)),
                  room(c, 4 * word_bytes()));
    return {words(c, s, 2), words(c, s, 3), s.in<T>(from), count_, divider(n_)};
  }
  /// Takes the sum of each key's rows to `to`.
  template <class To>
  void add_up(const kernel_call& c, stream& s, sorted_rows<T>& rows, const To& to) const {
    std::uint32_t* const starts = words(c, s, 0);  // what was sorted is done with
    s.launch(count_, key_starts{rows.keys, starts});
    rows.starts = starts;
    const part_sums<T, To> f{rows, s.out<T>(parts_ ? room(c, parts_at()) : nullptr), to};
    s.launch(count_ * n_, f);
    for (std::int64_t n = f.together; n < count_; n *= f.together)
      s.launch(parts_, joined_parts<T, To>{f, n});
  }

 private:
  static std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  std::size_t word_bytes() const {
    return aligned(static_cast<std::size_t>(count_) * sizeof(std::uint32_t));
  }
  std::size_t parts_at() const { return 4 * word_bytes() + aligned(stream::sort_room(count_)); }
  static void* room(const kernel_call& c, std::size_t at) {
    return static_cast<char*>(c.scratch) + at;
  }
  std::uint32_t* words(const kernel_call& c, stream& s, std::size_t i) const {
    return s.out<std::uint32_t>(room(c, i * word_bytes()));
  }
  row_indices<Index> indices(stream& s, const void* index) const {
    return {s.in<Index>(index), rows_, fault_, s.faults()};
  }

  std::int64_t rows_ = 0, n_ = 0, count_ = 0;
  std::int64_t parts_ = 0;  ///< elements of sums that are to be added up
  fault_kind fault_ = fault_kind::none;
};

template <class T, class Index>
class kernel_of<spec::scatter_add, T, Index> final : public queued<spec::scatter_add> {
  std::size_t scratch() const override { return sorter_.scratch(); }
  void ready() override {
    scatter::ready();
    sorter_.set(operation::name, fault_kind::scattered, rows_, n_, count_, true);
  }
  void queue(const kernel_call& c, stream& s) override {
    T* const to = s.out<T>(c.out[0]);
    s.launch(out().elements(), no_sums<T>{to});
    if (!sorter_.begin(s, c.in[1])) return;
    auto rows = sorter_.sort(c, s, c.in[1], c.in[0]);
    sorter_.add_up(c, s, rows, to_rows<op::add, T>{to, rows_, n_});
  }

  row_sorter<T, Index> sorter_;
};

template <class T, class Index>
class kernel_of<spec::sum_rows, T, Index> final : public queued<spec::sum_rows> {
  std::size_t scratch() const override { return sorter_.scratch(); }
  void ready() override {
    sum_rows::ready();
    // Any index: how many rows there are is not known here.
    sorter_.set(operation::name, fault_kind::summed, std::numeric_limits<std::uint32_t>::max(), n_,
                count_, true);
  }
  void queue(const kernel_call& c, stream& s) override {
    if (!sorter_.begin(s, c.in[1])) return;
    auto rows = sorter_.sort(c, s, c.in[1], c.in[0]);
    const to_first<T> to{s.out<T>(c.out[0]), rows.positions, n_};
    sorter_.add_up(c, s, rows, to);
    s.launch(count_ * n_, other_rows<T>{to, rows.starts, rows.n, op_.repeat});
  }

  row_sorter<T, Index> sorter_;
};

/// What an index out of range is reported as.
template <class Op>
inline constexpr fault_kind fault_of = fault_kind::none;
template <>
inline constexpr fault_kind fault_of<op::scatter_sub> = fault_kind::subtracted;
template <>
inline constexpr fault_kind fault_of<op::scatter_update> = fault_kind::replaced;
template <>
inline constexpr fault_kind fault_of<op::scatter_max> = fault_kind::maximized;
template <>
inline constexpr fault_kind fault_of<op::scatter> = fault_kind::replaced_of_value;
template <>
inline constexpr fault_kind fault_of<op::scatter_maximum> = fault_kind::maximized_of_value;

template <class Op, class T, class Index>
class kernel_of<spec::row_update<Op>, T, Index> final : public queued<spec::row_update<Op>> {
  static constexpr spec::row_change change = spec::change_by<Op>;
  static constexpr bool sums = change == spec::row_change::subtracted;

  std::size_t scratch() const override { return sorter_.scratch(); }
  void ready() override {
    spec::row_update<Op>::ready();
    sorter_.set(Op::name, fault_of<Op>, this->rows_, this->n_, this->count_, sums);
  }
  void queue(const kernel_call& c, stream& s) override {
    T* const to = s.out<T>(c.out[0]);
    if (c.in[0] != c.out[0])
      s.launch(this->out().elements(), copied_elements<T>{s.in<T>(c.in[0]), to});
    if (!sorter_.begin(s, c.in[2])) return;
    auto rows = sorter_.sort(c, s, c.in[2], c.in[1]);
    if constexpr (sums)
      sorter_.add_up(c, s, rows, to_rows<op::sub, T>{to, this->rows_, this->n_});
    else if constexpr (change == spec::row_change::maximum)
      s.launch(this->count_ * this->n_, greatest_rows<T>{rows, to, this->rows_});
    else
      s.launch(this->count_ * this->n_, replaced_rows<T>{rows, to, this->rows_});
  }

  row_sorter<T, Index> sorter_;
};

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
