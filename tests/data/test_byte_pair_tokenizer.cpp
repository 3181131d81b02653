// SPDX-License-Identifier: Apache-2.0
// tests/data/test_byte_pair_tokenizer.cpp: small vocabularies made by hand. data.exchange compares
// with Hugging Face's tokenizers.
#include <deft/data/byte_pair_tokenizer.hpp>
// its own header comes first, to check that it is self-contained
#include <deft/data/gguf.hpp>
#include <map>

#include "../testing.hpp"
#include "gguf_bytes.hpp"
#include "temporary_folder.hpp"

using namespace deft;
using ids = std::vector<std::int32_t>;

namespace {

/// Ġ is the blank of vocabularies.
const std::vector<std::string> tokens{"l",  "o",   "w",    "e",  "r",  "Ġ",  "'", "s", "y", "lo",
                                      "er", "low", "Ġlow", "Ġl", "'s", "ĠĠ", "1", "2", "12"};
const std::vector<std::string> merges{"l o", "e r", "lo w", "Ġ low", "Ġ l",
                                      "' s", "s y", "Ġ Ġ",  "w Ġ",   "1 2"};
/// Of the merges "s y" and "w Ġ", which no word has.
const std::vector<std::string> unused{"sy", "wĠ"};

std::string vocabulary(std::vector<std::string> all) {
  std::string text = "{";
  for (std::size_t i = 0; i < all.size(); ++i)
    text += ext::str(i ? ", " : "", "\"", all[i], "\": ", i);
  return text + "}";
}
std::vector<std::string> all_tokens() {
  auto all = tokens;
  all.insert(all.end(), unused.begin(), unused.end());
  return all;
}
std::string merges_text() {
  std::string text = "#version: 0.2\n";
  for (const auto& m : merges) text += m + "\n";
  return text;
}
/// A tokenizer.json; `more` are other members.
std::string json_of(const std::string& model, const std::string& more) {
  return R"({"model": {"type": "BPE", )" + model + R"(}, )" + more + "}";
}
const std::string byte_level =
    R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})";

struct written {
  testing::temporary_folder dir;
  std::string file(const std::string& name, const std::string& text) {
    testing::write_bytes(dir / name, text);
    return dir / name;
  }
  byte_pair_tokenizer of_files(byte_pair_options options = {}) {
    return {file("vocab.json", vocabulary(all_tokens())), file("merges.txt", merges_text()),
            options};
  }
  byte_pair_tokenizer of_json(const std::string& text) {
    return byte_pair_tokenizer(file("tokenizer.json", text));
  }
  std::string failure(const std::string& text) {
    const std::string path = dir / "tokenizer.json";
    std::string s = testing::error_of([&] { of_json(text); });
    const auto at = s.find(path);
    return at == s.npos ? s : s.replace(at, path.size(), "FILE");
  }
};

ids of_names(const tokenizer& t, const std::vector<std::string>& names) {
  ids all;
  for (const auto& n : names) all.push_back(t.id_of(n));
  return all;
}

}  // namespace

TEST_CASE("pairs are merged in the order of the list, within words") {
  written w;
  const auto t = w.of_files();
  const std::map<std::string, std::vector<std::string>> cases{
      {"", {}},
      {"low", {"low"}},
      {"low lower", {"low", "Ġlow", "er"}},
      {"lo wer", {"lo", "Ġ", "w", "er"}},
      {"y'sy", {"y", "'s", "y"}},  // 's is a word
      {"'ss", {"'s", "s"}},
      {"low  low", {"low", "Ġ", "Ġlow"}},  // of two blanks the second belongs to the word
      {"low   low", {"low", "ĠĠ", "Ġlow"}},
      {"low  ", {"low", "ĠĠ"}},
      {"   ", {"ĠĠ", "Ġ"}},
      {"12 1212", {"12", "Ġ", "12", "12"}},
      {"low12low", {"low", "12", "low"}},
  };
  for (const auto& [key, expected] : cases) {
    const std::string& text = key;
    CAPTURE(text);
    CHECK(t.encode(text) == of_names(t, expected));
    CHECK(t.decode(t.encode(text)) == text);
  }
  CHECK(t.size() == 21);
  CHECK(t.token(11) == "low");
  CHECK(t.contains("low"));
  CHECK_FALSE(t.contains("lower"));
}

TEST_CASE("digits can be words of their own") {
  written w;
  const auto t = w.of_files({.single_digits = true});
  CHECK(t.encode("12 1") == of_names(t, {"1", "2", "Ġ", "1"}));
  CHECK(t.encode("low12 low") == of_names(t, {"low", "1", "2", "Ġlow"}));
}

