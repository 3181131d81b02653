// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_gguf.cpp: whatever a GGUF file has, it is read or refused; of one that is read,
// all tensors and values are. An input is the file.
#include <deft/data/byte_pair_tokenizer.hpp>
#include <deft/data/gguf.hpp>

#include <optional>

#include "../data/gguf_bytes.hpp"
#include "fuzzing.hpp"

using namespace deft;
using fuzzing::bytes;

std::vector<bytes> fuzzing::seeds() {
  testing::gguf_bytes f = testing::gguf_bytes::file(3, 5);
  f.key("general.alignment", 4).number(32u).key("tokenizer.ggml.model", 8).text("gpt2");
  f.strings("tokenizer.ggml.tokens", {"a", "b", "ab"}).strings("tokenizer.ggml.merges", {"a b"});
  f.key("nested", 9).number(9u).number(std::uint64_t{1}).number(12u).number(std::uint64_t{1});
  f.number(0.5).tensor("w", {3, 2}, 0, 0).tensor("h", {2}, 1, 32).tensor("q", {32, 2}, 3, 64);
  f.align().raw(std::string(64 + 40, '\1'));
  return {bytes_of(f.bytes()), bytes_of(testing::gguf_bytes::file(0, 0, 2).bytes())};
}

namespace {

/// How many elements and bytes there are, so that all are read.
std::uint64_t read_value(const gguf_value& v) {
  const std::string type = v.type();
  std::uint64_t n = type.size();
  if (type.starts_with("array"))
    for (const gguf_value& e : v.as<std::vector<gguf_value>>()) n += read_value(e);
  else if (type == "string")
    n += v.as<std::string>().size();
  else if (type == "bool")
    n += v.as<bool>();
  else if (type.starts_with("float"))
    n += v.as<double>() > 0;
  else
    fuzzing::accepted_file([&] { n += v.as<std::uint64_t>(); });
  return n;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzzing::memory_file input(fuzzing::as_bytes(data, size));
  std::optional<gguf_file> file;
  if (!fuzzing::accepted_file([&] { file = read_gguf(input.path()); })) return 0;
  std::uint64_t n = 0;
  for (const auto& [key, v] : file->metadata()) n += read_value(v);
  for (const auto& [name, e] : file->entries()) {
    const std::string& tensor = name;
    fuzzing::accepted_file([&] {
      const any_array a = file->read(tensor);
      for (std::size_t i = 0; i < a.bytes(); ++i)
        n += static_cast<const unsigned char*>(a.raw())[i];
    });
  }
  fuzzing::accepted_file([&] { n += byte_pair_tokenizer(*file).encode("ab ab").size(); });
  return n == 1 ? -1 : 0;  // of no input, and the compiler does not know that
}
