// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/team.hpp>
#include <deft/op/conv2d.hpp>

#include "arrays.hpp"
#include "run_kernel.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

/// A convolution of these extents.
struct example {
  dims x, filter;
  std::int64_t stride;
  bool same;

  op::convolution with() const {
    op::convolution o;
    o.stride = {stride, stride == 3 ? 1 : stride};
    o.same = same;
    return o;
  }
  template <class Op>
  Op as() const {
    Op o;
    static_cast<op::convolution&>(o) = with();
    return o;
  }
  dims result() const {
    dims out;
    REQUIRE(with().shape(x, filter, out) == op::window_fault::none);
    return out;
  }
  std::string text() const {
    return str(x, " * ", filter, ", stride ", with().stride, same ? ", same" : ", valid");
  }
};

/// Calls f(at x, at filter, at y) for every product of a convolution, by TensorFlow's rule: where
/// `same` needs an odd number of zeros, one more follows than goes before.
template <class F>
void each_product(const example& e, F f) {
  const dims y = e.result(), stride = e.with().stride;
  std::int64_t before[2] = {};
  for (int a = 0; a < 2; ++a)
    if (e.same)
      before[a] =
          std::max<std::int64_t>(0, (y[1 + a] - 1) * stride[a] + e.filter[a] - e.x[1 + a]) / 2;
  std::int64_t out = 0;
  for (std::int64_t b = 0; b < y[0]; ++b)
    for (std::int64_t i = 0; i < y[1]; ++i)
      for (std::int64_t j = 0; j < y[2]; ++j)
        for (std::int64_t k = 0; k < y[3]; ++k, ++out)
          for (std::int64_t r = 0; r < e.filter[0]; ++r)
            for (std::int64_t s = 0; s < e.filter[1]; ++s) {
              const std::int64_t h = i * stride[0] + r - before[0],
                                 w = j * stride[1] + s - before[1];
              if (h < 0 || h >= e.x[1] || w < 0 || w >= e.x[2]) continue;
              for (std::int64_t c = 0; c < e.x[3]; ++c)
                f(((b * e.x[1] + h) * e.x[2] + w) * e.x[3] + c,
                  ((r * e.filter[1] + s) * e.x[3] + c) * y[3] + k, out);
            }
}

/// Sums of the products a[i] * b[j], where f calls add(i, j, k) for each of element k.
template <class T, class F>
any_array sums(const dims& shape, const any_array& a, const any_array& b, F f) {
  std::vector<long double> s(static_cast<std::size_t>(shape.elements()));
  f([&](std::int64_t i, std::int64_t j, std::int64_t k) {
    s[static_cast<std::size_t>(k)] +=
        static_cast<long double>(a.data<T>()[i]) * static_cast<long double>(b.data<T>()[j]);
  });
  any_array out(dtype_of<T>, shape);
  for (std::size_t i = 0; i < s.size(); ++i) out.mutable_data<T>()[i] = static_cast<T>(s[i]);
  return out;
}

template <class T>
void check(const example& e) {
  INFO(e.text());
  const dims y = e.result();
  const any_array x = moderate<T>(e.x, 1), filter = moderate<T>(e.filter, 2),
                  dz = moderate<T>(y, 3);
  const auto terms = [](std::int64_t n) {
    return 4 * static_cast<double>(std::max<std::int64_t>(1, n));
  };
  CHECK(difference(run_op(e.as<op::conv2d>(), {x, filter}),
                   sums<T>(y, x, filter, [&](auto add) { each_product(e, add); }), 4,
                   terms(e.filter.elements())) == "");
  CHECK(difference(run_op(e.as<op::conv2d_input_gradient>(), {dz, filter, x}),
                   sums<T>(e.x, dz, filter,
                           [&](auto add) {
                             each_product(e, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
                               add(k, j, i);
                             });
                           }),
                   4, terms(e.filter.elements())) == "");
  CHECK(difference(run_op(e.as<op::conv2d_filter_gradient>(), {dz, x, filter}),
                   sums<T>(e.filter, dz, x,
                           [&](auto add) {
                             each_product(e, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
                               add(k, i, j);
                             });
                           }),
                   4, terms(y.elements())) == "");
}

}  // namespace

