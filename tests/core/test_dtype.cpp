// SPDX-License-Identifier: Apache-2.0
#include <deft/core/dtype.hpp>
#include <sstream>
#include <vector>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {
struct row {
  dtype type;
  int wire;
  std::string_view name;
  std::size_t size;
  bool floating, integer;
};
constexpr row table[] = {
    {dtype::float32, 1, "float", 4, true, false},
    {dtype::float64, 2, "double", 8, true, false},
    {dtype::int32, 3, "int32", 4, false, true},
    {dtype::int64, 4, "int64", 8, false, true},
    {dtype::uint8, 5, "uint8", 1, false, true},
    {dtype::boolean, 6, "bool", 1, false, false},
    {dtype::bfloat16, 7, "bfloat16", 2, true, false},
    {dtype::float16, 8, "half", 2, true, false},
    {dtype::int8, 9, "int8", 1, false, true},
    {dtype::int16, 10, "int16", 2, false, true},
    {dtype::uint16, 11, "uint16", 2, false, true},
    {dtype::uint32, 12, "uint32", 4, false, true},
    {dtype::uint64, 13, "uint64", 8, false, true},
    {dtype::string, 14, "string", 0, false, false},
};
}  // namespace

TEST_CASE("dtypes have fixed wire numbers, TensorFlow's names, and sizes") {
  CHECK(std::size(table) == every_dtype.size());
  for (auto& r : table) {
    CAPTURE(r.name);
    CHECK(static_cast<int>(r.type) == r.wire);
    CHECK(to_string(r.type) == r.name);
    std::ostringstream printed;
    printed << r.type;
    CHECK(printed.str() == r.name);
    CHECK(size_of_dtype(r.type) == r.size);
    CHECK(is_floating(r.type) == r.floating);
    CHECK(is_integer(r.type) == r.integer);
    CHECK(is_numeric(r.type) == (r.floating || r.integer));
    CHECK(is_valid(r.type));
  }
}

TEST_CASE("codes other than those of dtypes are not valid") {
  CHECK_FALSE(is_valid(dtype::none));
  CHECK_FALSE(is_valid(static_cast<dtype>(15)));
  CHECK(dtype_of_number(9) == dtype::int8);
  for (const int missing : {-1, 0, 15, 16, 255}) CHECK(dtype_of_number(missing) == dtype::none);
  CHECK(dtype_of_number(14) == dtype::string);
  CHECK(dtype_named(&element_names::tensorflow, "string") == dtype::string);
  CHECK(dtype_named(&element_names::tensorflow, "none") == dtype::none);
  CHECK(dtype_named(&element_names::safetensors, "") == dtype::none);
  CHECK_FALSE(is_valid(static_cast<dtype>(255)));
  CHECK(size_of_dtype(dtype::none) == 0);
  CHECK(to_string(dtype::none) == "none");
}

TEST_CASE("visit_dtype calls back with the C++ type, and inverts dtype_of") {
  for (auto& r : table) {
    if (r.type == dtype::string) continue;
    auto [back, size] =
        visit_dtype(r.type, []<class T>() { return std::pair(dtype_of<T>, sizeof(T)); });
    CHECK(back == r.type);
    CHECK(size == r.size);
  }
  CHECK(testing::error_of([] { visit_dtype(dtype::none, []<class T>() {}); }) ==
        "internal: a value without a dtype");
  CHECK(testing::error_of([] { visit_dtype(dtype::string, []<class T>() {}); }) ==
        "internal: no code here for elements of string");
  CHECK(visit_dtype_in<all_dtypes>(dtype::string, []<class T>() { return dtype_of<T>; }) ==
        dtype::string);
}

TEST_CASE("all dtypes but string are plain: their elements have a size") {
  for (const dtype t : every_dtype) {
    CAPTURE(to_string(t));
    CHECK(all_dtypes.has(t));
    CHECK(plain_dtypes.has(t) == (t != dtype::string));
    CHECK((size_of_dtype(t) > 0) == plain_dtypes.has(t));
  }
  CHECK(every_plain_dtype.size() + 1 == every_dtype.size());
  CHECK_FALSE(computing_dtypes.has(dtype::string));
}

TEST_CASE("element accepts the types that a tensor can hold, const or not") {
  static_assert(element<float> && element<const double> && element<bool>);
  static_assert(!element<char> && !element<long double> && !element<const char*> &&
                !element<float*>);
  static_assert(element<std::string> && !plain_element<std::string> && plain_element<const bool>);
  static_assert(dtype_of<const std::int32_t> == dtype::int32);
}

TEST_CASE("visit_dtype_in calls back for a set's dtypes, and compiles no other") {
  const auto size_in = [](dtype t) {
    return visit_dtype_in<floating_dtypes>(t, []<class T>() {
      static_assert(is_floating_type<T>);
      return sizeof(T);
    });
  };
  CHECK(size_in(dtype::float32) == 4);
  CHECK(size_in(dtype::float64) == 8);
  CHECK(testing::error_of([&] { size_in(dtype::int32); }) ==
        "internal: no code here for elements of int32");
  CHECK(testing::error_of([&] { size_in(dtype::none); }) == "internal: a value without a dtype");
}

TEST_CASE("a dtype that is not narrow is its own computing dtype, which is never narrow") {
  CHECK(computing_dtype(dtype::none) == dtype::none);
  CHECK_FALSE(is_narrow(dtype::none));
  each_dtype([]<class T>() {
    const dtype t = dtype_of<T>, wide = computing_dtype(t);
    CAPTURE(to_string(t));
    CHECK(is_narrow(t) == (wide != t));
    CHECK_FALSE(is_narrow(wide));
    CHECK(traits_of(wide).kind == traits_of(t).kind);
    CHECK(size_of_dtype(wide) >= size_of_dtype(t));
    CHECK(computing_dtypes.has(t) == !is_narrow(t));
    CHECK(plain_dtypes.has(t));
  });
  CHECK(computing_dtype(dtype::int8) == dtype::int32);
  CHECK(computing_dtype(dtype::bfloat16) == dtype::float32);
  CHECK(is_half(dtype::float16));
  CHECK_FALSE(is_half(dtype::int8));
}

TEST_CASE("each_dtype_in calls back for a set's dtypes in the order of their numbers") {
  std::vector<dtype> called;
  each_dtype_in<floating_dtypes>([&]<class T>() { called.push_back(dtype_of<T>); });
  CHECK(called == std::vector{dtype::float32, dtype::float64, dtype::bfloat16, dtype::float16});
  CHECK((numeric_dtypes & index_dtypes) == index_dtypes);
}
