// SPDX-License-Identifier: Apache-2.0
// tests/data/test_word_piece_tokenizer.cpp: a small vocabulary made by hand. data.exchange compares
// with Hugging Face's tokenizers.
#include <deft/data/word_piece_tokenizer.hpp>
// its own header comes first, to check that it is self-contained
#include <map>

#include "../testing.hpp"
#include "temporary_folder.hpp"

using namespace deft;
using ids = std::vector<std::int32_t>;

namespace {

const std::vector<std::string> tokens{"[PAD]", "[UNK]",  "[CLS]", "[SEP]", "[MASK]", "un",
                                      "##aff", "##able", "##a",   ",",     "run",    "cafe",
                                      "café",  "中",     "文",    "i",     "don",    "'",
                                      "t",     "$",      "##ß",   "stra",  "##e",    "İ"};

struct written {
  testing::temporary_folder dir;
  std::string file(const std::string& name, const std::string& text) {
    testing::write_bytes(dir / name, text);
    return dir / name;
  }
  std::string vocabulary(const std::string& end = "\n") {
    std::string text;
    for (const auto& t : tokens) text += t + end;
    return file("vocab.txt", text);
  }
  std::string json(const std::string& normalizer, const std::string& more = {},
                   const std::string& model = "WordPiece") {
    std::string text = R"({"model": {"type": ")" + model + R"(", "unk_token": "[UNK]", "vocab": {)";
    for (std::size_t i = 0; i < tokens.size(); ++i)
      text += ext::str(i ? ", " : "", "\"", tokens[i], "\": ", i);
    return file("tokenizer.json", text + R"(}}, "pre_tokenizer": {"type": "BertPreTokenizer"},
      "normalizer": {"type": "BertNormalizer")" +
                                      normalizer + "}" + more + "}");
  }
};

/// Without [CLS] and [SEP].
std::vector<std::string> pieces(const tokenizer& t, const std::string& text) {
  std::vector<std::string> names;
  for (const auto id : t.encode(text, {.add_special = false})) names.push_back(t.token(id));
  return names;
}

}  // namespace

TEST_CASE("words are made of the longest pieces, and surrounded") {
  written w;
  for (const std::string end : {"\n", "\r\n"}) {
    const word_piece_tokenizer t(w.vocabulary(end));
    CHECK(t.encode("unaffable") == ids{2, 5, 6, 7, 3});
    CHECK(t.encode("") == ids{2, 3});
    CHECK(t.size() == static_cast<std::int32_t>(tokens.size()));
  }
}

TEST_CASE("texts are cleaned, and marks and Chinese characters are words") {
  written w;
  const word_piece_tokenizer t(w.vocabulary());
  const std::map<std::string, std::vector<std::string>> cases{
      {"UNAFFABLE, run", {"un", "##aff", "##able", ",", "run"}},
      {" \t\nrun\u00a0\u3000run ", {"run", "run"}},
      {"r\u200bu\u0001n\ufffd", {"run"}},  // what is not seen goes
      {"Café cafe\u0301", {"cafe", "cafe"}},
      {"don't$run", {"don", "'", "t", "$", "run"}},
      {"run中文run", {"run", "中", "文", "run"}},
      {"STRAßE", {"stra", "##ß", "##e"}},
      {"İ", {"i"}},
      {"unx run", {"[UNK]", "run"}},
      {"una" + std::string(97, 'a'), {"un"}},     // 100 characters; the rest is below
      {"una" + std::string(98, 'a'), {"[UNK]"}},  // 101
  };
  for (auto [key, expected] : cases) {
    const std::string& text = key;
    CAPTURE(text);
    if (text.size() == 100) expected.insert(expected.end(), 98, "##a");
    CHECK(pieces(t, text) == expected);
  }
  CHECK(pieces(t, std::string("r\0un", 4)) == std::vector<std::string>{"run"});
}

TEST_CASE("a cased vocabulary keeps accents and capitals") {
  written w;
  const word_piece_tokenizer cased(w.vocabulary(), {.lower_case = false});
  CHECK(pieces(cased, "café Run İ") == std::vector<std::string>{"café", "[UNK]", "İ"});
  const word_piece_tokenizer accents(w.json(R"(, "lowercase": true, "strip_accents": false)"));
  CHECK(pieces(accents, "CAFÉ") == std::vector<std::string>{"café"});
  const word_piece_tokenizer together(w.json(R"(, "handle_chinese_chars": false)"));
  CHECK(pieces(together, "中文") == std::vector<std::string>{"[UNK]"});
}

TEST_CASE("special tokens are found as they are written, and left out of texts") {
  written w;
  const word_piece_tokenizer t(w.vocabulary());
  CHECK(t.encode("run[MASK]run") == ids{2, 10, 4, 10, 3});
  CHECK(t.encode("[mask]", {.find_special = false}) == ids{2, 1, 1, 1, 3});
  CHECK(t.decode(t.encode("unaffable, don't run")) == "unaffable, don ' t run");
  CHECK(t.decode(ids{2, 10, 3}, {.special = true}) == "[CLS] run [SEP]");
  const word_piece_tokenizer j(w.json(
      "", R"(, "added_tokens": [{"id": 4, "content": "[MASK]", "special": true, "lstrip": true}],
             "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]})"));
  CHECK(j.encode("run [MASK] run") == ids{2, 10, 4, 10, 3});
}

TEST_CASE("a vocabulary without what every text needs, and other kinds of files, are refused") {
  written w;
  const auto failure = [&](const std::string& path) {
    std::string s = testing::error_of([&] { word_piece_tokenizer{path}; });
    const auto at = s.find(path);
    return at == s.npos ? s : s.replace(at, path.size(), "FILE");
  };
  CHECK(failure(w.file("vocab.txt", "a\nb\n[UNK]\n[CLS]")) ==
        "data_loss: [tokenizer] FILE: it has no token \"[SEP]\"");
  CHECK(failure(w.file("vocab.txt", "a\xff")) == "data_loss: [tokenizer] FILE: it is not UTF-8");
  CHECK(failure(w.json("", "", "BPE")) ==
        "unimplemented: [tokenizer] FILE: its model is BPE; expected WordPiece");
  CHECK(failure(w.json("", R"(, "post_processor": {"type": "Other"})")) ==
        "unimplemented: [tokenizer] FILE: the post_processor Other is not supported");
  CHECK(failure(w.json("", R"(, "added_tokens": [{"id": 4, "content": "x", "normalized": true}])"))
            .starts_with("unimplemented: [tokenizer] FILE: added token \"x\" is"));
  CHECK(failure(w.json(R"(, "lowercase": 1)")) ==
        "data_loss: [tokenizer] FILE: \"lowercase\" of normalizer is not a bool");
  CHECK(
      testing::error_of([&] { word_piece_tokenizer{w.dir / "none"}; }).starts_with("not_found: "));
}
