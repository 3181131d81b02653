// SPDX-License-Identifier: Apache-2.0
// deft/data/byte_pair_tokenizer.ipp: words by GPT-2's pattern, their merges, and the files.
#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <deft/data/byte_pair_tokenizer.hpp>
#include <deft/data/gguf.hpp>
#include <deft/data/tokenizer.ipp>

namespace deft {
namespace {

/// The characters by which vocabularies write bytes: those that are printed, and the first others.
class byte_characters {
 public:
  byte_characters() {
    char32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool printed = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      const char32_t c = printed ? static_cast<char32_t>(b) : next++;
      unicode::append(texts_[static_cast<std::size_t>(b)], c);
      bytes_.emplace(c, static_cast<char>(b));
    }
  }
  const std::string& of(unsigned char byte) const { return texts_[byte]; }
  /// The bytes that a token means; the token itself if it has other characters.
  std::string bytes_of(const std::string& token) const {
    std::string bytes;
    for (std::string_view left = token; !left.empty();) {
      const auto b = bytes_.find(unicode::take(left));
      if (b == bytes_.end()) return token;
      bytes += b->second;
    }
    return bytes;
  }

 private:
  std::array<std::string, 256> texts_;
  boost::unordered_flat_map<char32_t, char> bytes_;
};
const byte_characters& byte_table() {
  static const byte_characters table;
  return table;
}

enum class letter_kind { letter, number, space, other };
letter_kind kind_of(char32_t c) {
  if (unicode::is_letter(c)) return letter_kind::letter;
  if (unicode::is_number(c)) return letter_kind::number;
  return unicode::is_space(c) ? letter_kind::space : letter_kind::other;
}
/// What the first character is; nothing at the end.
std::optional<letter_kind> first_kind(std::string_view text) {
  if (text.empty()) return {};
  return kind_of(unicode::take(text));
}

/// The bytes of the word that a text begins with, by GPT-2's pattern:
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t first_word(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return ending.size();
  std::string_view rest = text;
  if (rest[0] == ' ') rest.remove_prefix(1);
  const auto kind = first_kind(rest);
  const auto take_all = [&](letter_kind k) {
    while (first_kind(rest) == k) unicode::take(rest);
    return text.size() - rest.size();
  };
  if (kind && *kind != letter_kind::space) return take_all(*kind);
  // Blanks, but the last one if a word follows, to which it belongs or not.
  rest = text;
  std::size_t before_last = 0, end = 0;
  while (first_kind(rest) == letter_kind::space) {
    before_last = end;
    unicode::take(rest);
    end = text.size() - rest.size();
  }
  return rest.empty() || before_last == 0 ? end : before_last;
}

/// The bytes before the first number of a text, or of the one that it begins with.
std::size_t until_number(std::string_view text) {
  std::string_view rest = text;
  if (!unicode::is_number(unicode::take(rest)))
    while (!rest.empty() && first_kind(rest) != letter_kind::number) unicode::take(rest);
  return text.size() - rest.size();
}

class byte_pair_rules final : public detail::tokenizer_rules {
 public:
  using tokenizer_rules::tokenizer_rules;

  bool single_digits = false;
  bool begins_with_blank = false;  ///< every piece of a text does
  bool whole_words = false;        ///< a word that is a token is not made of others
  bool joins_unknown = false;
  std::optional<std::int32_t> unknown;

  /// The next of the merges, of two tokens; the last of equal ones counts. Throws data_loss if they
  /// or their sum are not tokens.
  void add_merge(std::string_view left, std::string_view right) {
    const auto a = find(left), b = find(right), sum = find(std::string(left) += right);
    if (!a || !b || !sum)
      bad(ext::str("merge ", merges_read_, ", of \"", ext::printable(left), "\" and \"",
                   ext::printable(right), "\", is not one of tokens"));
    merges_.insert_or_assign(pair_of(*a, *b), merge{merges_read_++, *sum});
  }
  void add_merge(std::string_view line) {
    const auto blank = line.find(' ');
    if (blank == line.npos || line.find(' ', blank + 1) != line.npos)
      bad(ext::str("merge ", merges_read_, " is \"", ext::printable(line),
                   "\"; expected two tokens with a blank between them"));
    add_merge(line.substr(0, blank), line.substr(blank + 1));
  }
  /// When all tokens are there.
  void finish() {
    tokenizer_rules::finish();
    for (std::size_t b = 0; b < bytes_.size(); ++b)
      bytes_[b] = find(byte_table().of(static_cast<unsigned char>(b)));
    texts_.resize(size());
    for (std::size_t i = 0; i < texts_.size(); ++i)
      if (const std::string* const t = token(static_cast<std::int64_t>(i)))
        texts_[i] = byte_table().bytes_of(*t);
  }

 protected:
  void encode_piece(std::string_view text, std::vector<std::int32_t>& ids) const override {
    work w;
    while (!text.empty()) {
      const std::size_t end = single_digits ? until_number(text) : text.size();
      encode_words(text.substr(0, end), w, ids);
      text.remove_prefix(end);
    }
  }
  std::string decode_tokens(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) text += texts_[static_cast<std::size_t>(id)];
    return text;
  }

