// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_index.cpp: whatever the index of a checkpoint has, it is read or refused; what
// was read is the same after it was written and read again. An input is the file, or, if it begins
// with a brace, what its checksum is of.
#include <deft/core/crc32c.hpp>
#include <deft/train/checkpoint_index.hpp>

#include "fuzzing.hpp"

using namespace deft;
using namespace deft::ext;
using fuzzing::bytes;

namespace {

const std::string opening = "{\"crc32c\":", middle = ",\"index\":", ending = "}\n";

void put(const std::string& path, const std::string& text) {
  std::ofstream file(path + ".index.json", std::ios::binary);
  file << text;
  if (!file.flush()) std::exit(1);
}

}  // namespace

std::vector<bytes> fuzzing::seeds() {
  detail::checkpoint_index index;
  index.path = directory() + "/m";
  index.base = "m";
  index.tensors["w"] = {"m.1.ps-0.safetensors", "w", {}, {dims{2, 3}, dtype::float32}};
  index.tensors["global_step"] = {"m.1.ps-0.safetensors", "global_step", {}, {{}, dtype::int64}};
  detail::index_writer(index.path).write(index);
  std::ifstream in(index.path + ".index.json", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto at = whole.find(middle) + middle.size();
  return {bytes_of("f" + whole), bytes_of(whole.substr(at, whole.size() - at - ending.size()))};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(fuzzing::text_of(fuzzing::as_bytes(data, size)));
  const std::string path = fuzzing::directory() + "/m";
  put(path, data[0] == '{' ? str(opening, crc32c(text), middle, text, ending) : text.substr(1));
  detail::checkpoint_index index;
  if (!fuzzing::accepted_file([&] { index = detail::read_index(path); })) return 0;
  detail::index_writer(path).write(index);
  const detail::checkpoint_index again = detail::read_index(path);
  if (again.base != index.base || again.sequence != index.sequence ||
      again.generation != index.generation || again.files() != index.files() ||
      again.tensors.size() != index.tensors.size())
    fuzzing::found("an index is another once it was written and read");
  for (const auto& [name, t] : index.tensors)
    if (!(again.tensors.at(name).holds == t.holds))
      fuzzing::found("\"", name, "\" is another once it was written and read");
  return 0;
}
