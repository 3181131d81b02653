// SPDX-License-Identifier: Apache-2.0
// However an expression is computed, it has the same bits: products are not fused with sums.
#include <deft/deft.hpp>

#include "arrays.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

constexpr std::int64_t n = 1003;

/// Compares bits; NaNs are equal.
template <class T>
std::string bits_differ(const any_array& a, const any_array& b) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T x = a.data<T>()[i], y = b.data<T>()[i];
    if (std::memcmp(&x, &y, sizeof x) != 0 && (x == x || y == y))
      return str("at ", i, ": ", x, " and ", y);
  }
  return {};
}

/// The values of f(x, y, z): by its compiled kernel, by a program without one, by a kernel for each
/// operation, and as a constant.
template <class T, class F>
void check(std::string what, F f, bool extremes) {
  INFO(what << " of " << to_string(dtype_of<T>));
  using V = ndarray<T, n>;
  graph own;
  graph_scope in = as_default(own);
  any_array values_of[3];
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    values_of[seed - 1] = extremes ? filled<T>({n}, values<T>(n, seed)) : moderate<T>({n}, seed);
  placeholder<T, n> x("x"), y("y"), z("z");
  auto run = [&](session& s, const any_tensor& t) {
    return s.run(t, x = V(values_of[0]), y = V(values_of[1]), z = V(values_of[2]));
  };
  session fused, plain({.fold = false, .fuse = false}), folding;
  const auto typed = f(x, y, z);
  using R = typename decltype(f(x, y, z))::value_type;
  const any_tensor apart = f(any_tensor(x), any_tensor(y), any_tensor(z));
  const any_array compiled = run(fused, typed);
  CHECK(bits_differ<R>(compiled, run(plain, apart)) == "");
  any_tensor other = apart;
  if constexpr (std::is_same_v<R, T>) other = -(-apart);
  CHECK(bits_differ<R>(compiled, run(fused, other)) == "");
  const any_array constants =
      folding.run(f(constant(values_of[0]), constant(values_of[1]), constant(values_of[2])));
  CHECK(bits_differ<R>(compiled, constants) == "");
}

template <class T>
void check_all(bool extremes) {
  auto c = [&](const char* what, auto f) { check<T>(what, f, extremes); };
  c("x * y + z", [](auto x, auto y, auto z) { return x * y + z; });
  c("x * y - z", [](auto x, auto y, auto z) { return x * y - z; });
  c("z - x * y", [](auto x, auto y, auto z) { return z - x * y; });
  c("-(x * y) + z", [](auto x, auto y, auto z) { return -(x * y) + z; });
  c("x * y + y * z", [](auto x, auto y, auto z) { return x * y + y * z; });
  c("square(x) - y * z", [](auto x, auto y, auto z) { return square(x) - y * z; });
  c("((x * y + z) * y + z) * y + x",
    [](auto x, auto y, auto z) { return ((x * y + z) * y + z) * y + x; });
  c("where(x < y, x * y, z) - x * z",
    [](auto x, auto y, auto z) { return where(x < y, x * y, z) - x * z; });
  c("exp(x) * y - z", [](auto x, auto y, auto z) { return exp(x) * y - z; });
  c("exp(x) - exp(y) * z", [](auto x, auto y, auto z) { return exp(x) - exp(y) * z; });
  c("tanh(x * y) * z + x", [](auto x, auto y, auto z) { return tanh(x * y) * z + x; });
  c("sigmoid(x) * y + log(z)", [](auto x, auto y, auto z) { return sigmoid(x) * y + log(z); });
  c("where(x < y, cast<uint8>((z + y) - z * 3), cast<uint8>(x))", [](auto x, auto y, auto z) {
    return where(x < y, cast<std::uint8_t>((z + y) - z * 3), cast<std::uint8_t>(x));
  });
}

}  // namespace

TEST_CASE_TEMPLATE("kernels, programs, single operations and constants give the same bits", T,
                   float, double) {
  check_all<T>(false);
  check_all<T>(true);
}
