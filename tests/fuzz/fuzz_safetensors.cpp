// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_safetensors.cpp: whatever a safetensors file has, it is read or refused; what was
// read is the same after it was written and read again. An input is the file, or, if it begins with
// a brace, the text of its header and elements behind a zero.
#include <deft/core/safetensors.hpp>

#include "fuzzing.hpp"

using namespace deft;
using fuzzing::bytes;

namespace {

bytes file_of(std::string_view text) {
  const auto end = std::min(text.find('\0'), text.size());
  const std::uint64_t length = end;
  std::string s(sizeof length, '\0');
  std::memcpy(s.data(), &length, sizeof length);
  (s += text.substr(0, end)) += text.substr(std::min(end + 1, text.size()));
  return fuzzing::bytes_of(s);
}

}  // namespace

std::vector<bytes> fuzzing::seeds() {
  const std::string path = directory() + "/seed.safetensors";
  write_safetensors(path, {{"a/b", any_array(dtype::float32, dims{2, 3})},
                           {"flag", any_array::scalar(true)},
                           {"none", any_array(dtype::int64, dims{0})}});
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const std::string text = R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                           R"("b":{"dtype":"BF16","shape":[],"data_offsets":[4,6]},)"
                           R"("e":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[6,7]},)"
                           R"("__metadata__":{"k":"v","l":"w"}})";
  return {bytes_of(whole), bytes_of(text + std::string(8, '\0'))};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzzing::as_bytes(data, size);
  const bool is_text = size > 0 && data[0] == '{';
  const fuzzing::memory_file file(
      is_text ? std::span<const std::byte>(file_of(fuzzing::text_of(input))) : input);
  std::map<std::string, any_array> arrays;
  if (!fuzzing::accepted_file([&] { arrays = read_safetensors(file.path()); })) return 0;
  const std::string path = fuzzing::directory() + "/again.safetensors";
  write_safetensors(path, arrays);
  const auto again = read_safetensors(path);
  if (again.size() != arrays.size()) fuzzing::found("arrays are lost");
  for (const auto& [name, a] : arrays) {
    const any_array& b = again.at(name);
    if (a.type() != b.type() || a.shape() != b.shape() ||
        (a.bytes() > 0 && std::memcmp(a.raw(), b.raw(), a.bytes()) != 0))
      fuzzing::found("\"", name, "\" is another once it was written and read");
  }
  return 0;
}
