// SPDX-License-Identifier: Apache-2.0
// deft/transport/credit.hpp: how much may be on the way to a peer that has not taken it yet.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deft/core/error.hpp>
#include <optional>
#include <utility>

namespace deft {

/// Of the messages that take credit. A message goes as long as less than this is on the way, so it
/// may itself exceed what is left: an end holds at most `bytes` and one message.
struct credit_window {
  std::uint64_t bytes = std::uint64_t{32} << 20;
  std::uint32_t frames = 4'096;
};

namespace detail {

/// Bytes and messages; of either end of a connection, or what one tells the other.
struct credit {
  std::uint64_t bytes = 0;
  std::uint32_t frames = 0;
};

/// What is on the way, as one end knows it.
class credit_account {
 public:
  void set_window(const credit_window& w) {
    window_ = {std::max<std::uint64_t>(w.bytes, 1), std::max<std::uint32_t>(w.frames, 1)};
  }
  /// False if there is too much already.
  bool take(std::uint64_t bytes) {
    if (used_.bytes >= window_.bytes || used_.frames >= window_.frames) return false;
    used_.bytes += bytes;
    ++used_.frames;
    return true;
  }
  /// Throws data_loss if that much was not taken.
  void give_back(const credit& c) {
    if (c.bytes > used_.bytes || c.frames > used_.frames)
      fail(errc::data_loss, "the peer returned more credit than it was given");
    used_.bytes -= c.bytes;
    used_.frames -= c.frames;
  }
  /// The receiver's end: one more message is dealt with. What is to be told the sender now, of this
  /// and others: a quarter of the window at a time, so that who sends little hears nothing.
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

}  // namespace detail
}  // namespace deft
