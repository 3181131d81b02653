// SPDX-License-Identifier: Apache-2.0
// deft/plan/thresholds.hpp: the sizes at which plans and the CPU's kernels change how they compute.
// Results must not change with them: tests/plan/test_thresholds.cpp runs programs on both sides of
// each. A size that is new, or that was in a kernel by itself, belongs here and into its list.
#pragma once
#include <array>
#include <cstdint>
#include <deft/core/config.hpp>

namespace deft::ext::thresholds {

// Elements of a tensor.

/// Of a region from which on reading a value again costs more than a region with two results.
inline constexpr std::int64_t large_region = 4096;
/// Of a chunk of a split run at least: the same whatever the number of threads.
inline constexpr std::int64_t chunk_elements = 1 << 15;
/// Of a piece of a reduction: leaves of a fold times a power of two.
inline constexpr std::int64_t piece_elements = 1 << 15;
/// That a program computes at a time before they are folded: by a compiled kernel, by its steps.
inline constexpr std::int64_t folded_block = 1024, folded_block_of_steps = 2048;
/// That a program's steps, or short rows that go together, have at a time at most.
inline constexpr std::int64_t largest_block = 1024;

inline constexpr std::array elements{large_region,          largest_block,      folded_block,
                                     folded_block_of_steps, chunk_elements,     piece_elements,
                                     2 * chunk_elements,    2 * piece_elements, 4 * piece_elements};

// Bytes that a kernel reads and writes.

/// From here on a kernel is split: what fits one core's cache loses more by moving than it gains.
inline constexpr std::int64_t split_bytes = 500'000;
/// From here on they come from memory: programs ask for their next block.
inline constexpr std::int64_t far_bytes = 4'000'000;

inline constexpr std::array bytes{split_bytes, far_bytes};

// Nanoseconds of a kernel's work.

/// From here on a kernel is split.
inline constexpr double split_work = 1e4;
/// From here on the team is called, if it is awake; and if it has to be woken: by one kernel, or by
/// several of so many nanoseconds each.
inline constexpr double awake_team = 5'000, asleep_team = 100'000, missed_team = 10'000;

// Elements of a row.

/// Shorter rows of a region are computed some at once.
inline constexpr std::int64_t short_row = 128;
/// Shorter ones are folded over their columns by several at once, which have so many elements.
inline constexpr std::int64_t narrow_columns = 64, narrow_together = 256;
/// Of columns that are folded in pieces of rows, as they stay in cache.
inline constexpr std::int64_t widest_piece = 1 << 13;
/// Of columns that a region folds at most.
inline constexpr std::int64_t most_columns = 1 << 14;
/// Registers of a row that are folded one after another, of which four lie side by side: a leaf.
inline constexpr std::int64_t leaf_packs = 64;

inline constexpr std::array row_elements{short_row,          narrow_columns,     narrow_together,
                                         widest_piece,       most_columns,       leaf_packs * 4 * 4,
                                         leaf_packs * 4 * 8, leaf_packs * 4 * 16};

// Rows.

/// That are folded over one after another, by pairs: a leaf.
inline constexpr std::int64_t leaf_rows = 64;
/// That pass through a region at once at most.
inline constexpr std::int64_t rows_at_once = 256;
/// That a compiled fold takes at once.
inline constexpr std::int64_t folded_rows = 16;

/// Elements of an expression that are computed before they are reduced, where units of them are
/// smaller.
inline constexpr std::int64_t folded_unit = 8192;

inline constexpr std::array rows{leaf_rows, rows_at_once, folded_rows, 2 * leaf_rows};

// Products of matrices, (m, k) by (k, n).

/// Up to so many columns, tiles are summed in registers; Eigen is at half its speed.
inline constexpr std::int64_t few_columns = 16;
/// Bytes of a panel of b, of a, and of a that is transposed, up to which tiles are as well.
inline constexpr std::int64_t panel_bytes = 128 << 10, left_bytes = 2 << 20,
                              transposed_left_bytes = 384 << 10;
/// From here on columns are copied to where they lie together.
inline constexpr std::int64_t wide_product = 256;
/// Rows of a that a piece has at most, and those of a piece of a product by Eigen.
inline constexpr std::int64_t product_rows = 240, packed_rows = 192;
/// Bytes of a row of b, and of all of b, from which on a row times b takes b row by row.
inline constexpr std::int64_t streamed_row = 2 << 10, streamed_matrix = 1 << 20;
/// Products that are added in order, of a tile, and of one whose sums fill all registers.
inline constexpr std::int64_t tile_products = 256, wide_tile_products = 512;

inline constexpr std::array product_rows_of{packed_rows, product_rows, 2 * packed_rows};
inline constexpr std::array product_depths{tile_products, wide_tile_products, 2 * tile_products};
inline constexpr std::array product_columns{few_columns, wide_product};

// Sums whose order does not depend on the device or the number of threads.

/// Addends, or leaves of them, that long_sum adds one after the other. So many sums of them are
/// added as one sum of the next level, and so on; up to this many addends are added in order.
inline constexpr std::int64_t addends_together = 64;
/// Rows that have the same index, likewise: a part, of which so many are one of the next level.
inline constexpr std::int64_t rows_together = 64;

// Rows of which the first of the largest elements is looked for.

/// Up to so many elements are compared one by one, though there are other rows to go with.
inline constexpr std::int64_t compared_one_by_one = 4;
/// Up to so many also where a row is alone.
inline constexpr std::int64_t compared_alone = 32;
/// Of which the largest is found first, and then its place.
inline constexpr std::int64_t searched_block = 1024;

// Softmax and its cross entropy.

/// Registers of a row up to which rows go together, as many as a register has lanes.
inline constexpr std::int64_t softmax_packs = 4;

/// Elements of the rows of a chunk.
inline constexpr std::int64_t softmax_chunk = 8192;
/// Rows whose logarithms are taken together.
inline constexpr std::int64_t rows_of_logarithms = 64;

// Rows that are sorted.

/// Elements from which on digits are counted rather than elements compared.
inline constexpr std::int64_t sorted_by_digits = 768;

// What only moves elements.

/// Bytes that a thread moves at once: of elements, and of rows that are chosen by an index.
inline constexpr std::int64_t moved_bytes = 1 << 17, indexed_bytes = 1 << 16;
/// Bytes of a run, and of all runs of an operand, from which on they are written past the caches.
inline constexpr std::int64_t uncached_run = 512, uncached_bytes = 8 << 20;
/// Rows and columns of a square that is transposed at once.
inline constexpr std::int64_t transposed_square = 16;
/// Elements of a narrow type that are computed with at once.
inline constexpr std::int64_t widened_block = 512;

// Pools.

/// Channels that are taken in a narrow register of their own, where they do not fill one.
inline constexpr std::int64_t few_channels = 3;

// Convolutions.

/// Bytes of an image, or of a gradient, that are worked on at a time.
inline constexpr std::int64_t band_bytes = 1 << 16;
/// Outputs up to which windows are summed along their rows.
inline constexpr std::int64_t few_outputs = 4;
/// Tiles of the gradient by the filter for which a panel is copied to where it lies together.
inline constexpr std::int64_t rows_of_panel = 4;
/// Products that are added in order, of a tile: a leaf of a long_sum.
inline constexpr std::int64_t window_products = 4 * addends_together;
/// Of the gradient by the filter: pieces at most, bytes of partial sums for each of them, and rows
/// of the filter in a piece at least.
inline constexpr std::int64_t filter_pieces = 8, filter_part_bytes = 1 << 19, filter_rows = 48;

}  // namespace deft::ext::thresholds
