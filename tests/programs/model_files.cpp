// SPDX-License-Identifier: Apache-2.0
// tests/programs/model_files.cpp FOLDER: reads the files of models there that Python's packages
// have written, and writes what it has read, for tests/data/exchange.py to compare: .npz files,
// tensors and values of GGUF files, and the tokens of texts.
#include <deft/core/safetensors.hpp>
#include <deft/data/byte_pair_tokenizer.hpp>
#include <deft/data/gguf.hpp>
#include <deft/data/npz.hpp>
#include <deft/data/word_piece_tokenizer.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>

using namespace deft;

namespace {

std::string read_all(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}

/// The numbers of each text's tokens as a line, and the texts that are made of them.
void tokenize(const tokenizer& t, const std::string& texts, const std::string& to) {
  std::ofstream ids(to + ".ids"), decoded(to + ".texts", std::ios::binary);
  for (std::size_t at = 0; at < texts.size();) {
    const std::size_t end = texts.find('\0', at);
    const auto tokens = t.encode(std::string_view(texts).substr(at, end - at));
    for (const auto id : tokens) ids << id << ' ';
    ids << '\n';
    decoded << t.decode(tokens) << '\0';
    at = end + 1;
  }
}

std::string text_of(const gguf_value& v) {
  const std::string type = v.type();
  if (type == "string") return v.as<std::string>();
  if (type == "bool") return v.as<bool>() ? "True" : "False";
  if (type.starts_with("float")) return ext::str(v.as<double>());
  if (type == "uint64") return ext::str(v.as<std::uint64_t>());
  if (!type.starts_with("array")) return ext::str(v.as<std::int64_t>());
  return "[" + ext::join(v.as<std::vector<gguf_value>>(), ", ", text_of) + "]";
}

void exchange_gguf(const std::string& path) {
  const gguf_file file = read_gguf(path);
  std::map<std::string, any_array> tensors;
  for (const auto& [name, e] : file.entries())
    if (e.unsupported.empty()) tensors.emplace(name, file.read(name));
  write_safetensors(path + ".safetensors", tensors);
  std::ofstream values(path + ".values");
  for (const auto& [key, v] : file.metadata()) values << key << " = " << text_of(v) << '\n';
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const std::string folder = argv[1], texts = read_all(folder + "/texts");
  for (const bool compressed : {false, true}) {
    const std::string name = compressed ? "compressed.npz" : "plain.npz";
    write_npz(folder + "/deft_" + name, read_npz(folder + "/" + name), {.compressed = compressed});
  }
  exchange_gguf(folder + "/python.gguf");
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path().string());
  for (const std::string& path : paths)
    if (path.ends_with(".bpe.json"))
      tokenize(byte_pair_tokenizer(path), texts, path);
    else if (path.ends_with(".bpe.gguf"))
      tokenize(byte_pair_tokenizer(read_gguf(path)), texts, path);
    else if (path.ends_with(".pieces.json") || path.ends_with(".pieces.txt"))
      tokenize(word_piece_tokenizer(path), texts, path);
    else if (path.ends_with(".vocab.json"))
      tokenize(byte_pair_tokenizer(path, path.substr(0, path.size() - 10) + "merges.txt"), texts,
               path);
  return 0;
} catch (const error& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