TEST_CASE("of equal pairs the first is merged first, also in long words") {
  written w;
  std::string list;
  std::vector<std::string> names{"a"};
  while (names.size() < 12) {
    list += names.back() + " " + names.back() + "\n";
    names.push_back(names.back() + names.back());
  }
  const byte_pair_tokenizer t(w.file("vocab.json", vocabulary(names)), w.file("merges.txt", list));
  CHECK(t.encode("aaa") == ids{1, 0});
  CHECK(t.encode("aaaaaaa") == ids{2, 1, 0});
  const std::string word(100'001, 'a');
  const ids all = t.encode(word);
  CHECK(all.size() == 100'001 / 2048 + std::size_t(__builtin_popcount(100'001 % 2048)));
  CHECK(t.decode(all) == word);
}

TEST_CASE("a byte that has no token is left out, or is unknown") {
  written w;
  CHECK(w.of_files().encode("xlowz") == ids{w.of_files().id_of("low")});
  const std::string model = R"("vocab": {"a": 0, "?": 1}, "merges": [], "unk_token": "?")";
  CHECK(w.of_json(json_of(model, byte_level)).encode("xyab") == ids{1, 1, 0, 1});
  CHECK(w.of_json(json_of(model + R"(, "fuse_unk": true)", byte_level)).encode("xyab") ==
        ids{1, 0, 1});
}

TEST_CASE("special tokens are found in texts, unless that is not wanted") {
  written w;
  const auto t = w.of_json(json_of(
      R"("vocab": {"a": 0, "b": 1, "<": 2, "Ġ": 3, "e": 4, ">": 5, "ab": 6}, "merges": [["a", "b"]])",
      byte_level + R"(, "added_tokens": [
        {"id": 7, "content": "<e>", "special": true},
        {"id": 8, "content": "<e>>", "special": false},
        {"id": 9, "content": "<b>", "special": true, "lstrip": true, "rstrip": true}],
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<e>", "type_id": 0}}, {"Sequence": {"id": "A"}}],
        "special_tokens": {"<e>": {"id": "<e>", "ids": [7], "tokens": ["<e>"]}}})"));
  CHECK(t.encode("ab<e>a") == ids{7, 6, 7, 0});
  CHECK(t.encode("ab<e>>a<e") == ids{7, 6, 8, 0, 2, 4});  // the longest
  CHECK(t.encode("a  <b>\n a") == ids{7, 0, 9, 0});
  CHECK(t.encode("<e>") == ids{7, 7});
  CHECK(t.encode("ab", {.add_special = false}) == ids{6});
  CHECK(t.encode("<e>", {.add_special = false, .find_special = false}) == ids{2, 4, 5});
  CHECK(t.decode(ids{7, 6, 8, 9}) == "ab<e>>");
  CHECK(t.decode(ids{7, 6, 8, 9}, {.special = true}) == "<e>ab<e>><b>");
  CHECK(t.id_of("<b>") == 9);
}

TEST_CASE(
    "a word that is a token is taken whole where the file says so, and pieces begin with a blank") {
  written w;
  const std::string model = R"("vocab": {"a": 0, "b": 1, "abb": 2, "Ġ": 3}, "merges": [])";
  CHECK(w.of_json(json_of(model, byte_level)).encode("abb") == ids{0, 1, 1});
  CHECK(w.of_json(json_of(model + R"(, "ignore_merges": true)", byte_level)).encode("abb") ==
        ids{2});
  CHECK(w.of_json(json_of(model, R"("pre_tokenizer": {"type": "ByteLevel"})")).encode("a a") ==
        ids{3, 0, 3, 0});
}

TEST_CASE("a GGUF file has a tokenizer") {
  written w;
  const auto path = [&](const std::string& pattern, std::int32_t bos) {
    testing::gguf_bytes f = testing::gguf_bytes::file(0, 7);
    auto all = all_tokens();
    all.push_back("<end>");
    f.key("tokenizer.ggml.model", 8).text("gpt2").key("tokenizer.ggml.pre", 8).text(pattern);
    f.strings("tokenizer.ggml.tokens", all).strings("tokenizer.ggml.merges", merges);
    f.key("tokenizer.ggml.token_type", 9).number(5u).number(std::uint64_t{all.size()});
    for (std::size_t i = 0; i < all.size(); ++i) f.number(i + 1 < all.size() ? 1 : 3);
    f.key("tokenizer.ggml.add_bos_token", 7).number(std::uint8_t{1});
    f.key("tokenizer.ggml.bos_token_id", 5).number(bos);
    return w.file("a.gguf", f.bytes());
  };
  const byte_pair_tokenizer t(read_gguf(path("smollm", 21)));
  CHECK(t.encode("low12<end>") == of_names(t, {"<end>", "low", "1", "2", "<end>"}));
  CHECK(t.decode(ids{21, 11}) == "low");
  const byte_pair_tokenizer u(read_gguf(path("gpt-2", 21)));
  CHECK(u.encode("low12", {.add_special = false}) == of_names(u, {"low", "12"}));
  const auto failure = [&](const std::string& pattern, std::int32_t bos) {
    return testing::error_of([&] { byte_pair_tokenizer{read_gguf(path(pattern, bos))}; });
  };
  const std::string where = "[tokenizer] " + std::string(w.dir / "a.gguf");
  CHECK(
      failure("llama-bpe", 21) ==
      "unimplemented: " + where +
          ": its tokenizer is gpt2 with the pattern of llama-bpe; expected gpt2 with that of gpt-2 "
          "or smollm");
  CHECK(failure("gpt-2", 22) == "data_loss: " + where + ": its token \"bos\" has the number 22");
  testing::gguf_bytes none = testing::gguf_bytes::file(0, 0);
  w.file("a.gguf", none.bytes());
  CHECK(testing::error_of([&] {
          byte_pair_tokenizer{read_gguf(w.dir / "a.gguf")};
        }).ends_with("has no value \"tokenizer.ggml.model\""));
}

