// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/frames.hpp: frames read from memory, and mutated one by one.
#pragma once
#include <cerrno>
#include <deft/transport/frame.hpp>
#include <functional>

#include "fuzzing.hpp"
#include "session/mutate.hpp"

namespace fuzzing {

/// Yields bytes, at most `step` at a time with a pause after each, then an end.
class memory_stream final : public deft::detail::stream {
 public:
  memory_stream(std::span<const std::byte> from, std::size_t step) : from_(from), step_(step) {}
  std::ptrdiff_t read(void* to, std::size_t most) noexcept override {
    if (step_ != SIZE_MAX && (pause_ = !pause_)) return -EAGAIN;
    const std::size_t n = std::min({most, step_, from_.size()});
    if (n) std::memcpy(to, from_.data(), n);
    from_ = from_.subspan(n);
    return static_cast<std::ptrdiff_t>(n);
  }
  std::ptrdiff_t write(const iovec*, int) noexcept override { return -EPIPE; }
  bool has_unread() const noexcept override { return !from_.empty(); }
  void wait(direction, std::function<void()>) override { found("a frame's reader waits"); }
  void shut(bool) noexcept override {}
  bool shares_processor() const noexcept override { return false; }
  deft::detail::event_loop& loop() const noexcept override {
    found("a frame's reader asks for a loop");
  }

 private:
  std::span<const std::byte> from_;
  std::size_t step_;
  bool pause_ = false;
};

/// Frames up to the first that is not sound.
struct frames_read {
  std::vector<deft::ext::message> messages;
  std::string error;  ///< empty: all were sound
};
inline frames_read read_frames(std::span<const std::byte> from, std::size_t step,
                               const deft::ext::wire_limits& limits) {
  frames_read all;
  memory_stream s(from, step);
  deft::detail::frame_reader reader(limits);
  deft::ext::message m;
  try {
    for (;;) switch (reader.advance(s, m)) {
        case deft::detail::frame_reader::status::end:
          return all;
        case deft::detail::frame_reader::status::whole:
          all.messages.push_back(m);
          for (auto& t : all.messages.back().tensors) t = t.clone();
          break;
        case deft::detail::frame_reader::status::more:
          break;
      }
  } catch (const deft::error& e) {
    if (e.code() == deft::errc::internal) found("an internal error: ", e.what());
    all.error = deft::ext::str(e.code(), ": ", e.what());
  }
  return all;
}

/// As on the wire: who spins is known to connections alone, which add it to a frame.
inline bytes frame_of(const deft::ext::message& m) {
  bytes b = deft::detail::flatten_frame(m);
  b[deft::detail::spinning_at] = std::byte{m.spinning};
  b[deft::detail::spinning_at + 1] = std::byte{m.spinning_for};
  return b;
}

/// Some bytes of a frame's metadata, its numbers, its tensors or the frames' order; the headers
/// still fit.
inline void mutate(std::vector<deft::ext::message>& frames, testing::dice& d) {
  if (frames.empty()) return;
  deft::ext::message& m = d.pick(frames);
  switch (d.below(9)) {
    case 0:
      m.kind = static_cast<deft::ext::message_kind>(1 + d.below(60));
      break;
    case 1:
      (d.chance(3)   ? m.id
       : d.chance(2) ? m.session
                     : m.step) = static_cast<std::uint64_t>(d.odd_number());
      break;
    case 2:
      m.flags = static_cast<std::uint32_t>(d.odd_number());
      break;
    case 3:
      if (!m.tensors.empty() && d.chance(2)) {
        m.tensors.pop_back();
      } else {
        const auto type = deft::ext::every_dtype[d.below(deft::ext::every_dtype.size())];
        deft::any_array a(type, deft::dims{static_cast<std::int64_t>(d.below(5)), 2});
        if (type != deft::dtype::string && a.bytes())
          std::memset(a.mutable_raw(), static_cast<int>(d.below(2)), a.bytes());
        m.tensors.push_back(a);
      }
      break;
    case 4: {
      const std::size_t other = d.below(frames.size());
      if (d.chance(2))
        std::swap(m, frames[other]);
      else if (frames.size() < 16)
        frames.push_back(frames[other]);
      break;
    }
    case 5:
      m.takes_credit = !m.takes_credit;
      break;
    default:
      mutate(m.meta);
  }
}

/// As a custom mutator does: half of the time the bytes as such.
inline std::size_t mutate_frames(std::uint8_t* data, std::size_t begin, std::size_t size,
                                 std::size_t most, unsigned seed) {
  testing::dice d(seed);
  if (size <= begin || d.chance(2)) return LLVMFuzzerMutate(data, size, most);
  auto frames = read_frames(as_bytes(data + begin, size - begin), SIZE_MAX, {}).messages;
  mutate(frames, d);
  bytes made;
  for (const auto& m : frames) append(made, frame_of(m));
  return made.empty() ? LLVMFuzzerMutate(data, size, most)
                      : begin + replace(data + begin, most - begin, made);
}

}  // namespace fuzzing
