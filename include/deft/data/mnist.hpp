// SPDX-License-Identifier: Apache-2.0
// deft/data/mnist.hpp: handwritten digits from the files of MNIST, or generated ones without them.
#pragma once
#include <deft/data/digits.hpp>
#include <deft/data/pipeline.hpp>
#include <string>

namespace deft {

/// Images as rows of 784 grey values in [0, 1], and labels 0 to 9.
struct mnist_data {
  /// For training, and for testing.
  /// @{
  ext::digit_set train, test;
  /// @}
  std::string source;  ///< as returned by `mnist_source`
};

/// Elements of `mnist` and `mnist_test`: an image and its label.
using mnist_dataset = dataset<ndarray<float, 784>, ndarray<std::int32_t>>;

/// The training images of the folder `dir`, which may hold `train-images-idx3-ubyte` and
/// `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, plain or with
/// `.gz`: the first pair is for training, the second for testing. Of a single pair, the first four
/// fifths are for training and the last fifth for testing (8,000 and 2,000 of t10k). If `dir` is ""
/// or holds none of them, deft draws 8,000 and 2,000 digits, always the same ones.
///
///     for (auto& [images, labels] : mnist(dir).shuffle(10'000).batch(100).repeat()) …
///
/// Throws not_found if there is no folder `dir`, or only half of a pair; data_loss for corrupt
/// files.
mnist_dataset mnist(const std::string& dir = {});

/// The images of `dir` that are held out for testing. Throws as mnist.
mnist_dataset mnist_test(const std::string& dir = {});

/// Describes in a sentence the data that `mnist` and `mnist_test` use. Throws as mnist.
std::string mnist_source(const std::string& dir = {});

/// Both as whole arrays. Throws as mnist.
mnist_data load_mnist(const std::string& dir = {});

}  // namespace deft
