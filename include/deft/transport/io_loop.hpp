// SPDX-License-Identifier: Apache-2.0
// deft/transport/io_loop.hpp: the process's I/O thread, which waits for sockets. Internal.
#pragma once
#include <functional>
#include <memory>

namespace deft::detail {

/// What a watcher wants next.
enum class watch_again { ready, later, never };

/// Something that the I/O thread waits for. It ends by itself when its function says never.
class io_watch {
 public:
  virtual ~io_watch() = default;
  /// Afterwards the function runs no more. Not from the I/O thread.
  virtual void cancel() = 0;
};

/// Calls `when_ready` on the I/O thread each time `fd` can be written (or read), until it says
/// never; `later` is a tenth of a second. The function is destroyed then. Starts the thread.
std::shared_ptr<io_watch> watch_socket(int fd, bool write, std::function<watch_again()> when_ready);

}  // namespace deft::detail
