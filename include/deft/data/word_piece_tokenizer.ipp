// SPDX-License-Identifier: Apache-2.0
// deft/data/word_piece_tokenizer.ipp: BERT's normalization, its words and their pieces.
#pragma once
#include <deft/data/tokenizer.ipp>
#include <deft/data/word_piece_tokenizer.hpp>

namespace deft {
namespace {

/// As BERT counts them, without the kana and hangul of East Asian texts.
bool is_chinese(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b81f) ||
         (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
         (c >= 0x2f800 && c <= 0x2fa1f);
}
/// Also those of ASCII that Unicode calls symbols.
bool is_punctuation(char32_t c) {
  return (c > 32 && c < 127 && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
          !(c >= 'a' && c <= 'z')) ||
         unicode::is_among(c, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

class word_piece_rules final : public detail::tokenizer_rules {
 public:
  using tokenizer_rules::tokenizer_rules;

  bool cleans = true, spaces_chinese = true, strips_accents = true, lower_case = true;
  std::int32_t unknown = 0;
  std::string prefix = "##";  ///< of pieces that do not begin a word
  std::int64_t longest_word = 100;
  bool joins_punctuation = true;  ///< in texts of tokens

 protected:
  void encode_piece(std::string_view text, std::vector<std::int32_t>& ids) const override {
    std::string word;
    std::int64_t length = 0;  // in characters
    const auto end_word = [&] {
      if (length > 0) encode_word(word, length, ids);
      word.clear();
      length = 0;
    };
    for (const char32_t c : normalized(text)) {
      if (unicode::is_space(c)) {
        end_word();
        continue;
      }
      const bool alone = is_punctuation(c);
      if (alone) end_word();
      unicode::append(word, c);
      ++length;
      if (alone) end_word();
    }
    end_word();
  }

  std::string decode_tokens(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::string t = token_at(ids[i]);
      if (i > 0) t = t.starts_with(prefix) ? t.substr(prefix.size()) : " " + t;
      if (joins_punctuation) join_punctuation(t);
      text += t;
    }
    return text;
  }

 private:
  std::u32string normalized(std::string_view text) const {
    std::string clean;
    while (!text.empty()) {
      char32_t c = unicode::take(text);
      if (cleans) {
        if (c == '\t' || c == '\n' || c == '\r') c = ' ';
        if (c == 0xfffd || unicode::is_among(c, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO))
          continue;
        if (unicode::is_space(c)) c = ' ';
      }
      const bool apart = spaces_chinese && is_chinese(c);
      if (apart) clean += ' ';
      unicode::append(clean, c);
      if (apart) clean += ' ';
    }
    std::u32string all;
    for (const std::int32_t n : characters_of(clean)) {
      const auto c = static_cast<char32_t>(n);
      if (strips_accents && unicode::category(c) == UTF8PROC_CATEGORY_MN) continue;
      constexpr char32_t dotted_i = 0x130;  // the only one with two small characters
      if (lower_case && c == dotted_i)
        all += U"i\u0307";
      else
        all += lower_case ? static_cast<char32_t>(utf8proc_tolower(n)) : c;
    }
    return all;
  }
  /// In Unicode's form NFD if accents are stripped.
  std::vector<std::int32_t> characters_of(const std::string& text) const {
    const auto options = strips_accents ? UTF8PROC_DECOMPOSE : utf8proc_option_t{};
    std::vector<std::int32_t> all(text.size());
    for (;;) {
      const auto n = utf8proc_decompose(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                        static_cast<utf8proc_ssize_t>(text.size()), all.data(),
                                        static_cast<utf8proc_ssize_t>(all.size()), options);
      if (n < 0) ext::fail(errc::invalid_argument, "[tokenizer] ", utf8proc_errmsg(n));
      const bool fits = static_cast<std::size_t>(n) <= all.size();
      all.resize(static_cast<std::size_t>(n));
      if (fits) return all;
    }
  }

  void encode_word(std::string_view word, std::int64_t length,
                   std::vector<std::int32_t>& ids) const {
    const std::size_t before = ids.size();
    if (length <= longest_word) {
      std::string piece;
      std::optional<std::int32_t> id;
      for (bool first = true; !word.empty(); first = false) {
        piece = first ? std::string() : prefix;
        const std::size_t begin = piece.size();
        piece += word.substr(0, longest());
        // Pieces that end within a character are no tokens.
        for (id = find(piece); !id && piece.size() > begin + 1; id = find(piece)) piece.pop_back();
        if (!id) break;
        ids.push_back(*id);
        word.remove_prefix(piece.size() - begin);
      }
      if (id) return;
    }
    ids.resize(before);
    ids.push_back(unknown);
  }

  static void join_punctuation(std::string& t) {
    constexpr std::pair<std::string_view, std::string_view> joins[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [apart, joined] : joins)
      for (std::size_t at = 0; (at = t.find(apart, at)) != t.npos; at += joined.size())
        t.replace(at, apart.size(), joined);
  }
};

std::shared_ptr<const detail::tokenizer_rules> word_pieces_of_text(const std::string& path,
                                                                   word_piece_options options) {
  auto rules = std::make_shared<word_piece_rules>(path);
  const std::string text = detail::read_tokenizer_file(path);
  std::int64_t number = 0;
  for (std::string_view left = text; !left.empty(); ++number) {
    const std::size_t end = left.find('\n');
    std::string_view line = left.substr(0, end);
    left.remove_prefix(end == left.npos ? left.size() : end + 1);
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    rules->add(std::string(line), number);
  }
  rules->unknown = rules->expect("[UNK]");
  rules->surround({rules->expect("[CLS]")}, {rules->expect("[SEP]")});
  for (const std::string_view special : {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"})
    if (const auto id = rules->find(special))
      rules->add_special({.text = std::string(special), .id = *id, .special = true});
  rules->lower_case = rules->strips_accents = options.lower_case;
  rules->finish();
  return rules;
}

std::shared_ptr<const detail::tokenizer_rules> word_pieces_of_json(const std::string& path) {
  auto rules = std::make_shared<word_piece_rules>(path);
  const auto parsed = detail::parse_json(detail::read_tokenizer_file(path), "[tokenizer] " + path);
  const detail::json_object file(parsed, *rules, "it"), model = file.object("model"),
                                                        normalizer = file.object("normalizer"),
                                                        splitting = file.object("pre_tokenizer");
  const auto expect_type = [&](const detail::json_object& o, std::string_view what,
                               std::string_view type) {
    if (const std::string found = o.text("type", std::string(type)); found != type)
      rules->unsupported(
          ext::str("its ", what, " is ", ext::printable(found), "; expected ", type));
  };
  expect_type(model, "model", "WordPiece");
  expect_type(normalizer, "normalizer", "BertNormalizer");
  expect_type(splitting, "pre_tokenizer", "BertPreTokenizer");
  rules->cleans = normalizer.flag("clean_text", true);
  rules->spaces_chinese = normalizer.flag("handle_chinese_chars", true);
  rules->lower_case = normalizer.flag("lowercase", true);
  rules->strips_accents = normalizer.flag("strip_accents", rules->lower_case);
  detail::add_vocabulary(*rules, model.object("vocab"));
  rules->unknown = rules->expect(model.text("unk_token", "[UNK]"));
  rules->prefix = model.text("continuing_subword_prefix", "##");
  if (model.find("max_input_chars_per_word"))
    rules->longest_word = model.number("max_input_chars_per_word");
  if (file.find("decoder")) {
    expect_type(file.object("decoder"), "decoder", "WordPiece");
    rules->joins_punctuation = file.object("decoder").flag("cleanup", true);
  }
  detail::add_added_tokens(*rules, file, true);
  detail::add_surrounding(*rules, file);
  rules->finish();
  return rules;
}

}  // namespace

word_piece_tokenizer::word_piece_tokenizer(const std::string& file, word_piece_options options)
    : tokenizer(file.ends_with(".json") ? word_pieces_of_json(file)
                                        : word_pieces_of_text(file, options)) {}

}  // namespace deft
