// SPDX-License-Identifier: Apache-2.0
// deft/transport/credit.hpp: flow control: how much may be sent that the peer has not processed
// yet.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deft/core/error.hpp>
#include <optional>
#include <utility>

namespace deft::ext {

/// Limits of the unprocessed messages that take credit. A message is sent as long as the
/// unprocessed ones are below both limits, so an end holds at most `bytes` and one more message.
struct credit_window {
  std::uint64_t bytes = std::uint64_t{32} << 20;
  std::uint32_t frames = 4'096;
};

}  // namespace deft::ext

namespace deft::detail {

/// An amount of credit, in bytes and messages.
struct credit {
  std::uint64_t bytes = 0;
  std::uint32_t frames = 0;
};

/// One end's account of what is unprocessed.
class credit_account {
 public:
  void set_window(const credit_window& w) {
    window_ = {std::max<std::uint64_t>(w.bytes, 1), std::max<std::uint32_t>(w.frames, 1)};
  }
  /// Takes credit for a message; false if the window is used up.
  bool take(std::uint64_t bytes) {
    if (used_.bytes >= window_.bytes || used_.frames >= window_.frames) return false;
    used_.bytes += bytes;
    ++used_.frames;
    return true;
  }
  /// Throws data_loss if less was taken.
  void give_back(const credit& c) {
    if (c.bytes > used_.bytes || c.frames > used_.frames)
      fail(errc::data_loss, "the peer returned more credit than was taken: ", c.bytes, " bytes in ",
           c.frames, " messages, of ", used_.bytes, " in ", used_.frames);
    used_.bytes -= c.bytes;
    used_.frames -= c.frames;
  }
  /// At the receiver: one more message is processed. Returns the credit to send back now, if any: a
  /// quarter of the window at a time, so that a peer that sends little gets no such messages.
  std::optional<credit> free(std::uint64_t bytes) {
    freed_.bytes += bytes;
    ++freed_.frames;
    if (freed_.bytes < (window_.bytes + 3) / 4 && freed_.frames < (window_.frames + 3) / 4)
      return std::nullopt;
    const credit told = std::exchange(freed_, credit());
    give_back(told);
    return told;
  }
  const credit& used() const { return used_; }

 private:
  credit_window window_;
  credit used_, freed_;
};

}  // namespace deft::detail

namespace deft::ext {}  // namespace deft::ext
