// SPDX-License-Identifier: Apache-2.0
#include <deft/core/any_array.hpp>
#include <deft/core/duration.hpp>
#include <deft/core/ndarray.hpp>
#include <limits>
#include <numeric>
#include <sstream>

#include "comma_locale.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {
template <class T>
any_array array_of(const dims& shape, std::initializer_list<T> elements) {
  any_array a(dtype_of<T>, shape);
  std::copy(elements.begin(), elements.end(), a.template mutable_data<T>());
  return a;
}
template <class T>
any_array counting(const dims& shape) {
  any_array a(dtype_of<T>, shape);
  std::iota(a.template mutable_data<T>(), a.template mutable_data<T>() + a.elements(), T{});
  return a;
}
}  // namespace

TEST_CASE("an array has a type, a shape and bytes") {
  any_array a(dtype::float64, {2, 3});
  CHECK(a.valid());
  CHECK(a.type() == dtype::float64);
  CHECK(a.shape() == dims{2, 3});
  CHECK(a.elements() == 6);
  CHECK(a.bytes() == 48);
  CHECK(a.span<double>().size() == 6);

  any_array none;
  CHECK_FALSE(none.valid());
  CHECK(none.elements() == 0);
  CHECK(none.bytes() == 0);
  CHECK(any_array(dtype::int32, {0, 3}).bytes() == 0);
}

TEST_CASE("errors of arrays are sentences") {
  CHECK(testing::error_of([] {
          any_array(dtype::float32, {dyn, 3});
        }) == "invalid_argument: an array expects known extents, and got (?,3)");
  std::int64_t big = std::int64_t{1} << 40;
  CHECK(testing::error_of([&] {
          any_array(dtype::float32, {big, big});
        }) ==
        "resource_exhausted: an array of (1099511627776,1099511627776) is larger than memory");
  CHECK(testing::error_of([] { any_array::scalar(1.f).data<int>(); }) ==
        "invalid_argument: an array of float cannot be read as int32");
}

TEST_CASE("the only element of an array is its item") {
  CHECK(any_array::scalar(2.5f).item<float>() == 2.5f);
  CHECK(array_of<int>({1, 1}, {7}).item<int>() == 7);
  CHECK(testing::error_of([] {
          array_of<int>({2}, {1, 2}).item<int>();
        }) == "invalid_argument: an array of shape (2) is not one element");
  CHECK(testing::error_of([] { array_of<int>({0}, {}).item<int>(); }) ==
        "invalid_argument: an array of shape (0) is not one element");
  CHECK(testing::error_of([] { any_array::scalar(1.f).item<double>(); }) ==
        "invalid_argument: an array of float cannot be read as double");
}

TEST_CASE("copies share elements until one is written") {
  auto a = array_of<float>({2}, {1, 2});
  auto copy = a;
  CHECK(copy.raw() == a.raw());
  const void* before = a.raw();
  copy.mutable_data<float>()[0] = 7;
  CHECK(a.raw() == before);
  CHECK(a.data<float>()[0] == 1);
  CHECK(copy.data<float>()[0] == 7);
  CHECK(copy.data<float>()[1] == 2);
  // Each has its own elements now and copies no more.
  before = copy.raw();
  copy.mutable_data<float>()[1] = 8;
  static_cast<std::byte*>(copy.mutable_raw())[0] = std::byte{0};
  CHECK(copy.raw() == before);
  CHECK(a == array_of<float>({2}, {1, 2}));
  CHECK(a.clone().raw() != a.raw());
  CHECK_FALSE(any_array().clone().valid());
  CHECK(any_array().mutable_raw() == nullptr);
  auto none = array_of<float>({0}, {}), also = none;
  CHECK(also.mutable_data<float>() != nullptr);
}

TEST_CASE("a view refers to the caller's memory") {
  float mine[4] = {1, 2, 3, 4};
  auto v = any_array::view(dtype::float32, {2, 2}, mine);
  mine[3] = 9;
  CHECK(v.raw() == mine);
  CHECK(v.span<float>()[3] == 9);
  v.mutable_data<float>()[3] = 1;  // copies first
  CHECK(mine[3] == 9);
  CHECK(v.raw() != mine);
}

TEST_CASE("equal means type, shape and elements; NaN equals nothing") {
  auto a = array_of<float>({2}, {1, 2});
  CHECK(a == array_of<float>({2}, {1, 2}));
  CHECK_FALSE(a == array_of<float>({2}, {1, 3}));
  CHECK_FALSE(a == array_of<float>({2, 1}, {1, 2}));
  CHECK_FALSE(a == array_of<double>({2}, {1, 2}));
  CHECK_FALSE(a == any_array());
  CHECK(any_array() == any_array());
  CHECK(array_of<float>({1}, {0.f}) == array_of<float>({1}, {-0.f}));
  auto nan = any_array::scalar(std::numeric_limits<float>::quiet_NaN());
  CHECK_FALSE(nan == nan);
}

