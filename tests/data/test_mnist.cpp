// SPDX-License-Identifier: Apache-2.0
// tests/data/test_mnist.cpp: the files of MNIST are found, checked and split.
#include <deft/data/mnist.hpp>
// its own header comes first, to check that it is self-contained
#include <cstdlib>
#include <deft/data/idx.hpp>

#include "../testing.hpp"
#include "temporary_folder.hpp"

using namespace deft;

/// n images whose pixels are all `base` + their number, with labels 0, 1, … 9, 0, ….
static void write_pair(const std::filesystem::path& dir, const std::string& prefix, int n,
                       const std::string& ending, int base = 0) {
  any_array images(dtype::uint8, {n, 28, 28}), labels(dtype::uint8, {n});
  for (int i = 0; i < n; ++i) {
    std::fill_n(images.mutable_data<std::uint8_t>() + i * 784, 784,
                static_cast<std::uint8_t>(base + i));
    labels.mutable_data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % 10);
  }
  write_idx(dir / (prefix + "-images-idx3-ubyte" + ending), images);
  write_idx(dir / (prefix + "-labels-idx1-ubyte" + ending), labels);
}

TEST_CASE("of two pairs one is for training, the other for testing") {
  testing::temporary_folder dir;
  write_pair(dir.path(), "train", 7, "");
  write_pair(dir.path(), "t10k", 3, ".gz", 100);
  mnist_data d = load_mnist(dir.path().string());
  CHECK(d.train.images.extents() == dims{7, 784});
  CHECK(d.test.images.extents() == dims{3, 784});
  CHECK(d.train.images(6, 783) == 6 / 255.f);
  CHECK(d.test.images(2, 0) == 102 / 255.f);
  CHECK(d.test.labels == ndarray<std::int32_t, dyn>{0, 1, 2});
  CHECK(d.source == "7 images of " + (dir / "train-images-idx3-ubyte").string() +
                        " train, 3 of t10k-images-idx3-ubyte.gz test");
  CHECK(mnist_source(dir.path()) == d.source);
}

TEST_CASE("of a single pair four fifths are for training, the rest for testing") {
  testing::temporary_folder dir;
  write_pair(dir.path(), "t10k", 10, ".gz");
  int n = 0;
  for (auto& [images, labels] : mnist(dir.path()).batch(3)) {
    CHECK(labels(0) == n);
    CHECK(images(0, 5) == static_cast<float>(n) / 255.f);
    n += static_cast<int>(labels.size());
  }
  CHECK(n == 8);
  for (auto& [image, label] : mnist_test(dir.path())) {
    CHECK(label() == n);
    CHECK(image(783) == static_cast<float>(n++) / 255.f);
  }
  CHECK(n == 10);
  CHECK(mnist_source(dir.path()) == "the first 8 images of " +
                                        (dir / "t10k-images-idx3-ubyte.gz").string() +
                                        " train, the last 2 test");
}

TEST_CASE("without files digits are drawn") {
  testing::temporary_folder dir;
  CHECK(mnist_source() == "8,000 drawn digits train, 2,000 test");
  CHECK(mnist_source(dir.path()) == "8,000 drawn digits train, 2,000 test: " + dir.path().string() +
                                        " holds no files of MNIST");
  mnist_data d = load_mnist(dir.path());
  CHECK(d.train.labels.size() == 8000);
  CHECK(d.test.labels.size() == 2000);
  CHECK_FALSE(d.train.labels(0) == -1);
  CHECK(mnist("").cardinality() == 8000);
  CHECK(mnist_test("").cardinality() == 2000);
  for (auto& [image, label] : mnist().take(1)) {
    CHECK(label() == d.train.labels(0));
    CHECK(std::equal(image.begin(), image.end(), d.train.images.begin()));
  }
}

TEST_CASE("half a pair, a wrong folder and inconsistent files are errors with names") {
  testing::temporary_folder dir;
  CHECK(testing::error_of([&] { mnist(dir / "no"); }) ==
        "not_found: [mnist] there is no folder " + (dir / "no").string());
  any_array images(dtype::uint8, {2, 28, 28}), labels(dtype::uint8, {3}),
      small(dtype::uint8, {2, 27, 28});
  std::fill_n(images.mutable_data<std::uint8_t>(), images.bytes(), std::uint8_t{1});
  std::fill_n(labels.mutable_data<std::uint8_t>(), 3, std::uint8_t{10});
  std::fill_n(small.mutable_data<std::uint8_t>(), small.bytes(), std::uint8_t{1});
  auto i = dir / "train-images-idx3-ubyte", l = dir / "train-labels-idx1-ubyte";
  write_idx(i, images);
  CHECK(testing::error_of([&] { mnist(dir.path()); }) ==
        "not_found: [mnist] " + i.string() +
            " exists, but there is no train-labels-idx1-ubyte next to it");
  write_idx(l, labels);
  CHECK(testing::error_of([&] { mnist(dir.path()); }) ==
        "data_loss: [mnist] " + i.string() + " has 2 images, but " + l.string() + " has 3 labels");
  write_idx(l, any_array(dtype::uint8, {2}, labels.storage()));
  CHECK(testing::error_of([&] { mnist(dir.path()); }) ==
        "data_loss: [mnist] " + l.string() + " has the label 10 at 0; expected 0 to 9");
  write_idx(i, small);
  CHECK(testing::error_of([&] { mnist(dir.path()); }) ==
        "data_loss: [mnist] " + i.string() +
            " must hold images of 28x28 bytes, but holds uint8(2,27,28)");
}

TEST_CASE("the real files are read from DEFT_DATA_DIR") {
  const char* dir = std::getenv("DEFT_DATA_DIR");
  if (!dir) return;
  mnist_data d = load_mnist(dir);
  MESSAGE(d.source);
  CHECK(d.train.labels.size() >= 8000);
  CHECK(d.test.labels.size() >= 2000);
  double sum = 0;
  for (float v : d.train.images) sum += static_cast<double>(v);
  CHECK(sum / static_cast<double>(d.train.images.size()) == doctest::Approx(0.1307).epsilon(0.05));
}
