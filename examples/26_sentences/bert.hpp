// SPDX-License-Identifier: Apache-2.0
// 26_sentences/bert.hpp: BERT, of a folder as Hugging Face has it.
#pragma once
#include <cstdint>
#include <deft/expr.hpp>
#include <string>

/// Weights are variables of the current graph, named as in the folder's files, random at first.
class bert {
 public:
  /// Reads config.json.
  explicit bert(const std::string& folder);

  /// Vectors (b,width) of length 1: the mean of what the last layer makes of the tokens of a
  /// sentence. Sentence i has the first lengths[i] of the tokens (b,l) of its row.
  deft::any_tensor operator()(const deft::any_tensor& tokens,
                              const deft::any_tensor& lengths) const;

 private:
  deft::any_tensor norm(const deft::any_tensor& x, const std::string& name) const;
  /// x W' + b, of W (out,in).
  deft::any_tensor linear(const deft::any_tensor& x, const std::string& name, std::int64_t out,
                          std::int64_t in) const;
  /// What each token takes from those that are `there`.
  deft::any_tensor attention(const deft::any_tensor& x, const deft::any_tensor& there,
                             const std::string& name) const;

  std::int64_t words_, positions_, types_, layers_, width_, heads_, hidden_;
  double epsilon_;
};
