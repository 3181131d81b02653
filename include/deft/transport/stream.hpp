// SPDX-License-Identifier: Apache-2.0
// deft/transport/stream.hpp: a stream of bytes between two processes. Internal.
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

/// A connected stream of bytes that never blocks; one implementation for each kind of transport.
/// One thread may read while another writes.
class stream {
 public:
  enum class direction { in, out };

  virtual ~stream() = default;
  /// Returns the number of bytes read; 0 if the peer has ended its direction; -EAGAIN if there are
  /// none; another -errno if the stream broke.
  virtual std::ptrdiff_t read(void* to, std::size_t most) noexcept = 0;
  /// Returns the number of bytes written, or -errno. It need not look at all pieces. The caller
  /// then passes the bytes that were not written again, unchanged.
  virtual std::ptrdiff_t write(const iovec* pieces, int count) noexcept = 0;
  /// After a read: whether it took everything that was there. If unknown, false.
  virtual bool is_drained() const noexcept { return false; }
  /// Whether there are unread bytes.
  virtual bool has_unread() const noexcept = 0;
  /// Calls `then` once, on a thread that runs the loop, when reading (or writing) may succeed
  /// again, or would report the end of the stream. At most one wait is pending for each direction.
  virtual void wait(direction d, std::function<void()> then) = 0;
  /// Ends both directions, or only the outgoing one; this also ends waits. From any thread.
  virtual void shut(bool both) noexcept = 0;
  /// Whether the peer is known to be a process of this host.
  virtual bool on_this_host() const noexcept { return false; }
  /// Whether the bytes last read were sent from the processor that the caller runs on.
  virtual bool shares_processor() const noexcept = 0;
  /// The message for a read or write that returned -`failed`.
  virtual std::string why(int failed) const;
  /// The loop whose threads call the functions given to wait.
  virtual event_loop& loop() const noexcept = 0;
  /// After a failed read: an error that says more than its errno, or null.
  virtual const error* fault() const noexcept { return nullptr; }
  /// The names that the peer's certificate is for, once something was read; null if it has not
  /// shown one.
  virtual const std::vector<std::string>* certified() const noexcept { return nullptr; }
};

/// Replaces every new stream by one that tests provide; null for none.
using stream_filter = std::function<std::unique_ptr<stream>(std::unique_ptr<stream>)>;
void filter_streams(stream_filter f);
std::unique_ptr<stream> filtered(std::unique_ptr<stream> s);

}  // namespace deft::detail
