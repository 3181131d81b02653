// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/index.ipp: what looks elements up or finds their places: gather, scatter_add,
// one_hot, argmax, argmin, first_max, first_min.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/kernels/cpu/equal_rows.hpp>
#include <deft/kernels/cpu/row_reduction.hpp>
#include <deft/kernels/cpu/tables.hpp>
#include <deft/kernels/team.hpp>
#include <deft/op/argmax.hpp>
#include <deft/op/argmin.hpp>
#include <deft/op/gather.hpp>
#include <deft/op/max.hpp>
#include <deft/op/min.hpp>
#include <deft/op/one_hot.hpp>
#include <deft/op/scatter.hpp>
#include <vector>

namespace deft::ext::cpu {
namespace indexing {
namespace {

constexpr std::int64_t chunk_bytes = 1 << 16;

/// Rows are found by their indices, which no processor foresees: they are prefetched so many rows
/// before they are needed.
constexpr std::int64_t rows_ahead = 4;

/// Prefetches the beginning of a row. The rest of a long one is prefetched by the processor.
void prefetch_row(const void* row, std::int64_t bytes) {
  constexpr std::int64_t line = 64, most = 8 * line;
  for (std::int64_t at = 0; at < std::min(bytes, most); at += line)
    __builtin_prefetch(static_cast<const char*>(row) + at);
}

/// Differences, where integers wrap.
struct minus {
  template <class V>
  static DEFT_ALWAYS_INLINE V combine(const V& a, const V& b) {
    if constexpr (element<V>)
      return (num::lane<V>(a) - b).v;
    else
      return a - b;
  }
};

/// Throws out_of_range for an index that names no row.
void check_index(std::string_view op, std::int64_t i, std::int64_t rows) {
  if (i < 0 || i >= rows)
    fail(errc::out_of_range, "[", op, "] the index ", i, " is out of range for ", rows, " rows");
}

template <class Index>
class gather_kernel final : public typed_kernel {
 public:
  void ready() override {
    rows_ = in(0)[0];
    bytes_ = static_cast<std::int64_t>(size_of_dtype(type()));
    for (int i = 1; i < in(0).rank(); ++i) bytes_ *= in(0)[i];
    count_ = in(1).elements();
    cost_ = 20 + static_cast<double>(count_) * (4 + static_cast<double>(bytes_) / 15);
  }
  void run(const kernel_call& c) override {
    const char* from = static_cast<const char*>(c.in[0]);
    const Index* index = static_cast<const Index*>(c.in[1]);
    char* to = static_cast<char*>(c.out[0]);
    const std::int64_t some =
        std::max<std::int64_t>(1, chunk_bytes / std::max<std::int64_t>(8, bytes_));
    parallel_chunks((count_ + some - 1) / some, cost_, [&](std::int64_t p) {
      for (std::int64_t i = p * some; i < std::min(count_, (p + 1) * some); ++i) {
        check_index("gather", index[i], rows_);
        if (const auto j = i + rows_ahead; j < count_ && index[j] >= 0 && index[j] < rows_)
          prefetch_row(from + index[j] * bytes_, bytes_);
        if (bytes_)
          std::memcpy(to + i * bytes_, from + index[i] * bytes_, static_cast<std::size_t>(bytes_));
      }
    });
  }

