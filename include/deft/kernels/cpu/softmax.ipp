// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/softmax.ipp: softmax, and its cross entropy with classes or probabilities.
#pragma once
#include <algorithm>
#include <cmath>
#include <deft/kernels/cpu/row_reduction.hpp>
#include <deft/kernels/spec/long_sum.hpp>
#include <deft/kernels/spec/softmax.hpp>
#include <deft/kernels/team.hpp>
#include <deft/plan/thresholds.hpp>

namespace deft::ext::cpu {
namespace {

template <class T>
struct softmax_row {
  static constexpr int L = register_bytes / static_cast<int>(sizeof(T));
  using P = pack<T, L>;

  /// What a row's maximum and the sum of its exponentials are.
  struct sums {
    T max, sum;
  };

  /// Calls f(i, n) for each pack of the row; n < L in the last one only.
  template <class F>
  static DEFT_ALWAYS_INLINE void each(std::int64_t n, F f) {
    std::int64_t i = 0;
    for (; i + L <= n; i += L) f(i, std::integral_constant<std::int64_t, L>());
    if (i < n) f(i, n - i);
  }
  /// The sum of a row's packs, each added to others by f(sum, i, n), as `each` calls it.
  template <class F>
  static DEFT_ALWAYS_INLINE T sum_of_each(std::int64_t n, F f) {
    return fold<T, plus>::across(
        sum_in_leaves(n, addends_together * L, broadcast<T, L>(T(0)),
                      [&](P& sum, std::int64_t begin, std::int64_t end) DEFT_INLINED {
                        each(end - begin, [&](std::int64_t i, auto count)
                                              DEFT_INLINED { sum = f(sum, begin + i, count); });
                      }));
  }
  template <class N>
  static DEFT_ALWAYS_INLINE P read(const T* x, N n, T rest) {
    if constexpr (std::is_same_v<N, std::int64_t>)
      return load_some<L>(x, n, rest);
    else
      return load<T, L>(x);
  }
  template <class N>
  static DEFT_ALWAYS_INLINE void write(T* y, const P& p, N n) {
    if constexpr (std::is_same_v<N, std::int64_t>)
      store_some(y, p, n);
    else
      store(y, p);
  }

  /// The first n elements, and zeros. (What is beyond a row's end is never the exponential of a
  /// very small number: a subnormal result costs more than the row.)
  template <class N>
  static DEFT_ALWAYS_INLINE P first(const P& p, N n) {
    if constexpr (std::is_same_v<N, std::int64_t>)
      return num::select(lane_numbers<T, L>() < broadcast<T, L>(static_cast<T>(n)), p,
                         broadcast<T, L>(T(0)));
    else
      return p;
  }

  /// Exponentials of x less its maximum, into y unless that is nullptr. NaN needs no care in the
  /// maximum: its exponential makes the sum NaN.
  template <bool Keep>
  static sums exponentials(const T* x, std::int64_t n, T* y) {
    const T max = fold<T, largest_number>::row(x, n);
    const P shift = broadcast<T, L>(max);
    return {max, sum_of_each(n, [&](const P& sum, std::int64_t i, auto count) DEFT_INLINED {
              const P e = num::exp(read(x + i, count, max) - shift);
              if constexpr (Keep) write(y + i, e, count);
              return sum + first(e, count);
            })};
  }

  static constexpr int most_packs = static_cast<int>(thresholds::softmax_packs);
  static constexpr std::int64_t short_row = most_packs * L;
  /// Up to L short rows: their maxima, the exponentials less these, and the sums.
  struct short_rows {
    P e[L][most_packs];
    alignas(64) T max[L], sum[L];

    short_rows(const T* x, std::int64_t n, int rows) {
      fold<T, largest_number>::rows(x, rows, n, max);
      static_assert(most_packs == 4);
      if (n <= L)
        fill<1>(x, n, rows);
      else if (n <= 2 * L)
        fill<2>(x, n, rows);
      else
        n <= 3 * L ? fill<3>(x, n, rows) : fill<4>(x, n, rows);
    }
    /// Calls f(i, e) for each pack of row k, as `each` does.
    template <class F>
    DEFT_ALWAYS_INLINE void each_of(int k, std::int64_t n, F f) const {
      each(n, [&](std::int64_t i, auto count) DEFT_INLINED { f(i, e[k][i / L], count); });
    }