TEST_CASE("arrays print as in NumPy") {
  // The expected texts are what print(numpy.array(...)) shows in NumPy 2.4.
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  struct {
    any_array a;
    const char* text;
  } cases[] = {
      {any_array(), "none"},
      {any_array::scalar(3.f), "3.0"},
      {any_array::scalar(1. / 3), "0.3333333333333333"},
      {any_array::scalar(2e20f), "2e+20"},
      {any_array::scalar(std::int32_t{-3}), "-3"},
      {any_array::scalar(true), "True"},
      {array_of<float>({0}, {}), "[]"},
      {array_of<float>({3}, {1, 2.5, -3}), "[ 1.   2.5 -3. ]"},
      {array_of<float>({2, 0}, {}), "[]"},
      {array_of<float>({3}, {-1, nan, 0.5}), "[-1.   nan  0.5]"},
      {array_of<double>({3}, {1, -inf, inf}), "[  1. -inf  inf]"},
      {array_of<double>({2}, {1. / 3, -2}), "[ 0.33333333 -2.        ]"},
      {array_of<double>({2}, {1, 1234.5}), "[1.0000e+00 1.2345e+03]"},
      {array_of<float>({2}, {1e6, 2.5e6}), "[1.0e+06 2.5e+06]"},
      {array_of<double>({2}, {1e-100, -1}), "[ 1.e-100 -1.e+000]"},
      {array_of<double>({2}, {2 * 5e-324, 1.2345678e5}), "[9.8813129e-324 1.2345678e+005]"},
      {array_of<std::int32_t>({4}, {1, 10, -100, 0}), "[   1   10 -100    0]"},
      {array_of<bool>({2}, {true, false}), "[ True False]"},
      {array_of<bool>({2}, {true, true}), "[ True  True]"},
      {array_of<std::uint8_t>({2}, {65, 255}), "[ 65 255]"},
      {array_of<std::int8_t>({2}, {65, -128}), "[  65 -128]"},
      {array_of<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 60}), "[[ 1  2  3]\n [ 4  5 60]]"},
      {counting<std::int32_t>({2, 2, 2}), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"},
      {array_of<double>({3}, {inf, 1e30, 0.1}), "[   inf 1.e+30 1.e-01]"},
      {counting<std::int32_t>({31}),
       "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n "
       "24 25 26 27 28 29 30]"},
      {counting<std::int32_t>({1001}), "[   0    1    2 ...  998  999 1000]"},
      {counting<std::int32_t>({2, 501}),
       "[[   0    1    2 ...  498  499  500]\n [ 501  502  503 ...  999 1000 1001]]"},
      {counting<std::int32_t>({501, 2}),
       "[[   0    1]\n [   2    3]\n [   4    5]\n ...\n [ 996  997]\n [ 998  999]\n "
       "[1000 1001]]"},
  };
  for (auto& [a, text] : cases) CHECK(to_string(a) == text);
}

TEST_CASE("numbers print alike in every locale") {
  const testing::comma_locale german;
  CHECK(str(1234567.5, " ", 0.25f, " ", std::int64_t{1234567}) == "1234567.5 0.25 1234567");
  CHECK(to_string(ndarray<float, 2>{0.5f, 1234.25f}.array()) == "[5.00000e-01 1.23425e+03]");
  std::ostringstream stream;
  stream << ndarray<double, 2>{0.5, 1.25} << ' ' << dims{1234567};
  CHECK(stream.str() == "[0.5  1.25] (1234567)");
  CHECK(duration_text(std::chrono::milliseconds(1'200)) == "1.2 s");
}

TEST_CASE("a view has known extents, and an array that was moved from is empty") {
  const float elements[4] = {1, 2, 3, 4};
  CHECK(testing::error_of([&] { any_array::view(dtype::float32, {-1}, elements); }) ==
        "invalid_argument: an array expects known extents, and got (?)");
  CHECK(testing::error_of([&] {
          ndarray<float, dyn>::view(elements, -2);
        }).starts_with("invalid_argument: an array expects known extents"));
  any_array a = any_array::view(dtype::float32, {4}, elements).clone(), b = std::move(a);
  CHECK_FALSE(a.valid());
  CHECK(a.elements() == 0);
  a = std::move(b);
  CHECK_FALSE(b.valid());
  CHECK(a.elements() == 4);
  ndarray<float, dyn> n = {1, 2, 3};
  const any_array taken = std::move(n).array();
  CHECK(taken.elements() == 3);
  CHECK(n.size() == 0);
  CHECK(n.begin() == n.end());
}

TEST_CASE("printing a large array reads only the elements that it shows") {
  any_array huge(dtype::uint8, {std::int64_t{1} << 30});  // its pages are never touched
  huge.mutable_data<std::uint8_t>()[huge.elements() - 1] = 7;
  auto text = to_string(huge);
  CHECK(text.size() < 40);
  CHECK(text.ends_with(" 7]"));
}
