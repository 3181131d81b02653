// SPDX-License-Identifier: Apache-2.0
// deft/data/mnist.ipp: finding, checking and splitting the files of MNIST.
#pragma once
#include <deft/data/idx.hpp>
#include <deft/data/mnist.hpp>
#include <filesystem>

namespace deft {
namespace detail {

inline constexpr std::int64_t drawn_train = 8'000, drawn_test = 2'000;
inline constexpr std::uint64_t drawn_seed = 1;

/// A pair of files; empty if neither exists.
struct mnist_pair {
  std::filesystem::path images, labels;
  explicit operator bool() const { return !images.empty(); }
};

inline mnist_pair find_mnist_pair(const std::filesystem::path& dir, const std::string& prefix) {
  std::filesystem::path found[2];
  const char* const names[2] = {"images-idx3-ubyte", "labels-idx1-ubyte"};
  for (int i = 0; i < 2; ++i)
    for (const char* ending : {"", ".gz"}) {
      auto file = dir / (prefix + "-" + names[i] + ending);
      std::error_code ignored;
      if (found[i].empty() && std::filesystem::is_regular_file(file, ignored)) found[i] = file;
    }
  if (found[0].empty() != found[1].empty())
    fail(errc::not_found, "[mnist] ", (found[0].empty() ? found[1] : found[0]).string(),
         " exists, but there is no ", prefix, "-", names[found[0].empty() ? 0 : 1], " next to it");
  return {found[0], found[1]};
}

/// Which rows of which files train and test.
struct mnist_plan {
  struct part {
    mnist_pair files;  // empty: digits are drawn
    std::int64_t first = 0, last = 0;
  };
  part train, test;
  std::string source;
};

inline std::int64_t rows_in(const mnist_pair& p) {
  auto images = read_idx_header(p.images), labels = read_idx_header(p.labels);
  if (images.type != dtype::uint8 || !fits({dyn, 28, 28}, images.shape))
    fail(errc::data_loss, "[mnist] ", p.images.string(),
         " must hold images of 28x28 bytes, but holds ", images.type, images.shape);
  if (labels.type != dtype::uint8 || labels.shape.rank() != 1)
    fail(errc::data_loss, "[mnist] ", p.labels.string(), " must hold a list of bytes, but holds ",
         labels.type, labels.shape);
  if (images.shape[0] != labels.shape[0])
    fail(errc::data_loss, "[mnist] ", p.images.string(), " has ", images.shape[0], " images, but ",
         p.labels.string(), " has ", labels.shape[0], " labels");
  return images.shape[0];
}

inline std::string with_commas(std::int64_t n) {
  std::string s = str(n);
  for (auto i = static_cast<std::ptrdiff_t>(s.size()) - 3; i > 0; i -= 3)
    s.insert(static_cast<std::size_t>(i), 1, ',');
  return s;
}

inline mnist_plan plan_mnist(const std::filesystem::path& dir) {
  std::error_code ignored;
  if (!dir.empty() && !std::filesystem::is_directory(dir, ignored))
    fail(errc::not_found, "[mnist] there is no folder ", dir.string());
  mnist_pair train, test;
  if (!dir.empty()) train = find_mnist_pair(dir, "train"), test = find_mnist_pair(dir, "t10k");
  if (train && test) {
    std::int64_t n = rows_in(train), m = rows_in(test);
    return {{train, 0, n},
            {test, 0, m},
            str(with_commas(n), " images of ", train.images.string(), " train, ", with_commas(m),
                " of ", test.images.filename().string(), " test")};
  }
  if (train || test) {
    const mnist_pair& only = train ? train : test;
    std::int64_t n = rows_in(only), border = n - n / 5;
    return {{only, 0, border},
            {only, border, n},
            str("the first ", with_commas(border), " images of ", only.images.string(),
                " train, the last ", with_commas(n - border), " test")};
  }
  return {{{}, 0, drawn_train},
          {{}, drawn_train, drawn_train + drawn_test},
          str(with_commas(drawn_train), " drawn digits train, ", with_commas(drawn_test), " test",
              dir.empty() ? "" : ": " + dir.string() + " holds no files of MNIST")};
}

inline digit_set load_part(const mnist_plan::part& p) {
  std::int64_t n = p.last - p.first;
  if (!p.files) return draw_digits(n, drawn_seed, static_cast<std::uint64_t>(p.first));
  // The files may have changed since the checks of `rows_in`.
  any_array bytes = read_idx(p.files.images), classes = read_idx(p.files.labels);
  if (bytes.type() != dtype::uint8 || !fits({dyn, 28, 28}, bytes.shape()) ||
      bytes.shape()[0] < p.last || classes.type() != dtype::uint8 || classes.elements() < p.last)
    fail(errc::aborted, "[mnist] ", p.files.images.string(), " changed while it was read");
  any_array images(dtype::float32, {n, 784}), labels(dtype::int32, {n});
  const std::uint8_t* from = bytes.data<std::uint8_t>() + p.first * 784;
  float* to = images.mutable_data<float>();
  for (std::int64_t i = 0; i < n * 784; ++i) to[i] = static_cast<float>(from[i]) / 255.f;
  const std::uint8_t* class_of = classes.data<std::uint8_t>() + p.first;
  for (std::int64_t i = 0; i < n; ++i) {
    if (class_of[i] > 9)
      fail(errc::data_loss, "[mnist] ", p.files.labels.string(), " has the label ",
           int{class_of[i]}, " at ", p.first + i, "; expected 0 to 9");
    labels.mutable_data<std::int32_t>()[i] = class_of[i];
  }
  return {ndarray<float, dyn, 784>(std::move(images)),
          ndarray<std::int32_t, dyn>(std::move(labels))};
}

inline mnist_dataset slices_of(digit_set d) {
  return from_slices(std::move(d.images), std::move(d.labels));
}

}  // namespace detail

mnist_dataset mnist(const std::string& dir) {
  return detail::slices_of(detail::load_part(detail::plan_mnist(dir).train));
}
mnist_dataset mnist_test(const std::string& dir) {
  return detail::slices_of(detail::load_part(detail::plan_mnist(dir).test));
}
std::string mnist_source(const std::string& dir) { return detail::plan_mnist(dir).source; }
mnist_data load_mnist(const std::string& dir) {
  auto plan = detail::plan_mnist(dir);
  return {detail::load_part(plan.train), detail::load_part(plan.test), std::move(plan.source)};
}

}  // namespace deft
