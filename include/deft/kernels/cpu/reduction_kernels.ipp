// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/reduction_kernels.ipp: the tree of row_reduction.hpp, grown from the left.
#pragma once
#include <algorithm>
#include <bit>
#include <deft/kernels/cpu/reduction_kernels.hpp>
#include <deft/kernels/cpu/row_reduction.hpp>

namespace deft::ext::cpu {
namespace {

/// A row, or the beginning of one, whose elements come in runs of any length.
template <class T, class F>
class fold_stream {
 public:
  using engine = fold<T, F>;
  using lanes = typename engine::lanes;
  static constexpr std::int64_t W = engine::W, leaf_elements = engine::leaf_elements;

  void add(const T* p, std::int64_t n) {
    if (tail_n_ > 0) {
      const std::int64_t more = std::min(n, W - tail_n_);
      std::copy(p, p + more, tail_ + tail_n_);
      tail_n_ += more;
      if (tail_n_ < W) return;
      add_packs(tail_, W);
      p += more, n -= more;
    }
    const std::int64_t whole = n / W * W;
    add_packs(p, whole);
    tail_n_ = n - whole;
    std::copy(p + whole, p + n, tail_);
  }

  static lanes nothing_yet() { return broadcast<T, static_cast<int>(W)>(F::template neutral<T>()); }
  /// Only as long as all that came was whole packs.
  void* open(std::int64_t& most) {
    if (in_leaf_ == 0) leaf_ = nothing_yet();
    most = leaf_elements - in_leaf_;
    return &leaf_;
  }
  void close(std::int64_t n) {
    if ((in_leaf_ += n) == leaf_elements) end_leaf();
  }

  /// The tree over the leaves, of which there is at least one.
  lanes root() const {
    int level = levels_;
    lanes sum = in_leaf_ > 0 ? leaf_ : left_[--level];
    while (level > 0) sum = F::combine(left_[--level], sum);
    return sum;
  }
  bool has_leaves() const { return in_leaf_ > 0 || levels_ > 0; }
  const T* tail() const { return tail_; }
  std::int64_t tail_n() const { return tail_n_; }

 private:
  void add_packs(const T* p, std::int64_t n) {
    while (n > 0) {
      const std::int64_t now = std::min(n, leaf_elements - in_leaf_);
      leaf_ = in_leaf_ == 0 ? engine::leaf(p, now) : engine::leaf(p, now, leaf_);
      p += now, n -= now;
      close(now);
    }
  }
  /// Like a carry: two trees of one size become the left part of a larger one.
  void end_leaf() {
    lanes sum = leaf_;
    for (auto n = ++leaves_; n % 2 == 0; n /= 2) sum = F::combine(left_[--levels_], sum);
    left_[levels_++] = sum;
    in_leaf_ = 0;
  }

  lanes leaf_, left_[32];
  T tail_[W];
  std::int64_t in_leaf_ = 0, leaves_ = 0, tail_n_ = 0;
  int levels_ = 0;
};

/// Columns, or a piece of them, whose rows come some at a time. Its elements stand behind it.
template <class T, class F>
class column_stream {
 public:
  using engine = fold<T, F>;

  explicit column_stream(const column_layout& all) : all_(all) {}
  static std::size_t bytes(const column_layout& all) {
    const std::int64_t leaves = (all.wide_rows() + all.leaf_rows - 1) / all.leaf_rows;
    const std::int64_t trees = std::bit_width(static_cast<std::uint64_t>(leaves)) + 1;
    return sizeof(column_stream) +
           static_cast<std::size_t>(trees * all.wide() + all.rest() * all.n) * sizeof(T);
  }

  void add(const T* p, std::int64_t rows) {
    const std::int64_t wide = all_.wide();
    for (std::int64_t left = rows / all_.together; left > 0;) {
      const std::int64_t now = std::min(left, all_.leaf_rows - in_leaf_);
      engine::add_rows(p, wide, now, wide, tree(trees_), in_leaf_ == 0);
      p += now * wide, left -= now;
      if ((in_leaf_ += now) == all_.leaf_rows) end_leaf();
    }
    rest_ = rows % all_.together;
    std::copy(p, p + rest_ * all_.n, behind());
  }
  void close(T* part) {
    for (int top = in_leaf_ > 0 ? trees_ : trees_ - 1; top > 0; --top)
      engine::into(tree(top - 1), tree(top), all_.wide());
    part = std::copy(tree(0), tree(0) + all_.wide(), part);
    std::copy(behind(), behind() + rest_ * all_.n, part);
  }

 private:
  /// Those that wait for a right part of their size, then the leaf at hand.
  T* tree(int number) { return reinterpret_cast<T*>(this + 1) + number * all_.wide(); }
  T* behind() {
    char* end = reinterpret_cast<char*>(this) + bytes(all_);
    return reinterpret_cast<T*>(end) - all_.rest() * all_.n;
  }
  void end_leaf() {
    for (auto n = ++leaves_; n % 2 == 0; n /= 2, --trees_)
      engine::into(tree(trees_ - 1), tree(trees_), all_.wide());
    ++trees_;
    in_leaf_ = 0;
  }

  const column_layout all_;
  std::int64_t in_leaf_ = 0, leaves_ = 0, rest_ = 0;
  int trees_ = 0;
};

template <class T, class F, bool Mean>
struct folding {
  using engine = fold<T, F>;
  using stream = fold_stream<T, F>;

