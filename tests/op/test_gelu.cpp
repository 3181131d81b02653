// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deft/deft.hpp>
#include <functional>
#include <limits>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::own_graph;

namespace {

using real = long double;

real normal(real x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(real(-1))); }
real below(real x) { return std::erfc(-x / std::sqrt(real(2))) / 2; }
real logistic(real x) { return 1 / (1 + std::exp(-x)); }

/// A function of one number: as deft writes it, and as long double computes it, with its first and
/// second derivatives.
struct activation {
  const char* name;
  std::function<any_tensor(const any_tensor&)> written;
  std::function<real(real)> value, first, second;
  double at_minus_infinity, at_infinity;
};

const activation activations[] = {
    {"erf", [](const any_tensor& x) { return erf(x); }, [](real x) { return std::erf(x); },
     [](real x) { return 2 * std::sqrt(real(2)) * normal(x * std::sqrt(real(2))); },
     [](real x) { return -4 * x * std::sqrt(real(2)) * normal(x * std::sqrt(real(2))); }, -1, 1},
    {"normal_cdf", [](const any_tensor& x) { return normal_cdf(x); }, below, normal,
     [](real x) { return -x * normal(x); }, 0, 1},
    {"gelu", [](const any_tensor& x) { return gelu(x); }, [](real x) { return x * below(x); },
     [](real x) { return below(x) + x * normal(x); },
     [](real x) { return (2 - x * x) * normal(x); }, 0, INFINITY},
    {"silu", [](const any_tensor& x) { return silu(x); }, [](real x) { return x * logistic(x); },
     [](real x) { return logistic(x) * (1 + x * logistic(-x)); },
     [](real x) { return logistic(x) * logistic(-x) * (2 + x * (logistic(-x) - logistic(x))); }, 0,
     INFINITY},
    {"softplus", [](const any_tensor& x) { return softplus(x); },
     [](real x) { return std::max<real>(x, 0) + std::log1p(std::exp(-std::abs(x))); }, logistic,
     [](real x) { return logistic(x) * logistic(-x); }, 0, INFINITY},
    {"log1p", [](const any_tensor& x) { return log1p(softplus(x)); },
     [](real x) { return std::log1p(std::max<real>(x, 0) + std::log1p(std::exp(-std::abs(x)))); },
     nullptr, nullptr, 0, INFINITY},
};

/// What the session makes of a tensor of so many elements.
template <class T>
ndarray<T, dyn> fetched(session& s, const any_tensor& y, const any_tensor& x,
                        const ndarray<T, dyn>& values) {
  return ndarray<T, dyn>(s.run(y, feed(x, values)));
}

template <class T>
double worst_error(const ndarray<T, dyn>& got, const ndarray<T, dyn>& x,
                   const std::function<real(real)>& right, T& where) {
  double worst = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const real r = right(x(i));
    const real unit = std::max<real>(std::abs(r) * std::numeric_limits<T>::epsilon(),
                                     std::numeric_limits<T>::denorm_min());
    const auto e = static_cast<double>(std::abs(got(i) - r) / unit);
    if (!(e <= worst)) worst = e, where = x(i);
  }
  return worst;
}

template <class T>
ndarray<T, dyn> sweep(double low, double high, std::int64_t n) {
  any_array a(dtype_of<T>, {n});
  for (std::int64_t i = 0; i < n; ++i)
    a.mutable_data<T>()[i] =
        static_cast<T>(low + (high - low) * static_cast<double>(i) / static_cast<double>(n - 1));
  return ndarray<T, dyn>(std::move(a));
}

}  // namespace

