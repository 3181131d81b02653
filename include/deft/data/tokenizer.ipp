// SPDX-License-Identifier: Apache-2.0
// deft/data/tokenizer.ipp: vocabularies, special tokens in texts, and the file tokenizer.json of
// Hugging Face's tokenizers.
#pragma once
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <deft/core/error.hpp>
#include <deft/core/file.hpp>
#include <deft/core/json.ipp>
#include <deft/core/printable.hpp>
#include <deft/data/tokenizer.hpp>
#include <optional>
#include <unordered_map>

namespace deft::detail {

/// Of characters, as Unicode has them.
namespace unicode {

/// Takes the character that UTF-8 text, which is valid and not empty, begins with.
inline char32_t take(std::string_view& text) {
  utf8proc_int32_t c = 0;
  const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                  static_cast<utf8proc_ssize_t>(text.size()), &c);
  text.remove_prefix(static_cast<std::size_t>(std::max<utf8proc_ssize_t>(n, 1)));
  return static_cast<char32_t>(c);
}
inline void append(std::string& to, char32_t c) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  to.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}
inline utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}
inline bool is_among(char32_t c, utf8proc_category_t first, utf8proc_category_t last) {
  const auto of = category(c);
  return of >= first && of <= last;
}
inline bool is_letter(char32_t c) {
  return is_among(c, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}
inline bool is_number(char32_t c) {
  return is_among(c, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}
/// White_Space.
inline bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == 0x85 ||
         is_among(c, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

}  // namespace unicode

/// A token that is found in a text before it is taken apart.
struct added_token {
  std::string text;
  std::int32_t id = 0;
  bool special = false;
  bool takes_left = false, takes_right = false;  ///< blanks on that side belong to it
};

/// A vocabulary. Each kind of tokenizer derives from it.
class tokenizer_rules {
 public:
  /// `where` is the file, in messages.
  explicit tokenizer_rules(std::string where) : where_(std::move(where)) {}
  virtual ~tokenizer_rules() = default;

  [[noreturn]] void bad(std::string_view what) const {
    fail(errc::data_loss, "[tokenizer] ", where_, ": ", what);
  }
  [[noreturn]] void unsupported(std::string_view what) const {
    fail(errc::unimplemented, "[tokenizer] ", where_, ": ", what);
  }

  // Filling.

  /// So many tokens follow, whose numbers may be in any order.
  void announce(std::size_t more) { announced_ += static_cast<std::int64_t>(more); }
  /// The last of equal tokens counts. Throws data_loss for a number that is far above the others:
  /// numbers without tokens take memory.
  void add(std::string text, std::int64_t id) {
    constexpr std::int64_t spare = 1 << 16;
    const std::int64_t end = spare + 2 * std::max(announced_, number_added_);
    if (id < 0 || id >= end)
      bad(str("token \"", printable(text), "\" has the number ", id, "; expected 0 to ", end - 1));
    ++number_added_;
    const auto at = static_cast<std::size_t>(id);
    if (at >= tokens_.size()) tokens_.resize(at + 1);
    if (tokens_[at] && *tokens_[at] != text)
      bad(str("tokens \"", printable(*tokens_[at]), "\" and \"", printable(text),
              "\" have the number ", id));
    tokens_[at] = text;
    longest_ = std::max(longest_, text.size());
    ids_.insert_or_assign(std::move(text), static_cast<std::int32_t>(id));
  }
  void add_special(added_token t) {
    if (t.text.empty()) bad("an added token is empty");
    if (t.special) special_.push_back(t.id);
    added_[static_cast<unsigned char>(t.text[0])].push_back(std::move(t));
  }
  void surround(std::vector<std::int32_t> before, std::vector<std::int32_t> after) {
    before_ = std::move(before);
    after_ = std::move(after);
  }
  /// When all are there.
  void finish() {
    std::ranges::sort(special_);
    for (auto& same : added_)
      std::ranges::stable_sort(same, std::ranges::greater(),
                               [](const added_token& a) { return a.text.size(); });
  }

  // Use.

  std::optional<std::int32_t> find(std::string_view token) const {
    const auto id = ids_.find(token);
    if (id == ids_.end()) return {};
    return id->second;
  }
  std::int32_t expect(std::string_view token) const {
    const auto id = find(token);
    if (!id) bad(str("it has no token \"", printable(token), "\""));
    return *id;
  }
  const std::string& where() const { return where_; }
  std::size_t size() const { return tokens_.size(); }
  /// Bytes of the longest token.
  std::size_t longest() const { return longest_; }
  /// Null for a number without a token.
  const std::string* token(std::int64_t id) const {
    if (id < 0 || id >= static_cast<std::int64_t>(tokens_.size())) return nullptr;
    const auto& t = tokens_[static_cast<std::size_t>(id)];
    return t ? &*t : nullptr;
  }
  const std::string& token_at(std::int64_t id) const {
    const std::string* const t = token(id);
    if (!t)
      fail(errc::out_of_range, "[tokenizer] ", where_, " has no token of number ", id, ", and ",
           tokens_.size(), " numbers");
    return *t;
  }

  std::vector<std::int32_t> encode(std::string_view text, encode_options options) const {
    constexpr std::size_t longest = (std::size_t{1} << 31) - 1;
    if (text.size() > longest)
      fail(errc::invalid_argument, "[tokenizer] a text has ", text.size(), " bytes, and at most ",
           longest, " are possible: encode its parts");
    if (!is_utf8(text)) fail(errc::invalid_argument, "[tokenizer] the text is not UTF-8");
    std::vector<std::int32_t> ids;
    if (options.add_special) ids = before_;
    while (!text.empty()) {
      occurrence next;
      if (options.find_special) next = find_added(text);
      const std::size_t begin = next.token ? next.begin : text.size();
      if (begin > 0) encode_piece(text.substr(0, begin), ids);
      if (next.token) ids.push_back(next.token->id);
      text.remove_prefix(next.token ? next.end : text.size());
    }
    if (options.add_special) ids.insert(ids.end(), after_.begin(), after_.end());
    return ids;
  }
  std::string decode(std::span<const std::int32_t> ids, decode_options options) const {
    std::vector<std::int32_t> kept;
    for (const std::int32_t id : ids) {
      token_at(id);
      if (options.special || !std::ranges::binary_search(special_, id)) kept.push_back(id);
    }
    return decode_tokens(kept);
  }

 protected:
  /// Appends the tokens of text that has no added ones.
  virtual void encode_piece(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  virtual std::string decode_tokens(std::span<const std::int32_t> ids) const = 0;

 private:
  struct occurrence {
    const added_token* token = nullptr;
    std::size_t begin = 0, end = 0;
  };
  /// The first added token of a text, and of those that begin there the longest.
  occurrence find_added(std::string_view text) const {
    for (std::size_t at = 0; at < text.size(); ++at)
      for (const added_token& t : added_[static_cast<unsigned char>(text[at])]) {
        if (!text.substr(at).starts_with(t.text)) continue;
        occurrence f{&t, at, at + t.text.size()};
        if (t.takes_left) f.begin = without_blanks_at_end(text.substr(0, at));
        if (t.takes_right)
          for (std::string_view rest = text.substr(f.end);
               !rest.empty() && unicode::is_space(unicode::take(rest));)
            f.end = text.size() - rest.size();
        return f;
      }
    return {};
  }
  static std::size_t without_blanks_at_end(std::string_view text) {
    std::size_t end = 0;
    for (std::string_view rest = text; !rest.empty();)
      if (!unicode::is_space(unicode::take(rest))) end = text.size() - rest.size();
    return end;
  }

  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  std::string where_;
  std::vector<std::optional<std::string>> tokens_;  ///< by number
  std::int64_t announced_ = 0, number_added_ = 0;
  std::size_t longest_ = 0;
  std::unordered_map<std::string, std::int32_t, text_hash, std::equal_to<>> ids_;
  std::array<std::vector<added_token>, 256> added_;  ///< by first byte, the longest first
  std::vector<std::int32_t> special_, before_, after_;
};

// tokenizer.json and its parts. Functions throw data_loss for what is not sound, and unimplemented
// for what deft does not do.

inline constexpr std::size_t longest_tokenizer_file = std::size_t{1} << 28;

inline std::string read_tokenizer_file(const std::string& path) {
  std::string text = read_file(file_roots::anywhere(), path, longest_tokenizer_file);
  if (!is_utf8(text)) fail(errc::data_loss, "[tokenizer] ", path, ": it is not UTF-8");
  return text;
}

/// An object of JSON, whose members are asked for by name and type.
class json_object {
 public:
  json_object(const boost::json::value& v, const tokenizer_rules& rules, std::string_view name)
      : object_(v.if_object()), rules_(rules), name_(name) {
    if (!object_) rules.bad(str(name, " is not an object"));
  }
  /// Null if it is missing or null.
  const boost::json::value* find(std::string_view key) const {
    const boost::json::value* const v = object_->if_contains(key);
    return v && !v->is_null() ? v : nullptr;
  }
  const boost::json::value& at(std::string_view key) const {
    const boost::json::value* const v = find(key);
    if (!v) rules_.bad(str(name_, " has no \"", key, "\""));
    return *v;
  }
  json_object object(std::string_view key) const { return {at(key), rules_, key}; }
  const boost::json::array& array(std::string_view key) const {
    const boost::json::value& v = at(key);
    if (!v.is_array()) rules_.bad(str("\"", key, "\" of ", name_, " is not an array"));
    return v.get_array();
  }
  std::string text(std::string_view key) const { return text_of(at(key), key); }
  std::string text(std::string_view key, std::string otherwise) const {
    const boost::json::value* const v = find(key);
    return v ? text_of(*v, key) : otherwise;
  }
  bool flag(std::string_view key, bool otherwise) const {
    const boost::json::value* const v = find(key);
    if (v && !v->is_bool()) rules_.bad(str("\"", key, "\" of ", name_, " is not a bool"));
    return v ? v->get_bool() : otherwise;
  }
  std::int64_t number(std::string_view key) const { return number_of(at(key), key); }
  std::int64_t number_of(const boost::json::value& v, std::string_view key) const {
    boost::system::error_code failed;
    const auto n = v.to_number<std::int64_t>(failed);
    if (failed) rules_.bad(str("\"", printable(key), "\" of ", name_, " is not an integer"));
    return n;
  }
  const boost::json::object& members() const { return *object_; }
  /// Throws unimplemented if a member is set to something else than false or nothing.
  void expect_unset(std::string_view key) const {
    const boost::json::value* const v = find(key);
    if (!v || (v->is_bool() && !v->get_bool()) || (v->is_string() && v->get_string().empty()))
      return;
    rules_.unsupported(str("\"", key, "\" of ", name_, " is not supported"));
  }

 private:
  std::string text_of(const boost::json::value& v, std::string_view key) const {
    if (!v.is_string()) rules_.bad(str("\"", key, "\" of ", name_, " is not a string"));
    return {v.get_string().data(), v.get_string().size()};
  }

  const boost::json::object* object_;
  const tokenizer_rules& rules_;
  std::string name_;
};

/// Tokens and their numbers.
inline void add_vocabulary(tokenizer_rules& rules, const json_object& vocabulary) {
  rules.announce(vocabulary.members().size());
  for (const auto& [token, id] : vocabulary.members())
    rules.add({token.data(), token.size()}, vocabulary.number_of(id, {token.data(), token.size()}));
}

/// "added_tokens" of tokenizer.json. Those that are looked for in normalized text are supported
/// where there is no normalization.
inline void add_added_tokens(tokenizer_rules& rules, const json_object& file, bool normalizes) {
  if (!file.find("added_tokens")) return;
  for (const auto& v : file.array("added_tokens")) {
    const json_object o(v, rules, "an added token");
    added_token t{.text = o.text("content"),
                  .special = o.flag("special", false),
                  .takes_left = o.flag("lstrip", false),
                  .takes_right = o.flag("rstrip", false)};
    if (o.flag("single_word", false) || (normalizes && o.flag("normalized", false)))
      rules.unsupported(str("added token \"", printable(t.text),
                            "\" is single_word or normalized, which is not supported"));
    const std::int64_t id = o.number("id");
    rules.add(t.text, id);
    t.id = static_cast<std::int32_t>(id);
    rules.add_special(std::move(t));
  }
}

/// The tokens around a text, of "post_processor".
inline void add_surrounding(tokenizer_rules& rules, const json_object& file) {
  if (!file.find("post_processor")) return;
  const json_object o = file.object("post_processor");
  const std::string type = o.text("type");
  std::vector<std::int32_t> before, after;
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    for (const auto& [key, ids] : {std::pair("cls", &before), std::pair("sep", &after)}) {
      const boost::json::array& pair = o.array(key);
      if (pair.empty() || !pair[0].is_string()) rules.bad(str("\"", key, "\" is not a token"));
      ids->push_back(rules.expect(pair[0].get_string()));
    }
  } else if (type == "TemplateProcessing") {
    bool passed = false;
    for (const auto& v : o.array("single")) {
      const json_object piece(v, rules, "a piece of a template");
      if (piece.find("Sequence")) {
        if (passed) rules.unsupported("a template with two sequences is not supported");
        passed = true;
        continue;
      }
      const std::string name = piece.object("SpecialToken").text("id");
      const json_object token(o.object("special_tokens").at(name), rules, "a special token");
      for (const auto& id : token.array("ids")) {
        const std::int64_t n = token.number_of(id, "ids");
        if (!rules.token(n))
          rules.bad(str("special token \"", printable(name), "\" has the number ", n));
        (passed ? after : before).push_back(static_cast<std::int32_t>(n));
      }
    }
  } else if (type != "ByteLevel") {
    rules.unsupported(str("the post_processor ", printable(type), " is not supported"));
  }
  rules.surround(std::move(before), std::move(after));
}

}  // namespace deft::detail

namespace deft {
namespace {
namespace unicode = detail::unicode;
}

tokenizer::tokenizer(std::shared_ptr<const detail::tokenizer_rules> rules)
    : rules_(std::move(rules)) {}

std::vector<std::int32_t> tokenizer::encode(std::string_view text, encode_options options) const {
  return rules_->encode(text, options);
}
std::string tokenizer::decode(std::span<const std::int32_t> ids, decode_options options) const {
  return rules_->decode(ids, options);
}
std::int32_t tokenizer::id_of(std::string_view token) const {
  const auto id = rules_->find(token);
  if (!id)
    ext::fail(errc::not_found, "[tokenizer] ", rules_->where(), " has no token \"",
              ext::printable(token), "\"");
  return *id;
}
bool tokenizer::contains(std::string_view token) const { return rules_->find(token).has_value(); }
const std::string& tokenizer::token(std::int32_t id) const { return rules_->token_at(id); }
std::int32_t tokenizer::size() const { return static_cast<std::int32_t>(rules_->size()); }

}  // namespace deft
