// SPDX-License-Identifier: Apache-2.0
// deft/core/quantized.hpp: arrays of blocks of small integers with scales, as llama.cpp has them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deft/core/any_array.hpp>
#include <string_view>

namespace deft {

/// How 32 neighbouring elements of a row are stored; d and m are float16. (The formats:
/// https://github.com/ggml-org/ggml, ggml-common.h.)
enum class block_format : std::uint8_t {
  q4_0,  ///< d, then 16 bytes with elements i and i + 16: d (q - 8)
  q4_1,  ///< d, m, then 16 bytes with elements i and i + 16: d q + m
  q8_0,  ///< d, then 32 signed bytes: d q
};
/// "Q4_1".
std::string_view to_string(block_format f);

namespace ext {

inline constexpr std::int64_t block_elements = 32;
/// Bytes of a block.
constexpr std::size_t block_bytes(block_format f) {
  return f == block_format::q4_0 ? 18 : f == block_format::q4_1 ? 20 : 34;
}
/// The elements of `n` blocks.
void dequantize(block_format f, const void* blocks, std::int64_t n, float* to);

}  // namespace ext

/// A row-major array of blocks, each of 32 elements along the last axis. Copies share them.
class quantized_array {
 public:
  /// @cond internal
  /// `blocks` has those of all elements; the last extent is a multiple of 32.
  quantized_array(block_format format, const dims& shape, ext::buffer blocks)
      : format_(format), shape_(shape), blocks_(std::move(blocks)) {}
  const ext::buffer& storage() const { return blocks_; }
  /// @endcond
  block_format format() const { return format_; }  ///< of the blocks
  /// Of elements, not of blocks.
  const dims& shape() const { return shape_; }
  /// The blocks, one behind the other, at any address.
  const std::byte* blocks() const { return static_cast<const std::byte*>(blocks_.data()); }
  std::size_t bytes() const {  ///< of all blocks
    return static_cast<std::size_t>(shape_.elements() / ext::block_elements) *
           ext::block_bytes(format_);
  }
  /// The elements as floats.
  any_array dequantized() const;

 private:
  block_format format_;
  dims shape_;
  ext::buffer blocks_;
};

}  // namespace deft
