// SPDX-License-Identifier: Apache-2.0
#include <deft/core/num_lane.hpp>
#include <deft/core/num_text.hpp>
#include <deft/kernels/gpu/divider.hpp>
#include <deft/kernels/gpu/fault.hpp>
#include <deft/kernels/gpu/prelude.hpp>

#include <cstring>
#include <functional>
#include <memory>

#include "../arrays.hpp"
#include "testing.hpp"
// Must come after doctest.
#include "host_cuda.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

// One for each function of core/num.hpp, and combinations of several.
#define BODY1(name, expression)     \
  struct name {                     \
    static constexpr int arity = 1; \
    template <class V>              \
    auto operator()(V x) const {    \
      return expression;            \
    }                               \
  };
#define BODY2(name, expression)       \
  struct name {                       \
    static constexpr int arity = 2;   \
    template <class V>                \
    auto operator()(V x, V y) const { \
      return expression;              \
    }                                 \
  };
BODY2(adds, x + y)
BODY2(subtracts, x - y)
BODY2(multiplies, x* y)
BODY2(divides, x / y)
BODY2(remains, x % y)
BODY1(negates, -x)
BODY1(exponential, num::exp(x))
BODY1(exponential1, num::expm1(x))
BODY1(logarithm, num::log(x))
BODY1(logarithm1, num::log1p(x))
BODY1(error_function, num::erf(x))
BODY1(scaled_tail, num::erfcx(num::abs(x)))
BODY1(tangent, num::tanh(x))
BODY1(sine, num::sin(x))
BODY1(cosine, num::cos(x))
BODY1(root, num::sqrt(x))
BODY2(power, num::pow(x, y))
BODY1(integer, num::floor(x))
BODY1(absolute, num::abs(x))
BODY2(greatest, num::maximum(x, y))
BODY2(least, num::minimum(x, y))
BODY2(below, x < y)
BODY2(above, x > y)
BODY2(at_most, x <= y)
BODY2(at_least, x >= y)
BODY2(same, x == y)
BODY2(different, x != y)
BODY2(both, x&& y)
BODY2(any, x || y)
BODY1(not_so, !x)
BODY2(chosen, num::select(x < y, x, y))
BODY2(constants, num::select(x == 0 || y < 3, 2 - x, y + 100))
BODY1(limited, num::minimum(x, INFINITY) + num::maximum(x, -INFINITY))
BODY1(never, num::select(x < 0, x, NAN))
// A product that the compiler would fuse with the sum if it were not rounded.
BODY2(apart, x* y - x * y + (x * x + y))
template <class To>
struct casts {
  static constexpr int arity = 1;
  template <class V>
  auto operator()(V x) const {
    return num::cast<To>(x);
  }
};
#undef BODY1
#undef BODY2

template <class T>
std::string cuda_name() {
  return std::string(num::math<num::text>::type_name<T>());
}

/// A comparison that runs once everything is compiled.
struct comparison {
  std::string source;
  std::function<void(const host_library&)> check;
};
std::vector<comparison> comparisons;

