// SPDX-License-Identifier: Apache-2.0
// Rows folded at once and in pieces have the same bits.
#include <deft/kernels/cpu/reduction_kernels.hpp>

#include "arrays.hpp"
#include "run_kernel.hpp"
#include "testing.hpp"

#include <deft/op/max.hpp>
#include <deft/op/mean.hpp>
#include <deft/op/min.hpp>
#include <deft/op/sum.hpp>

using namespace deft;
using namespace deft::ext;
using testing::filled;
using testing::values;

namespace {

struct aligned_memory {
  explicit aligned_memory(std::size_t bytes) : b(buffer::host(bytes)) {}
  char* at(std::size_t i) { return static_cast<char*>(b.data()) + i; }
  buffer b;
};

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

/// Reduces the first axis, by the kernel of the reduction.
any_array by_kernel(fold_kind kind, const any_array& a) {
  auto run = [&]<class Op>(Op o) { return testing::run_op(o, {a}); };
  if (kind == fold_kind::sum) return run(op::sum{{dims{0}, false}});
  if (kind == fold_kind::mean) return run(op::mean{{dims{0}, false}});
  if (kind == fold_kind::min) return run(op::min{{dims{0}, false}});
  return run(op::max{{dims{0}, false}});
}
template <class T>
T by_kernel(fold_kind kind, const std::vector<T>& x) {
  return *by_kernel(kind, filled<T>({static_cast<std::int64_t>(x.size())}, x)).template data<T>();
}

template <class T>
void check(fold_kind kind) {
  const auto& f = cpu::find_fold(kind, dtype_of<T>);
  for (std::int64_t n : {1, 3, 15, 16, 17, 63, 64, 65, 1000, 4096, 4097, 20'000, 70'000}) {
    CAPTURE(n);
    const auto x = values<T>(n, static_cast<std::uint64_t>(n));
    const T expected = by_kernel(kind, x);
    T got;
    f.rows(x.data(), 1, n, &got);
    CHECK(same_bits(got, expected));
    // Fold in runs of any length.
    for (std::int64_t run : {7, 64, 1000}) {
      CAPTURE(run);
      aligned_memory stream(f.stream_bytes);
      f.begin(stream.at(0));
      for (std::int64_t at = 0; at < n; at += run)
        f.add(stream.at(0), x.data() + at, std::min(run, n - at));
      f.end(stream.at(0), 1, n, &got);
      CHECK(same_bits(got, expected));
    }
    // Fold in pieces, one of which may be shorter than a pack.
    for (std::int64_t piece : {f.piece, 2 * f.piece}) {
      const std::int64_t pieces = (n + piece - 1) / piece;
      aligned_memory streams(f.stream_bytes * static_cast<std::size_t>(pieces));
      for (std::int64_t p = 0; p < pieces; ++p) {
        char* s = streams.at(f.stream_bytes * static_cast<std::size_t>(p));
        f.begin(s);
        f.add(s, x.data() + p * piece, std::min(piece, n - p * piece));
      }
      f.end(streams.at(0), pieces, n, &got);
      CHECK(same_bits(got, expected));
    }
  }
}

template <class T>
void check_columns(fold_kind kind, std::int64_t rows, std::int64_t n) {
  const auto x = values<T>(rows * n, static_cast<std::uint64_t>(rows + n));
  const any_array expected = by_kernel(kind, filled<T>({rows, n}, x));
  // The kernel folds a single column in the order of a row.
  if (n == 1 && rows > 1) return;
  const auto& f = cpu::find_column_fold(kind, dtype_of<T>);
  const cpu::column_layout all(rows, n);
  aligned_memory stream(f.stream_bytes(all));
  for (std::int64_t pass : {all.unit(), 3 * all.unit(), rows})
    for (std::int64_t piece : {all.piece(), 2 * all.piece(), std::int64_t{1} << 40}) {
      const std::int64_t whole = rows - all.rest();
      const std::int64_t pieces = std::max<std::int64_t>(1, (whole + piece - 1) / piece);
      std::vector<T> parts(static_cast<std::size_t>(pieces * all.wide() + all.rest() * n));
      for (std::int64_t p = 0; p < pieces && rows > 0; ++p) {
        f.begin(stream.at(0), all);
        const std::int64_t end = p + 1 == pieces ? rows : (p + 1) * piece;
        for (std::int64_t r = p * piece; r < end; r += pass)
          f.add(stream.at(0), x.data() + r * n, std::min(pass, end - r));
        f.close(stream.at(0), parts.data() + p * all.wide());
      }
      std::vector<T> got(static_cast<std::size_t>(n));
      f.end(parts.data(), pieces, all, got.data());
      for (std::int64_t i = 0; i < n; ++i)
        CHECK(same_bits(got[static_cast<std::size_t>(i)], expected.template data<T>()[i]));
    }
}

}  // namespace