TEST_CASE_TEMPLATE("activations are accurate to a few units in the last place", T, float, double) {
  const bool single = std::is_same_v<T, float>;
  for (const auto& a : activations) {
    CAPTURE(a.name);
    own_graph own;
    session s;
    const any_tensor x = make_placeholder("x", dtype_of<T>, {dyn});
    const any_tensor y = a.written(x);
    // Of x times a probability, the second may be denormal where their product is not.
    const std::pair<ndarray<T, dyn>, double> sweeps[] = {
        {sweep<T>(-3, 3, 20'001), 4.5},
        {sweep<T>(-1e-3, 1e-3, 999), 4.5},
        {sweep<T>(single ? -100 : -740, 100, 20'001), 40},
        {sweep<T>(-13, 13, 20'001), 4.5}};
    for (const auto& [v, most] : sweeps) {
      T where = 0;
      const double worst = worst_error(fetched(s, y, x, v), v, a.value, where);
      CAPTURE(where);
      CHECK(worst <= most);
    }
  }
}

TEST_CASE_TEMPLATE("activations of what is not finite, or far from 0", T, float, double) {
  const T inf = std::numeric_limits<T>::infinity(), most = std::numeric_limits<T>::max(),
          nan = std::numeric_limits<T>::quiet_NaN();
  for (const auto& a : activations) {
    CAPTURE(a.name);
    own_graph own;
    session s;
    const any_tensor x = make_placeholder("x", dtype_of<T>, {dyn});
    const any_tensor y = a.written(x), dy = std::get<0>(gradients(sum(y), x)),
                     ddy = std::get<0>(gradients(sum(dy), x));
    const ndarray<T, dyn> far{-inf, inf, nan, -most, most, -1000, 1000, -40, 0};
    const auto v = fetched(s, y, x, far);
    CHECK(v(0) == static_cast<T>(a.at_minus_infinity));
    CHECK(v(1) == static_cast<T>(a.at_infinity));
    CHECK(v(2) != v(2));
    CHECK(v(3) == static_cast<T>(a.at_minus_infinity));
    if (std::isinf(a.at_infinity) && std::string_view(a.name) != "log1p") CHECK(v(4) == most);
    if (!a.first) continue;
    CHECK(v(5) == static_cast<T>(a.at_minus_infinity));
    CHECK(v(6) == static_cast<T>(std::isinf(a.at_infinity) ? 1000 : a.at_infinity));
    CHECK(std::abs(v(7) - static_cast<T>(a.at_minus_infinity)) < 1e-15);
    CHECK(v(8) == static_cast<T>(a.value(0)));
    const auto d = fetched(s, dy, x, far), dd = fetched(s, ddy, x, far);
    for (int i : {0, 1, 3, 4, 5, 6}) {
      CAPTURE(i);
      const bool rises = far(i) > 0 && std::isinf(a.at_infinity);
      CHECK(d(i) == (rises ? 1 : 0));
      CHECK(dd(i) == 0);
    }
    CHECK(d(2) != d(2));
  }
}

TEST_CASE("activations have first and second derivatives") {
  for (const auto& a : activations) {
    if (!a.first) continue;
    CAPTURE(a.name);
    own_graph own;
    session s;
    const any_tensor x = make_placeholder("x", dtype::float64, {dyn});
    const any_tensor y = a.written(x), dy = std::get<0>(gradients(sum(y), x)),
                     ddy = std::get<0>(gradients(sum(dy), x));
    const auto v = sweep<double>(-9, 9, 1801);
    const auto d = fetched(s, dy, x, v), dd = fetched(s, ddy, x, v);
    for (std::int64_t i = 0; i < v.size(); ++i) {
      CAPTURE(v(i));
      CHECK(std::abs(d(i) - a.first(v(i))) <= 1e-15);
      CHECK(std::abs(dd(i) - a.second(v(i))) <= 3e-15);
    }
  }
}

TEST_CASE_FIXTURE(own_graph, "gelu's approximation by tanh") {
  placeholder<float, 6> x("x");
  session s;
  // torch.nn.functional.gelu(x, approximate="tanh")
  const auto v = s.run(gelu_tanh(x), x = {-INFINITY, -3, -1, 0.5, 2, INFINITY});
  const double expected[] = {0, -0.0036373920817729943, -0.15880800939172324, 0.345714009866,
                             1.954597694087775};
  for (int i = 0; i < 5; ++i) CHECK(v(i) == doctest::Approx(expected[i]).epsilon(2e-6));
  CHECK(v(5) == INFINITY);
  const auto [slope] = gradients(sum(gelu_tanh(x)), x);
  const ndarray<float, 6> far{-3e38f, -1e20f, -100, 100, 1e20f, 3e38f};
  const auto [values, d] = s.run(gelu_tanh(x), slope, x = far);
  for (int i = 0; i < 6; ++i) {
    CHECK(values(i) == std::max(far(i), 0.f));
    CHECK(d(i) == (far(i) > 0 ? 1 : 0));
  }
}

TEST_CASE_FIXTURE(own_graph, "sigmoid cross entropy is stable") {
  placeholder<float, dyn> x("x"), z("z");
  const auto loss = sigmoid_cross_entropy(x, z);
  const auto [dx, dz] = gradients(sum(loss), x, z);
  const auto [ddx] = gradients(sum(dx), x);
  session s;
  const ndarray<float, dyn> logits{0, 1000, -1000, 1000, -1000, 20, 2, -2, INFINITY, -INFINITY},
      labels{0.5, 1, 0, 0, 1, 1, 0.25, 0.25, 1, 0};
  const auto [l, d, e, dd] = s.run(loss, dx, dz, ddx, x = logits, z = labels);
  for (std::int64_t i = 0; i < 10; ++i) {
    CAPTURE(i);
    const real a = std::isinf(logits(i)) ? std::copysign(real(20'000), logits(i)) : logits(i),
               b = labels(i);
    const real w = a < 0 ? -b : 1 - b;
    CHECK(l(i) == doctest::Approx(static_cast<double>(w * a + std::log1p(std::exp(-std::abs(a)))))
                      .epsilon(1e-6));
    const real gradient = a < 0 ? logistic(a) - b : (1 - b) - logistic(-a);
    CHECK(d(i) == doctest::Approx(static_cast<double>(gradient)).epsilon(1e-6));
    CHECK(e(i) == -logits(i));
    CHECK(dd(i) == doctest::Approx(static_cast<double>(logistic(a) * logistic(-a))).epsilon(1e-6));
  }
  CHECK(l(5) > 0);  // 2e-9, as a logarithm of 1 would not be
  CHECK(d(5) < 0);
}
