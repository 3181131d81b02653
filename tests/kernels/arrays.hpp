// SPDX-License-Identifier: Apache-2.0
// tests/kernels/arrays.hpp: values for kernels, and how their results are compared.
#pragma once
#include <cmath>
#include <cstring>
#include <deft/core/any_array.hpp>
#include <deft/core/philox.hpp>
#include <limits>
#include <vector>

namespace testing {

using deft::any_array;
using deft::dims;
using deft::dtype;

/// Extreme values first, then numbers of every size; they depend on `seed` alone.
template <class T>
std::vector<T> values(std::int64_t n, std::uint64_t seed = 1) {
  deft::ext::philox_stream random(seed);
  std::vector<T> v;
  using limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>)
    v = {true, false};
  else if constexpr (deft::ext::is_floating_type<T>)
    v = {T(0),
         -T(0),
         limits::infinity(),
         -limits::infinity(),
         limits::quiet_NaN(),
         limits::max(),
         limits::lowest(),
         limits::min(),
         limits::denorm_min(),
         T(1),
         T(-1)};
  else
    v = {T(0), T(1), limits::max(), limits::min(), T(-1), T(2)};
  // The seed decides which extremes are paired.
  for (std::size_t i = v.size(); i-- > 1;) {
    const std::size_t j = random.below(i + 1);
    const T t = v[i];
    v[i] = v[j], v[j] = t;
  }
  while (static_cast<std::int64_t>(v.size()) < n) {
    if constexpr (std::is_same_v<T, bool>)
      v.push_back(random.below(2) == 1);
    else if constexpr (deft::ext::is_floating_type<T>)
      v.push_back(
          static_cast<T>((random.uniform() - 0.5f) * std::pow(10.f, random.uniform(-3, 3))));
    else
      v.push_back(static_cast<T>(random.word() >> random.below(32)));
  }
  v.resize(static_cast<std::size_t>(n));
  return v;
}

template <class T>
any_array filled(const dims& shape, const std::vector<T>& from) {
  any_array a(deft::dtype_of<T>, shape);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.mutable_data<T>()[i] = from[static_cast<std::size_t>(i) % from.size()];
  return a;
}
/// Random elements of moderate size, without extremes.
template <class T>
any_array moderate(const dims& shape, std::uint64_t seed = 1) {
  deft::ext::philox_stream random(seed);
  any_array a(deft::dtype_of<T>, shape);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.mutable_data<T>()[i] = deft::ext::is_floating_type<T>
                                 ? static_cast<T>(random.uniform(-2, 2))
                                 : static_cast<T>(random.below(std::is_same_v<T, bool> ? 2 : 100));
  return a;
}
template <class T>
any_array array_of(const dims& shape, const std::vector<T>& v) {
  return filled(shape, v);
}

/// Equal within `ulps` units in the last place, of `least` where the numbers are smaller; NaN
/// equals NaN.
template <class T>
bool close(T a, T b, double ulps, double least = 0) {
  if constexpr (deft::ext::is_floating_type<T>) {
    if (a != a || b != b) return a != a && b != b;
    if (std::isinf(a) || std::isinf(b)) return a == b;
    using wide = deft::ext::lane_type<T>;
    const wide size = std::max<wide>(
        {std::abs(a), std::abs(b), std::numeric_limits<T>::min(), static_cast<wide>(least)});
    return static_cast<double>(std::abs(a - b)) <=
           ulps * static_cast<double>(size) * std::numeric_limits<T>::epsilon();
  } else
    return a == b;
}

/// The first index where two arrays differ by more than `ulps`, with both values; "" for none.
inline std::string difference(const any_array& a, const any_array& b, double ulps = 0,
                              double least = 0) {
  if (a.type() != b.type() || !(a.shape() == b.shape()))
    return deft::ext::str(a.type(), a.shape(), " and ", b.type(), b.shape());
  return deft::ext::visit_dtype(a.type(), [&]<class T>() {
    for (std::int64_t i = 0; i < a.elements(); ++i) {
      const T x = a.data<T>()[i], y = b.data<T>()[i];
      if (!close(x, y, ulps, least)) return deft::ext::str("at ", i, ": ", x, " and ", y);
    }
    return std::string();
  });
}

/// Whether all bits are the same.
inline bool identical(const any_array& a, const any_array& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

/// "" if all bits are the same, except those of NaN.
inline std::string other_bits(const any_array& a, const any_array& b) {
  if (a.type() != b.type() || !(a.shape() == b.shape())) return "another shape";
  return deft::ext::visit_dtype(a.type(), [&]<class T>() {
    for (std::int64_t i = 0; i < a.elements(); ++i) {
      const T x = a.data<T>()[i], y = b.data<T>()[i];
      if (!(x != x && y != y) && std::memcmp(&x, &y, sizeof x) != 0)
        return deft::ext::str("at ", i, ": ", x, " and ", y);
    }
    return std::string();
  });
}

/// An element of `a` as double, at an index of its broadcast shape `out`.
struct broadcast_index {
  std::vector<std::int64_t> offset;  ///< into a, for each element of out in order
  broadcast_index(const dims& a, const dims& out) {
    const std::int64_t n = out.elements();
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t rest = i, at = 0, stride = 1;
      for (int d = out.rank(); d-- > 0;) {
        const int own = d - (out.rank() - a.rank());
        const std::int64_t k = rest % out[d];
        rest /= out[d];
        if (own < 0) continue;
        if (a[own] != 1) at += k * stride;
        stride *= a[own];
      }
      offset.push_back(at);
    }
  }
};

}  // namespace testing
