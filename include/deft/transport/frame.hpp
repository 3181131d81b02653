// SPDX-License-Identifier: Apache-2.0
// deft/transport/frame.hpp: the wire format of a message. Internal.
//
// A frame consists of a header of 64 bytes, little-endian; the metadata; a descriptor for each
// tensor; and the tensors' elements, one after the other.
//
//   header      0 magic "DEFT"   4 version (16 bit)   6 kind (16 bit)   8 flags (32 bit)
//              12 number of tensors (32 bit)         16 bytes of metadata   24 bytes of elements
//              32 call id   40 session   48 step     56 bytes of descriptors (32 bit)
//              60 threads that spin, 61 for how many us, 62 takes credit (8 bit)   63 zero
//   descriptor  0 dtype (8 bit)   1 rank (8 bit)   2 zero   8 bytes of elements   16 extents
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deft/core/growing_block.hpp>
#include <deft/transport/message.hpp>
#include <deft/transport/read_buffer.hpp>
#include <deft/transport/stream.hpp>
#include <span>
#include <utility>
#include <vector>

namespace deft::detail {

inline constexpr std::size_t header_bytes = 64;
inline constexpr std::size_t descriptor_bytes = 16;  // plus 8 for each extent
inline constexpr std::uint32_t frame_magic = 0x54464544;

/// A header, decoded.
struct frame_header {
  std::uint16_t version = 0;
  message_kind kind = message_kind::none;
  std::uint32_t flags = 0, tensors = 0, descriptors = 0;
  std::uint64_t meta = 0, payload = 0, id = 0, session = 0, step = 0;
  std::uint8_t spinning = 0, spinning_for = 0;
  bool takes_credit = false;
};
using header_block = std::array<std::byte, header_bytes>;
/// The offset in a header of two bytes that encode_frame leaves zero.
inline constexpr std::size_t spinning_at = 60;

header_block encode_header(const frame_header& h);
/// Throws data_loss if the bytes are not a valid header; failed_precondition if it has another
/// version, unless it is a refusal; resource_exhausted past the limits.
frame_header decode_header(std::span<const std::byte, header_bytes> bytes,
                           const wire_limits& limits);

/// Checks the first bytes of a frame, if there are at least four. Throws data_loss if they are not
/// the magic number; unauthenticated if they begin a TLS handshake.
void check_magic(std::span<const std::byte> begin);

/// Returns the header of `m`, and writes its tensors' descriptors to `descriptors`. Throws internal
/// for tensors that are not on the host.
header_block encode_frame(const message& m, std::vector<std::byte>& descriptors);
/// A frame as one block of bytes; for tests.
std::vector<std::byte> flatten_frame(const message& m);

/// Reads messages from a stream. Elements are read into their final buffers. A peer that announces
/// much and sends little gets little memory: it is taken as the bytes arrive.
class frame_reader {
 public:
  explicit frame_reader(const wire_limits& limits) : limits_(limits) {}

  enum class status { more, whole, end };
  /// Reads without waiting until a message is complete, the stream has no more for now, or it has
  /// ended. `m` must stay the same until it is complete; its allocations are reused. Throws
  /// unavailable if the stream breaks, and what decode_header throws.
  status advance(stream& from, message& m);
  void set_limits(const wire_limits& limits) { limits_ = limits; }
  /// Whether anything was read since the last call.
  bool has_read() { return std::exchange(has_read_, false); }
  /// Whether a message has been read in part.
  bool is_within_message() const { return stage_ != stage::header || done_ > 0; }

 private:
  enum class stage { header, meta, descriptors, payload };
  enum class got { all, part, end };

  status go_on(stream& from, message& m);
  got take(stream& from, std::byte* to, std::size_t n);
  got take(stream& from, std::vector<std::byte>& to, std::size_t n);
  got take_large(stream& from, std::size_t n);
  void start(message& m);
  void allocate(message& m);
  any_array fitting(any_array&& old, dtype type, const dims& shape, std::uint64_t bytes);

  wire_limits limits_;
  stage stage_ = stage::header;
  frame_header header_;
  header_block head_;
  std::vector<std::byte> descriptors_;
  std::size_t done_ = 0;       ///< bytes of the current piece
  std::size_t tensor_ = 0;     ///< index of the tensor being read
  std::size_t described_ = 0;  ///< the offset of its descriptor
  bool allocated_ = false;
  buffer first_;           ///< the first bytes of a large tensor
  growing_block growing_;  ///< then all of them
  bool has_read_ = false;
  bool goes_on_ = false;  ///< something was read in this call of advance
  read_buffer buffer_;
};

/// Releases large allocations of a message that waits to be reused.
void trim(message& m);

}  // namespace deft::detail
