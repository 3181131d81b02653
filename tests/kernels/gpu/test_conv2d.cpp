// SPDX-License-Identifier: Apache-2.0
#include <deft/op/avg_pool.hpp>
#include <deft/op/conv2d.hpp>
#include <deft/op/max_pool.hpp>

#include "../arrays.hpp"
#include "on_gpu.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

template <class Op>
Op convolution_of(const op::convolution& o) {
  Op to;
  static_cast<op::convolution&>(to) = o;
  return to;
}
/// The CPU's results, except for the order in which `terms` products are added.
template <class Op>
void check(const Op& o, const std::vector<any_array>& in, std::int64_t terms) {
  INFO(Op::name);
  const any_array expected = run_op(o, in);
  for (std::size_t shift : {0, 1})
    CHECK(difference(run_op_on_gpu(o, in, {.shift = shift}), expected, 8,
                     4 * static_cast<double>(std::max<std::int64_t>(1, terms))) == "");
}
template <class T>
void check_convolution(const op::convolution& o, const dims& x, const dims& filter) {
  INFO(str(x, " * ", filter, ", stride ", o.stride, o.same ? ", same" : ", valid"));
  dims y;
  REQUIRE(o.shape(x, filter, y) == op::window_fault::none);
  const any_array image = moderate<T>(x, 1), taps = moderate<T>(filter, 2), dz = moderate<T>(y, 3);
  check(convolution_of<op::conv2d>(o), {image, taps}, filter.elements());
  check(convolution_of<op::conv2d_input_gradient>(o), {dz, taps, image}, filter.elements());
  check(convolution_of<op::conv2d_filter_gradient>(o), {dz, image, taps}, y.elements());
}

template <class T>
void check_pooling(const op::pooling& o, const any_array& x) {
  INFO(str(x.shape(), ", window ", o.window, ", stride ", o.stride, o.same ? ", same" : ", valid"));
  dims y;
  REQUIRE(o.shape(x.shape(), y) == op::window_fault::none);
  const any_array dz = moderate<T>(y, 3);
  auto same = [&]<class Op>(const Op&, const std::vector<any_array>& in) {
    INFO(Op::name);
    const Op with = detail::pooling_of<Op>(o.window, o.stride, o.same);
    CHECK(other_bits(run_op_on_gpu(with, in), run_op(with, in)) == "");
  };
  same(op::max_pool(), {x});
  same(op::avg_pool(), {x});
  same(op::max_pool_gradient(), {dz, x});
  same(op::max_pool_pick(), {moderate<T>(x.shape(), 4), x});
  same(op::avg_pool_gradient(), {dz, x});
}

}  // namespace

TEST_CASE_TEMPLATE("convolutions on GPUs agree with the processor's", T, float, double) {
  for (std::int64_t stride : {1, 2, 3})
    for (bool same : {false, true})
      for (const dims& filter : {dims{1, 1}, dims{3, 3}, dims{4, 5}})
        for (const dims& channels : {dims{1, 1}, dims{3, 5}, dims{5, 2}})
          check_convolution<T>({{stride, stride == 3 ? 1 : stride}, same}, {3, 7, 6, channels[0]},
                               {filter[0], filter[1], channels[0], channels[1]});
  for (const auto& [x, filter] : {std::pair<dims, dims>{{0, 4, 4, 2}, {3, 3, 2, 3}},
                                  {{2, 4, 4, 0}, {3, 3, 0, 3}},
                                  {{2, 4, 4, 2}, {3, 3, 2, 0}},
                                  {{2, 0, 4, 2}, {3, 3, 2, 3}},
                                  {{2, 3, 2, 2}, {7, 6, 2, 3}}})
    for (std::int64_t stride : {1, 2}) check_convolution<T>({{stride, stride}, true}, x, filter);
}

TEST_CASE("images whose windows take much memory are convolved a few at a time") {
  check_convolution<float>({{1, 1}, true}, {5, 48, 48, 128}, {5, 5, 128, 2});
}

TEST_CASE_TEMPLATE("poolings on GPUs have the CPU's bits", T, float, double) {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  for (const dims& stride : {dims{1, 1}, dims{2, 2}, dims{3, 1}})
    for (bool same : {false, true})
      for (const dims& window : {dims{1, 1}, dims{2, 2}, dims{3, 4}})
        for (std::int64_t channels : {1, 5, 16}) {
          const dims x{2, 7, 6, channels};
          check_pooling<T>({window, stride, same}, moderate<T>(x, 1));
          check_pooling<T>({window, stride, same}, filled<T>(x, {nan, 1, 2, nan, inf, 3, 0}));
          check_pooling<T>({window, stride, same}, filled<T>(x, {0, 1, 1, 0, -T(0)}));
        }
  check_pooling<T>({{2, 2}, {2, 2}, true}, any_array(dtype_of<T>, {0, 4, 4, 2}));
  check_pooling<T>({{2, 2}, {2, 2}, true}, any_array(dtype_of<T>, {2, 4, 4, 0}));
}