TEST_CASE_TEMPLATE("convolutions and their gradients agree with naive loops", T, float, double) {
  for (std::int64_t stride : {1, 2, 3})
    for (bool same : {false, true})
      for (const dims& size : {dims{7, 6}, dims{5, 9}, dims{4, 5}})
        for (const dims& filter : {dims{1, 1}, dims{2, 3}, dims{3, 3}, dims{4, 1}, dims{4, 5}})
          for (const dims& channels : {dims{1, 1}, dims{3, 2}, dims{5, 4}, dims{2, 5}})
            check<T>({{2, size[0], size[1], channels[0]},
                      {filter[0], filter[1], channels[0], channels[1]},
                      stride,
                      same});
}

TEST_CASE_TEMPLATE("channels fill several panels", T, float, double) {
  for (std::int64_t outputs : {8, 16, 17, 33, 64, 65, 100, 130})
    for (std::int64_t channels : {3, 40, 67})
      check<T>({{3, 5, 4, channels}, {3, 2, channels, outputs}, 1 + outputs % 2, true});
}

TEST_CASE_TEMPLATE("few outputs, or channels, of long windows", T, float, double) {
  for (std::int64_t few : {1, 2, 4, 5})
    for (std::int64_t many : {8, 19, 32})
      for (std::int64_t stride : {1, 2})
        for (bool same : {false, true}) {
          check<T>({{2, 7, 6, many}, {3, 2, many, few}, stride, same});
          check<T>({{2, 7, 6, few}, {3, 2, few, many}, stride, same});
        }
}

TEST_CASE("large images are computed in bands") {
  check<float>({{1, 70, 50, 24}, {5, 3, 24, 20}, 1, true});
  check<float>({{2, 90, 61, 16}, {3, 3, 16, 40}, 2, false});
}

TEST_CASE("filters may be larger than images that are padded, and extents may be 0") {
  for (std::int64_t stride : {1, 2, 3}) check<float>({{2, 3, 2, 2}, {7, 6, 2, 3}, stride, true});
  for (const auto& [x, filter] : {std::pair<dims, dims>{{0, 4, 4, 2}, {3, 3, 2, 3}},
                                  {{2, 4, 4, 0}, {3, 3, 0, 3}},
                                  {{2, 4, 4, 2}, {3, 3, 2, 0}}})
    for (std::int64_t stride : {1, 3}) check<float>({x, filter, stride, true});
  check<float>({{2, 0, 4, 2}, {3, 3, 2, 3}, 1, true});
}

TEST_CASE("convolutions have the same bits for any number of threads") {
  for (const example& e : {example{{9, 28, 28, 1}, {5, 5, 1, 32}, 1, true},
                           example{{7, 14, 14, 32}, {5, 5, 32, 64}, 1, true},
                           example{{2, 20, 20, 128}, {3, 3, 128, 260}, 2, true}}) {
    const any_array x = moderate<float>(e.x, 1), filter = moderate<float>(e.filter, 2),
                    dz = moderate<float>(e.result(), 3);
    any_array first[3];
    for (int threads : {1, 2, 4}) {
      set_intra_op_threads(threads);
      const any_array got[] = {run_op(e.as<op::conv2d>(), {x, filter}),
                               run_op(e.as<op::conv2d_input_gradient>(), {dz, filter, x}),
                               run_op(e.as<op::conv2d_filter_gradient>(), {dz, x, filter})};
      for (int i = 0; i < 3; ++i) {
        if (!first[i].valid()) first[i] = got[i];
        CHECK(identical(got[i], first[i]));
      }
    }
    set_intra_op_threads(0);
  }
}
