// SPDX-License-Identifier: Apache-2.0
// deft/data/example.hpp: tf.Example, the protocol buffer in which TensorFlow's tools store one
// example: named lists of bytes, floats or 64-bit integers.
#pragma once
#include <cstdint>
#include <deft/core/ndarray.hpp>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace deft {

/// Builds a tf.Example: `example().set("image", pixels).set("label", 7).encode()`.
class example {
 public:
  /// Sets a feature, in the place of one of that name: to a list, or to a single value, which is a
  /// list of one. Integers of any type are stored with 64 bits, floating numbers as floats. Throws
  /// invalid_argument if the name is not UTF-8, as protocol buffers require.
  /// @{
  example& set(const std::string& name, std::string_view bytes);
  example& set(const std::string& name, std::vector<std::string> bytes);
  example& set(const std::string& name, std::vector<float> values);
  example& set(const std::string& name, std::vector<std::int64_t> values);
  template <std::integral T>
  example& set(const std::string& name, T value) {
    return set(name, std::vector<std::int64_t>{static_cast<std::int64_t>(value)});
  }
  template <std::floating_point T>
  example& set(const std::string& name, T value) {
    return set(name, std::vector<float>{static_cast<float>(value)});
  }
  /// @}

  /// The bytes of the message, features in the order of their names.
  std::string encode() const;

 private:
  using value_list =
      std::variant<std::vector<std::string>, std::vector<float>, std::vector<std::int64_t>>;
  example& put(const std::string& name, value_list values);

  std::map<std::string, value_list> features_;
};

/// The features of an encoded tf.Example, which must outlive it. One view may parse many examples,
/// and reuses its memory.
class example_view {
 public:
  example_view() = default;
  /// Parses at once: `example_view(bytes).one_integer("label")`. Throws as parse.
  explicit example_view(std::string_view encoded) { parse(encoded); }
  /// Throws data_loss if the bytes are not a tf.Example.
  void parse(std::string_view encoded);

  /// Whether there is a feature of that name, of any kind.
  bool has(std::string_view name) const;
  /// The values of a feature. All throw not_found if there is none of that name, invalid_argument
  /// if it is of another kind, data_loss if it is malformed.
  /// @{
  std::vector<std::string_view> bytes(std::string_view name) const;
  std::vector<float> floats(std::string_view name) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  /// @}

  /// The value of a feature that has one. Throws as bytes, and invalid_argument if it has none, or
  /// several.
  /// @{
  std::string_view one_bytes(std::string_view name) const;
  std::int64_t one_integer(std::string_view name) const;
  float one_float(std::string_view name) const;
  /// @}

  /// The values of a feature, into memory of the caller. Throws as bytes, and invalid_argument if
  /// the number of values is not that of `to`.
  /// @{
  void read(std::string_view name, std::span<float> to) const;
  void read(std::string_view name, std::span<std::int64_t> to) const;
  /// @}

 private:
  std::string_view feature(std::string_view name) const;

  std::vector<std::pair<std::string_view, std::string_view>> features_;
};

}  // namespace deft