 private:
  struct merge {
    std::int32_t rank = 0, sum = 0;
  };
  /// A token of a word, in a list.
  struct symbol {
    std::int32_t id = 0;  ///< -1 if it was merged into the one before
    std::int32_t before = 0, next = 0;
  };
  /// A pair that may be merged: the first of the lowest rank is.
  struct candidate {
    std::int32_t rank = 0, at = 0, left = 0, right = 0, sum = 0;
    bool operator<(const candidate& o) const {
      return std::pair(rank, at) > std::pair(o.rank, o.at);
    }
  };
  struct work {
    std::vector<symbol> symbols;
    std::vector<candidate> heap;
  };

  static std::uint64_t pair_of(std::int32_t a, std::int32_t b) {
    return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
  }

  void encode_words(std::string_view text, work& w, std::vector<std::int32_t>& ids) const {
    std::string with_blank;
    if (begins_with_blank && text[0] != ' ') text = with_blank = " " + std::string(text);
    while (!text.empty()) {
      const std::size_t n = first_word(text);
      encode_word(text.substr(0, n), w, ids);
      text.remove_prefix(n);
    }
  }
  void encode_word(std::string_view word, work& w, std::vector<std::int32_t>& ids) const {
    if (whole_words) {
      std::string token;
      for (const char c : word) token += byte_table().of(static_cast<unsigned char>(c));
      if (const auto id = find(token)) return ids.push_back(*id);
    }
    w.symbols.clear();
    for (const char c : word) {
      const auto id = bytes_[static_cast<unsigned char>(c)];
      if (id)
        w.symbols.push_back({*id});
      else if (unknown && !(joins_unknown && !w.symbols.empty() && w.symbols.back().id == *unknown))
        w.symbols.push_back({*unknown});
    }
    const auto n = static_cast<std::int32_t>(w.symbols.size());
    for (std::int32_t i = 0; i < n; ++i) w.symbols[static_cast<std::size_t>(i)].before = i - 1;
    for (std::int32_t i = 0; i < n; ++i) w.symbols[static_cast<std::size_t>(i)].next = i + 1;
    join_pairs(w, n);
    for (const symbol& s : w.symbols)
      if (s.id >= 0) ids.push_back(s.id);
  }
  void join_pairs(work& w, std::int32_t n) const {
    const auto symbol_at = [&](std::int32_t i) -> symbol& {
      return w.symbols[static_cast<std::size_t>(i)];
    };
    w.heap.clear();
    const auto consider = [&](std::int32_t at) {
      if (at < 0 || symbol_at(at).next >= n) return;
      const std::int32_t left = symbol_at(at).id, right = symbol_at(symbol_at(at).next).id;
      const auto m = merges_.find(pair_of(left, right));
      if (m == merges_.end()) return;
      w.heap.push_back({m->second.rank, at, left, right, m->second.sum});
      std::push_heap(w.heap.begin(), w.heap.end());
    };
    for (std::int32_t i = 0; i + 1 < n; ++i) consider(i);
    while (!w.heap.empty()) {
      std::pop_heap(w.heap.begin(), w.heap.end());
      const candidate c = w.heap.back();
      w.heap.pop_back();
      symbol& left = symbol_at(c.at);
      // Another merge may have taken one of the two.
      if (left.id != c.left || left.next >= n || symbol_at(left.next).id != c.right) continue;
      symbol& right = symbol_at(left.next);
      left.id = c.sum;
      left.next = right.next;
      right.id = -1;
      if (left.next < n) symbol_at(left.next).before = c.at;
      consider(left.before);
      consider(c.at);
    }
  }

  boost::unordered_flat_map<std::uint64_t, merge> merges_;
  std::int32_t merges_read_ = 0;
  std::array<std::optional<std::int32_t>, 256> bytes_;
  std::vector<std::string> texts_;  ///< the bytes of tokens
};

/// The part of "pre_tokenizer", which may be one of a sequence.
void read_splitting(byte_pair_rules& rules, const detail::json_object& o) {
  const std::string type = o.text("type");
  if (type == "Sequence") {
    for (const auto& v : o.array("pretokenizers"))
      read_splitting(rules, detail::json_object(v, rules, "a pretokenizer"));
  } else if (type == "Digits" && o.flag("individual_digits", false)) {
    rules.single_digits = true;
  } else if (type == "ByteLevel" && o.flag("use_regex", true)) {
    rules.begins_with_blank = o.flag("add_prefix_space", true);
  } else {
    rules.unsupported(ext::str("the pre_tokenizer ", ext::printable(type),
                               " is not supported; expected ByteLevel with GPT-2's pattern, also "
                               "after Digits"));
  }
}