   private:
    template <int Packs>
    void fill(const T* x, std::int64_t n, int rows) {
      using sums = fold<T, plus>;
      P totals[L];
      const std::int64_t last = n - (Packs - 1) * L;
      for (int k = 0; k < rows; ++k, x += n) {
        const P shift = broadcast<T, L>(max[k]);
        P total = broadcast<T, L>(T(0));
#pragma GCC unroll 4
        for (int i = 0; i < Packs - 1; ++i) {
          e[k][i] = num::exp(load<T, L>(x + i * L) - shift);
          total = total + e[k][i];
        }
        const P tail = num::exp(load_some<L>(x + (Packs - 1) * L, last, max[k]) - shift);
        e[k][Packs - 1] = tail;
        totals[k] = total + first(tail, last);
      }
      if constexpr (sums::folds_together)
        if (rows == L) return store(sum, sums::across_each(totals));
      for (int k = 0; k < rows; ++k) sum[k] = sums::across(totals[k]);
    }
  };
  /// Calls f(r, rows) for up to L rows at a time.
  template <class F>
  static void each_short_rows(std::int64_t rows, F f) {
    for (std::int64_t r = 0; r < rows; r += L)
      f(r, static_cast<int>(std::min<std::int64_t>(L, rows - r)));
  }

  static void softmax(const T* x, std::int64_t rows, std::int64_t n, T* y) {
    if (n <= short_row)
      return each_short_rows(rows, [&](std::int64_t r, int some) {
        const short_rows s(x + r * n, n, some);
        for (int k = 0; k < some; ++k) {
          const P factor = broadcast<T, L>(T(1) / s.sum[k]);
          s.each_of(k, n, [&](std::int64_t i, const P& e, auto count) DEFT_INLINED {
            write(y + (r + k) * n + i, e * factor, count);
          });
        }
      });
    for (; rows > 0; --rows, x += n, y += n) {
      const sums s = exponentials<true>(x, n, y);
      scale(y, n, T(1) / s.sum);
    }
  }
  static void scale(T* y, std::int64_t n, T factor) {
    const P f = broadcast<T, L>(factor);
    each(n, [&](std::int64_t i, auto count)
                DEFT_INLINED { write(y + i, read(y + i, count, T(0)) * f, count); });
  }

  /// Loss for the class `label`, given the logarithm of the sum.
  static T cross_entropy(const T* x, std::int64_t, T max, T log_sum, std::int64_t label) {
    return log_sum + (max - x[label]);
  }
  /// The same for probabilities.
  static T cross_entropy(const T* x, std::int64_t n, T max, T log_sum, const T* labels) {
    // The maximum is subtracted from each logit first, which is exact for those that matter; the
    // logarithm, small in comparison, would lose its bits if it were added to the maximum.
    const P most = broadcast<T, L>(max), rest = broadcast<T, L>(log_sum);
    const P zero = broadcast<T, L>(T(0));
    return sum_of_each(n, [&](const P& loss, std::int64_t i, auto count) DEFT_INLINED {
      const P l = read(labels + i, count, T(0));
      // What is impossible, and is so by its logit, too, costs nothing.
      const P by = num::select(l == zero, zero, rest + (most - read(x + i, count, max)));
      return multiply_add(l, by, loss);
    });
  }

  /// dz * (sum(labels) softmax - labels) into y, of exponentials that `each_e` calls a function
  /// with, as `each` does. They may be in y.
  template <class Each>
  static DEFT_ALWAYS_INLINE void gradient(Each each_e, std::int64_t, T sum, T dz,
                                          std::int64_t label, T* y) {
    const P factor = broadcast<T, L>(dz / sum);
    each_e([&](std::int64_t i, const P& e, auto count)
               DEFT_INLINED { write(y + i, e * factor, count); });
    y[label] -= dz;
  }
  template <class Each>
  static DEFT_ALWAYS_INLINE void gradient(Each each_e, std::int64_t n, T sum, T dz, const T* labels,
                                          T* y) {
    const P factor = broadcast<T, L>(dz * fold<T, plus>::row(labels, n) / sum);
    const P by = broadcast<T, L>(dz);
    each_e([&](std::int64_t i, const P& e, auto count) DEFT_INLINED {
      write(y + i, e * factor - read(labels + i, count, T(0)) * by, count);
    });
  }
};

double softmax_cost(const tensor_type& x, std::int64_t rows) {
  return 20 + static_cast<double>(x.shape.elements()) * (x.type == dtype::float32 ? 0.25 : 0.6) +
         static_cast<double>(rows) * 15;
}
/// Rows of n elements that are some 32 KB.
std::int64_t softmax_chunk(std::int64_t n) {
  return std::max<std::int64_t>(1, thresholds::softmax_chunk / std::max<std::int64_t>(1, n));
}
/// Calls f(begin, end) for `some` rows at a time, on the team.
template <class F>
void each_run_of_rows(std::int64_t rows, std::int64_t some, double cost, F f) {
  parallel_chunks((rows + some - 1) / some, cost,
                  [&](std::int64_t p) { f(p * some, std::min(rows, (p + 1) * some)); });
}

template <class T>
class kernel_of<spec::softmax, T> final : public spec::softmax {
  void ready() override {
    row_kernel::ready();
    cost_ = softmax_cost(in_[0], rows_);
    chunk_ = softmax_chunk(n_);
  }
  void run(const kernel_call& c) override {
    if (n_ == 0) return;
    const T* x = static_cast<const T*>(c.in[0]);
    T* y = static_cast<T*>(c.out[0]);
    each_run_of_rows(rows_, chunk_, cost_, [&](std::int64_t begin, std::int64_t end) {
      softmax_row<T>::softmax(x + begin * n_, end - begin, n_, y + begin * n_);
    });
  }

