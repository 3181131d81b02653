// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda_codegen.hpp: portable programs as CUDA source.
#pragma once
#include <deft/graph/op_def.hpp>
#include <deft/graph/program.hpp>
#include <deft/kernels/gpu/fault.hpp>
#include <span>
#include <string>
#include <vector>

namespace deft::ext::gpu {

/// How the operands of generated kernels travel: one structure by value, of 8-byte words, in this
/// order.
struct argument_words {
  static constexpr std::size_t count = 0;    ///< elements, or rows
  static constexpr std::size_t n = 1;        ///< elements in a row, or in a part; or parts
  static constexpr std::size_t lanes = 2;    ///< threads of a row
  static constexpr std::size_t record = 3;   ///< address of the fault_record
  static constexpr std::size_t item = 4;     ///< of the fault_report
  static constexpr std::size_t scratch = 5;  ///< of folds in parts
  static constexpr std::size_t in = 6;       ///< an address for each operand
  std::size_t out, literals;                 ///< addresses; to_immediate's bits
  /// Of a walk by levels, for each but the innermost: how many there are of the one within, a
  /// divider of two words; and the elements from one to the next, for each operand.
  std::size_t extents, steps;
  std::size_t size;
  /// What launches may have: 4096 bytes on all GPUs.
  static constexpr std::size_t most = 512;

  argument_words(std::size_t inputs, std::size_t outputs, std::size_t literals_, std::size_t levels)
      : out(in + inputs),
        literals(out + outputs),
        extents(literals + literals_),
        steps(extents + 2 * (levels - 1)),
        size(steps + (levels - 1) * inputs) {}
};

/// What is generated for a program.
struct source_options {
  /// The literals are further inputs of each run, of rank 0.
  bool late = false;
  /// Nothing is changed once the record has a fault.
  bool update = false;
};

/// The text of an operation's one body for operands x, y and z, in which T is the last one's type;
/// "" where there is none: no file of the program has compiled it.
std::string body_of(const op_def& op, dtype result);

/// Whether an update could fail in some elements when others have been written.
bool is_checked(const program& p, source_options options);

/// Source of a program without folds, whose operands are walked by that many levels (see
/// gpu/elements.hpp); those that are `broadcast` have one element in each innermost level. Kernels:
/// "groups_of_4", each thread computes four elements that follow each other, by 16-byte accesses;
/// "single", each thread one; "check", if is_checked, each thread one, comes before and writes
/// nothing. Blocks are of any size.
///
/// "" if it is not supported: an operation has no text.
std::string element_source(const program& p, int levels, const std::vector<bool>& broadcast,
                           source_options options);

/// Source of a region of rows, given the classes of its operands. Kernels: "rows", `lanes` threads
/// fold a row, a power of two up to 32; blocks are of whole warps. "long_rows": a block of 256
/// threads folds a row. Columns are taken, and lanes joined, in the order of row_fold.hpp.
///
/// "" if it is not supported: see above, it is an update, or there are folds of columns.
std::string row_source(const program& p, std::span<const extent_class> operands,
                       source_options options);

/// Source of a region whose folds leave a value for every column; `count` rows of `n` columns.
/// Kernels: "columns", `lanes` threads, a power of two up to 32, fold a column; "long_columns",
/// threads that have column_lanes_of_thread of 256 lanes each. A block of up to 512 threads has
/// columns that follow each other, a power of two of them: thread wide * l + x is lane l of column
/// x. The order is that of row_fold.hpp.
///
/// "" if it is not supported: see above, or there are folds of rows.
std::string column_source(const program& p, std::span<const extent_class> operands,
                          source_options options);
/// 16, so that a warp reads whole lines of 128 bytes, or 8, where registers would not hold as many.
int column_lanes_of_thread(const program& p);

/// Source of a region without rows that is folded as a whole; operands as of element_source.
/// Kernels, whose blocks have 256 threads: "parts", each block folds `n` elements that follow each
/// other, by `lanes` threads, and writes the results if it is the only one; otherwise to scratch,
/// 8 bytes for each fold and block, fold by fold. "folds", one block, then folds `n` parts.
///
/// "" if it is not supported, as above.
std::string whole_source(const program& p, int levels, const std::vector<bool>& broadcast,
                         source_options options);

}  // namespace deft::ext::gpu
