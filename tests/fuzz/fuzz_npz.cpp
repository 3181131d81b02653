// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_npz.cpp: whatever an .npz file has, it is read or refused; what was read is the
// same after it was written and read again. An input is the file.
#include <deft/core/any_array.hpp>
#include <deft/core/log.hpp>
#include <deft/data/npz.hpp>

#include "fuzzing.hpp"

using namespace deft;
using fuzzing::bytes;

std::vector<bytes> fuzzing::seeds() {
  std::vector<bytes> all;
  for (const bool compressed : {false, true}) {
    const std::string path = directory() + "/seed.npz";
    write_npz(path,
              {{"a", any_array(dtype::float32, dims{2, 3})},
               {"flag", any_array::scalar(true)},
               {"none", any_array(dtype::int64, dims{0})}},
              {.compressed = compressed});
    std::ifstream in(path, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    all.push_back(bytes_of(whole));
  }
  return all;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  logging::set_sink([](logging::level, const std::string&) {});  // of what is left out
  const fuzzing::memory_file file(fuzzing::as_bytes(data, size));
  std::map<std::string, any_array> arrays;
  if (!fuzzing::accepted_file([&] { arrays = read_npz(file.path()); })) return 0;
  const std::string path = fuzzing::directory() + "/again.npz";
  if (!fuzzing::accepted_file([&] { write_npz(path, arrays, {.compressed = size % 2 == 1}); }))
    return 0;  // of a name that is not UTF-8
  const auto again = read_npz(path);
  if (again.size() != arrays.size()) fuzzing::found("arrays are lost");
  for (const auto& [name, a] : arrays) {
    const any_array& b = again.at(name);
    if (a.type() != b.type() || a.shape() != b.shape() ||
        (a.bytes() > 0 && std::memcmp(a.raw(), b.raw(), a.bytes()) != 0))
      fuzzing::found("\"", name, "\" is another once it was written and read");
  }
  return 0;
}
