// SPDX-License-Identifier: Apache-2.0
// tests/data/test_digits.cpp: drawn digits are reproducible, varied and distinguishable.
#include <deft/data/digits.hpp>
// its own header comes first, to check that it is self-contained
#include <array>
#include <vector>

#include "../testing.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("drawn digits depend on seed and index only") {
  digit_set a = draw_digits(50, 9), b = draw_digits(20, 9, 30), c = draw_digits(50, 10);
  CHECK(a.images.extents() == dims{50, 784});
  CHECK(a.labels.extents() == dims{50});
  for (int i = 0; i < 20; ++i) {
    CHECK(b.labels(i) == a.labels(30 + i));
    CHECK(std::equal(&b.images(i, 0), &b.images(i, 0) + 784, &a.images(30 + i, 0)));
  }
  CHECK_FALSE(a.labels == c.labels);
  CHECK_FALSE(a.images == c.images);
  std::vector<float> one(784);
  CHECK(draw_digit(9, 31, std::span<float, 784>(one.data(), 784)) == a.labels(31));
  CHECK(draw_digits(0).images.size() == 0);
  CHECK(testing::error_of([] { draw_digits(-1); }).starts_with("invalid_argument: "));
}

TEST_CASE("drawn digits are grey values from 0 to 1, with about as many of each class") {
  digit_set d = draw_digits(2000);
  int counts[10] = {};
  for (int label : d.labels) {
    REQUIRE(label >= 0);
    REQUIRE(label < 10);
    ++counts[label];
  }
  for (int c : counts) CHECK(c == doctest::Approx(200).epsilon(0.3));
  double sum = 0;
  float lowest = 1, highest = 0;
  for (float v : d.images) {
    sum += v;
    lowest = std::min(lowest, v);
    highest = std::max(highest, v);
  }
  CHECK(lowest == 0.f);
  CHECK(highest == 1.f);
  double mean = sum / static_cast<double>(d.images.size());
  CHECK(mean > 0.08);
  CHECK(mean < 0.25);
}

TEST_CASE("the nearest class mean identifies most drawn digits, but not all") {
  digit_set train = draw_digits(2000), test = draw_digits(500, 1, 2000);
  std::vector<std::array<double, 784>> means(10);
  int counts[10] = {};
  for (int i = 0; i < 2000; ++i) {
    ++counts[train.labels(i)];
    for (std::size_t p = 0; p < 784; ++p)
      means[static_cast<std::size_t>(train.labels(i))][p] +=
          static_cast<double>(train.images(i, static_cast<int>(p)));
  }
  int right = 0;
  for (int i = 0; i < 500; ++i) {
    int best = 0;
    double least = 1e9;
    for (int c = 0; c < 10; ++c) {
      double distance = 0;
      for (std::size_t p = 0; p < 784; ++p) {
        double e = means[static_cast<std::size_t>(c)][p] / counts[c] -
                   static_cast<double>(test.images(i, static_cast<int>(p)));
        distance += e * e;
      }
      if (distance < least) least = distance, best = c;
    }
    right += best == test.labels(i);
  }
  MESSAGE("nearest mean: ", right, " of 500");
  CHECK(right > 200);
  CHECK(right < 450);
}
