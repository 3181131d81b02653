// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/segment_sum.hpp: sums of the rows that have the same key, in an order that
// follows from the keys alone. A key's rows are added in parts, however many they are.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deft/core/num_lane.hpp>
#include <deft/kernels/gpu/divider.hpp>
#include <deft/plan/thresholds.hpp>

namespace deft::ext::gpu {

/// Where the first of the keys is that equal each; equal ones follow each other. Searched for in
/// steps that double, and then halve.
struct key_starts {
  const std::uint32_t* keys;
  std::uint32_t* starts;

  DEFT_HD void operator()(std::int64_t i) const {
    std::int64_t first = i, step = 1;
    for (; first >= step && keys[first - step] == keys[i]; step *= 2) first -= step;
    for (; step > 0; step /= 2)
      if (first >= step && keys[first - step] == keys[i]) first -= step;
    starts[i] = static_cast<std::uint32_t>(first);
  }
};

/// The rows of `from` in the order of their keys; those that have the same key in their own.
template <class T>
struct sorted_rows {
  const std::uint32_t *keys, *positions;
  const T* from;
  std::int64_t count;
  divider n;
  const std::uint32_t* starts = nullptr;  ///< as key_starts finds them, where rows are added up

  DEFT_HD bool has(std::int64_t i, std::uint32_t key) const { return i < count && keys[i] == key; }
  DEFT_HD num::lane<T> element(std::int64_t i, std::int64_t column) const {
    return from[positions[i] * n.by() + column];
  }
};

/// Adds up a key's rows in parts of `together` rows, from its first row on, each in order by a
/// thread of its own. `to`(first row, key, column, sum) takes the sum of a key of one part;
/// joined_parts adds up the others.
template <class T, class To>
struct part_sums {
  static constexpr std::int64_t together = thresholds::rows_together;

  sorted_rows<T> rows;
  /// Two rows for each `together` rows: of a further part that begins there, and of the first part
  /// of another key.
  T* parts;
  To to;

  static constexpr std::int64_t parts_of(std::int64_t count) {
    return count <= together ? 0 : 2 * ((count + together - 1) / together);
  }
  DEFT_HD T& part(std::int64_t i, bool is_first, std::int64_t column) const {
    return parts[(i / together * 2 + is_first) * rows.n.by() + column];
  }
  /// Takes the sum of the rows in [i, end).
  DEFT_HD void put(std::int64_t i, std::int64_t end, std::int64_t column, num::lane<T> sum) const {
    const bool is_first = rows.starts[i] == i;
    if (is_first && !rows.has(end, rows.keys[i]))
      to(i, rows.keys[i], column, sum);
    else
      part(i, is_first, column) = sum.v;
  }
  DEFT_HD void operator()(std::int64_t i) const {
    const std::int64_t column = rows.n.cut(i);
    if ((i - rows.starts[i]) % together != 0) return;
    const std::uint32_t key = rows.keys[i];
    num::lane<T> sum = rows.element(i, column);
    for (std::int64_t k = i + 1; k < i + together && rows.has(k, key); ++k)
      sum = sum + rows.element(k, column);
    put(i, i + together, column, sum);
  }
};
/// Adds up `together` parts of `length` rows each, in place: that many times longer parts.
template <class T, class To>
struct joined_parts : part_sums<T, To> {
  std::int64_t length;

  DEFT_HD void operator()(std::int64_t number) const {
    const sorted_rows<T>& r = this->rows;
    const std::int64_t column = r.n.cut(number), here = number / 2 * this->together;
    const bool is_first = number % 2;
    const std::int64_t last = std::min(here + this->together, r.count) - 1;
    const std::int64_t start = r.starts[is_first ? last : here];
    const std::int64_t i = is_first ? start : here + start % this->together;
    if (is_first ? i < here : start == here || i > last || r.starts[i] != start) return;
    const std::uint32_t key = r.keys[i];
    const std::int64_t end = i + length * this->together;
    // A part by itself is complete, or is the next one as it is.
    if ((i - start) % (length * this->together) != 0 || !r.has(i + length, key)) return;
    num::lane<T> sum = this->part(i, is_first, column);
    for (std::int64_t k = i + length; k < end && r.has(k, key); k += length)
      sum = sum + num::lane<T>(this->part(k, false, column));
    this->put(i, end, column, sum);
  }
};

}  // namespace deft::ext::gpu
