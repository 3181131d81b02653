// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_npy.cpp: whatever an .npy file has, it is read or refused; what was read is the
// same after it was written and read again. An input is the file, or, after a byte that is not
// NumPy's, the text of its header and elements behind a zero.
#include <deft/core/any_array.hpp>
#include <deft/data/npy.hpp>

#include "fuzzing.hpp"

using namespace deft;
using fuzzing::bytes;

namespace {

/// Version 1 with a header of any text.
bytes file_of(std::string_view text) {
  const auto end = std::min(text.find('\0'), text.size());
  const auto length = static_cast<std::uint16_t>(std::min<std::size_t>(end, 65535));
  std::string s("\x93NUMPY\1\0", 8);
  (s += static_cast<char>(length & 255)) += static_cast<char>(length >> 8);
  (s += text.substr(0, length)) += text.substr(std::min(end + 1, text.size()));
  return fuzzing::bytes_of(s);
}

}  // namespace

std::vector<bytes> fuzzing::seeds() {
  std::vector<bytes> all;
  for (const any_array& a : {any_array::scalar(1.f), any_array(dtype::int32, dims{2, 3}),
                             any_array(dtype::boolean, dims{0, 4})}) {
    const memory_file file({});
    write_npy(file.path(), a);
    std::ifstream in(file.path(), std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    all.push_back(bytes_of(whole));
  }
  const std::string text = "h{'descr': '<f4', 'fortran_order': False, 'shape': (2L,\t1), }";
  all.push_back(bytes_of(text + std::string(9, '\0')));
  return all;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzzing::as_bytes(data, size);
  const bool is_text = size > 0 && data[0] == 'h';
  const fuzzing::memory_file file(
      is_text ? std::span<const std::byte>(file_of(fuzzing::text_of(input.subspan(1)))) : input);
  any_array a;
  if (!fuzzing::accepted_file([&] { a = read_npy(file.path()); })) return 0;
  const fuzzing::memory_file again({});
  write_npy(again.path(), a);
  const any_array b = read_npy(again.path());
  if (b.type() != a.type() || b.shape() != a.shape() ||
      (a.bytes() > 0 && std::memcmp(a.raw(), b.raw(), a.bytes()) != 0))
    fuzzing::found("an array is another once it was written and read");
  return 0;
}
