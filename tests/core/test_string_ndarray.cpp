// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <deft/core/ndarray.hpp>
#include <span>
#include <string>
#include <vector>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {
const std::string with_nul("a\0b", 3), not_utf8("\xff\xfe");
}  // namespace

TEST_CASE("an array of strings has its offsets, then its bytes, in one block") {
  const any_array a = ndarray<std::string, dyn>{"ab", "", "cde"};
  CHECK(a.type() == dtype::string);
  CHECK(a.shape() == dims{3});
  CHECK(a.bytes() == 4 * 8 + 5);
  const std::int64_t offsets[] = {0, 2, 2, 5};
  CHECK(std::memcmp(a.raw(), offsets, sizeof offsets) == 0);
  CHECK(std::memcmp(static_cast<const char*>(a.raw()) + sizeof offsets, "abcde", 5) == 0);
  CHECK(string_span::is_sound(a.raw(), 3, a.bytes()));
}

TEST_CASE("arrays of strings are made of lists, vectors, arrays, spans and rows") {
  const ndarray<std::string, dyn> list{"a", std::string("bc"), std::string_view("def")};
  CHECK(list.size() == 3);
  CHECK(list(0) == "a");
  CHECK(list(2) == "def");
  const std::vector<std::string> strings{"a", "bc", "def"};
  const std::vector<std::string_view> views(strings.begin(), strings.end());
  const std::array<const char*, 3> literals{"a", "bc", "def"};
  CHECK(ndarray<std::string, dyn>(strings) == list);
  CHECK(ndarray<std::string, 3>(views) == list);
  CHECK(ndarray<std::string, dyn>(literals) == list);
  CHECK(ndarray<std::string, dyn>(std::span(strings)) == list);
  CHECK(ndarray<std::string, dyn, 3>(strings).extents() == dims{1, 3});

  const ndarray<std::string, 2, 2> rows{{"a", "b"}, {"c", "d"}};
  CHECK(rows(1, 0) == "c");
  CHECK(rows.array().shape() == dims{2, 2});
  const ndarray<std::string, 2, 1, 2> three{{{"a", "b"}}, {{"c", "d"}}};
  CHECK(three(1, 0, 1) == "d");
  const ndarray<std::string> one("alone");
  CHECK(one() == "alone");
  CHECK(std::vector<std::string>(list.begin(), list.end()) == strings);
  CHECK(testing::error_of([&] { ndarray<std::string, 2> two(strings); }) ==
        "invalid_argument: an ndarray of (2) cannot hold 3 elements");
  const std::string_view two[] = {"a", "b"};
  CHECK(testing::error_of([&] { any_array({3}, two); }) ==
        "invalid_argument: an array of (3) is made of 3 strings, and got 2");
}

TEST_CASE("strings are bytes of any kind, and may be empty; so may arrays of them") {
  const ndarray<std::string, dyn> odd{"", with_nul, not_utf8};
  CHECK(odd(0).empty());
  CHECK(odd(1) == with_nul);
  CHECK(odd(2) == not_utf8);
  CHECK(any_array::scalar(with_nul).item<std::string>() == with_nul);
  const any_array none(dtype::string, {0, 3});
  CHECK(none.elements() == 0);
  CHECK(none.bytes() == 8);
  CHECK(none.strings().empty());
  CHECK(none == any_array(ndarray<std::string, dyn, 3>(0)));
  const any_array empty(dtype::string, {2});
  CHECK(empty == ndarray<std::string, 2>());
  CHECK(empty.strings()[1].empty());
  CHECK(none.clone() == none);
  CHECK_FALSE(any_array().clone().valid());
}

TEST_CASE("arrays of strings are equal if type, shape and elements are") {
  const ndarray<std::string, dyn> a{"a", "bc"};
  CHECK(a == ndarray<std::string, dyn>{"a", "bc"});
  CHECK_FALSE(a == ndarray<std::string, dyn>{"ab", "c"});
  CHECK_FALSE(a == ndarray<std::string, dyn>{"a", "bd"});
  CHECK_FALSE(a == ndarray<std::string, dyn>{"a", "bc", ""});
  CHECK(a == any_array(ndarray<std::string, 2>{"a", "bc"}));
  CHECK(a == ndarray<std::string, 2>{"a", "bc"});
  CHECK_FALSE(a.array() == any_array(ndarray<std::string, 1, 2>{{"a", "bc"}}));
  CHECK_FALSE(a.array() == any_array::scalar(1.f));
}