  std::int64_t chunk_ = 1;
};

/// The gradient and the loss are made while a row is in cache. Label: a class per row, or T,
/// probabilities.
template <class Op, class T, class Label>
class kernel_of<spec::cross_entropy<Op>, T, Label> final : public spec::cross_entropy<Op> {
  using base = spec::cross_entropy<Op>;
  using row = softmax_row<T>;

  void ready() override {
    base::ready();
    this->cost_ = softmax_cost(this->in_[0], this->rows_);
    chunk_ = softmax_chunk(this->n_);
  }
  void run(const kernel_call& c) override {
    each_run_of_rows(this->rows_, chunk_, this->cost_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; r += together)
        some_rows(c, r, std::min(together, end - r));
    });
  }

  /// Rows whose logarithms are taken together.
  static constexpr std::int64_t together = thresholds::rows_of_logarithms;

  /// Row r's class, checked, or the address of its probabilities.
  auto label_of(const void* labels, std::int64_t r) const {
    const Label* l = static_cast<const Label*>(labels);
    if constexpr (std::is_same_v<Label, T>) {
      return l + r * this->n_;
    } else {
      const std::int64_t label = l[r];
      if (label < 0 || label >= this->n_)
        fail(errc::out_of_range, "[softmax_cross_entropy] the label ", label, " of row ", r,
             " is out of range for ", this->n_, " classes");
      return label;
    }
  }

  void some_rows(const kernel_call& c, std::int64_t first, std::int64_t count) const {
    constexpr int L = row::L;
    const std::int64_t n = this->n_;
    const T* x = static_cast<const T*>(c.in[0]) + first * n;
    alignas(64) T max[together], sum[together], logs[together];
    std::fill(sum, sum + together, T(1));
    T* loss = static_cast<T*>(c.out[base::loss_output]);
    if (n > 0 && n <= row::short_row) {
      row::each_short_rows(count, [&](std::int64_t r, int some) {
        const typename row::short_rows s(x + r * n, n, some);
        std::copy(s.max, s.max + some, max + r);
        std::copy(s.sum, s.sum + some, sum + r);
        if constexpr (base::gradient)
          for (int k = 0; k < some; ++k)
            gradient(c, first + r + k, s.sum[k], [&](auto f) DEFT_INLINED { s.each_of(k, n, f); });
      });
    } else {
      for (std::int64_t r = 0; r < count; ++r) {
        T* y = base::gradient && n ? static_cast<T*>(c.out[0]) + (first + r) * n : nullptr;
        const auto s = row::template exponentials<base::gradient>(x + r * n, n, y);
        max[r] = s.max, sum[r] = s.sum;
        if constexpr (base::gradient)
          if (n)
            gradient(c, first + r, s.sum, [&](auto f) DEFT_INLINED {
              row::each(n, [&](std::int64_t i, auto m)
                               DEFT_INLINED { f(i, row::read(y + i, m, T(0)), m); });
            });
      }
    }
    if (!loss) return;
    for (std::int64_t r = 0; r < count; r += L) store(logs + r, num::log(load<T, L>(sum + r)));
    for (std::int64_t r = 0; r < count; ++r) {
      const auto label = label_of(c.in[1], first + r);
      loss[first + r] = n ? row::cross_entropy(x + r * n, n, max[r], logs[r], label) : T(0);
    }
  }
  /// Of row r.
  template <class Each>
  void gradient(const kernel_call& c, std::int64_t r, T sum, Each each_e) const {
    const auto label = label_of(c.in[1], r);
    const bool one = this->in(2).rank() == 0;
    const T dz = static_cast<const T*>(c.in[2])[one ? 0 : r];
    row::gradient(each_e, this->n_, sum, dz, label, static_cast<T*>(c.out[0]) + r * this->n_);
  }

  std::int64_t chunk_ = 1;
};

}  // namespace
}  // namespace deft::ext::cpu
