// SPDX-License-Identifier: Apache-2.0
// deft/data/byte_pair_tokenizer.hpp: byte-level byte pair encoding, as of GPT-2, Llama and SmolLM.
#pragma once
#include <deft/data/tokenizer.hpp>
#include <string>

namespace deft {

class gguf_file;

/// Options of a byte_pair_tokenizer whose files say nothing about them.
struct byte_pair_options {
  bool single_digits = false;  ///< digits are words of their own, as SmolLM has them
};

/// Takes texts apart into words, by GPT-2's pattern, and joins the bytes of each word pair by pair,
/// in the order of a list of merges. The time is that of n log n for a word of n bytes. A byte that
/// the vocabulary lacks is left out, or is the unknown token if the file names one. (The encoding:
/// Sennrich et al., https://arxiv.org/abs/1508.07909, and https://github.com/openai/gpt-2.)
///
///     const byte_pair_tokenizer text(read_gguf("SmolLM2-135M.gguf"));
///     text.encode("The capital of France is");  // 504 3575 282 4649 314
class byte_pair_tokenizer : public tokenizer {
 public:
  /// Of a file tokenizer.json with a model BPE, and a pre_tokenizer of ByteLevel, also after
  /// Digits. Throws not_found if there is no such file, data_loss if it is not sound, unimplemented
  /// for other models, patterns and normalizers.
  explicit byte_pair_tokenizer(const std::string& file);
  /// Of the files vocab.json and merges.txt. "<|endoftext|>" is a special token, if it is there.
  byte_pair_tokenizer(const std::string& vocabulary, const std::string& merges,
                      byte_pair_options options = {});
  /// Of the metadata of a GGUF file whose tokenizer is "gpt2", with the pattern of "gpt-2" or
  /// "smollm".
  explicit byte_pair_tokenizer(const gguf_file& file);
};

}  // namespace deft
