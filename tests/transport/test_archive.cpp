// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <deft/core/ndarray.hpp>
#include <deft/transport/archive.hpp>
#include <limits>
#include <testing.hpp>

using namespace deft;
using namespace deft::ext;
using testing::error_of;

namespace {

enum class colour : std::uint16_t { red = 1, blue = 0x1234 };

struct point {
  std::int32_t x = 0, y = 0;
  std::optional<std::string> label;
  friend bool operator==(const point&, const point&) = default;
};
template <class Archive>
void serialize(Archive& ar, point& p, unsigned) {
  ar& named("x", p.x) & named("y", p.y) & named("label", p.label);
}

/// Nested to the given depth.
struct tree {
  std::vector<tree> children;
};
template <class Archive>
void serialize(Archive& ar, tree& t, unsigned) {
  ar& t.children;
}

template <class T>
T again(const T& v) {
  T back{};
  from_bytes(to_bytes(v), back);
  return back;
}

std::vector<std::byte> bytes_of(std::initializer_list<int> list) {
  std::vector<std::byte> b;
  for (int i : list) b.push_back(static_cast<std::byte>(i));
  return b;
}

}  // namespace

TEST_CASE("values are read back as they were written") {
  CHECK(again(true));
  CHECK(again(std::int8_t{-3}) == -3);
  CHECK(again(std::uint64_t{0xfedcba9876543210u}) == 0xfedcba9876543210u);
  CHECK(again(-0.5f) == -0.5f);
  CHECK(again(std::numeric_limits<double>::denorm_min()) ==
        std::numeric_limits<double>::denorm_min());
  CHECK(std::isnan(again(std::numeric_limits<double>::quiet_NaN())));
  CHECK(again(colour::blue) == colour::blue);
  CHECK(again(std::string("a\0b", 3)) == std::string("a\0b", 3));
  CHECK(again(std::string(100'000, 'x')) == std::string(100'000, 'x'));
  CHECK(again(std::vector<std::string>{"", "one", std::string(600, '2')}) ==
        std::vector<std::string>{"", "one", std::string(600, '2')});
  CHECK(again(std::vector<bool>{true, false, true}) == std::vector<bool>{true, false, true});
  CHECK(again(std::array<std::uint8_t, 3>{1, 2, 3}) == std::array<std::uint8_t, 3>{1, 2, 3});
  CHECK(again(std::pair<int, std::string>{7, "seven"}) == std::pair<int, std::string>{7, "seven"});
  CHECK(again(std::tuple{1, 2.0, std::string("3")}) == std::tuple{1, 2.0, std::string("3")});
  CHECK(again(std::vector<point>{{1, 2, "here"}, {3, 4, {}}}) ==
        std::vector<point>{{1, 2, "here"}, {3, 4, {}}});
  CHECK(again(dims{2, dyn, 3}) == dims{2, dyn, 3});
}

TEST_CASE("bytes are the same on every machine: fixed widths, little-endian") {
  CHECK(to_bytes(std::uint32_t{0x01020304}) == bytes_of({4, 3, 2, 1}));
  CHECK(to_bytes(1.0f) == bytes_of({0, 0, 0x80, 0x3f}));
  CHECK(to_bytes(colour::blue) == bytes_of({0x34, 0x12}));
  CHECK(to_bytes("ab") == bytes_of({2, 0, 0, 0, 'a', 'b'}));
  CHECK(to_bytes(std::vector<std::int16_t>{1, -1}) == bytes_of({2, 0, 0, 0, 1, 0, 255, 255}));
  CHECK(to_bytes(std::optional<bool>(), std::optional<bool>(true)) == bytes_of({0, 1, 1}));
  CHECK(to_bytes(dims{2, dyn}) ==
        bytes_of({2, 2, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}));
}

TEST_CASE("an archive appends to a vector, and reuses its memory") {
  std::vector<std::byte> out = bytes_of({9});
  { out_archive(out) & std::uint8_t{1} & std::string(2'000, 'x') & std::uint8_t{2}; }
  CHECK(out.size() == 1 + 1 + 4 + 2'000 + 1);
  CHECK(out.front() == std::byte{9});
  CHECK(out.back() == std::byte{2});
  const auto* before = out.data();
  for (int i = 0; i < 10; ++i) {
    out.clear();
    out_archive(out) & std::string(2'000, 'y');
  }
  CHECK(out.data() == before);
}

TEST_CASE("every truncation of an archive is refused") {
  auto whole = to_bytes(std::uint64_t{1}, "text", std::vector<double>{1, 2}, point{1, 2, "p"},
                        std::vector<std::string>{"a", "b"}, true);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::uint64_t a;
    std::string b;
    std::vector<double> c;
    point d;
    std::vector<std::string> e;
    bool f;
    CAPTURE(n);
    CHECK(error_of([&] {
            from_bytes(std::span(whole).first(n), a, b, c, d, e, f);
          }).starts_with("data_loss: metadata ends early"));
  }
}

TEST_CASE("bytes that are left over are refused") {
  int i = 0;
  CHECK(error_of([&] { from_bytes(to_bytes(1, 2), i); }) ==
        "data_loss: metadata has 4 unread bytes");
}

TEST_CASE("counts are checked against the bytes that are left before anything is allocated") {
  std::string s;
  std::vector<double> d;
  std::vector<std::string> v;
  std::vector<bool> b;
  auto huge = bytes_of({255, 255, 255, 255, 1, 2, 3, 4});
  CHECK(error_of([&] { from_bytes(huge, s); }) ==
        "data_loss: metadata ends early: expected 4294967295 more bytes, got 4");
  CHECK(error_of([&] { from_bytes(huge, d); }) ==
        "data_loss: metadata ends early: expected 34359738360 more bytes, got 4");
  CHECK(error_of([&] { from_bytes(huge, v); }).starts_with("data_loss"));
  CHECK(error_of([&] { from_bytes(huge, b); }).starts_with("data_loss"));
  CHECK(s.capacity() + d.capacity() + v.capacity() + b.capacity() < 100);
}

TEST_CASE("an archive uses no more memory than its limit, and nests no deeper") {
  std::vector<point> many(1'000), back;
  auto bytes = to_bytes(many);
  in_archive small(bytes, {}, {.memory = 500 * sizeof(point), .depth = 32});
  CHECK(error_of([&] { small& back; }) ==
        "resource_exhausted: metadata needs more memory than its limit allows");
  tree deep;
  for (int i = 0; i < 140; ++i) {
    tree outer;
    outer.children.push_back(std::move(deep));
    deep = std::move(outer);
  }
  tree t;
  CHECK(error_of([&] { from_bytes(to_bytes(deep), t); }) ==
        "resource_exhausted: metadata is nested deeper than 128");
}

TEST_CASE("a bool is 0 or 1") {
  bool b = false;
  std::optional<int> o;
  any_array a;
  CHECK(error_of([&] { from_bytes(bytes_of({2}), b); }).starts_with("data_loss"));
  CHECK(error_of([&] { from_bytes(bytes_of({2, 0, 0, 0, 0}), o); }).starts_with("data_loss"));
  auto array = bytes_of({static_cast<int>(dtype::boolean), 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7});
  CHECK(error_of([&] { from_bytes(array, a); }).starts_with("data_loss"));
  array.back() = std::byte{0};
  from_bytes(array, a);
  CHECK(a.data<bool>()[0]);
}

TEST_CASE("arrays travel in the archive, or attached to it without a copy") {
  any_array small = any_array::scalar(2.5), large(dtype::float32, dims{1'000});
  std::memset(large.mutable_raw(), 1, large.bytes());
  CHECK(again(small) == small);
  CHECK(again(large) == large);
  CHECK(again(any_array(dtype::int32, dims{0, 5})).shape() == dims{0, 5});

  std::vector<std::byte> bytes;
  std::vector<any_array> attached;
  out_archive(bytes, &attached) & small& large;
  REQUIRE(attached.size() == 1);
  CHECK(attached[0].raw() == large.raw());
  CHECK(bytes.size() < 100);
  any_array a, b;
  in_archive(bytes, attached) & a& b;
  CHECK(a == small);
  CHECK(b.raw() == large.raw());

  CHECK(error_of([&] { in_archive(bytes) & a& b; }) ==
        "data_loss: metadata refers to tensor 0 of 0");
  attached[0] = any_array(dtype::float64, dims{1'000});
  CHECK(error_of([&] { in_archive(bytes, attached) & a& b; }) ==
        "data_loss: metadata describes tensor 0 as float(1000), but it is double(1000)");
  CHECK(error_of([] { to_bytes(any_array()); }).starts_with("invalid_argument"));
}

TEST_CASE("arrays of strings travel with their number of bytes, and are checked") {
  const std::string odd("a\0\xff", 3);
  const any_array small = ndarray<std::string, 3>{"ab", "", odd};
  const any_array large = any_array::scalar(std::string(5'000, 'x'));
  CHECK(again(small) == small);
  CHECK(again(large) == large);
  CHECK(again(any_array(dtype::string, dims{0, 5})).shape() == dims{0, 5});
  std::vector<std::byte> bytes;
  std::vector<any_array> attached;
  out_archive(bytes, &attached) & small& large;
  REQUIRE(attached.size() == 1);
  any_array a, b;
  in_archive(bytes, attached) & a& b;
  CHECK(a == small);
  CHECK(b == large);

  const auto sent = [](std::int64_t n, std::uint64_t size,
                       const std::vector<std::int64_t>& offsets) {
    auto all = to_bytes(dtype::string, std::uint8_t{1}, n, std::uint8_t{0}, size);
    for (const std::int64_t o : offsets) {
      const auto more = to_bytes(o);
      all.insert(all.end(), more.begin(), more.end());
    }
    all.resize(all.size() + 2);  // the texts
    return all;
  };
  from_bytes(sent(2, 26, {0, 1, 2}), a);
  CHECK(a.strings()[1] == std::string_view("\0", 1));
  const std::string unsound = "data_loss: metadata has strings whose offsets are not sound";
  CHECK(error_of([&] { from_bytes(sent(2, 26, {0, 2, 1}), a); }) == unsound);
  CHECK(error_of([&] { from_bytes(sent(2, 26, {0, 1, 3}), a); }) == unsound);
  CHECK(error_of([&] { from_bytes(sent(2, 26, {1, 1, 2}), a); }) == unsound);
  CHECK(error_of([&] { from_bytes(sent(3, 26, {0, 1, 2}), a); }) == unsound);
  CHECK(error_of([&] { from_bytes(sent(2, 0, {0, 1, 2}), a); }) == unsound);
  CHECK(error_of([&] {
          from_bytes(sent(2, std::uint64_t{1} << 40, {0, 1, 2}), a);
        }).starts_with("data_loss: metadata ends early"));
}

TEST_CASE("an array larger than its bytes is refused") {
  any_array a;
  auto extent = [](std::int64_t e) {
    return to_bytes(dtype::float64, std::uint8_t{2}, e, e, std::uint8_t{0});
  };
  CHECK(error_of([&] { from_bytes(extent(1'000), a); }).starts_with("data_loss"));
  CHECK(error_of([&] { from_bytes(extent(std::int64_t{1} << 40), a); }) ==
        "invalid_argument: received a shape larger than any memory");
  CHECK(error_of([&] { from_bytes(extent(-1), a); }).starts_with("invalid_argument"));
  for (const std::uint8_t unknown : {15, 16, 255})
    CHECK(error_of([&] { from_bytes(to_bytes(unknown), a); }) ==
          str("invalid_argument: unknown dtype ", int{unknown}));
  CHECK(error_of([&] { from_bytes(to_bytes(dtype::int32, std::uint8_t{9}), a); }) ==
        "invalid_argument: a rank of 9, above 8");
}
