// SPDX-License-Identifier: Apache-2.0
// deft/data/tokenizer.hpp: what tokenizers have in common: text to the numbers of tokens, and back.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace deft {

namespace detail {
class tokenizer_rules;
}

/// Options of tokenizer::encode.
struct encode_options {
  /// Adds the tokens that the model expects before and after a text: [CLS] and [SEP] of BERT.
  bool add_special = true;
  /// Special tokens that are written in the text, such as "<|im_end|>", become these tokens. Not
  /// for what a stranger writes, who could end a message with them.
  bool find_special = true;
};
/// Options of tokenizer::decode.
struct decode_options {
  bool special = false;  ///< special tokens are written, too
};

/// A vocabulary, and how texts are made of it: byte_pair_tokenizer or word_piece_tokenizer. Copies
/// share it; any threads may use it.
class tokenizer {
 public:
  /// The numbers of a text's tokens. The text is not cut off, and nothing is padded. Throws
  /// invalid_argument if it is not UTF-8.
  std::vector<std::int32_t> encode(std::string_view text, encode_options options = {}) const;
  /// The text of tokens. It need not be UTF-8 where tokens are bytes, and the first or the last of
  /// a character are missing. Throws out_of_range for a number that is not that of a token.
  std::string decode(std::span<const std::int32_t> ids, decode_options options = {}) const;

  /// The number of a token, as the vocabulary has it: `id_of("<|im_end|>")`. Throws not_found.
  std::int32_t id_of(std::string_view token) const;
  bool contains(std::string_view token) const;  ///< whether id_of knows it
  /// The token of a number, as the vocabulary has it. Throws out_of_range.
  const std::string& token(std::int32_t id) const;
  /// Numbers of tokens are below it: the rows of an embedding.
  std::int32_t size() const;

 protected:
  explicit tokenizer(std::shared_ptr<const detail::tokenizer_rules> rules);  ///< by these rules

 private:
  std::shared_ptr<const detail::tokenizer_rules> rules_;
};

}  // namespace deft
