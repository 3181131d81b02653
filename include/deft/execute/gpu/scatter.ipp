// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/scatter.ipp: what adds or writes rows by their indices, in a fixed order:
// scatter_add, sum_rows, scatter_sub, scatter_update.
#pragma once
#include <bit>
#include <deft/core/num_lane.hpp>
#include <deft/execute/gpu/groups.hpp>
#include <deft/execute/gpu/indices.hpp>
#include <deft/execute/gpu/kernels.hpp>
#include <deft/execute/gpu/walk.hpp>
#include <deft/op/scatter.hpp>
#include <limits>

namespace deft::gpu::DEFT_GPU_SYSTEM {
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

/// Rows whose keys ascend, in groups: those of a group that have the same key follow each other,
/// and are summed in order, into the key's row of `to`. A key may go on in the next group: sums at
/// the ends of groups are `rest`'s rows, two of each group, whose keys ascend again.
template <class T>
struct group_sums {
  static constexpr std::int64_t together = 64;

  const std::uint32_t* keys;
  const std::uint32_t* positions;  ///< of the rows in `from`; null: as they are
  const T* from;
  T* to;
  std::uint32_t* rest_keys;  ///< null: there is but one group
  T* rest;
  std::int64_t count, rows;
  divider n;

  static constexpr std::int64_t rest_of(std::int64_t count) {
    return count <= together ? 0 : 2 * ((count + together - 1) / together);
  }

  DEFT_HD void operator()(std::int64_t i) const {
    const std::int64_t column = n.cut(i), group = i / together, begin = group * together;
    const std::int64_t end = begin + together < count ? begin + together : count;
    const std::uint32_t key = keys[i];
    const bool first = i == begin;
    if (!first && keys[i - 1] == key) return;
    num::lane<T> sum = 0;
    std::int64_t k = i;
    for (; k < end && keys[k] == key; ++k)
      sum = sum + num::lane<T>(from[(positions ? positions[k] : k) * n.by() + column]);
    const bool last = k == end;
    if (!rest_keys || (!first && !last)) {
      if (key < rows) to[key * n.by() + column] = sum.v;
      return;
    }
    put(2 * group + (first ? 0 : 1), key, column, sum.v);
    if (first && last) put(2 * group + 1, key, column, T(0));
  }

 private:
  DEFT_HD void put(std::int64_t place, std::uint32_t key, std::int64_t column, T sum) const {
    rest[place * n.by() + column] = sum;
    if (column == 0) rest_keys[place] = key;
  }
};

/// By a stable sort of the indices: what is added to a row is added in their order, in an order of
/// additions that follows from the indices alone.
template <class T, class Index>
class scatter_kernel final : public queued_kernel {
 public:
  std::size_t scratch() const override { return scratch_; }
  void queue(const kernel_call& c, stream& s) override {
    T* const to = s.out<T>(c.out[0]);
    s.launch(rows_ * n_, no_sums<T>{to});
    if (count_ == 0) return;
    const row_indices<Index> indices{s.in<Index>(c.in[1]), rows_, fault_kind::scattered,
                                     s.faults()};
    if (n_ == 0) return s.launch(count_, indices);
    char* const room = static_cast<char*>(c.scratch);
    auto words = [&](std::size_t i) { return s.out<std::uint32_t>(room + i * words_); };
    std::uint32_t *keys = words(0), *positions = words(1), *sorted = words(2), *order = words(3);
    s.launch(count_, index_keys<Index>{indices, keys, positions});
    s.sort_by_key(keys, sorted, positions, order, count_,
                  static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows_) | 1)),
                  room + 4 * words_);
    group_sums<T> f{sorted, order, s.in<T>(c.in[0]), to, nullptr, nullptr,
                    count_, rows_, divider(n_)};
    for (std::size_t at = levels_; f.count > 0;) {
      const std::int64_t rest = group_sums<T>::rest_of(f.count);
      f.rest_keys = rest ? s.out<std::uint32_t>(room + at) : nullptr;
      f.rest = rest ? s.out<T>(room + at + key_bytes(rest)) : nullptr;
      s.launch(f.count * n_, f);
      f.keys = f.rest_keys, f.from = f.rest, f.positions = nullptr, f.count = rest;
      at += key_bytes(rest) + sum_bytes(rest);
    }
  }

 private:
  static std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  static std::size_t key_bytes(std::int64_t count) {
    return aligned(static_cast<std::size_t>(count) * sizeof(std::uint32_t));
  }
  std::size_t sum_bytes(std::int64_t count) const {
    return aligned(static_cast<std::size_t>(count * n_) * sizeof(T));
  }
  void ready() override {
    rows_ = out()[0];
    n_ = 1;
    for (int i = 1; i < out().rank(); ++i) n_ *= out()[i];
    count_ = in(1).elements();
    check_sortable("scatter_add", rows_, count_);
    words_ = key_bytes(count_);
    levels_ = scratch_ = 4 * words_ + aligned(stream::sort_room(count_));
    for (std::int64_t left = count_; (left = group_sums<T>::rest_of(left)) > 0;)
      scratch_ += key_bytes(left) + sum_bytes(left);
    if (count_ == 0 || n_ == 0) scratch_ = 0;
  }

  std::int64_t rows_ = 0, n_ = 0, count_ = 0;
  std::size_t words_ = 0;   ///< bytes of the keys of all indices
  std::size_t levels_ = 0;  ///< where sums begin that are still to be added up
  std::size_t scratch_ = 0;
};

