// SPDX-License-Identifier: Apache-2.0
#include <deft/op/argmax.hpp>
#include <deft/op/argmin.hpp>
#include <deft/op/gather.hpp>
#include <deft/op/max.hpp>
#include <deft/op/min.hpp>
#include <deft/op/one_hot.hpp>
#include <deft/op/scatter.hpp>

#include "../arrays.hpp"
#include "on_gpu.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

/// Indices below `rows`, from `seed` alone; `often` of four are 0.
template <class I>
any_array indices(const dims& shape, std::int64_t rows, int often = 0, std::uint64_t seed = 1) {
  philox_stream random(seed);
  any_array a(dtype_of<I>, shape);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.mutable_data<I>()[i] = static_cast<int>(random.below(4)) < often
                                 ? I(0)
                                 : static_cast<I>(random.below(static_cast<std::uint32_t>(rows)));
  return a;
}
template <class Op>
void check_same_bits(const Op& o, const std::vector<any_array>& in) {
  const any_array expected = run_op(o, in);
  for (std::size_t shift : {0, 1}) {
    INFO(to_string(in[0].shape()), ", shift ", shift);
    CHECK(identical(run_op_on_gpu(o, in, {.shift = shift}), expected));
  }
}
template <class T>
any_array extreme(const dims& shape, std::uint64_t seed = 1) {
  return filled<T>(shape, values<T>(std::max<std::int64_t>(1, shape.elements()), seed));
}

}  // namespace

TEST_CASE_TEMPLATE("gather on a GPU takes every dtype's rows", T, float, double, std::int32_t,
                   std::int64_t, std::uint8_t, bool, std::int8_t) {
  for (const dims& shape : {dims{5}, dims{1, 1}, dims{5, 2}, dims{5, 3}, dims{7, 4}, dims{5, 100},
                            dims{5, 2, 3}, dims{3, 16}, dims{5, 0}, dims{9, 1021}})
    for (const dims& index : {dims{}, dims{1}, dims{2, 3}, dims{1000}, dims{0}, dims{3, 0}}) {
      check_same_bits(op::gather(), {extreme<T>(shape), indices<std::int32_t>(index, shape[0])});
      check_same_bits(op::gather(), {extreme<T>(shape), indices<std::int64_t>(index, shape[0])});
    }
  check_same_bits(op::gather(), {extreme<T>({0, 3}), any_array(dtype::int32, {0})});
}

TEST_CASE_TEMPLATE("scatter_add on a GPU has the CPU's bits if the sums are exact", T, float,
                   double, std::int32_t, std::int64_t, std::uint8_t, std::int8_t) {
  for (std::int64_t count : {0, 1, 2, 63, 64, 65, 1000, 4097, 20000})
    for (std::int64_t rows : {1, 2, 7, 300, 5000})
      for (const dims& row : {dims{}, dims{3}, dims{0, 2}}) {
        for (int often : {0, 3}) {
          INFO(count, " indices of ", rows, " rows, often ", often);
          dims like{rows}, given{count};
          for (auto e : row) like.push_back(e), given.push_back(e);
          any_array dz =
              deft::ext::is_floating_type<T> ? any_array(dtype_of<T>, given) : extreme<T>(given);
          if constexpr (deft::ext::is_floating_type<T>)
            for (std::int64_t i = 0; i < dz.elements(); ++i)
              dz.mutable_data<T>()[i] = static_cast<T>(i % 17 - 8);
          const any_array x(dtype_of<T>, like);
          check_same_bits(op::scatter_add(), {dz, indices<std::int32_t>({count}, rows, often), x});
          if (count < 2000)
            check_same_bits(op::scatter_add(),
                            {dz, indices<std::int64_t>({count}, rows, often), x});
        }
      }
}