 private:
  std::int64_t rows_ = 0, bytes_ = 0, count_ = 0;
};

/// Calls f(k) for k of 0 to n - 1, each of them work on a row of `bytes`.
template <class F>
void each_row(std::int64_t n, std::int64_t bytes, double nanoseconds, F f) {
  const std::int64_t some =
      std::max<std::int64_t>(1, chunk_bytes / std::max<std::int64_t>(8, bytes));
  parallel_chunks((n + some - 1) / some, nanoseconds, [&](std::int64_t p) {
    for (std::int64_t k = p * some; k < std::min(n, (p + 1) * some); ++k) f(k);
  });
}

inline std::int64_t elements_from(const dims& shape, int axis) {
  std::int64_t n = 1;
  for (int i = axis; i < shape.rank(); ++i) n *= shape[i];
  return n;
}

/// Rows of one index in their order, in parts where they are many: the same sums every time.
template <class T, class Index>
class scatter_kernel final : public typed_kernel {
 public:
  void ready() override {
    rows_ = out()[0];
    n_ = 1;
    for (int i = 1; i < out().rank(); ++i) n_ *= out()[i];
    count_ = in(1).elements();
    cost_ = 20 + static_cast<double>(count_ * (n_ + 4)) * sizeof(T) / 20 +
            static_cast<double>(rows_ * n_) * sizeof(T) / 40;
    uses_.resize(count_ > thresholds::rows_together ? static_cast<std::size_t>(rows_) : 0);
  }
  void run(const kernel_call& c) override {
    const T* from = static_cast<const T*>(c.in[0]);
    const Index* index = static_cast<const Index*>(c.in[1]);
    T* to = static_cast<T*>(c.out[0]);
    std::fill(to, to + rows_ * n_, T(0));
    for (std::int64_t i = 0; i < count_; ++i) check_index("scatter_add", index[i], rows_);
    if (is_used_often(index)) return add_parts(from, index, to);
    for (std::int64_t i = 0; i < count_; ++i)
      fold<T, plus>::into(to + index[i] * n_, from + i * n_, n_);
  }

 private:
  /// Whether a row is the sum of more than a part.
  bool is_used_often(const Index* index) {
    if (uses_.empty()) return false;
    std::ranges::fill(uses_, 0);
    bool often = false;
    for (std::int64_t i = 0; i < count_; ++i)
      often |= ++uses_[static_cast<std::size_t>(index[i])] > thresholds::rows_together;
    return often;
  }
  void add_parts(const T* from, const Index* index, T* to) {
    equal_.prepare(count_, rows_);
    equal_.find(index, count_);
    const auto& firsts = equal_.firsts();
    each_row(static_cast<std::int64_t>(firsts.size()), n_ * static_cast<std::int64_t>(sizeof(T)),
             cost_, [&](std::int64_t k) {
               thread_local std::vector<T> sum;
               sum.resize(static_cast<std::size_t>(n_));
               const std::int64_t first = firsts[static_cast<std::size_t>(k)];
               equal_rows<T, Index>{equal_, from, n_}.sum_from(first, sum.data());
               fold<T, plus>::into(to + index[first] * n_, sum.data(), n_);
             });
  }

  std::int64_t rows_ = 0, n_ = 0, count_ = 0;
  std::vector<std::uint32_t> uses_;  ///< of each row, where some may have more than a part
  equal_indices<Index> equal_;
};

template <class T, class Index>
class sum_rows_kernel final : public typed_kernel {
 public:
  explicit sum_rows_kernel(bool repeat) : repeat_(repeat) {}
  void ready() override {
    count_ = in(1).elements();
    n_ = elements_from(in(0), in(1).rank());
    cost_ = 20 + static_cast<double>(count_ * (n_ + 10)) * sizeof(T) / 15;
    equal_.prepare(count_, count_);
  }
  void run(const kernel_call& c) override {
    const T* from = static_cast<const T*>(c.in[0]);
    T* to = static_cast<T*>(c.out[0]);
    equal_.find(static_cast<const Index*>(c.in[1]), count_);
    const auto& firsts = equal_.firsts();
    const std::int64_t bytes = n_ * static_cast<std::int64_t>(sizeof(T));
    each_row(static_cast<std::int64_t>(firsts.size()), bytes, cost_, [&](std::int64_t k) {
      const std::int64_t first = firsts[static_cast<std::size_t>(k)];
      T* const sum = to + first * n_;
      equal_rows<T, Index>{equal_, from, n_}.sum_from(first, sum);
      for (std::int64_t i = equal_.next(first); i >= 0; i = equal_.next(i))
        if (repeat_)
          std::copy_n(sum, n_, to + i * n_);
        else
          std::fill_n(to + i * n_, n_, T(0));
    });
  }

