// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/reduce.ipp: sum, mean, max, min and prod over any axes, and sum_to.
#pragma once
#include <algorithm>
#include <deft/kernels/cpu/row_reduction.hpp>
#include <deft/kernels/spec/reduce.hpp>
#include <deft/kernels/team.hpp>

namespace deft::ext::cpu {
namespace {

/// Some of the levels, in the order of iteration.
struct walk {
  int count = 0;
  std::int64_t extent[max_rank], stride[max_rank];

  void add(const fold_levels& l, int i) {
    extent[count] = l.extent[i], stride[count++] = l.stride[i];
  }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (int i = 0; i < count; ++i) n *= extent[i];
    return n;
  }
  std::int64_t offset(std::int64_t index) const {
    std::int64_t o = 0;
    for (int i = count; i-- > 0; index /= extent[i]) o += index % extent[i] * stride[i];
    return o;
  }
};

template <class T, class F>
class folder {
 public:
  folder() = default;
  folder(const dims& x, const dims& axes) {
    const fold_levels l(x, axes);
    elements_ = x.elements();
    int inner = l.count;
    if (inner > 0 && !l.folded[inner - 1]) {
      n_ = l.extent[--inner];
      if (inner > 0) rows_ = l.extent[--inner];
      by_columns_ = true;
    } else if (inner > 0) {
      n_ = l.extent[--inner];
    }
    for (int i = 0; i < inner; ++i) (l.folded[i] ? outer_folded_ : outer_kept_).add(l, i);
    times_ = outer_folded_.size();
    units_ = outer_kept_.size();
    if (by_columns_) columns_ = {rows_, n_};
    cut();
  }

  double cost() const { return 20 + static_cast<double>(elements_ * sizeof(T)) / 30; }

  /// Bytes of parts that are joined when all are there.
  std::size_t scratch() const {
    if (pieces_ <= 1) return 0;
    const auto parts = static_cast<std::size_t>(pieces_);
    return by_columns_ ? parts * static_cast<std::size_t>(n_) * sizeof(T)
                       : parts * sizeof(typename engine::lanes);
  }

  void run(const T* x, T* to, void* scratch) const {
    if (units_ * (by_columns_ ? n_ : 1) == 0) return;
    if (elements_ == 0) {
      std::fill(to, to + units_ * (by_columns_ ? n_ : 1), F::template nothing<T>());
      return;
    }
    by_columns_ ? columns(x, to, scratch) : rows(x, to, scratch);
  }

 private:
  using engine = fold<T, F>;
  static constexpr std::int64_t piece_elements = thresholds::piece_elements,
                                widest_piece = thresholds::widest_piece;

  /// One long row, or the rows of one unit's columns, in pieces.
  void cut() {
    if (units_ != 1 || elements_ == 0) return;
    if (!by_columns_ && times_ == 1 && n_ > 2 * piece_elements)
      pieces_ = (whole_lanes() + piece_elements - 1) / piece_elements;
    if (!by_columns_ || columns_.together > 1 || n_ >= widest_piece) return;
    each_ = engine::leaf_rows;
    while (each_ * n_ < piece_elements || each_ * 32 < rows_) each_ *= 2;
    pieces_ = (rows_ + each_ - 1) / each_;
  }
  /// Elements of the row that fill all lanes.
  std::int64_t whole_lanes() const { return n_ / engine::W * engine::W; }

  void rows(const T* x, T* to, void* scratch) const {
    if (units_ == 1 && times_ == 1) {
      *to = long_row(x, scratch);
      return;
    }
    const std::int64_t chunk =
        std::max<std::int64_t>(1, piece_elements / std::max<std::int64_t>(1, n_ * times_));
    parallel_chunks((units_ + chunk - 1) / chunk, cost(), [&](std::int64_t p) {
      if (times_ == 1) {  // then rows follow each other
        const std::int64_t first = p * chunk;
        return engine::rows(x + first * n_, std::min(chunk, units_ - first), n_, to + first);
      }
      for (std::int64_t u = p * chunk; u < std::min(units_, (p + 1) * chunk); ++u)
        to[u] = several_rows(x + outer_kept_.offset(u), 0, times_);
    });
  }
  /// The rows of a unit number `begin` to `end`.
  T several_rows(const T* from, std::int64_t begin, std::int64_t end) const {
    if (end - begin > engine::leaf_rows) {
      const std::int64_t middle = begin + engine::half(end - begin, engine::leaf_rows);
      const T first = several_rows(from, begin, middle);
      return F::combine(first, several_rows(from, middle, end));
    }
    T total = engine::row(from + outer_folded_.offset(begin), n_);
    for (std::int64_t t = begin + 1; t < end; ++t)
      total = F::combine(total, engine::row(from + outer_folded_.offset(t), n_));
    return total;
  }
  T long_row(const T* x, void* scratch) const {
    if (pieces_ <= 1) return engine::row(x, n_);
    const std::int64_t whole = whole_lanes();
    auto* parts = static_cast<typename engine::lanes*>(scratch);
    parallel_chunks(pieces_, cost(), [&](std::int64_t p) {
      const std::int64_t begin = p * piece_elements;
      parts[p] = engine::row_part(x + begin, std::min(piece_elements, whole - begin));
    });
    return engine::finish(engine::join_parts(parts, pieces_), x + whole, n_ - whole);
  }

