// SPDX-License-Identifier: Apache-2.0
// tests/data/test_select.cpp: what chooses and reorders does so for elements of any type.
#include <deft/data/pipeline.hpp>
// its own header comes first, to check that it is self-contained
#include <algorithm>
#include <memory>
#include <string>

#include "../testing.hpp"

using namespace deft;
using words = std::vector<std::string>;

namespace {

words letters(int n) {
  words out;
  for (int i = 0; i < n; ++i) out.push_back(std::string(1, static_cast<char>('a' + i)));
  return out;
}
std::string all_of(const dataset<std::string>& d) {
  std::string out;
  for (auto& [word] : d) out += word;
  return out;
}
std::string sorted(std::string s) {
  std::sort(s.begin(), s.end());
  return s;
}

/// Neither copied nor made from nothing.
struct moved_only {
  explicit moved_only(int n) : number(std::make_unique<int>(n)) {}
  std::unique_ptr<int> number;
};
auto move_only_to(int n) {
  return from_generator([i = 0, n]() mutable -> std::optional<moved_only> {
    if (i == n) return {};
    return moved_only(i++);
  });
}

}  // namespace

TEST_CASE("take, skip, shard and repeat choose elements of any type") {
  auto d = from_slices(letters(7));
  static_assert(std::is_same_v<decltype(d), dataset<std::string>>);
  CHECK(all_of(d) == "abcdefg");
  CHECK(all_of(d.take(2).repeat(3)) == "ababab");
  CHECK(all_of(d.skip(5)) == "fg");
  CHECK(all_of(d.skip(1).shard(2, 1).take(2).repeat(2)) == "cece");
  CHECK(all_of(d.repeat().skip(5).take(4)) == "fgab");
  CHECK(all_of(from_slices(words{}).repeat()) == "");
}

TEST_CASE("shards lose and repeat nothing") {
  for (int workers : {1, 2, 3, 10}) {
    CAPTURE(workers);
    std::string together;
    for (int i = 0; i < workers; ++i) together += all_of(from_slices(letters(7)).shard(workers, i));
    CHECK(sorted(together) == "abcdefg");
  }
}

TEST_CASE("a seed decides the order of elements of any type, as of rows") {
  const auto d = from_slices(letters(26));
  const std::string order = all_of(d.shuffle(10, 3));
  CHECK(sorted(order) == all_of(d));
  CHECK(order != all_of(d));
  CHECK(all_of(d.shuffle(10, 3)) == order);
  CHECK(all_of(d.shuffle(10, 4)) != order);

  std::vector<std::int32_t> numbers(26);
  for (int i = 0; i < 26; ++i) numbers[static_cast<std::size_t>(i)] = i;
  std::string of_rows, again = all_of(d.shuffle(10, 3, false).repeat(2));
  ndarray<std::int32_t, dyn> rows(26);
  std::copy(numbers.begin(), numbers.end(), rows.begin());
  for (auto& [n] : from_slices(rows).shuffle(10, 3)) of_rows += static_cast<char>('a' + n());
  CHECK(of_rows == order);
  CHECK(again == order + order);
}

TEST_CASE("elements may be such as can only be moved") {
  std::vector<int> seen;
  for (auto& [m] : move_only_to(20).shuffle(5, 1).skip(1).shard(2, 0).prefetch(2).take(7).repeat(2))
    seen.push_back(*m.number);
  CHECK(seen.size() == 14);
  std::vector<std::unique_ptr<int>> kept;
  for (auto& [m] : move_only_to(3)) kept.push_back(std::move(m.number));
  CHECK(*kept[2] == 2);
}

TEST_CASE("cardinality distinguishes endless from unknown") {
  auto known = from_slices(letters(10));
  auto unknown = known.filter([](const std::string&) { return true; });
  CHECK(known.cardinality() == 10);
  CHECK(known.prefetch(2).map([](auto& s) { return s.size(); }).cardinality() == 10);
  CHECK(unknown.cardinality() == unknown_cardinality);
  for (const auto& d : {unknown.take(3), unknown.skip(3), unknown.shard(2, 0), unknown.repeat(2),
                        unknown.shuffle(3, 1), unknown.prefetch(1)})
    CHECK(d.cardinality() == unknown_cardinality);
  CHECK(unknown.batch(2).cardinality() == unknown_cardinality);
  CHECK(unknown.take(0).cardinality() == 0);
  CHECK(unknown.repeat(0).cardinality() == 0);
  CHECK(unknown.repeat().cardinality() == infinite_cardinality);
  CHECK(known.repeat().filter([](auto&) { return true; }).cardinality() == unknown_cardinality);
  CHECK(known.interleave([&](auto&) { return known; }, 2).cardinality() == unknown_cardinality);
  CHECK(move_only_to(3).cardinality() == unknown_cardinality);
}
