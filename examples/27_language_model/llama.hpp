// SPDX-License-Identifier: Apache-2.0
// 27_language_model/llama.hpp: Llama's architecture, of a GGUF file.
#pragma once
#include <cstdint>
#include <deft/data/gguf.hpp>
#include <deft/expr.hpp>
#include <optional>
#include <string>

/// Weights are variables of the current graph, named as in the file; without one they are random,
/// and few. So are the keys and values of what has been read.
class llama {
 public:
  /// `context`: how many tokens the variables have room for.
  llama(std::optional<deft::gguf_file> file, std::int64_t context);

  /// The logits (words) of what follows `tokens` (n), of which the first is the one at `position`,
  /// and which follow those that were read before. Reads them: their keys and values are kept.
  deft::any_tensor operator()(const deft::any_tensor& tokens,
                              const deft::any_tensor& position) const;

 private:
  template <class T>
  T setting(const std::string& key, T otherwise) const {
    return file_ ? file_->get<T>("llama." + key) : otherwise;
  }
  /// The variable of this name, made where the graph has none.
  static deft::any_variable variable(const std::string& name, const deft::dims& shape,
                                     const deft::initializer& first);
  deft::any_tensor weight(const std::string& name, const deft::dims& shape) const;
  deft::any_tensor norm(const deft::any_tensor& x, const std::string& name) const;

  std::optional<deft::gguf_file> file_;
  std::int64_t context_, words_, width_, hidden_, heads_, groups_, size_;
};