TEST_CASE_TEMPLATE("a row folded in pieces has the bits of one folded at once", T, float, double,
                   std::int32_t, std::int64_t, std::uint8_t) {
  check<T>(fold_kind::sum);
  check<T>(fold_kind::max);
  check<T>(fold_kind::min);
  if constexpr (deft::ext::is_floating_type<T>) check<T>(fold_kind::mean);
}

TEST_CASE_TEMPLATE("rows folded together have the bits of each by itself", T, float, double,
                   std::int32_t, std::int64_t, std::uint8_t) {
  std::vector<fold_kind> kinds{fold_kind::sum, fold_kind::max, fold_kind::min};
  if constexpr (deft::ext::is_floating_type<T>) kinds.push_back(fold_kind::mean);
  for (const fold_kind kind : kinds) {
    const auto& f = cpu::find_fold(kind, dtype_of<T>);
    for (std::int64_t n = 1; n < 150; ++n)
      for (std::int64_t rows : {1, 15, 16, 17, 70}) {
        CAPTURE(n);
        CAPTURE(rows);
        const auto x = values<T>(rows * n, static_cast<std::uint64_t>(n));
        std::vector<T> together(static_cast<std::size_t>(rows));
        f.rows(x.data(), rows, n, together.data());
        for (std::int64_t r = 0; r < rows; ++r) {
          T alone;
          f.rows(x.data() + r * n, 1, n, &alone);
          if (!same_bits(together[static_cast<std::size_t>(r)], alone)) CHECK(r == -1);
        }
      }
  }
}

TEST_CASE_TEMPLATE("columns folded row by row have the bits of those folded at once", T, float,
                   double, std::int32_t, std::uint8_t) {
  for (std::int64_t n : {1, 5, 10, 63, 64, 100, 700})
    for (std::int64_t rows : {0, 1, 2, 7, 25, 26, 64, 129, 1000, 5000}) {
      CAPTURE(n);
      CAPTURE(rows);
      if (n * rows > 200'000) continue;
      check_columns<T>(fold_kind::sum, rows, n);
      if (rows > 0) check_columns<T>(fold_kind::max, rows, n);
      if (rows > 0) check_columns<T>(fold_kind::min, rows, n);
      if constexpr (deft::ext::is_floating_type<T>) check_columns<T>(fold_kind::mean, rows, n);
    }
}

TEST_CASE("compiled folds keep the sign of zeros") {
  for (float zero : {0.f, -0.f}) {
    const auto& f = cpu::find_fold(fold_kind::sum, dtype::float32);
    std::vector<float> x(static_cast<std::size_t>(2 * f.lanes), zero);
    aligned_memory stream(f.stream_bytes);
    f.begin(stream.at(0));
    std::int64_t most;
    auto* lanes = static_cast<float*>(f.open(stream.at(0), most));
    CHECK(most == f.piece);
    for (std::int64_t i = 0; i < f.lanes; ++i) lanes[i] += zero;
    f.close(stream.at(0), f.lanes);
    float got, expected;
    f.end(stream.at(0), 1, f.lanes, &got);
    f.rows(x.data(), 1, f.lanes, &expected);
    CHECK(same_bits(got, expected));
  }
}

TEST_CASE("operations that cannot be folded are unimplemented") {
  CHECK(testing::error_of([] {
          cpu::find_fold(fold_kind::sum, dtype::boolean);
        }).starts_with("unimplemented"));
  CHECK(testing::error_of([] {
          cpu::find_fold(fold_kind::mean, dtype::int32);
        }).starts_with("unimplemented"));
  CHECK(testing::error_of([] {
          cpu::find_column_fold(fold_kind::mean, dtype::int32);
        }).starts_with("unimplemented"));
}
