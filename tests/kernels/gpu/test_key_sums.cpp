// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/gpu/segment_sum.hpp>

#include <numeric>
#include <random>
#include <vector>

#include "testing.hpp"

using namespace deft::ext::gpu;

namespace {

/// A key's sum, and how often it came.
struct sum_of_key {
  float sum = 0;
  int times = 0;
  bool operator==(const sum_of_key&) const = default;
};
struct to_table {
  std::vector<sum_of_key>* sums;
  std::int64_t n;

  void operator()(std::int64_t, std::uint32_t key, std::int64_t column,
                  deft::ext::num::lane<float> sum) const {
    auto& to = (*sums)[static_cast<std::size_t>(key * n + column)];
    to.sum = sum.v;
    ++to.times;
  }
};
/// What a launch runs, in any order.
template <class F>
void launch(std::int64_t n, const F& f, std::minstd_rand* shuffled) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  if (shuffled) std::shuffle(order.begin(), order.end(), *shuffled);
  for (auto i : order) f(i);
}

/// The sums of rows 1, 2, … of `n` elements, whose ascending keys come so many times each.
std::vector<sum_of_key> sums_of(const std::vector<std::int64_t>& times, const std::vector<float>& x,
                                std::int64_t n, std::minstd_rand* shuffled = nullptr) {
  std::vector<std::uint32_t> keys;
  for (std::size_t k = 0; k < times.size(); ++k)
    keys.insert(keys.end(), static_cast<std::size_t>(times[k]), static_cast<std::uint32_t>(k));
  const auto count = static_cast<std::int64_t>(keys.size());
  std::vector<std::uint32_t> positions(keys.size()), starts(keys.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<sum_of_key> sums(times.size() * static_cast<std::size_t>(n));
  launch(count, key_starts{keys.data(), starts.data()}, shuffled);
  using level = part_sums<float, to_table>;
  std::vector<float> parts(static_cast<std::size_t>(level::parts_of(count) * n), -1e30f);
  const level f{{keys.data(), positions.data(), x.data(), count, divider(n), starts.data()},
                parts.data(),
                {&sums, n}};
  launch(count * n, f, shuffled);
  for (std::int64_t length = f.together; length < count; length *= f.together)
    launch(level::parts_of(count) * n, joined_parts<float, to_table>{f, length}, shuffled);
  return sums;
}

}  // namespace

TEST_CASE("every key has one sum, of all its rows, in whatever order threads run") {
  std::minstd_rand random(1);
  std::vector<std::vector<std::int64_t>> all = {{1},
                                                {64},
                                                {65},
                                                {128},
                                                {129},
                                                {4096},
                                                {4097},
                                                {4160, 1},
                                                {1, 262145},
                                                {300'000},
                                                {1, 1, 1, 1},
                                                {63, 65, 64, 66},
                                                {65, 65},
                                                {10, 5000, 7},
                                                {60, 70, 3},
                                                {64, 64, 64},
                                                {200, 100, 300},
                                                {1, 64, 65, 4097, 2},
                                                {127, 128, 129}};
  for (int i = 0; i < 30; ++i) {  // of awkward sizes
    auto& times = all.emplace_back();
    while (times.size() < 60)
      times.push_back(1 + static_cast<std::int64_t>(random() % (random() % 4 ? 5 : 400)));
  }
  for (const auto& times : all)
    for (std::int64_t n : {1, 3}) {
      const std::int64_t count = std::accumulate(times.begin(), times.end(), std::int64_t{0});
      std::vector<float> x(static_cast<std::size_t>(count * n));
      for (auto& e : x) e = static_cast<float>(static_cast<int>(random() % 17) - 8);  // exact sums
      INFO(times.size(), " keys, the first ", times[0], " times, of ", count, " rows of ", n);
      std::vector<sum_of_key> expected;
      std::size_t row = 0;
      const auto width = static_cast<std::size_t>(n);
      for (auto t : times) {
        std::vector<sum_of_key> sum(width, {0, 1});
        for (const std::size_t end = row + static_cast<std::size_t>(t); row < end; ++row)
          for (std::size_t c = 0; c < width; ++c) sum[c].sum += x[row * width + c];
        expected.insert(expected.end(), sum.begin(), sum.end());
      }
      CHECK(sums_of(times, x, n) == expected);
      // Rounded sums follow from the keys alone.
      for (auto& e : x) e = std::uniform_real_distribution<float>(-2, 2)(random);
      CHECK(sums_of(times, x, n) == sums_of(times, x, n, &random));
    }
}

TEST_CASE("a thread adds no more rows of a key than a part has") {
  // Added to 2^24 a 1 is lost. Of those that are added to each other first, none is.
  constexpr std::int64_t together = part_sums<float, to_table>::together;
  constexpr float large = 1 << 24;
  for (std::int64_t count : {65, 100, 5000, 100'000})
    for (std::int64_t at : {std::int64_t{0}, std::int64_t{63}, count / 2, count - 1}) {
      INFO(count, " rows, the large one at ", at);
      std::vector<float> x(static_cast<std::size_t>(count), 1.f);
      x[static_cast<std::size_t>(at)] = large;
      const float sum = sums_of({count}, x, 1)[0].sum;
      CHECK(sum >= large + static_cast<float>(count - together));
      CHECK(sum <= large + static_cast<float>(count));
    }
}