TEST_CASE("ndarrays and any_arrays of strings convert, and share their elements") {
  ndarray<std::string, dyn> a{"a", "b"};
  const any_array shared = a;
  CHECK(shared.raw() == a.array().raw());
  const ndarray<std::string, 2> back = shared;
  CHECK(back(1) == "b");
  const ndarray<std::string, dyn> again = back;
  CHECK(again.array().raw() == shared.raw());
  const any_array taken = std::move(a).array();
  CHECK(taken.raw() == shared.raw());
  CHECK(a.size() == 0);  // NOLINT: an array that was moved from is empty
  const any_array view = any_array::view(dtype::string, {2}, shared.raw());
  CHECK(view == shared);
  CHECK(view.bytes() == shared.bytes());
  CHECK(view.storage().is_borrowed());
  CHECK(view.clone().raw() != shared.raw());
  CHECK(testing::error_of([&] { ndarray<std::string, 3> wrong = shared; }) ==
        "invalid_argument: an array of string(2) is not an ndarray of string(3)");
  CHECK(testing::error_of([&] { ndarray<float, 2> wrong = shared; }) ==
        "invalid_argument: an array of string(2) is not an ndarray of float(2)");
}

TEST_CASE("strings are not written, nor read as another type") {
  any_array a = any_array::scalar("text");
  CHECK(testing::error_of([&] { a.mutable_raw(); }) ==
        "invalid_argument: an array of strings cannot be written to: make another one");
  CHECK(testing::error_of([&] { a.data<std::uint8_t>(); }) ==
        "invalid_argument: an array of string cannot be read as uint8");
  CHECK(testing::error_of([&] { any_array::scalar(1.f).strings(); }) ==
        "invalid_argument: an array of float cannot be read as string");
  CHECK(testing::error_of([&] { any_array::scalar(1.f).item<std::string>(); }) ==
        "invalid_argument: an array of float cannot be read as string");
  CHECK(testing::error_of([] { any_array(dtype::string, {dyn}); }) ==
        "invalid_argument: an array expects known extents, and got (?)");
  const std::int64_t big = std::int64_t{1} << 40;
  CHECK(testing::error_of([&] {
          any_array(dtype::string, {big, big});
        }) ==
        "resource_exhausted: an array of (1099511627776,1099511627776) is larger than memory");
}

TEST_CASE("what is not a layout of strings is known") {
  const auto sound = [](std::vector<std::int64_t> offsets, std::size_t texts, std::int64_t n) {
    const std::size_t bytes = offsets.size() * sizeof(std::int64_t) + texts;
    offsets.resize(offsets.size() + texts / 8 + 1);
    return string_span::is_sound(offsets.data(), n, bytes);
  };
  CHECK(sound({0}, 0, 0));
  CHECK(sound({0, 1, 1, 3}, 3, 3));
  CHECK_FALSE(sound({0, 1, 1, 3}, 2, 3));    // fewer bytes than the last offset says
  CHECK_FALSE(sound({0, 1, 1, 3}, 4, 3));    // or more
  CHECK_FALSE(sound({1, 1, 1, 3}, 3, 3));    // not from the first byte on
  CHECK_FALSE(sound({0, 2, 1, 3}, 3, 3));    // one that ends before it begins
  CHECK_FALSE(sound({0, -1, 1, 3}, 3, 3));   // before all
  CHECK_FALSE(sound({0, 99, 99, 3}, 3, 3));  // past all
  CHECK_FALSE(sound({0, 1, 1}, 1, 3));       // too few offsets
  CHECK_FALSE(sound({0, 0, 0}, 0, -1));
  CHECK_FALSE(string_span::is_sound(nullptr, 0, 0));
  CHECK_FALSE(string_span::is_sound(nullptr, std::int64_t{1} << 61, 8));
  std::int64_t few = 0;
  CHECK_FALSE(string_span::is_sound(&few, 0, 7));
}

TEST_CASE("strings print in quotes, with what is not shown escaped, and are summarised") {
  CHECK(to_string(any_array::scalar("text")) == "\"text\"");
  CHECK(to_string(ndarray<std::string, 3>{"a", "", "b c"}) == R"(["a" "" "b c"])");
  CHECK(to_string(ndarray<std::string, 3>{"\"", "\\", "\n"}) == R"(["\"" "\\" "\n"])");
  CHECK(to_string(any_array::scalar(with_nul)) == R"("a\x00b")");
  CHECK(to_string(any_array::scalar(not_utf8)) == R"("\xff\xfe")");
  CHECK(to_string(any_array::scalar("ж")) == "\"ж\"");
  CHECK(to_string(ndarray<std::string, 2, 2>{{"a", "b"}, {"c", "d"}}) ==
        "[[\"a\" \"b\"]\n [\"c\" \"d\"]]");
  CHECK(to_string(any_array(dtype::string, {0})) == "[]");
  const any_array many(dtype::string, {2000});
  CHECK(to_string(many) == R"(["" "" "" ... "" "" ""])");
  const std::string cut = to_string(ndarray<std::string, 1>{std::string(10'000, 'x')});
  CHECK(cut.size() < 300);
  CHECK(cut.ends_with("x…\"]"));
}
