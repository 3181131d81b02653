// SPDX-License-Identifier: Apache-2.0
// tests/train/differences.hpp: gradients against central differences.
#pragma once
#include <cmath>
#include <deft/deft.hpp>
#include <functional>
#include <vector>

#include "kernels/arrays.hpp"
#include "op/modeling.hpp"

namespace testing {

/// Different numbers of moderate size.
inline deft::any_array numbers(const deft::dims& shape, double first = 0.3, double step = 0.17) {
  deft::any_array a(deft::dtype::float64, shape);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.mutable_data<double>()[i] = first + step * static_cast<double>((i * 7) % 11 - 5);
  return a;
}

/// A placeholder or variable of double, and its value.
struct point {
  deft::any_tensor x;
  deft::any_array value;
};
inline std::vector<deft::feed_value> feeds_of(const std::vector<point>& at) {
  std::vector<deft::feed_value> all;
  for (const point& p : at) all.push_back(feed(p.x, p.value));
  return all;
}

/// Compares the gradients of a weighted sum of `y` by all of `at` with central differences.
inline void check_differences(const deft::any_tensor& y, std::vector<point> at) {
  using deft::any_tensor;
  const any_tensor loss = sum(y * y * 0.5 + y);
  std::vector<any_tensor> xs;
  for (const point& p : at) xs.push_back(p.x);
  const std::vector<any_tensor> gradients = deft::ext::plan::gradients(loss, xs);
  deft::session s;
  const auto value = [&] {
    return *std::get<0>(s.run(loss, xs, feeds_of(at))).template data<double>();
  };
  constexpr double h = 1e-5;
  for (std::size_t i = 0; i < at.size(); ++i) {
    CAPTURE(i);
    REQUIRE(gradients[i].valid());
    const deft::any_array exact = std::get<0>(s.run(gradients[i], xs, feeds_of(at)));
    REQUIRE(exact.shape() == at[i].value.shape());
    const deft::any_array kept = at[i].value;
    for (std::int64_t e = 0; e < exact.elements(); ++e) {
      CAPTURE(e);
      at[i].value = kept.clone();
      double& moved = at[i].value.mutable_data<double>()[e];
      moved += h;
      const double above = value();
      at[i].value = kept.clone();
      at[i].value.mutable_data<double>()[e] -= h;
      const double numeric = (above - value()) / (2 * h);
      CHECK(std::abs(numeric - exact.data<double>()[e]) <= 1e-6 * std::max(1., std::abs(numeric)));
    }
    at[i].value = kept;
  }
}

/// Likewise for `write`, a function of tensors of these values, with extents that are known and
/// with a first extent of the first that is not.
inline void check_differences(
    const std::vector<deft::any_array>& values,
    const std::function<deft::any_tensor(const std::vector<deft::any_tensor>&)>& write) {
  for (const bool dynamic : {false, true}) {
    CAPTURE(dynamic);
    own_graph own;
    std::vector<point> at;
    for (const deft::any_array& v : values) {
      deft::dims declared = v.shape();
      if (dynamic && at.empty()) declared[0] = deft::dyn;
      at.push_back({deft::make_placeholder("x", deft::dtype::float64, declared), v});
    }
    std::vector<deft::any_tensor> xs;
    for (const point& p : at) xs.push_back(p.x);
    check_differences(write(xs), at);
  }
}

inline void check_error(const std::function<void()>& f, std::string_view text) {
  const std::string e = error_of(f);
  INFO(e);
  CHECK(e.starts_with(text));
}

}  // namespace testing