 private:
  bool repeat_;
  std::int64_t n_ = 0, count_ = 0;
  equal_indices<Index> equal_;
};

/// An update of rows. The first input is the variable, which need not share the result's memory.
template <class T, class Index>
class row_update_kernel : public typed_kernel {
 public:
  void ready() override {
    rows_ = out()[0];
    n_ = elements_from(out(), 1);
    count_ = in(2).elements();
    cost_ = 20 + static_cast<double>(count_ * (n_ + 10)) * sizeof(T) / 10;
    equal_.prepare(count_, rows_);
  }

 protected:
  /// Calls f(first, row) for each index, with the position where it occurs first.
  template <class F>
  void update(std::string_view op, const kernel_call& c, F f) {
    const Index* index = static_cast<const Index*>(c.in[2]);
    T* to = static_cast<T*>(c.out[0]);
    for (std::int64_t i = 0; i < count_; ++i) check_index(op, index[i], rows_);
    equal_.find(index, count_);
    const std::int64_t bytes = n_ * static_cast<std::int64_t>(sizeof(T));
    if (to != c.in[0]) std::memcpy(to, c.in[0], static_cast<std::size_t>(rows_ * bytes));
    const auto& firsts = equal_.firsts();
    each_row(static_cast<std::int64_t>(firsts.size()), bytes, cost_, [&](std::int64_t k) {
      const auto row = [&](std::int64_t first) {
        return to + static_cast<std::int64_t>(index[first]) * n_;
      };
      if (const auto soon = static_cast<std::size_t>(k + rows_ahead); soon < firsts.size())
        prefetch_row(row(firsts[soon]), bytes);
      const std::int64_t first = firsts[static_cast<std::size_t>(k)];
      f(first, row(first));
    });
  }

  std::int64_t rows_ = 0, n_ = 0, count_ = 0;
  equal_indices<Index> equal_;
};

template <class T, class Index>
class scatter_sub_kernel final : public row_update_kernel<T, Index> {
 public:
  void run(const kernel_call& c) override {
    const T* from = static_cast<const T*>(c.in[1]);
    this->update("scatter_sub", c, [&](std::int64_t first, T* row) {
      const std::int64_t n = this->n_;
      const T* rows = from + first * n;
      thread_local std::vector<T> sum;
      if (this->equal_.next(first) >= 0) {
        sum.resize(static_cast<std::size_t>(n));
        equal_rows<T, Index>{this->equal_, from, n}.sum_from(first, sum.data());
        rows = sum.data();
      }
      fold<T, minus>::into(row, rows, n);
    });
  }
};

template <class T, class Index>
class scatter_update_kernel final : public row_update_kernel<T, Index> {
 public:
  void run(const kernel_call& c) override {
    const T* from = static_cast<const T*>(c.in[1]);
    this->update("scatter_update", c, [&](std::int64_t first, T* row) {
      std::int64_t last = first;
      while (this->equal_.next(last) >= 0) last = this->equal_.next(last);
      std::copy_n(from + last * this->n_, this->n_, row);
    });
  }
};

template <class T, class Index>
class one_hot_kernel final : public typed_kernel {
 public:
  explicit one_hot_kernel(std::int64_t depth) : depth_(depth) {}
  void ready() override { cost_ = 20 + static_cast<double>(out().elements()) * sizeof(T) / 20; }
  void run(const kernel_call& c) override {
    const Index* index = static_cast<const Index*>(c.in[0]);
    T* to = static_cast<T*>(c.out[0]);
    const std::int64_t rows = in(0).elements();
    std::fill(to, to + rows * depth_, T(0));
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto i = static_cast<std::int64_t>(index[r]);
      if (i >= 0 && i < depth_) to[r * depth_ + i] = T(1);
    }
  }

