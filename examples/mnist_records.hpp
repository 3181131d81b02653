// SPDX-License-Identifier: Apache-2.0
// mnist_records.hpp: MNIST as TFRecord files of tf.Example.
#pragma once
#include <cmath>
#include <deft/deft.hpp>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

inline std::string encode(const deft::ndarray<float, 784>& image, std::int32_t label) {
  std::string pixels;
  for (float v : image) pixels += static_cast<char>(std::lround(v * 255));
  return deft::example().set("image_raw", pixels).set("label", label).encode();
}

inline std::tuple<deft::ndarray<float, 784>, std::int32_t> image_and_label(
    const deft::example_view& e) {
  const std::string_view pixels = e.one_bytes("image_raw");
  if (pixels.size() != 784)
    throw deft::error(deft::errc::data_loss,
                      "an image of " + std::to_string(pixels.size()) + " bytes");
  deft::ndarray<float, 784> image;
  float* to = image.data();
  for (char c : pixels) *to++ = static_cast<float>(static_cast<unsigned char>(c)) / 255;
  return {std::move(image), static_cast<std::int32_t>(e.one_integer("label"))};
}

/// Writes four files into `folder`, and returns their paths.
inline std::vector<std::string> write_records(const deft::mnist_dataset& digits,
                                              const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::vector<std::string> files;
  for (int i = 0; i < 4; ++i) {
    files.push_back(folder / ("train-" + std::to_string(i) + ".tfrecord"));
    deft::record_writer writer(files.back());
    for (auto& [image, label] : digits.shard(4, i)) writer.write(encode(image, label()));
    writer.close();
  }
  return files;
}