std::shared_ptr<const detail::tokenizer_rules> byte_pairs_of_json(const std::string& path) {
  auto rules = std::make_shared<byte_pair_rules>(path);
  const auto parsed = detail::parse_json(detail::read_tokenizer_file(path), "[tokenizer] " + path);
  const detail::json_object file(parsed, *rules, "it"), model = file.object("model");
  if (const std::string type = model.text("type", "BPE"); type != "BPE")
    rules->unsupported(ext::str("its model is ", ext::printable(type), "; expected BPE"));
  for (const std::string_view key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"})
    model.expect_unset(key);
  file.expect_unset("normalizer");
  read_splitting(*rules, file.object("pre_tokenizer"));
  detail::add_vocabulary(*rules, model.object("vocab"));
  for (const auto& v : model.array("merges"))
    if (const auto* const pair = v.if_array();
        pair && pair->size() == 2 && pair->at(0).is_string() && pair->at(1).is_string())
      rules->add_merge(pair->at(0).get_string(), pair->at(1).get_string());
    else if (v.is_string())
      rules->add_merge(v.get_string());
    else
      rules->bad("a merge is neither a string nor a pair of strings");
  rules->whole_words = model.flag("ignore_merges", false);
  rules->joins_unknown = model.flag("fuse_unk", false);
  if (model.find("unk_token")) rules->unknown = rules->expect(model.text("unk_token"));
  detail::add_added_tokens(*rules, file, false);
  detail::add_surrounding(*rules, file);
  rules->finish();
  return rules;
}

std::shared_ptr<const detail::tokenizer_rules> byte_pairs_of_files(const std::string& vocabulary,
                                                                   const std::string& merges,
                                                                   byte_pair_options options) {
  auto rules = std::make_shared<byte_pair_rules>(vocabulary);
  const auto parsed =
      detail::parse_json(detail::read_tokenizer_file(vocabulary), "[tokenizer] " + vocabulary);
  detail::add_vocabulary(*rules, detail::json_object(parsed, *rules, "it"));
  const std::string text = detail::read_tokenizer_file(merges);
  bool is_first = true;
  for (std::string_view left = text; !left.empty();) {
    const std::size_t end = left.find('\n');
    std::string_view line = left.substr(0, end);
    left.remove_prefix(end == left.npos ? left.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!std::exchange(is_first, false) || !line.starts_with("#version"))
      if (!line.empty()) rules->add_merge(line);
  }
  constexpr std::string_view end = "<|endoftext|>";
  if (const auto id = rules->find(end))
    rules->add_special({.text = std::string(end), .id = *id, .special = true});
  rules->single_digits = options.single_digits;
  rules->finish();
  return rules;
}

std::shared_ptr<const detail::tokenizer_rules> byte_pairs_of_gguf(const gguf_file& file) {
  auto rules = std::make_shared<byte_pair_rules>(file.path());
  const std::string key = "tokenizer.ggml.", model = file.get<std::string>(key + "model"),
                    pattern = file.get<std::string>(key + "pre", "gpt-2");
  if (model != "gpt2" || (pattern != "gpt-2" && pattern != "smollm"))
    rules->unsupported(ext::str("its tokenizer is ", ext::printable(model), " with the pattern of ",
                                ext::printable(pattern),
                                "; expected gpt2 with that of gpt-2 or smollm"));
  rules->single_digits = pattern == "smollm";
  rules->begins_with_blank = file.get<bool>(key + "add_space_prefix", false);
  std::int64_t number = 0;
  for (std::string& token : file.get<std::vector<std::string>>(key + "tokens"))
    rules->add(std::move(token), number++);
  for (const std::string& line : file.get<std::vector<std::string>>(key + "merges"))
    rules->add_merge(line);
  // Kinds of tokens, as llama.cpp numbers them.
  constexpr std::int32_t control = 3, of_user = 4;
  const auto kinds = file.get<std::vector<std::int32_t>>(key + "token_type", {});
  if (!kinds.empty() && kinds.size() != rules->size())
    rules->bad(ext::str("it has ", kinds.size(), " kinds of ", rules->size(), " tokens"));
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i] == control || kinds[i] == of_user)
      rules->add_special({.text = *rules->token(static_cast<std::int64_t>(i)),
                          .id = static_cast<std::int32_t>(i),
                          .special = kinds[i] == control});
  const auto around = [&](const std::string& name) {
    std::vector<std::int32_t> ids;
    if (!file.get<bool>(ext::str(key, "add_", name, "_token"), false)) return ids;
    ids.push_back(file.get<std::int32_t>(ext::str(key, name, "_token_id")));
    if (!rules->token(ids[0]))
      rules->bad(ext::str("its token \"", name, "\" has the number ", ids[0]));
    return ids;
  };
  rules->surround(around("bos"), around("eos"));
  rules->finish();
  return rules;
}

}  // namespace

byte_pair_tokenizer::byte_pair_tokenizer(const std::string& file)
    : tokenizer(byte_pairs_of_json(file)) {}
byte_pair_tokenizer::byte_pair_tokenizer(const std::string& vocabulary, const std::string& merges,
                                         byte_pair_options options)
    : tokenizer(byte_pairs_of_files(vocabulary, merges, options)) {}
byte_pair_tokenizer::byte_pair_tokenizer(const gguf_file& file)
    : tokenizer(byte_pairs_of_gguf(file)) {}

}  // namespace deft