TEST_CASE("what is not sound in a file is named") {
  written w;
  const std::string vocab = R"("vocab": {"a": 0, "b": 1, "ab": 2})",
                    none = vocab + R"(, "merges": [])";
  const std::string begin = "data_loss: [tokenizer] FILE: ";
  CHECK(w.failure(json_of(none, byte_level)).empty());
  CHECK(w.failure("{").starts_with("data_loss: [tokenizer] FILE is not JSON"));
  CHECK(w.failure("[]") == begin + "it is not an object");
  CHECK(w.failure("{\"model\": 1}") == begin + "model is not an object");
  CHECK(w.failure("\xff") == begin + "it is not UTF-8");
  CHECK(w.failure(json_of(vocab, byte_level)) == begin + "model has no \"merges\"");
  for (const std::string merge : {"a", "a b c", ""})
    CHECK(w.failure(json_of(vocab + R"(, "merges": [")" + merge + "\"]", byte_level)) ==
          begin + "merge 0 is \"" + merge + "\"; expected two tokens with a blank between them");
  CHECK(w.failure(json_of(vocab + R"(, "merges": ["a b", "a c"])", byte_level)) ==
        begin + "merge 1, of \"a\" and \"c\", is not one of tokens");
  CHECK(w.failure(json_of(vocab + R"(, "merges": [1])", byte_level)) ==
        begin + "a merge is neither a string nor a pair of strings");
  CHECK(w.failure(json_of(R"("vocab": {"a": -1}, "merges": [])", byte_level)) ==
        begin + "token \"a\" has the number -1; expected 0 to 65537");
  CHECK(w.failure(json_of(R"("vocab": {"a": 0, "b": 0}, "merges": [])", byte_level)) ==
        begin + "tokens \"a\" and \"b\" have the number 0");
  CHECK(w.failure(json_of(R"("vocab": {"a": "0"}, "merges": [])", byte_level)) ==
        begin + "\"a\" of vocab is not an integer");
  CHECK(w.failure(json_of(none + R"(, "unk_token": "?")", byte_level)) ==
        begin + "it has no token \"?\"");
  CHECK(w.failure(json_of(none, byte_level + R"(, "added_tokens": [{"id": 7, "content": ""}])")) ==
        begin + "an added token is empty");
  const std::string other = "unimplemented: [tokenizer] FILE: ";
  CHECK(w.failure(R"({"model": {"type": "Unigram"}})") ==
        other + "its model is Unigram; expected BPE");
  CHECK(w.failure(json_of(none + R"(, "byte_fallback": true)", byte_level)) ==
        other + "\"byte_fallback\" of model is not supported");
  CHECK(w.failure(json_of(none, R"("normalizer": {"type": "NFC"}, )" + byte_level)) ==
        other + "\"normalizer\" of it is not supported");
  CHECK(w.failure(json_of(none, R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                                   {"type": "Split"}]})"))
            .starts_with(other + "the pre_tokenizer Split is not supported; expected ByteLevel"));
  CHECK(testing::error_of([&] { byte_pair_tokenizer{w.dir / "none"}; }).starts_with("not_found: "));
}

TEST_CASE("texts that are not UTF-8, and numbers of no token, are refused") {
  written w;
  const auto t = w.of_files();
  CHECK(testing::error_of([&] { t.encode("\xff"); }) ==
        "invalid_argument: [tokenizer] the text is not UTF-8");
  for (const std::int32_t id : {-1, 21})
    CHECK(testing::error_of([&] { t.decode(ids{id}); }) ==
          ext::str("out_of_range: [tokenizer] ", (w.dir / "vocab.json").string(),
                   " has no token of number ", id, ", and 21 numbers"));
  CHECK(testing::error_of([&] { t.id_of("none"); }).starts_with("not_found: [tokenizer] "));
}