template <class T>
bool same_bits(T a, T b) {
  if (a != a && b != b) return true;  // the bits of a NaN depend on the processor
  return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class Body, class T>
auto result_of([[maybe_unused]] T a, [[maybe_unused]] T b) {
  if constexpr (Body::arity == 1)
    return Body()(num::lane<lane_type<T>>(a)).v;
  else
    return Body()(num::lane<lane_type<T>>(a), num::lane<lane_type<T>>(b)).v;
}

/// Compares all pairs of some values.
template <class Body, class T>
void compare(const host_library& library, const std::string& name, const std::string& body) {
  using R = decltype(result_of<Body>(T(), T()));
  auto some = values<T>(40, 3);
  if constexpr (deft::ext::is_floating_type<T>)  // where casts begin to saturate
    for (double bound : {255., 256., 2147483648., -2147483648., 9223372036854775808.})
      some.push_back(static_cast<T>(bound));
  const std::size_t n = some.size() * some.size();
  const auto a = std::make_unique<T[]>(n), b = std::make_unique<T[]>(n);
  const auto got = std::make_unique<R[]>(n);
  std::vector<unsigned> faults(n);
  for (std::size_t i = 0; i < n; ++i) a[i] = some[i / some.size()], b[i] = some[i % some.size()];
  library.find<void(const T*, const T*, R*, unsigned*, int)>(name)(
      a.get(), b.get(), got.get(), faults.data(), static_cast<int>(n));
  for (std::size_t i = 0; i < n; ++i) {
    INFO(body, " of ", cuda_name<T>(), " ", a[i], " and ", b[i]);
    R expected{};
    std::string failure;
    try {
      expected = result_of<Body>(a[i], b[i]);
    } catch (const error& e) {
      failure = e.message();
    }
    const gpu::fault_record r{1, 0, static_cast<gpu::fault_kind>(faults[i]), 0, 0, 0, nullptr};
    if (!failure.empty() || faults[i] != 0)
      CHECK(gpu::error_of(r).message() == failure);
    else if (!same_bits(got[i], expected))
      FAIL_CHECK("got ", got[i], ", expected ", expected);
  }
}

template <class Body, class T>
void add() {
  const num::text x("x"), y("y");
  std::string body;
  if constexpr (Body::arity == 1)
    body = Body()(x).s;
  else
    body = Body()(x, y).s;
  using R = decltype(result_of<Body>(T(), T()));
  const std::string name = str("body", comparisons.size()), t = cuda_name<T>();
  std::string source = str("extern \"C\" void ", name, "(const ", t, "* a, const ", t, "* b, ",
                           cuda_name<R>(), "* to, unsigned* faults, int n) {\n");
  source += str("  typedef num::number<", cuda_name<lane_type<T>>(),
                "> T;\n  for (int i = 0; i < n; ++i) {\n");
  source += "    const T x(a[i]), y(b[i]);\n    faults[i] = 0;\n";
  source += str("    to[i] = num::take(", body, ", faults[i]);\n  }\n}\n");
  comparisons.push_back(
      {source, [=](const host_library& library) { compare<Body, T>(library, name, body); }});
}
template <class T>
void add_all() {
  each_dtype([]<class To>() { add<casts<To>, T>(); });
  add<same, T>();
  add<different, T>();
  if constexpr (std::is_same_v<T, bool>) {
    add<both, T>();
    add<any, T>();
    add<not_so, T>();
  } else {
    add<adds, T>();
    add<subtracts, T>();
    add<multiplies, T>();
    add<divides, T>();
    add<negates, T>();
    add<absolute, T>();
    add<greatest, T>();
    add<least, T>();
    add<below, T>();
    add<above, T>();
    add<at_most, T>();
    add<at_least, T>();
    add<chosen, T>();
    add<constants, T>();
    add<apart, T>();
  }
  if constexpr (deft::ext::is_floating_type<T>) {
    add<exponential, T>();
    add<exponential1, T>();
    add<logarithm, T>();
    add<logarithm1, T>();
    add<error_function, T>();
    add<scaled_tail, T>();
    add<tangent, T>();
    add<sine, T>();
    add<cosine, T>();
    add<root, T>();
    add<power, T>();
    add<integer, T>();
    add<limited, T>();
    add<never, T>();
  } else if constexpr (!std::is_same_v<T, bool>) {
    add<remains, T>();
  }
}

}  // namespace

TEST_CASE("the prelude computes the same as lanes for every dtype") {
  if (!has_host_compiler()) return;
  each_dtype([]<class T>() { add_all<T>(); });
  std::string source;
  for (const auto& c : comparisons) source += c.source;
  const host_library library(source);
  for (const auto& c : comparisons) c.check(library);
  comparisons.clear();
}

TEST_CASE("the prelude's structures have the host's layout") {
  if (!has_host_compiler()) return;
  const host_library library(R"(
extern "C" void offsets(int* to) {
  *to++ = sizeof(fault_record);
  *to++ = offsetof(fault_record, taken), *to++ = offsetof(fault_record, item);
  *to++ = offsetof(fault_record, kind), *to++ = offsetof(fault_record, value);
  *to++ = offsetof(fault_record, limit), *to++ = offsetof(fault_record, row);
  *to++ = sizeof(divider);
}
extern "C" void fail(fault_record* r) { report(r, 7, 2), report(r, 8, 1); }
extern "C" long long cut(const divider* d, long long* n) { return d->cut(*n); }
)");
  using gpu::fault_record;
  int got[8];
  library.find<void(int*)>("offsets")(got);
  const int expected[] = {sizeof(fault_record),          offsetof(fault_record, taken),
                          offsetof(fault_record, item),  offsetof(fault_record, kind),
                          offsetof(fault_record, value), offsetof(fault_record, limit),
                          offsetof(fault_record, row),   sizeof(gpu::divider)};
  for (int i = 0; i < 8; ++i) CHECK(got[i] == expected[i]);

  fault_record r{};
  r.row = 5;
  library.find<void(fault_record*)>("fail")(&r);
  CHECK(r.item == 7);
  CHECK(gpu::error_of(r).message() == "[mod] integer division by zero");
  CHECK(r.row == 0);

  const auto cut = library.find<std::int64_t(const gpu::divider*, std::int64_t*)>("cut");
  constexpr auto most = std::int64_t{1} << 31;
  for (std::int64_t by : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{7},
                          std::int64_t{641}, most / 2, most - 1, most, most + 1, most * 5})
    for (std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, by - 1, by, by + 1,
                           most - 2, most - 1, most, most * 3 + 1, by * 2 - 1}) {
      INFO(n, " by ", by);
      const gpu::divider d(by);
      std::int64_t left = n;
      CHECK(cut(&d, &left) == n % by);
      CHECK(left == n / by);
    }
}
