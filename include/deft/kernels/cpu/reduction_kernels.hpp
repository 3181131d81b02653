// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/reduction_kernels.hpp: folds by kind and dtype, of rows and columns, at once or
// of what comes in pieces. Either way elements are joined in the order of row_reduction.hpp,
// whatever made them.
#pragma once
#include <cstdint>
#include <deft/graph/op_def.hpp>
#include <deft/kernels/cpu/row_reduction.hpp>

namespace deft::ext::cpu {

/// One way to fold elements of one dtype.
struct fold_functions {
  /// `rows` rows of `n` elements each, one after the other, into a value each.
  void (*rows)(const void* from, std::int64_t rows, std::int64_t n, void* to);

  // At most `most_rows` rows of at most `piece` elements by a compiled fold, in the memory of a
  // stream: their lanes before, and the rows given their lanes after and the elements behind whole
  // packs, row after row.
  static constexpr std::int64_t most_rows = thresholds::folded_rows;
  void (*reset)(void* lanes, std::int64_t rows);
  void (*finish)(const void* lanes, std::int64_t rows, const void* tails, std::int64_t tail_n,
                 std::int64_t n, void* to);

  // A long row in pieces, each a stream of its own: `stream_bytes`, aligned to 64.
  std::size_t stream_bytes;
  std::int64_t piece;  ///< elements of a piece, or this times a power of two; the last has the rest
  std::int64_t lanes;  ///< compiled folds take multiples of this
  void (*begin)(void* stream);
  /// Where what comes next is to be added by a compiled fold, and how many elements at most.
  void* (*open)(void* stream, std::int64_t& most);
  void (*close)(void* stream, std::int64_t n);
  void (*add)(void* stream, const void* from, std::int64_t n);
  /// The row of `n` elements that `pieces` streams were given, in order.
  void (*end)(void* streams, std::int64_t pieces, std::int64_t n, void* to);
};

/// The same of columns, whose rows come some at a time, one after the other, in pieces of
/// `all.piece()` rows times a power of two.
struct column_fold_functions {
  /// Bytes of a stream for a piece of at most `all.rows` rows, aligned to 64.
  std::size_t (*stream_bytes)(const column_layout& all);
  void (*begin)(void* stream, const column_layout& all);
  /// A multiple of `all.unit()` rows, except for the last call.
  void (*add)(void* stream, const void* from, std::int64_t rows);
  /// What a piece gives: `all.wide()` elements; the last one, which has those rows that are too few
  /// to go together, puts them behind it.
  void (*close)(void* stream, void* part);
  /// The columns that `pieces` parts give, one after the other.
  void (*end)(void* parts, std::int64_t pieces, const column_layout& all, void* to);
};

/// Throws unimplemented for a dtype that cannot be folded so.
const fold_functions& find_fold(fold_kind kind, dtype t);
const column_fold_functions& find_column_fold(fold_kind kind, dtype t);

}  // namespace deft::ext::cpu
