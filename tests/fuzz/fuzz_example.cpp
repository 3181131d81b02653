// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_example.cpp: whatever the bytes of a tf.Example are, its features are read or
// refused; what was read is the same after it was encoded and read again.
#include <deft/data/example.hpp>

#include "fuzzing.hpp"

using namespace deft;
using fuzzing::bytes;

namespace {

template <class T, class U>
bool same_bits(const std::vector<T>& a, const std::vector<U>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace

std::vector<bytes> fuzzing::seeds() {
  return {bytes_of(example()
                       .set("a", std::vector<float>{1, -2.5f})
                       .set("b", std::vector<std::int64_t>{-1, 300})
                       .set("c", std::vector<std::string>{"x", ""})
                       .encode()),
          bytes_of(example()
                       .set("a", std::vector<float>{})
                       .set("b", std::vector<std::int64_t>{})
                       .set("c", std::vector<std::string>{})
                       .encode()),
          // Numbers that are not packed.
          bytes_of(std::string_view(
              "\x0a\x0e\x0a\x0c\x0a\x01\x62\x12\x07\x1a\x05\x08\xac\x02\x08\x01", 16))};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view encoded = fuzzing::text_of(fuzzing::as_bytes(data, size));
  example_view view;
  if (!fuzzing::accepted([&] { view.parse(encoded); })) return 0;
  for (const std::string name : {"a", "b", "c"}) {
    std::vector<float> floats;
    if (fuzzing::accepted([&] { floats = view.floats(name); })) {
      const std::string again = example().set(name, floats).encode();
      if (!same_bits(example_view(again).floats(name), floats)) fuzzing::found("floats differ");
    }
    std::vector<std::int64_t> integers;
    if (fuzzing::accepted([&] { integers = view.integers(name); })) {
      const std::string again = example().set(name, integers).encode();
      if (example_view(again).integers(name) != integers) fuzzing::found("integers differ");
    }
    std::vector<std::string_view> parts;
    if (fuzzing::accepted([&] { parts = view.bytes(name); })) {
      const std::string again =
          example().set(name, std::vector<std::string>(parts.begin(), parts.end())).encode();
      if (example_view(again).bytes(name) != parts) fuzzing::found("bytes differ");
    }
    fuzzing::accepted([&] { view.one_float(name); });
    fuzzing::accepted([&] { view.one_integer(name); });
    fuzzing::accepted([&] { view.one_bytes(name); });
  }
  return 0;
}
