// SPDX-License-Identifier: Apache-2.0
// tests/data/gguf_bytes.hpp: GGUF files, field by field, for tests of what reads them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace testing {

/// Fields, as they are in a file.
class gguf_bytes {
 public:
  template <class T>
  gguf_bytes& number(T v) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
    return *this;
  }
  gguf_bytes& text(std::string_view t) {
    number(std::uint64_t{t.size()});
    bytes_ += t;
    return *this;
  }
  gguf_bytes& raw(std::string_view t) {
    bytes_ += t;
    return *this;
  }
  /// What a file begins with.
  static gguf_bytes file(std::uint64_t tensors, std::uint64_t values, std::uint32_t version = 3) {
    return gguf_bytes().raw("GGUF").number(version).number(tensors).number(values);
  }
  /// A value: its key and its kind; the value follows.
  gguf_bytes& key(std::string_view name, std::uint32_t kind) { return text(name).number(kind); }
  gguf_bytes& strings(std::string_view name, const std::vector<std::string>& all) {
    key(name, 9).number(std::uint32_t{8}).number(std::uint64_t{all.size()});
    for (const auto& s : all) text(s);
    return *this;
  }
  gguf_bytes& tensor(std::string_view name, const std::vector<std::uint64_t>& extents,
                     std::uint32_t type, std::uint64_t offset) {
    text(name).number(static_cast<std::uint32_t>(extents.size()));
    for (auto e : extents) number(e);
    return number(type).number(offset);
  }
  gguf_bytes& align(std::size_t to = 32) {
    bytes_.resize((bytes_.size() + to - 1) / to * to);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace testing
