// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/column_folds.hpp: the folds of a region's columns, while its rows pass by.
#pragma once
#include <deft/kernels/cpu/reduction_kernels.hpp>
#include <deft/kernels/kernel.hpp>
#include <vector>

namespace deft::ext::cpu {

/// Each thread has a stream for every fold in its own memory. Pieces of the rows leave a part for
/// every fold in memory that they share, which are joined when all are done.
class column_folds {
 public:
  /// Where the parts are: fold by fold, for every piece.
  struct parts {
    char* memory;
    std::int64_t pieces;
  };

  bool empty() const { return folds_.empty(); }
  void clear() { folds_.clear(); }
  /// Value number `of`, whose elements `phase` computes, into an output.
  void add(fold_kind kind, dtype t, std::uint8_t phase, std::uint16_t of, std::uint16_t output) {
    folds_.push_back({&find_column_fold(kind, t), size_of_dtype(t), phase, of, output, 0});
  }
  /// `take(bytes)` gives an offset in a thread's memory.
  template <class Take>
  void lay_out(std::int64_t rows, std::int64_t n, Take&& take) {
    all_ = {rows, n};
    for (fold& f : folds_) f.stream = take(f.how->stream_bytes(all_));
  }
  /// How many rows may pass at a time, at least `rows`.
  std::int64_t pass_of(std::int64_t rows) const {
    return empty() ? rows : (rows + all_.unit() - 1) / all_.unit() * all_.unit();
  }
  /// Likewise of a piece.
  std::int64_t piece_of(std::int64_t rows) const {
    std::int64_t piece = all_.piece();
    while (piece < rows) piece *= 2;
    return piece;
  }
  /// The rows without the last ones, which are too few for a piece of their own.
  std::int64_t whole_rows() const { return all_.rows - all_.rest(); }
  std::size_t shared_bytes(std::int64_t pieces) const {
    std::size_t bytes = 0;
    for (const fold& f : folds_) bytes += parts_bytes(f, pieces);
    return bytes;
  }

  void begin(char* room) const {
    for (const fold& f : folds_) f.how->begin(room + f.stream, all_);
  }
  /// `rows` more of what `phase` has computed; `address(of)` is their address.
  template <class Address>
  void pass(char* room, std::uint8_t phase, std::int64_t rows, Address&& address) const {
    for (const fold& f : folds_)
      if (f.phase == phase) f.how->add(room + f.stream, address(f.of), rows);
  }
  /// Ends a piece, which had a row at least.
  void close(char* room, const parts& p, std::int64_t piece) const {
    each(p, [&](const fold& f, char* first) {
      f.how->close(room + f.stream, first + static_cast<std::size_t>(piece) * part_bytes(f));
    });
  }
  void end(const kernel_call& c, const parts& p) const {
    each(p,
         [&](const fold& f, char* first) { f.how->end(first, p.pieces, all_, c.out[f.output]); });
  }

 private:
  struct fold {
    const column_fold_functions* how;
    std::size_t size;  ///< of an element
    std::uint8_t phase;
    std::uint16_t of, output;
    std::size_t stream;  ///< in a thread's memory
  };

  std::size_t part_bytes(const fold& f) const {
    return static_cast<std::size_t>(all_.wide()) * f.size;
  }
  /// Of all parts, and of the rows that are too few to go together.
  std::size_t parts_bytes(const fold& f, std::int64_t pieces) const {
    const std::size_t bytes = static_cast<std::size_t>(pieces) * part_bytes(f) +
                              static_cast<std::size_t>(all_.rest() * all_.n) * f.size;
    return (bytes + 63) / 64 * 64;
  }
  template <class F>
  void each(const parts& p, F&& call) const {
    char* at = p.memory;
    for (const fold& f : folds_) {
      call(f, at);
      at += parts_bytes(f, p.pieces);
    }
  }

  std::vector<fold> folds_;
  column_layout all_;
};

}  // namespace deft::ext::cpu