 private:
  std::int64_t depth_;
};

/// Whether `x` takes the place of `best`: the first NaN, else the first of those that How, largest
/// or smallest, prefers.
template <class How, class T>
DEFT_ALWAYS_INLINE bool beats(T x, T best) {
  const bool better = std::is_same_v<How, largest> ? x > best : x < best;
  if constexpr (is_floating_type<T>)
    return better || (x != x && best == best);
  else
    return better;
}

/// The first place of the largest, or smallest, of n elements in a line.
template <class How, class T>
std::int64_t first_place(const T* x, std::int64_t n) {
  if (n <= 32) {  // without a branch: which one it is cannot be foreseen
    T best = x[0];
    std::int64_t at = 0;
    for (std::int64_t i = 1; i < n; ++i) {
      const bool better = beats<How>(x[i], best);
      best = better ? x[i] : best;
      at = better ? i : at;
    }
    return at;
  }
  const T most = fold<T, How>::row(x, n);
  for (std::int64_t i = 0; i < n; ++i)
    if (x[i] == most || (most != most && x[i] != x[i])) return i;
  return 0;
}

template <class T, class How>
class place_kernel final : public typed_kernel {
 public:
  place_kernel(std::string_view name, std::int64_t axis) : name_(name), axis_(axis) {}
  void ready() override {
    outer_ = inner_ = 1;
    for (int i = 0; i < in(0).rank(); ++i)
      if (i != axis_) (i < axis_ ? outer_ : inner_) *= in(0)[i];
    n_ = in(0)[static_cast<int>(axis_)];
    if (n_ == 0 && outer_ * inner_ != 0)
      fail(errc::invalid_argument, "[", name_, "] is undefined for zero elements: ", in(0));
    cost_ = 20 + static_cast<double>(outer_ * n_ * inner_) * (inner_ == 1 ? 0.1 : 0.6);
  }
  void run(const kernel_call& c) override {
    const T* x = static_cast<const T*>(c.in[0]);
    auto* to = static_cast<std::int64_t*>(c.out[0]);
    if (n_ * inner_ == 0) return;
    const std::int64_t some = std::max<std::int64_t>(
        1, chunk_bytes / static_cast<std::int64_t>(sizeof(T)) / (n_ * inner_));
    parallel_chunks((outer_ + some - 1) / some, cost_, [&](std::int64_t p) {
      for (std::int64_t o = p * some; o < std::min(outer_, (p + 1) * some); ++o)
        unit(x + o * n_ * inner_, to + o * inner_);
    });
  }

 private:
  void unit(const T* x, std::int64_t* to) const {
    if (inner_ == 1) {
      *to = first_place<How>(x, n_);
      return;
    }
    auto* best = static_cast<T*>(thread_scratch(static_cast<std::size_t>(inner_) * sizeof(T)));
    std::copy(x, x + inner_, best);
    std::fill(to, to + inner_, 0);
    for (std::int64_t i = 1; i < n_; ++i)
      for (std::int64_t j = 0; j < inner_; ++j)
        if (const T v = x[i * inner_ + j]; beats<How>(v, best[j])) best[j] = v, to[j] = i;
  }

  std::string_view name_;
  std::int64_t axis_, outer_ = 1, n_ = 1, inner_ = 1;
};

template <class T, class How>
class first_kernel final : public typed_kernel {
 public:
  explicit first_kernel(const dims& axes) : axes_(axes) {}
  void ready() override { cost_ = 20 + 2 * static_cast<double>(in(0).elements()); }
  void run(const kernel_call& c) override {
    const T* x = static_cast<const T*>(c.in[0]);
    auto* to = static_cast<std::uint8_t*>(c.out[0]);
    const dims& shape = in(0);
    const std::int64_t elements = shape.elements();
    if (elements == 0) return;
    std::memset(to, 0, static_cast<std::size_t>(elements));
    // For each place of the result of max or min, where its element is so far.
    std::int64_t strides[max_rank] = {}, results = 1;
    for (int d = shape.rank(); d-- > 0;)
      if (!axes_.contains(d)) strides[d] = results, results *= shape[d];
    auto* best = static_cast<std::int64_t*>(
        thread_scratch(static_cast<std::size_t>(results) * sizeof(std::int64_t)));
    std::fill(best, best + results, -1);
    std::int64_t index[max_rank] = {}, at = 0;
    for (std::int64_t i = 0; i < elements; ++i) {
      auto& b = best[at];
      if (b < 0 || beats<How>(x[i], x[b])) b = i;
      for (int d = shape.rank(); d-- > 0;) {
        at += strides[d];
        if (++index[d] < shape[d]) break;
        at -= strides[d] * shape[d];
        index[d] = 0;
      }
    }
    for (std::int64_t r = 0; r < results; ++r) to[best[r]] = 1;
  }

