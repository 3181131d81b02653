// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_frames.cpp: frames in whatever pieces they come are read alike or refused alike,
// and what was read is what was there. An input is a byte that chooses pieces and limits, and
// frames.
#include <deft/transport/archive.hpp>
#include <deft/transport/handshake.hpp>

#include "frames.hpp"

using namespace deft;
using namespace deft::ext;

std::vector<fuzzing::bytes> fuzzing::seeds() {
  message small(message_kind::first_free, 7), large(message_kind::reply, 8), refused;
  small.session = 3;
  small.spinning = 2, small.spinning_for = 40;
  small.meta = to_bytes("meta");
  for (const dims& shape : {dims{}, dims{3, 4}, dims{0, 5}, dims{3'000}}) {
    any_array a(shape.rank() == 2 ? dtype::boolean : dtype::int32, shape);
    if (a.bytes()) std::memset(a.mutable_raw(), 1, a.bytes());
    large.tensors.push_back(a);
  }
  large.takes_credit = true;
  refused.kind = message_kind::refused;
  refused.meta = to_bytes(errc::unavailable, "not now");
  std::vector<bytes> all;
  for (auto choice : {0, 1, 5, 254})
    for (const auto& sent : {std::vector{small}, std::vector{large, small}, std::vector{refused}}) {
      bytes b{std::byte(choice)};
      for (const auto& m : sent) append(b, frame_of(m));
      all.push_back(std::move(b));
    }
  return all;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  return fuzzing::mutate_frames(data, 1, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto from = fuzzing::as_bytes(data + 1, size - 1);
  const int choice = data[0] % 8;
  // Announced metadata costs time: seldom much of it.
  const wire_limits limits = choice == 0   ? wire_limits{3 << 20, 64, 1 << 20}
                             : choice <= 3 ? wire_limits::before_authentication()
                                           : wire_limits{1 << 14, 64, 1 << 16};
  const auto whole = fuzzing::read_frames(from, SIZE_MAX, limits);
  const auto pieces = fuzzing::read_frames(from, 1 + data[0] / 8 * 3, limits);
  // Where a frame is cut off, what is wrong with it may be seen sooner or later.
  if (whole.messages.size() != pieces.messages.size() ||
      whole.error.empty() != pieces.error.empty())
    fuzzing::found("pieces make a difference: ", whole.messages.size(), " messages and \"",
                   whole.error, "\", or ", pieces.messages.size(), " and \"", pieces.error, "\"");
  auto rest = from;
  for (std::size_t i = 0; i < whole.messages.size(); ++i) {
    const auto frame = fuzzing::frame_of(whole.messages[i]);
    if (frame != fuzzing::frame_of(pieces.messages[i]))
      fuzzing::found("pieces make a difference to message ", i);
    // A refusal may be of another version.
    const std::size_t same = whole.messages[i].kind == message_kind::refused ? 6 : 0;
    if (rest.size() < frame.size() ||
        std::memcmp(rest.data() + same, frame.data() + same, frame.size() - same) != 0)
      fuzzing::found("message ", i, " is not what was there");
    rest = rest.subspan(frame.size());
  }
  if (whole.error.empty() && !rest.empty()) fuzzing::found(rest.size(), " bytes were left");
  return 0;
}
