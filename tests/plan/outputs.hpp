// SPDX-License-Identifier: Apache-2.0
// What a run gave, and where two runs differ in a bit.
#pragma once
#include <cstring>
#include <deft/core/philox.hpp>
#include <deft/expr.hpp>
#include <string>
#include <vector>

namespace testing {

using namespace deft;
using namespace deft::ext;

using outputs = std::vector<any_array>;

inline any_array values_for(const any_tensor& t, const dims& shape, std::uint64_t seed) {
  philox_stream random(seed);
  any_array a(t.handle().type().type, shape);
  visit_dtype(a.type(), [&]<class T>() {
    for (std::int64_t i = 0; i < a.elements(); ++i) {
      const float v = random.uniform(-1, 1);
      a.mutable_data<T>()[i] = static_cast<T>(deft::ext::is_floating_type<T> ? v : v * 9 + 9);
    }
  });
  return a;
}

/// The first difference, or an empty text; NaNs are equal.
inline std::string difference(const outputs& a, const outputs& b) {
  for (std::size_t o = 0; o < a.size(); ++o) {
    if (a[o].shape() != b[o].shape()) return str(o, ": ", a[o].shape(), " and ", b[o].shape());
    std::string found = visit_dtype(a[o].type(), [&]<class T>() -> std::string {
      for (std::int64_t i = 0; i < a[o].elements(); ++i) {
        const T x = a[o].data<T>()[i], y = b[o].data<T>()[i];
        if (std::memcmp(&x, &y, sizeof x) != 0 && (x == x || y == y))
          return str("fetch ", o, " at ", i, ": ", x, " and ", y);
      }
      return {};
    });
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace testing