 private:
  dims axes_;
};

}  // namespace
}  // namespace indexing

kernel_ptr make_gather(const node_def& n, std::span<const tensor_type> in) {
  return kernel_for<index_dtypes>(n, in[1].type, []<class Index>() {
    return std::make_unique<indexing::gather_kernel<Index>>();
  });
}
kernel_ptr make_scatter_add(const node_def& n, std::span<const tensor_type> in) {
  return kernel_for<index_dtypes>(n, in[1].type, [&]<class Index>() {
    return kernel_for<numeric_dtypes>(n, in[0].type, []<class T>() {
      return std::make_unique<indexing::scatter_kernel<T, Index>>();
    });
  });
}
template <template <class, class> class Kernel>
kernel_ptr make_row_update(const node_def& n, std::span<const tensor_type> in) {
  return kernel_for<index_dtypes>(n, in.back().type, [&]<class Index>() {
    return kernel_for<numeric_dtypes>(
        n, in[0].type, []<class T>() { return std::make_unique<Kernel<T, Index>>(); });
  });
}
kernel_ptr make_sum_rows(const node_def& n, std::span<const tensor_type> in) {
  const bool repeat = decode<op::sum_rows>(n.attributes).repeat;
  return kernel_for<index_dtypes>(n, in[1].type, [&]<class Index>() {
    return kernel_for<numeric_dtypes>(n, in[0].type, [&]<class T>() {
      return std::make_unique<indexing::sum_rows_kernel<T, Index>>(repeat);
    });
  });
}
kernel_ptr make_one_hot(const node_def& n, std::span<const tensor_type> in) {
  const auto o = decode<op::one_hot>(n.attributes);
  return kernel_for<plain_dtypes>(n, o.type, [&]<class T>() {
    return kernel_for<integer_dtypes>(n, in[0].type, [&]<class Index>() {
      return std::make_unique<indexing::one_hot_kernel<T, Index>>(o.depth);
    });
  });
}
template <class Op, class How>
kernel_ptr make_place(const node_def& n, std::span<const tensor_type> in) {
  const auto axis = decode<Op>(n.attributes).axis;
  return kernel_for<numeric_dtypes>(n, in[0].type, [&]<class T>() {
    return std::make_unique<indexing::place_kernel<T, How>>(Op::name, axis);
  });
}
template <class Op, class How>
kernel_ptr make_first(const node_def& n, std::span<const tensor_type> in) {
  const dims axes = decode<Op>(n.attributes).axes;
  return kernel_for<numeric_dtypes>(n, in[0].type, [&]<class T>() {
    return std::make_unique<indexing::first_kernel<T, How>>(axes);
  });
}

kernel_table index_kernels() {
  static constexpr kernel_entry table[] = {
      {op::gather::name, plain_dtypes, &make_gather},
      {op::scatter_add::name, numeric_dtypes, &make_scatter_add},
      {op::sum_rows::name, numeric_dtypes, &make_sum_rows},
      {op::scatter_sub::name, numeric_dtypes, &make_row_update<indexing::scatter_sub_kernel>},
      {op::scatter_update::name, numeric_dtypes, &make_row_update<indexing::scatter_update_kernel>},
      {op::one_hot::name, integer_dtypes, &make_one_hot},
      {op::argmax::name, numeric_dtypes, &make_place<op::argmax, largest>},
      {op::argmin::name, numeric_dtypes, &make_place<op::argmin, smallest>},
      {op::first_max::name, numeric_dtypes, &make_first<op::first_max, largest>},
      {op::first_min::name, numeric_dtypes, &make_first<op::first_min, smallest>},
  };
  return table;
}

}  // namespace deft::ext::cpu
