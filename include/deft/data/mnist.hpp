// SPDX-License-Identifier: Apache-2.0
// deft/data/mnist.hpp: handwritten digits from the files of MNIST, or drawn where there are none.
#pragma once
#include <deft/data/digits.hpp>
#include <deft/data/pipeline.hpp>
#include <string>

namespace deft {

/// Images as rows of 784 grey values in [0, 1], labels 0 to 9.
struct mnist_data {
  digit_set train, test;
  std::string source;  ///< what `mnist_source` says
};

/// Elements of `mnist` and `mnist_test`: an image and its label.
using mnist_dataset = dataset<ndarray<float, 784>, ndarray<std::int32_t>>;

/// The training images that `dir` gives. It may hold `train-images-idx3-ubyte` and
/// `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, plain or with
/// `.gz`: the first pair trains, the second tests. Of a single pair the first four fifths train and
/// the last fifth tests (8,000 and 2,000 of t10k). If `dir` is "" or holds none of them, deft draws
/// 8,000 and 2,000 digits, always the same.
///
///     for (auto& [images, labels] : mnist(dir).shuffle(10'000).batch(100).repeat()) …
///
/// Throws not_found if there is no folder `dir`, or half of a pair; data_loss for corrupt files.
mnist_dataset mnist(const std::string& dir = {});

/// The images of `dir` that are held out from training.
mnist_dataset mnist_test(const std::string& dir = {});

/// A sentence that says what `mnist` and `mnist_test` use.
std::string mnist_source(const std::string& dir = {});

/// Both as whole arrays.
mnist_data load_mnist(const std::string& dir = {});

}  // namespace deft
