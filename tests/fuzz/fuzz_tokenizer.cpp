// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_tokenizer.cpp: whatever the file of a tokenizer has, it is read or refused, and
// texts are taken apart and put together. An input is a byte for the kind of the file, the file,
// and behind a zero a text.
#include <deft/data/byte_pair_tokenizer.hpp>
#include <deft/data/word_piece_tokenizer.hpp>

#include <memory>

#include "fuzzing.hpp"

using namespace deft;
using fuzzing::bytes;

std::vector<bytes> fuzzing::seeds() {
  const std::string zero(1, '\0');
  const std::string added =
      R"("added_tokens": [{"id": 4, "content": "<e>", "special": true, "lstrip": true}])";
  const std::string pairs =
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3}, "merges": ["a b"],
      "unk_token": "a", "ignore_merges": true}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true}, {"type": "ByteLevel"}]},
      "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<e>"}},
      {"Sequence": {"id": "A"}}], "special_tokens": {"<e>": {"ids": [4]}}}, )" +
      added + "}";
  const std::string pieces =
      R"({"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##b": 2, ",": 3}},
      "normalizer": {"type": "BertNormalizer", "lowercase": true},
      "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece"}, )" +
      added + "}";
  return {bytes_of("b" + pairs + zero + "ab  ab12's <e>x"),
          bytes_of("w" + pieces + zero + "Ab, é中 <e>x"),
          bytes_of("v[UNK]\n[CLS]\n[SEP]\na\n##b" + zero + "ab a")};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input = fuzzing::text_of(fuzzing::as_bytes(data + 1, size - 1));
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(std::min(end + 1, input.size()));
  const std::string path =
      fuzzing::directory() + (data[0] == 'v' ? "/vocab.txt" : "/tokenizer.json");
  std::ofstream(path, std::ios::binary) << input.substr(0, end);
  std::shared_ptr<const tokenizer> t;
  if (!fuzzing::accepted_file([&] {
        if (data[0] == 'b')
          t = std::make_shared<byte_pair_tokenizer>(path);
        else
          t = std::make_shared<word_piece_tokenizer>(path);
      }))
    return 0;
  fuzzing::accepted_file([&] {
    const auto ids = t->encode(text);
    for (const auto id : ids) t->token(id);
    t->decode(ids, {.special = true});
    if (t->encode(text) != ids) fuzzing::found("a text has other tokens the second time");
  });
  return 0;
}
