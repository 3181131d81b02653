// SPDX-License-Identifier: Apache-2.0
#include <deft/op/concat.hpp>
#include <deft/op/gradients.hpp>
#include <deft/op/scatter.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;

TEST_CASE_FIXTURE(testing::own_graph, "updates of rows say what does not fit") {
  any_variable v("v", {6, 2}, 0.f);
  placeholder<std::int32_t, dyn> ids("ids");
  placeholder<float, dyn, 2> rows("rows");
  placeholder<float, dyn, 3> wide("wide");
  placeholder<std::uint8_t, dyn> bytes("bytes");
  CHECK(scatter_sub(v, ids, rows).value().shape() == dims{6, 2});
  CHECK(error_of([&] { scatter_sub(v, ids, wide); })
            .starts_with("invalid_argument: [scatter_sub] float(?,3) does not hold rows of "
                         "variable \"v\", float(6,2), for indices of (?)"));
  CHECK(error_of([&] {
          scatter_update(v, bytes, rows);
        }).starts_with("invalid_argument: [scatter_update] expects int32 or int64 indices"));
  any_variable b("b", {6, 2}, false, dtype::boolean);
  placeholder<bool, dyn, 2> flags("flags");
  CHECK(error_of([&] {
          scatter_update(b, ids, flags);
        }).starts_with("invalid_argument: [scatter_update] is not defined for bool"));
  CHECK(sum_rows(rows, ids).shape() == dims{dyn, 2});
  CHECK(error_of([&] {
          sum_rows(any_tensor(ids), any_tensor(wide));
        }).starts_with("invalid_argument: [sum_rows] expects int32 or int64 indices"));
}

TEST_CASE("rows of a variable grow by others, or to the greatest, on the processor and a GPU") {
  const auto run = [](const char* where) {
    graph g;
    const auto in_graph = as_default(g);
    const auto there = on(device(where));
    const any_variable v("v", {3, 2}, ndarray<float, 3, 2>{1, 8, 3, 4, 5, 6});
    placeholder<std::int32_t, dyn> ids("ids");
    placeholder<float, dyn, 2> rows("rows");
    const auto added = scatter_add(v, ids, rows), greatest = scatter_max(v, ids, rows);
    const any_tensor grown = scatter_add(any_tensor(v), ids, rows);
    session s({.simulated_gpus = 1});
    s.run(initialize_all());
    const ndarray<std::int32_t, dyn> at{2, 0, 2};
    const ndarray<float, 3, 2> by{7, 2, 0, 9, 6, 8};
    CHECK(s.run(grown, ids = at, rows = by) ==
          any_array(ndarray<float, 3, 2>{1, 17, 3, 4, 18, 16}.array()));
    s.run(operation(greatest), ids = at, rows = by);
    CHECK(s.run(any_tensor(v)) == any_array(ndarray<float, 3, 2>{1, 9, 3, 4, 7, 8}.array()));
    s.run(operation(added), ids = at, rows = by);
    CHECK(s.run(any_tensor(v)) == any_array(ndarray<float, 3, 2>{1, 18, 3, 4, 20, 18}.array()));
    CHECK(error_of([&] {
            s.run(operation(greatest), ids = ndarray<std::int32_t, dyn>{3},
                  rows = ndarray<float, 1, 2>{1, 1});
          }).starts_with("out_of_range: [scatter_max] the index 3 is out of range for 3 rows"));
  };
  run("/cpu:0");
  run("/gpu:0");
}

TEST_CASE_FIXTURE(testing::own_graph, "only sums of slices of one shape are made of slices") {
  placeholder<float, 6, 2> a("a");
  placeholder<float, 7, 2> b("b");
  placeholder<std::int32_t, 3> ids("ids");
  placeholder<float, 3, 2> rows("rows");
  const any_tensor of_a = detail::indexed_slices{rows, ids, a}.tensor(),
                   of_b = detail::indexed_slices{rows, ids, b}.tensor();
  const any_tensor two[] = {of_a, of_a}, mixed[] = {of_a, of_b}, whole[] = {of_a, any_tensor(a)};
  const auto sum = detail::slices_of(detail::sum_of_slices(two));
  REQUIRE(sum);
  CHECK(sum->rows.shape() == dims{6, 2});
  CHECK(sum->indices.shape() == dims{6});
  CHECK_FALSE(detail::sum_of_slices(mixed).valid());
  CHECK_FALSE(detail::sum_of_slices(whole).valid());
  CHECK_FALSE(detail::slices_of(any_tensor(a)).has_value());
}

TEST_CASE_FIXTURE(testing::own_graph, "slices of int32 and of int64 indices add up to slices") {
  placeholder<float, 6, 2> table("table");
  placeholder<std::int32_t, 3> few("few");
  placeholder<std::int64_t, 2> more("more");
  const any_tensor of[] = {table};
  for (const bool swapped : {false, true}) {
    const any_tensor a = sum(gather(table, few)), b = sum(gather(table, more));
    const auto slices = detail::slices_of(plan::gradients(swapped ? b + a : a + b, of).at(0));
    REQUIRE(slices);
    CHECK(slices->indices.type() == dtype::int64);
    CHECK(slices->indices.shape() == dims{5});
    CHECK(slices->rows.shape() == dims{5, 2});
  }
}

TEST_CASE_FIXTURE(testing::own_graph, "rows without elements have gradients") {
  variable<float, 4, 0> w("w", zeros());
  placeholder<std::int32_t, 2, 3> ids("ids");
  const any_tensor of[] = {w};
  const auto g = plan::gradients(sum(gather(w, ids)) + sum(gather(w, ids + 1)), of);
  CHECK(g[0].shape() == dims{4, 0});
}