/// Row i of `from` belongs to a key; of the sorted keys, the positions of their rows.
template <class T>
struct sorted_rows {
  const std::uint32_t *keys, *positions;
  const T* from;
  T* to;
  std::int64_t count, rows;
  divider n;

  DEFT_HD bool is_first(std::int64_t i) const { return i == 0 || keys[i - 1] != keys[i]; }
  DEFT_HD bool is_last(std::int64_t i) const { return i + 1 == count || keys[i + 1] != keys[i]; }
  DEFT_HD num::lane<T> sum(std::int64_t i, std::int64_t column) const {
    num::lane<T> total(from[positions[i] * n.by() + column]);
    for (std::int64_t k = i + 1; k < count && keys[k] == keys[i]; ++k)
      total = total + num::lane<T>(from[positions[k] * n.by() + column]);
    return total;
  }
};
template <class T>
struct summed_rows : sorted_rows<T> {
  bool repeat;
  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t i = number;
    const std::int64_t column = this->n.cut(i);
    if (!this->is_first(i)) return;
    const T sum = this->sum(i, column).v;
    for (std::int64_t k = i; k < this->count && this->keys[k] == this->keys[i]; ++k)
      this->to[this->positions[k] * this->n.by() + column] = k == i || repeat ? sum : T(0);
  }
};
template <class T>
struct subtracted_rows : sorted_rows<T> {
  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t i = number;
    const std::int64_t column = this->n.cut(i);
    if (!this->is_first(i) || this->keys[i] >= this->rows) return;
    T& element = this->to[this->keys[i] * this->n.by() + column];
    element = (num::lane<T>(element) - this->sum(i, column)).v;
  }
};
template <class T>
struct replaced_rows : sorted_rows<T> {
  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t i = number;
    const std::int64_t column = this->n.cut(i);
    if (!this->is_last(i) || this->keys[i] >= this->rows) return;
    this->to[this->keys[i] * this->n.by() + column] =
        this->from[this->positions[i] * this->n.by() + column];
  }
};
template <class T>
struct copied_elements {
  const T* from;
  T* to;
  DEFT_HD void operator()(std::int64_t i) const { to[i] = from[i]; }
};

/// What sorts rows by their indices and then goes over them, a thread for each element of each row.
template <class T, class Index>
class sorting_kernel : public queued_kernel {
 public:
  std::size_t scratch() const override {
    return count_ == 0 || n_ == 0 ? 0 : 4 * word_bytes() + stream::sort_room(count_);
  }

