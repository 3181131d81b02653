// SPDX-License-Identifier: Apache-2.0
// deft/data/word_piece_tokenizer.hpp: word pieces, as of BERT.
#pragma once
#include <deft/data/tokenizer.hpp>
#include <string>

namespace deft {

/// Options of a word_piece_tokenizer of vocab.txt, which says nothing about them.
struct word_piece_options {
  bool lower_case = true;  ///< as uncased models are: without accents, too
};

/// Cleans a text, lets each Chinese character and each punctuation mark be a word, and makes each
/// word of the longest pieces of the vocabulary, from its beginning; one that cannot be made of
/// them, or has more than 100 characters, is [UNK]. (The algorithm:
/// https://github.com/google-research/bert, tokenization.py.)
///
///     const word_piece_tokenizer bert("all-MiniLM-L6-v2/vocab.txt");
///     bert.encode("A parameter server");  // 101 1037 16381 8241 102
class word_piece_tokenizer : public tokenizer {
 public:
  /// Of vocab.txt, with a token in each line, or of a file *.json: tokenizer.json with a model
  /// WordPiece and BERT's normalizer, which say themselves what `options` do. Throws not_found if
  /// there is no such file, data_loss if it is not sound, or lacks [UNK], [CLS] or [SEP],
  /// unimplemented for other models and normalizers.
  explicit word_piece_tokenizer(const std::string& file, word_piece_options options = {});
};

}  // namespace deft
