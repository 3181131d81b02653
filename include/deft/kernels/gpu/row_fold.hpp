// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/row_fold.hpp: the order in which a row is folded: the same on every system, and
// from run to run.
#pragma once
#include <concepts>
#include <cstdint>
#include <deft/kernels/gpu/divider.hpp>

namespace deft::ext::gpu {

/// What over_rows folds rows by. `state` is trivially copyable; `start` is neutral in `join`.
template <class F>
concept row_fold = requires(const F f, typename F::state s, std::int64_t i) {
  { f.start() } -> std::same_as<typename F::state>;
  { f.add(s, i, i) } -> std::same_as<typename F::state>;  // row, column
  { f.join(s, s) } -> std::same_as<typename F::state>;    // of earlier columns, of later ones
  f.end(i, s);                                            // row, and its fold
};
/// One that goes over each column of a row again once its fold is known.
template <class F>
concept row_fold_and_pass = row_fold<F> &&
    requires(const F f, typename F::state s, std::int64_t i) {
  f.each(i, i, s);  // row, column, its row's fold
};

/// One of which a lane takes `together` columns at a time, which threads of CUDA's GPUs read as
/// one. It has add and each of single columns, too.
template <class F>
concept fold_of_groups = row_fold<F> &&
    requires(const F f, typename F::state s, typename F::elements e, std::int64_t i) {
  { F::together } -> std::convertible_to<int>;
  { f.load(i, i) } -> std::same_as<typename F::elements>;  // row, first column
  { f.add_all(s, e, i, i) } -> std::same_as<typename F::state>;
};
/// One that goes over them again, given what is known of their row by its fold.
template <class F>
concept fold_and_pass_of_groups = fold_of_groups<F> && row_fold_and_pass<F> &&
    requires(const F f, typename F::state s, typename F::elements e, std::int64_t i) {
  f.each_of(e, i, i, f.known(i, s));  // row, first column
};

/// One whose row stays in the registers of a warp of CUDA's GPUs, if its columns are few. They find
/// the row's largest element first, and start from it; the order stays the same. `settle` adds a
/// group and replaces its elements by what `put`, the second pass, needs of them.
template <class F>
concept fold_of_held = fold_of_groups<F> &&
    requires(const F f, typename F::state s, typename F::elements e, std::int64_t i) {
  { f.none() } -> std::same_as<typename F::elements>;  // of columns behind the last
  f.larger(f.largest(e), f.largest(e));
  { f.start(f.largest(e)) } -> std::same_as<typename F::state>;
  { f.settle(s, e, i) } -> std::same_as<typename F::state>;  // first column
};
template <class F>
concept fold_and_pass_of_held = fold_of_held<F> && fold_and_pass_of_groups<F> &&
    requires(const F f, typename F::state s, typename F::elements e, std::int64_t i) {
  f.put(e, i, i, f.known(i, s));  // row, first column
};

/// One that may be told that neighbouring rows are neighbours in memory, as in a sum over the first
/// axis, where neighbouring columns are not. Threads then have rows rather than columns that follow
/// each other. It changes no order.
template <class F>
concept fold_of_columns = row_fold<F> && requires(const F f) {
  { f.rows_are_adjacent() } -> std::same_as<bool>;  // asked by the host
};

/// Lanes that a row of n columns is folded by: lane l takes columns l, l + lanes, …, or groups of
/// `together` columns by these numbers; lanes are joined as a tree, l with l + lanes / 2 first.
DEFT_HD constexpr int fold_lanes(std::int64_t n, int together = 1) {
  if (n > 2048) return 256;
  int lanes = 1;
  while (lanes < 32 && lanes * together < n) lanes *= 2;
  return lanes;
}
/// Columns that a lane of F takes at a time.
template <class F>
inline constexpr int columns_together = 1;
template <fold_of_groups F>
inline constexpr int columns_together<F> = F::together;

/// Where rows are few and long, or so long that a lane would add many columns, each is folded in
/// parts of this many columns, whose folds are folded as a row: at most 256 parts as long as each
/// is short.
constexpr std::int64_t part_columns(std::int64_t n) { return n <= 1 << 20 ? 1 << 12 : 1 << 14; }
constexpr std::int64_t fold_parts(std::int64_t rows, std::int64_t n) {
  return n > (rows < 256 ? 1 << 14 : 1 << 18) ? (n + part_columns(n) - 1) / part_columns(n) : 1;
}

/// Bytes of scratch memory that over_rows(f, rows, n) needs.
template <row_fold F>
std::size_t row_room(const F&, std::int64_t rows, std::int64_t n) {
  const std::int64_t parts = fold_parts(rows, n);
  return parts == 1 ? 0 : static_cast<std::size_t>((parts + 1) * rows) * sizeof(typename F::state);
}

/// F on the parts of rows: row p * rows + r is part p of row r, so that adjacent rows stay
/// adjacent.
template <class F>
struct fold_of_parts {
  using state = typename F::state;
  F f;
  std::int64_t rows, n;
  state* to;

  DEFT_HD state start() const { return f.start(); }
  DEFT_HD state add(state s, std::int64_t row, std::int64_t c) const {
    const std::int64_t r = row % rows, column = row / rows * part_columns(n) + c;
    return column < n ? f.add(s, r, column) : s;
  }
  DEFT_HD state join(state a, state b) const { return f.join(a, b); }
  DEFT_HD void end(std::int64_t row, state s) const { to[row] = s; }
  bool rows_are_adjacent() const requires fold_of_columns<F> { return f.rows_are_adjacent(); }
};
/// The folds of a row's parts, folded.
template <class F>
struct fold_of_folds {
  using state = typename F::state;
  F f;
  std::int64_t rows;
  const state* from;
  state* to;

  DEFT_HD state start() const { return f.start(); }
  DEFT_HD state add(state s, std::int64_t r, std::int64_t p) const {
    return f.join(s, from[p * rows + r]);
  }
  DEFT_HD state join(state a, state b) const { return f.join(a, b); }
  DEFT_HD void end(std::int64_t r, state s) const { f.end(r, s), to[r] = s; }
};
/// F's second pass where the folds are known.
template <class F>
struct pass_of_rows {
  F f;
  divider n;
  const typename F::state* folds;

  DEFT_HD void operator()(std::int64_t i) const {
    const std::int64_t column = n.cut(i);
    f.each(i, column, folds[i]);
  }
};

/// Queues a fold of few long rows as folds of their parts, given a stream that folds whole rows.
template <class Stream, row_fold F>
void over_parts(Stream& s, const F& f, std::int64_t rows, std::int64_t n, void* room) {
  using state = typename F::state;
  const std::int64_t parts = fold_parts(rows, n);
  auto* of_parts = s.template out<state>(room);
  auto* of_rows = of_parts + parts * rows;
  s.fold_rows(fold_of_parts<F>{f, rows, n, of_parts}, rows * parts, part_columns(n));
  s.fold_rows(fold_of_folds<F>{f, rows, of_parts, of_rows}, rows, parts);
  if constexpr (row_fold_and_pass<F>) s.launch(rows * n, pass_of_rows<F>{f, divider(n), of_rows});
}

}  // namespace deft::ext::gpu
