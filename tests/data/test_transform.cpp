// SPDX-License-Identifier: Apache-2.0
// tests/data/test_transform.cpp: functions of the user in pipelines, and generators.
#include <deft/data/pipeline.hpp>
// its own header comes first, to check that it is self-contained
#include <string>

#include "../testing.hpp"

using namespace deft;
using namespace deft::ext;
using numbers = std::vector<int>;

namespace {

auto count_to(int n) {
  return from_generator([i = 0, n]() mutable { return i < n ? std::optional(i++) : std::nullopt; });
}
template <class Dataset>
numbers all_of(const Dataset& d) {
  numbers out;
  for (auto& [n] : d) out.push_back(n);
  return out;
}

}  // namespace

TEST_CASE("map makes elements of what its function returns") {
  auto pairs = count_to(3).map([](int n) { return std::tuple(str("n", n), n * n); });
  static_assert(std::is_same_v<decltype(pairs), dataset<std::string, int>>);
  std::string seen;
  for (auto& [name, square] : pairs) seen += str(name, "=", square, " ");
  CHECK(seen == "n0=0 n1=1 n2=4 ");

  auto joined = pairs.map([](std::string& name, int square) {
    name += str(square);
    return std::move(name);
  });
  static_assert(std::is_same_v<decltype(joined), dataset<std::string>>);
  seen.clear();
  for (auto& [text] : joined.repeat(2)) seen += text + " ";
  CHECK(seen == "n00 n11 n24 n00 n11 n24 ");

  ndarray<float, 2, 3> x{1, 2, 3, 4, 5, 6};
  auto sums = from_slices(x).map([](const ndarray<float, 3>& row) { return row(0) + row(2); });
  std::vector<float> of_rows;
  for (auto& [s] : sums) of_rows.push_back(s);
  CHECK(of_rows == std::vector<float>{4, 10});
}

TEST_CASE("each pass calls a copy of the function") {
  auto d = count_to(3).map([calls = 0](int) mutable { return ++calls; });
  CHECK(all_of(d) == numbers{1, 2, 3});
  CHECK(all_of(d) == numbers{1, 2, 3});
}

TEST_CASE("filter keeps the elements for which its function returns true") {
  CHECK(all_of(count_to(10).filter([](int n) { return n % 3 == 1; })) == numbers{1, 4, 7});
  CHECK(all_of(count_to(10).filter([](int) { return false; }).repeat()) == numbers{});
}

TEST_CASE("interleave takes blocks in turn, as tf.data does") {
  auto d = count_to(6).skip(1).interleave(
      [](int n) { return count_to(6).map([n](int) { return n; }); }, 2, 4);
  // The example of tf.data.Dataset.interleave.
  CHECK(all_of(d) == numbers{1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3,
                             3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5});
  auto up_to = [](int n) { return count_to(n); };
  CHECK(all_of(count_to(4).interleave(up_to, 1)) == numbers{0, 0, 1, 0, 1, 2});
  CHECK(all_of(count_to(4).interleave(up_to, 3)) == numbers{0, 0, 0, 1, 1, 2});
  CHECK(all_of(count_to(4).interleave(up_to, 1'000'000'000).repeat(2)).size() == 12);
  CHECK(all_of(count_to(5).interleave([](int) { return count_to(0); }, 2).repeat()) == numbers{});
  CHECK(all_of(count_to(2).interleave([](int) { return count_to(3).prefetch(1); }, 2)) ==
        numbers{0, 0, 1, 1, 2, 2});
}

TEST_CASE("a generator begins anew with each pass") {
  auto d = count_to(3);
  CHECK(all_of(d) == numbers{0, 1, 2});
  CHECK(all_of(d.repeat(2)) == numbers{0, 1, 2, 0, 1, 2});
  auto pairs = from_generator([i = 0]() mutable -> std::optional<std::tuple<int, std::string>> {
    if (i == 2) return {};
    ++i;
    return std::tuple(i, str(i));
  });
  static_assert(std::is_same_v<decltype(pairs), dataset<int, std::string>>);
  std::string seen;
  for (auto& [n, text] : pairs) seen += str(n, text);
  CHECK(seen == "1122");
  // It is not called again once it has ended.
  int calls = 0;
  auto none = from_generator([&]() -> std::optional<int> { return ++calls, std::nullopt; });
  auto empty = none.batch(3).prefetch(2);
  CHECK(empty.begin() == empty.end());
  CHECK(calls == 1);
}

TEST_CASE("an exception comes where the element would have come, and ends the pass") {
  auto d = count_to(10).map([](int n) {
    if (n == 3) fail(errc::data_loss, "three");
    return n;
  });
  numbers seen;
  CHECK(testing::error_of([&] {
          for (auto& [n] : d) seen.push_back(n);
        }) == "data_loss: three");
  CHECK(seen == numbers{0, 1, 2});
  auto i = d.begin();
  ++i, ++i;
  CHECK_THROWS(++i);
  CHECK(i == d.end());
}