TEST_CASE_TEMPLATE("sum_rows on a GPU has the CPU's bits", T, float, double, std::int32_t,
                   std::uint8_t, std::int8_t) {
  for (const dims& index : {dims{}, dims{0}, dims{1}, dims{64}, dims{5, 13}, dims{4097}})
    for (std::int64_t rows : {1, 7, 5000})
      for (const dims& row : {dims{}, dims{3}, dims{0, 2}, dims{2, 5}})
        for (const bool repeat : {true, false}) {
          INFO("indices ", to_string(index), " of ", rows, " rows of ", to_string(row));
          dims given = index;
          for (auto e : row) given.push_back(e);
          check_same_bits(op::sum_rows{repeat},
                          {moderate<T>(given), indices<std::int32_t>(index, rows, 1)});
          check_same_bits(op::sum_rows{repeat},
                          {moderate<T>(given), indices<std::int64_t>(index, rows)});
        }
}

TEST_CASE_TEMPLATE("floating sums of scatter_add are close, and the same from run to run", T, float,
                   double) {
  for (std::int64_t rows : {1, 5, 1000}) {
    const std::int64_t count = 30'000;
    const any_array dz = moderate<T>({count, 5}), x(dtype_of<T>, {rows, 5});
    const std::vector<any_array> in = {dz, indices<std::int64_t>({count}, rows), x};
    const any_array first = run_op_on_gpu(op::scatter_add(), in);
    // Sums of up to `count` terms of at most 2, which nearly cancel.
    CHECK(difference(first, run_op(op::scatter_add(), in), 64, 300) == "");
    for (int i = 0; i < 3; ++i) CHECK(identical(run_op_on_gpu(op::scatter_add(), in), first));
  }
  // Infinities and NaN stay in their rows.
  const any_array dz = extreme<T>({200, 3}), x(dtype_of<T>, {40, 3});
  const std::vector<any_array> in = {dz, indices<std::int32_t>({200}, 40), x};
  CHECK(difference(run_op_on_gpu(op::scatter_add(), in), run_op(op::scatter_add(), in), 16, 100) ==
        "");
}

TEST_CASE("scatter_add adds in the order of the indices") {
  // (1 + 1e8) - 1e8 is not 1 + (1e8 - 1e8).
  const any_array x(dtype::float32, {3}), index = array_of<std::int32_t>({6}, {2, 1, 2, 0, 2, 1});
  const any_array dz = array_of<float>({6}, {1, 3, 1e8f, 7, -1e8f, 4});
  CHECK(
      identical(run_op_on_gpu(op::scatter_add(), {dz, index, x}), array_of<float>({3}, {7, 7, 0})));
}

TEST_CASE("an index out of range fails on a GPU as on the CPU") {
  for (const dims& shape : {dims{5, 3}, dims{5}, dims{5, 0}, dims{0, 3}}) {
    const any_array x = moderate<float>(shape);
    dims given{300};
    for (int i = 1; i < shape.rank(); ++i) given.push_back(shape[i]);
    const any_array dz = moderate<float>(given);
    for (std::int64_t bad : {std::int64_t{-1}, shape[0], std::int64_t{1} << 40,
                             std::numeric_limits<std::int64_t>::min()}) {
      CAPTURE(bad);
      auto same = [&](const op_def& op, const std::vector<any_array>& in) {
        const std::string expected = error_of([&] { run_all(op, {}, in); });
        CHECK(expected == str("out_of_range: [", op.name, "] the index ", bad,
                              " is out of range for ", shape[0], " rows"));
        CHECK(error_of([&] { run_on_gpu(op, {}, in); }) == expected);
      };
      any_array index = indices<std::int64_t>({300}, std::max<std::int64_t>(1, shape[0]));
      index.mutable_data<std::int64_t>()[shape[0] ? 299 : 0] = bad;
      if (shape[0] == 0)  // every one is out of range
        for (int i = 0; i < 300; ++i) index.mutable_data<std::int64_t>()[i] = bad;
      same(record_of<op::gather>, {x, index});
      same(record_of<op::scatter_add>, {dz, index, x});
    }
  }
}

TEST_CASE("an index that sum_rows cannot sort is its own error") {
  any_array index = indices<std::int64_t>({300}, 5);
  index.mutable_data<std::int64_t>()[299] = -1;
  CHECK(error_of([&] {
          run_op_on_gpu(op::sum_rows(), {moderate<float>({300, 3}), index});
        }).starts_with("out_of_range: [sum_rows] the index -1 is out of range for "));
}