 protected:
  void set(std::string_view op, std::int64_t rows, std::int64_t n, std::int64_t count) {
    check_sortable(op, rows, count);
    rows_ = rows, n_ = n, count_ = count;
  }
  sorted_rows<T> sort(const kernel_call& c, stream& s, const void* index, const void* from) const {
    const row_indices<Index> indices{s.in<Index>(index), rows_, fault_kind::scattered, s.faults()};
    char* const room = static_cast<char*>(c.scratch);
    auto words = [&](std::size_t i) { return s.out<std::uint32_t>(room + i * word_bytes()); };
    s.launch(count_, index_keys<Index>{indices, words(0), words(1)});
    s.sort_by_key(words(0), words(2), words(1), words(3), count_,
                  static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows_) | 1)),
                  room + 4 * word_bytes());
    return {words(2), words(3), s.in<T>(from), s.out<T>(c.out[0]), count_, rows_, divider(n_)};
  }

  std::int64_t rows_ = 0, n_ = 0, count_ = 0;

 private:
  std::size_t word_bytes() const {
    return (static_cast<std::size_t>(count_) * sizeof(std::uint32_t) + 255) / 256 * 256;
  }
};

inline std::int64_t elements_from(const dims& shape, int axis) {
  std::int64_t n = 1;
  for (int i = axis; i < shape.rank(); ++i) n *= shape[i];
  return n;
}

template <class T, class Index>
class sum_rows_kernel final : public sorting_kernel<T, Index> {
 public:
  explicit sum_rows_kernel(bool repeat) : repeat_(repeat) {}
  void queue(const kernel_call& c, stream& s) override {
    if (this->count_ == 0 || this->n_ == 0) return;
    s.launch(this->count_ * this->n_, summed_rows<T>{this->sort(c, s, c.in[1], c.in[0]), repeat_});
  }

 private:
  void ready() override {
    // Any index: how many rows there are is not known here.
    this->set("sum_rows", std::numeric_limits<std::uint32_t>::max(),
              elements_from(this->in(0), this->in(1).rank()), this->in(1).elements());
  }
  bool repeat_;
};

/// An update of rows, `Rows` of their elements. The first input is the variable, which need not
/// share the result's memory.
template <class T, class Index, template <class> class Rows>
class row_update_kernel final : public sorting_kernel<T, Index> {
 public:
  void queue(const kernel_call& c, stream& s) override {
    if (c.in[0] != c.out[0])
      s.launch(this->out().elements(), copied_elements<T>{s.in<T>(c.in[0]), s.out<T>(c.out[0])});
    if (this->count_ == 0 || this->n_ == 0) return;
    s.launch(this->count_ * this->n_, Rows<T>{this->sort(c, s, c.in[2], c.in[1])});
  }

 private:
  void ready() override {
    this->set("scatter", this->out()[0], elements_from(this->out(), 1), this->in(2).elements());
  }
};

kernel_ptr make_scatter_add(const node_def& n, std::span<const tensor_type> in) {
  return make_by_index(n, in[1].type, [&]<class Index>() -> kernel_ptr {
    return make_by_number(n, in[0].type, [&]<class T>() -> kernel_ptr {
      return std::make_unique<scatter_kernel<T, Index>>();
    });
  });
}
kernel_ptr make_sum_rows(const node_def& n, std::span<const tensor_type> in) {
  return make_by_index(n, in[1].type, [&]<class Index>() -> kernel_ptr {
    return make_by_number(n, in[0].type, [&]<class T>() -> kernel_ptr {
      return std::make_unique<sum_rows_kernel<T, Index>>(decode<op::sum_rows>(n.attributes).repeat);
    });
  });
}
template <template <class> class Rows>
kernel_ptr make_row_update(const node_def& n, std::span<const tensor_type> in) {
  return make_by_index(n, in.back().type, [&]<class Index>() -> kernel_ptr {
    return make_by_number(n, in[0].type, [&]<class T>() -> kernel_ptr {
      return std::make_unique<row_update_kernel<T, Index, Rows>>();
    });
  });
}

}  // namespace

kernel_table scatter_kernels() {
  static constexpr kernel_entry table[] = {
      {op::scatter_add::name, numeric_dtypes, &make_scatter_add},
      {op::sum_rows::name, numeric_dtypes, &make_sum_rows},
      {op::scatter_sub::name, numeric_dtypes, &make_row_update<subtracted_rows>},
      {op::scatter_update::name, numeric_dtypes, &make_row_update<replaced_rows>},
  };
  return table;
}

}  // namespace deft::gpu::DEFT_GPU_SYSTEM