  static T divided(T v, std::int64_t n) {
    if constexpr (Mean)
      return v / static_cast<T>(static_cast<double>(n));
    else
      return v;
  }
  static void rows(const void* from, std::int64_t rows, std::int64_t n, void* to) {
    T* out = static_cast<T*>(to);
    engine::rows(static_cast<const T*>(from), rows, n, out);
    if constexpr (Mean)
      for (std::int64_t r = 0; r < rows; ++r) out[r] = divided(out[r], n);
  }
  static void reset(void* at, std::int64_t rows) {
    static_assert(fold_functions::most_rows * sizeof(typename engine::lanes) <= sizeof(stream));
    T* lanes = static_cast<T*>(at);
    for (const T* end = lanes + rows * engine::W; lanes < end; lanes += engine::W)
      store(lanes, stream::nothing_yet());
  }
  static void finish(const void* at, std::int64_t rows, const void* tails, std::int64_t tail_n,
                     std::int64_t n, void* to) {
    constexpr int W = engine::W;
    const T *lanes = static_cast<const T*>(at), *tail = static_cast<const T*>(tails);
    T* out = static_cast<T*>(to);
    for (std::int64_t r = 0; r < rows; ++r, tail += tail_n)
      out[r] = divided(engine::finish(load<T, W>(lanes + r * W), tail, tail_n), n);
  }
  static void begin(void* at) { new (at) stream; }
  static void* open(void* at, std::int64_t& most) { return static_cast<stream*>(at)->open(most); }
  static void close(void* at, std::int64_t n) { static_cast<stream*>(at)->close(n); }
  static void add(void* at, const void* from, std::int64_t n) {
    static_cast<stream*>(at)->add(static_cast<const T*>(from), n);
  }
  static void end(void* at, std::int64_t pieces, std::int64_t n, void* to) {
    const stream* s = static_cast<const stream*>(at);
    const stream& last = s[pieces - 1];
    T& out = *static_cast<T*>(to);
    if (!s->has_leaves())
      out = engine::row(last.tail(), last.tail_n());
    else
      out = engine::finish(root(s, last.has_leaves() ? pieces : pieces - 1), last.tail(),
                           last.tail_n());
    out = divided(out, n);
  }
  static typename engine::lanes root(const stream* s, std::int64_t pieces) {
    if (pieces == 1) return s->root();
    const std::int64_t left = engine::half(pieces, 1);
    return F::combine(root(s, left), root(s + left, pieces - left));
  }

  static constexpr fold_functions functions{
      &rows,  &reset, &finish, sizeof(stream), engine::leaf_elements, engine::W, &begin, &open,
      &close, &add,   &end};

  // Of columns.

  using columns = column_stream<T, F>;

  static void begin_columns(void* at, const column_layout& all) { new (at) columns(all); }
  static void add_rows(void* at, const void* from, std::int64_t rows) {
    static_cast<columns*>(at)->add(static_cast<const T*>(from), rows);
  }
  static void close_columns(void* at, void* part) {
    static_cast<columns*>(at)->close(static_cast<T*>(part));
  }
  static void end_columns(void* parts, std::int64_t pieces, const column_layout& all, void* to) {
    T* out = static_cast<T*>(to);
    if (all.rows == 0) {
      std::fill(out, out + all.n, F::template nothing<T>());
    } else {
      T* part = static_cast<T*>(parts);
      engine::join_columns(part, pieces, all.wide());
      engine::join_wide(all, part, part + pieces * all.wide(), out);
    }
    if constexpr (Mean)
      for (std::int64_t i = 0; i < all.n; ++i) out[i] = divided(out[i], all.rows);
  }

  static constexpr column_fold_functions column_functions{&columns::bytes, &begin_columns,
                                                          &add_rows, &close_columns, &end_columns};
};

/// Calls `use` with the way to fold `t`.
template <class F, bool Mean, class Use>
void with_folding(dtype t, Use&& use) {
  // A region has no folds of narrow types.
  constexpr dtype_set types = (Mean ? floating_dtypes : numeric_dtypes) & computing_dtypes;
  if (types.has(t)) visit_dtype_in<types>(t, [&]<class T>() { use(folding<T, F, Mean>()); });
}
template <class Use>
void with_folding(fold_kind kind, dtype t, Use&& use) {
  if (kind == fold_kind::sum) with_folding<plus, false>(t, use);
  if (kind == fold_kind::mean) with_folding<plus, true>(t, use);
  if (kind == fold_kind::max) with_folding<largest, false>(t, use);
  if (kind == fold_kind::min) with_folding<smallest, false>(t, use);
}
[[noreturn]] void no_fold(dtype t) {
  fail(errc::unimplemented, "[fused] no fold of ", t, " on the CPU");
}

}  // namespace

const fold_functions& find_fold(fold_kind kind, dtype t) {
  const fold_functions* found = nullptr;
  with_folding(kind, t, [&]<class How>(How) { found = &How::functions; });
  if (!found) no_fold(t);
  return *found;
}
const column_fold_functions& find_column_fold(fold_kind kind, dtype t) {
  const column_fold_functions* found = nullptr;
  with_folding(kind, t, [&]<class How>(How) { found = &How::column_functions; });
  if (!found) no_fold(t);
  return *found;
}

}  // namespace deft::ext::cpu
