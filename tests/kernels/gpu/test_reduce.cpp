// SPDX-License-Identifier: Apache-2.0
#include <deft/op/max.hpp>
#include <deft/op/mean.hpp>
#include <deft/op/min.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/sum_to.hpp>

#include "../arrays.hpp"
#include "on_gpu.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

struct reduction_case {
  dims shape, axes;
};
const std::vector<reduction_case> cases = {{{1}, {0}},
                                           {{7}, {0}},
                                           {{33}, {0}},
                                           {{1000}, {0}},
                                           {{3000}, {0}},
                                           {{100'003}, {0}},
                                           {{5, 7}, {0}},
                                           {{5, 7}, {1}},
                                           {{5, 7}, {0, 1}},
                                           {{300, 2}, {0}},
                                           {{2, 40'000}, {1}},
                                           {{40'000, 2}, {0}},
                                           {{3, 4, 5}, {1}},
                                           {{3, 4, 5}, {0, 2}},
                                           {{3, 1, 5}, {1}},
                                           {{2, 3, 4, 5}, {1, 3}},
                                           {{300, 2100}, {1}},
                                           {{0, 4}, {0}},
                                           {{4, 0}, {0}},
                                           {{6}, {}},
                                           {{2, 2, 2, 2, 2, 2, 2, 2}, {0, 2, 4, 6}}};

template <class Op, class T>
void check_reduction(double ulps) {
  for (const auto& c : cases) {
    if ((Op::name == "max" || Op::name == "min") && c.shape.elements() == 0) continue;
    INFO(str(Op::name, " of ", dtype_of<T>, c.shape, " over ", c.axes));
    for (bool keep : {false, true}) {
      const Op o{{c.axes, keep}};
      const any_array x = moderate<T>(c.shape);
      CHECK(difference(run_op_on_gpu(o, {x}), run_op(o, {x}), ulps, 300) == "");
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("sums on GPUs over any axes are close to the processor's", T, float, double,
                   std::int32_t, std::int64_t, std::uint8_t, std::int8_t) {
  check_reduction<op::sum, T>(32);
  check_reduction<op::max, T>(0);
  check_reduction<op::min, T>(0);
  if constexpr (deft::ext::is_floating_type<T>) check_reduction<op::mean, T>(8);
}

TEST_CASE("sum_to on GPUs sums over the broadcast axes") {
  const any_array x = moderate<float>({4, 3, 5});
  for (const dims& to : {dims{}, dims{5}, dims{3, 1}, dims{4, 1, 5}, dims{1, 1, 1}}) {
    const std::vector<any_array> in{x, any_array(dtype::float32, to)};
    CHECK(difference(run_op_on_gpu(op::sum_to(), in), run_op(op::sum_to(), in), 16, 10) == "");
  }
}

TEST_CASE("a sum on GPUs has the same bits in every run, and propagates NaN") {
  any_array x = moderate<float>({3, 50'001});
  const op::sum along{{dims{1}, false}};
  const any_array first = run_op_on_gpu(along, {x});
  for (int i = 0; i < 5; ++i) CHECK(identical(run_op_on_gpu(along, {x}), first));
  x.mutable_data<float>()[50'001 + 31'000] = std::numeric_limits<float>::quiet_NaN();
  for (const any_array& y :
       {run_op_on_gpu(along, {x}), run_op_on_gpu(op::max{{dims{1}, false}}, {x}),
        run_op_on_gpu(op::min{{dims{1}, false}}, {x})}) {
    CHECK(!std::isnan(y.data<float>()[0]));
    CHECK(std::isnan(y.data<float>()[1]));
    CHECK(!std::isnan(y.data<float>()[2]));
  }
}

TEST_CASE("the maximum of zero elements is undefined") {
  CHECK_THROWS_WITH_AS(
      run_op_on_gpu(op::max{{dims{1}, false}}, {any_array(dtype::float32, {2, 0})}),
      "[max] is undefined for zero elements: axis 1 of (2,0)", error);
}

TEST_CASE_TEMPLATE("sums on CUDA have the bits of simulated GPUs'" *
                       doctest::test_suite(needs_cuda),
                   T, float, double) {
  for (const auto& c : cases) {
    INFO(str(dtype_of<T>, c.shape, " over ", c.axes));
    const any_array x = moderate<T>(c.shape);
    CHECK(difference_from_simulated(record_of<op::sum>, encode(op::sum{{c.axes, false}}), {x}) ==
          "");
    CHECK(difference_from_simulated(record_of<op::mean>, encode(op::mean{{c.axes, false}}), {x}) ==
          "");
  }
  for (const dims& to : {dims{}, dims{5}, dims{300, 1}, dims{40, 1, 5}})
    CHECK(difference_from_simulated(record_of<op::sum_to>, {},
                                    {moderate<T>({40, 300, 5}), any_array(dtype_of<T>, to)}) == "");
}
