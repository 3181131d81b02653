// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/team.hpp>
#include <deft/op/avg_pool.hpp>
#include <deft/op/max_pool.hpp>

#include "arrays.hpp"
#include "run_kernel.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

struct example {
  dims x, window, stride;
  bool same;

  template <class Op>
  Op as() const {
    return detail::pooling_of<Op>(window, stride, same);
  }
  dims result() const {
    dims out;
    REQUIRE(as<op::max_pool>().shape(x, out) == op::window_fault::none);
    return out;
  }
  std::string text() const {
    return str(x, ", window ", window, ", stride ", stride, same ? ", same" : ", valid");
  }
};

/// Calls f(at y, places in x) for every window of every channel, by TensorFlow's rule of padding.
template <class F>
void each_window(const example& e, F f) {
  const dims y = e.result();
  std::int64_t out = 0;
  for (std::int64_t b = 0; b < y[0]; ++b)
    for (std::int64_t i = 0; i < y[1]; ++i)
      for (std::int64_t j = 0; j < y[2]; ++j)
        for (std::int64_t c = 0; c < y[3]; ++c, ++out) {
          std::vector<std::int64_t> places;
          const std::int64_t at[] = {i, j};
          std::int64_t first[2];
          for (int a = 0; a < 2; ++a) {
            const std::int64_t zeros =
                std::max<std::int64_t>(0, (y[1 + a] - 1) * e.stride[a] + e.window[a] - e.x[1 + a]);
            first[a] = at[a] * e.stride[a] - (e.same ? zeros / 2 : 0);
          }
          for (std::int64_t h = first[0]; h < first[0] + e.window[0]; ++h)
            for (std::int64_t w = first[1]; w < first[1] + e.window[1]; ++w)
              if (h >= 0 && h < e.x[1] && w >= 0 && w < e.x[2])
                places.push_back(((b * e.x[1] + h) * e.x[2] + w) * e.x[3] + c);
          REQUIRE(!places.empty());
          f(out, places);
        }
}

/// The first of the largest elements, or the first NaN.
template <class T>
std::int64_t first_largest(const any_array& x, const std::vector<std::int64_t>& places) {
  std::int64_t best = places[0];
  for (auto p : places) {
    const T v = x.data<T>()[p], most = x.data<T>()[best];
    if (most == most && (v > most || v != v)) best = p;
  }
  return best;
}

template <class T>
void check(const example& e, const any_array& x) {
  INFO(e.text());
  const dims y = e.result();
  const any_array dz = moderate<T>(y, 3), u = moderate<T>(e.x, 4);
  any_array picked(dtype_of<T>, y), largest(dtype_of<T>, y), mean(dtype_of<T>, y),
      to_largest(dtype_of<T>, e.x), to_mean(dtype_of<T>, e.x), of_row(dtype_of<T>, e.x);
  for (any_array* a : {&to_largest, &to_mean, &of_row})
    std::fill_n(a->mutable_data<T>(), e.x.elements(), T(0));
  // What an average gives back is added over the windows of a row first.
  const auto end_row = [&] {
    for (std::int64_t p = 0; p < e.x.elements(); ++p) {
      to_mean.mutable_data<T>()[p] += of_row.data<T>()[p];
      of_row.mutable_data<T>()[p] = 0;
    }
  };
  each_window(e, [&](std::int64_t i, const std::vector<std::int64_t>& places) {
    const std::int64_t best = first_largest<T>(x, places);
    largest.mutable_data<T>()[i] = x.data<T>()[best];
    picked.mutable_data<T>()[i] = u.data<T>()[best];
    to_largest.mutable_data<T>()[best] += dz.data<T>()[i];
    T sum = 0;
    for (auto p : places) {
      sum += x.data<T>()[p];
      of_row.mutable_data<T>()[p] += dz.data<T>()[i] / static_cast<T>(places.size());
    }
    mean.mutable_data<T>()[i] = sum / static_cast<T>(places.size());
    if ((i + 1) % (y[2] * y[3]) == 0) end_row();
  });
  // The order of additions is the same, too.
  CHECK(other_bits(run_op(e.as<op::max_pool>(), {x}), largest) == "");
  CHECK(other_bits(run_op(e.as<op::avg_pool>(), {x}), mean) == "");
  CHECK(other_bits(run_op(e.as<op::max_pool_gradient>(), {dz, x}), to_largest) == "");
  CHECK(other_bits(run_op(e.as<op::avg_pool_gradient>(), {dz, x}), to_mean) == "");
  CHECK(other_bits(run_op(e.as<op::max_pool_pick>(), {u, x}), picked) == "");
}

}  // namespace

TEST_CASE_TEMPLATE("poolings and their gradients agree with naive loops", T, float, double) {
  for (const dims& stride : {dims{1, 1}, dims{2, 2}, dims{3, 1}})
    for (bool same : {false, true})
      for (const dims& size : {dims{7, 6}, dims{5, 9}, dims{3, 4}})
        for (const dims& window : {dims{1, 1}, dims{2, 2}, dims{3, 2}, dims{3, 4}})
          for (std::int64_t channels : {1, 3, 5, 8, 16, 21, 40}) {
            const dims x{2, size[0], size[1], channels};
            check<T>({x, window, stride, same}, moderate<T>(x, 1));
          }
  check<T>({{0, 4, 4, 2}, {2, 2}, {2, 2}, false}, any_array(dtype_of<T>, {0, 4, 4, 2}));
  check<T>({{2, 4, 4, 0}, {2, 2}, {2, 2}, true}, any_array(dtype_of<T>, {2, 4, 4, 0}));
}

TEST_CASE_TEMPLATE("NaN propagates, and ties go to the first", T, float, double) {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  for (std::int64_t channels : {1, 7, 19}) {
    const dims shape{2, 6, 6, channels};
    for (const auto& few :
         {std::vector<T>{0, 1, 1, 0, 2}, std::vector<T>{nan, 1, 2, nan, inf, 3, 0},
          std::vector<T>{-inf}, std::vector<T>{T(0), -T(0)}})
      for (bool same : {false, true})
        check<T>({shape, {3, 3}, {2, 2}, same}, filled<T>(shape, few));
  }
}

TEST_CASE("poolings have the same bits for any number of threads") {
  const example e{{9, 28, 28, 20}, {3, 3}, {2, 2}, true};
  const any_array x = moderate<float>(e.x, 1), dz = moderate<float>(e.result(), 2);
  any_array first[4];
  for (int threads : {1, 2, 4}) {
    set_intra_op_threads(threads);
    const any_array got[] = {run_op(e.as<op::max_pool>(), {x}), run_op(e.as<op::avg_pool>(), {x}),
                             run_op(e.as<op::max_pool_gradient>(), {dz, x}),
                             run_op(e.as<op::avg_pool_gradient>(), {dz, x})};
    for (int i = 0; i < 4; ++i) {
      if (!first[i].valid()) first[i] = got[i];
      CHECK(identical(got[i], first[i]));
    }
  }
  set_intra_op_threads(0);
}