TEST_CASE_TEMPLATE("one_hot on a GPU gives the CPU's values", I, std::int32_t, std::int64_t,
                   std::uint8_t) {
  for (const dtype t : every_plain_dtype)
    for (std::int64_t depth : {0, 1, 3, 10, 257})
      for (const dims& shape : {dims{}, dims{1}, dims{7}, dims{3, 50}, dims{0}}) {
        any_array index = moderate<I>(shape);
        if (std::is_signed_v<I> && index.elements() > 2)
          index.mutable_data<I>()[0] = static_cast<I>(-1),
          index.mutable_data<I>()[1] = std::numeric_limits<I>::max();
        check_same_bits(op::one_hot{depth, t}, {index});
      }
}

TEST_CASE_TEMPLATE("argmax, argmin and their marks on a GPU take the first along any axes", T,
                   float, double, std::int32_t, std::int64_t, std::uint8_t, std::int8_t) {
  for (const dims& shape :
       {dims{}, dims{1}, dims{7}, dims{5000}, dims{20, 10}, dims{10, 200}, dims{4, 5, 6},
        dims{3, 1, 2}, dims{2, 40000}, dims{40000, 2}, dims{2, 3, 5, 7}, dims{0, 3}, dims{3, 0}})
    for (bool ties : {false, true}) {
      any_array x = ties ? moderate<T>(shape) : extreme<T>(shape, 3);
      for (std::int64_t i = 0; ties && i < x.elements(); ++i)
        x.mutable_data<T>()[i] = static_cast<T>(static_cast<int>(x.data<T>()[i]) % 3);
      for (int axis = 0; axis < shape.rank(); ++axis)
        if (shape[axis] != 0) {
          check_same_bits(op::argmax{axis}, {x});
          check_same_bits(op::argmin{axis}, {x});
        }
      for (unsigned chosen = 0; chosen < 1u << shape.rank(); ++chosen) {
        op::first_max o;
        for (int d = 0; d < shape.rank(); ++d)
          if (chosen >> d & 1) o.axes.push_back(d);
        check_same_bits(o, {x});
        check_same_bits(op::first_min{o.axes}, {x});
      }
    }
}

TEST_CASE_TEMPLATE(
    "argmax, argmin and their marks on a GPU take the first NaN, wherever a row is split", T, float,
    double) {
  for (std::int64_t n : {2, 33, 3000, 50'000})
    for (std::int64_t first : {std::int64_t{0}, std::int64_t{1}, n / 2, n - 1})
      for (std::int64_t second : {std::int64_t{0}, n / 3, n - 1}) {
        any_array x = moderate<T>({2, n});
        for (std::int64_t i : {first, second})
          x.mutable_data<T>()[n + i] = std::numeric_limits<T>::quiet_NaN();
        x.mutable_data<T>()[first] = x.mutable_data<T>()[second] =
            std::numeric_limits<T>::infinity();
        check_same_bits(op::argmax{1}, {x});
        check_same_bits(op::first_max{{1}}, {x});
        check_same_bits(op::argmin{1}, {x});
        any_array least = filled<T>({2, n}, {-std::numeric_limits<T>::infinity()});
        check_same_bits(op::argmax{1}, {least});
        check_same_bits(op::argmax{0}, {least});
      }
}

TEST_CASE("argmax of no elements is refused on a GPU as on the CPU") {
  const any_array x(dtype::float32, {3, 0});
  const std::string expected = error_of([&] { run_op(op::argmax{1}, {x}); });
  CHECK_FALSE(expected.empty());
  CHECK(error_of([&] { run_op_on_gpu(op::argmax{1}, {x}); }) == expected);
}

TEST_CASE_TEMPLATE("scatter_add on CUDA has the bits of simulated GPUs" *
                       doctest::test_suite(needs_cuda),
                   T, float, double) {
  for (std::int64_t count : {1, 1000, 30'000})
    for (std::int64_t rows : {1, 5, 1000})
      for (int often : {0, 3}) {
        INFO(count, " indices of ", rows, " rows, often ", often);
        CHECK(difference_from_simulated(
                  record_of<op::scatter_add>, {},
                  {moderate<T>({count, 5}), indices<std::int64_t>({count}, rows, often),
                   any_array(dtype_of<T>, {rows, 5})}) == "");
      }
}
