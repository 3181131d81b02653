// SPDX-License-Identifier: Apache-2.0
// deft/transport/listener.hpp: accepts connections, and hands on what comes.
#pragma once
#include <chrono>
#include <deft/transport/connection.hpp>
#include <functional>
#include <memory>
#include <string>

namespace deft {

/// What a server does with its connections. Called on the threads that serve all of a process's
/// connections, few of them; calls for one connection follow each other. Outlives the listener.
class connection_handler {
 public:
  virtual ~connection_handler() = default;
  /// Before a caller is welcomed, who has proved who it is where that is asked for: throws why it
  /// is not. One that is told unavailable tries again.
  virtual void admit(const peer_info&) {}
  /// After the handshake. An error thrown here refuses the connection with its sentence.
  virtual void on_open(const std::shared_ptr<connection>&) {}
  /// A message came. The answer may be sent from here, or from anywhere later. What is not moved
  /// out of `m` is reused for the next message. An error thrown here is sent as the answer if
  /// the message has an id, else logged; either way the connection goes on.
  virtual void on_message(const std::shared_ptr<connection>& from, message&& m) = 0;
  /// A peer is silent (connection::begin_silence): waits until it is `heard`, and reads meanwhile
  /// what brings that about. `unseen`: how long before other threads have to take this one's place.
  /// False, at once, if another thread reads it. Returns soon once the handler is to stop.
  virtual bool wait_until_heard(const std::function<bool()>& /*heard*/,
                                std::chrono::microseconds /*unseen*/) {
    return false;
  }
  /// The connection has ended: in order if `why` is null.
  virtual void on_close(const std::shared_ptr<connection>&, const error* /*why*/) {}
};

struct listen_options {
  std::string address = "localhost:0";  ///< "host:port"; an empty host is loopback, port 0 any
  int fd = -1;  ///< a listening socket to adopt in place of the address; owned from then on
  process_identity self;  ///< incarnation 0: a random one
  wire_limits limits;
  bool local_sockets = true;  ///< offered to callers of this machine; see channel_options
  std::chrono::milliseconds handshake_timeout{10'000};
  std::chrono::milliseconds silence{1'000};  ///< how long a caller may say nothing at first
  /// At a time, of all callers, and half of it of those from one address; the oldest makes room.
  int max_handshakes = 64;
  /// At a time, and less than the process may have descriptors; callers beyond it are turned away.
  int max_connections = 4'096;
};

/// Listens from construction to stop(). Garbage and silent callers are refused and logged, at most
/// a line a second of each kind, and cost nobody else anything.
class listener {
 public:
  /// Throws permission_denied for an address that is not loopback without a secret, TLS or
  /// `insecure`; unavailable if it cannot be bound; invalid_argument if it is malformed; and what
  /// is wrong with the credentials' files for TLS, by name.
  listener(listen_options options, connection_handler& handler);
  ~listener();
  listener(const listener&) = delete;

  /// "127.0.0.1:40123": what it is bound to.
  const std::string& address() const;
  std::uint16_t port() const;
  std::uint64_t incarnation() const;
  /// Connections that stand now.
  std::size_t connections() const;

  /// Accepts no more, closes every connection and waits for their handlers. A handler may call it;
  /// then only itself is not waited for. Twice is as once.
  void stop();

  class impl;

 private:
  std::shared_ptr<impl> impl_;
};

/// A listening socket on "host:port", for a launcher that hands it to a child by `--listen_fd`:
/// inherited by children, not closed by exec. Returns the descriptor.
int listen_socket(const std::string& address);
/// "127.0.0.1:40123" of a socket.
std::string address_of_socket(int fd);

}  // namespace deft
