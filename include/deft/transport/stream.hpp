// SPDX-License-Identifier: Apache-2.0
// deft/transport/stream.hpp: what carries bytes between two processes. Internal.
#pragma once
#include <sys/uio.h>

#include <cstddef>
#include <deft/core/error.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace deft::detail {

class event_loop;

/// A connected stream of bytes that never waits; one model for each kind of transport. Reading and
/// writing may happen at the same time, on two threads.
class stream {
 public:
  enum class direction { in, out };

  virtual ~stream() = default;
  /// How many bytes were read; 0: the peer has ended its direction; -EAGAIN: none are there;
  /// another -errno: it broke.
  virtual std::ptrdiff_t read(void* to, std::size_t most) noexcept = 0;
  /// How many bytes were written, or -errno. Not all pieces need to be looked at. Who goes on
  /// offers the bytes that were not written again, unchanged.
  virtual std::ptrdiff_t write(const iovec* pieces, int count) noexcept = 0;
  /// After a read: it took all that was there at that time. A guess may be false.
  virtual bool is_drained() const noexcept { return false; }
  /// Whether anything has come that was not read.
  virtual bool has_unread() const noexcept = 0;
  /// Calls `then` once, on a thread that runs the loop, when it pays to read (or write) again, be
  /// it to learn that the stream has ended. At most one is under way for each direction.
  virtual void wait(direction d, std::function<void()> then) = 0;
  /// Ends both directions, or the outgoing one, which ends waits; from any thread.
  virtual void shut(bool both) noexcept = 0;
  /// Whether the peer is a process of this host, as far as is known.
  virtual bool on_this_host() const noexcept { return false; }
  /// Whether what was read last was sent from the processor that the caller runs on.
  virtual bool beside_peer() const noexcept = 0;
  /// What a read or write that gave -`failed` means.
  virtual std::string why(int failed) const;
  /// Whose threads call what wait was given.
  virtual event_loop& loop() const noexcept = 0;
  /// After a read that has failed: what is known beyond its errno, if anything.
  virtual const error* fault() const noexcept { return nullptr; }
  /// What the peer's certificate is for, once something was read; null if it has not shown one.
  virtual const std::vector<std::string>* certified() const noexcept { return nullptr; }
};

/// Replaces every new stream by one of the tests' own; null: none.
using stream_filter = std::function<std::unique_ptr<stream>(std::unique_ptr<stream>)>;
void filter_streams(stream_filter f);
std::unique_ptr<stream> filtered(std::unique_ptr<stream> s);

}  // namespace deft::detail