  void columns(const T* x, T* to, void* scratch) const {
    if (units_ > 1) {
      const std::int64_t chunk = std::max<std::int64_t>(1, piece_elements / (n_ * rows_ * times_));
      parallel_chunks((units_ + chunk - 1) / chunk, cost(), [&](std::int64_t p) {
        for (std::int64_t u = p * chunk; u < std::min(units_, (p + 1) * chunk); ++u)
          unit(x + outer_kept_.offset(u), 0, n_, to + u * n_);
      });
    } else if (columns_.together > 1) {
      unit(x, 0, n_, to);
    } else if (n_ < widest_piece) {
      pieces_of_rows(x, to, static_cast<T*>(scratch));
    } else {
      const std::int64_t strip = std::min((n_ + 15) / 16 / 64 * 64, widest_piece);
      parallel_chunks((n_ + strip - 1) / strip, cost(), [&](std::int64_t p) {
        unit(x, p * strip, std::min(strip, n_ - p * strip), to + p * strip);
      });
    }
  }

  /// Whole rows in pieces, which are branches of the tree that `unit` would fold.
  void pieces_of_rows(const T* x, T* to, T* parts) const {
    if (pieces_ <= 1) return unit(x, 0, n_, to);
    parallel_chunks(pieces_, cost(), [&](std::int64_t p) {
      auto* room = static_cast<T*>(
          thread_scratch(static_cast<std::size_t>(engine::levels(each_) * n_) * sizeof(T)));
      engine::columns(x + p * each_ * n_, n_, std::min(each_, rows_ - p * each_), n_,
                      parts + p * n_, room);
    });
    engine::join_columns(parts, pieces_, n_);
    std::copy(parts, parts + n_, to);
  }

  /// Columns `begin` to `begin + n` of one unit.
  void unit(const T* x, std::int64_t begin, std::int64_t n, T* to) const {
    const std::int64_t wide = columns_.together * n;
    auto* room = static_cast<T*>(
        thread_scratch(static_cast<std::size_t>((engine::levels(columns_.wide_rows()) + 2) * wide +
                                                engine::levels(times_) * n) *
                       sizeof(T)));
    several_units(x + begin, 0, times_, n, to, room);
  }
  /// n columns of a unit, over the folded places number `first` to `end` outside of it.
  void several_units(const T* x, std::int64_t first, std::int64_t end, std::int64_t n, T* to,
                     T* room) const {
    if (end - first > engine::leaf_rows) {
      const std::int64_t middle = first + engine::half(end - first, engine::leaf_rows);
      several_units(x, first, middle, n, to, room);
      several_units(x, middle, end, n, room, room + n);
      return engine::into(to, room, n);
    }
    for (std::int64_t t = first; t < end; ++t) {
      const T* from = x + outer_folded_.offset(t);
      T* into = t == first ? to : room;
      T* rest = t == first ? room : room + n;
      if (columns_.together == 1)
        engine::columns(from, n_, rows_, n, into, rest);
      else
        several(from, into, rest);
      if (t > first) engine::into(to, room, n);
    }
  }
  void several(const T* from, T* to, T* room) const {
    const std::int64_t wide = columns_.wide();
    engine::columns(from, wide, columns_.wide_rows(), wide, room, room + wide);
    engine::join_wide(columns_, room, from + columns_.wide_rows() * wide, to);
  }

  walk outer_kept_, outer_folded_;
  std::int64_t elements_ = 0, n_ = 1, rows_ = 1, times_ = 1, units_ = 1;
  std::int64_t pieces_ = 1, each_ = 0;  ///< rows of a piece
  bool by_columns_ = false;
  column_layout columns_;
};

template <class Op, class T>
class kernel_of<spec::reduction<Op>, T> final : public spec::reduction<Op> {
  using base = spec::reduction<Op>;

  void ready() override {
    base::ready();
    folder_ = {this->in(0), this->axes_};
    this->cost_ = folder_.cost();
    const auto results = this->out().elements();
    scale_ =
        results ? static_cast<double>(this->in(0).elements()) / static_cast<double>(results) : 1;
  }
  std::size_t scratch() const override { return folder_.scratch(); }
  void run(const kernel_call& c) override {
    T* to = static_cast<T*>(c.out[0]);
    folder_.run(static_cast<const T*>(c.in[0]), to, c.scratch);
    if constexpr (base::mean)
      for (std::int64_t i = 0, n = this->out().elements(); i < n; ++i)
        to[i] /= static_cast<T>(scale_);
  }

  double scale_ = 1;
  folder<T, typename base::how> folder_;
};

}  // namespace
}  // namespace deft::ext::cpu
