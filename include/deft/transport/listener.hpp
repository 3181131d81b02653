// SPDX-License-Identifier: Apache-2.0
// deft/transport/listener.hpp: accepts connections, and passes their messages to a handler.
#pragma once
#include <chrono>
#include <deft/transport/connection.hpp>
#include <functional>
#include <memory>
#include <string>

namespace deft::ext {

/// What a server does with its connections. Called on the few threads that serve all connections of
/// a process; calls for one connection are never concurrent. Must outlive the listener.
class connection_handler {
 public:
  virtual ~connection_handler() = default;
  /// Called before a caller is accepted, once it has been authenticated if that is required. Throws
  /// to refuse the caller; one that gets `unavailable` tries again.
  virtual void admit(const peer_info&) {}
  /// Called after the handshake. An error thrown here refuses the connection with its message.
  virtual void on_open(const std::shared_ptr<connection>&) {}
  /// Called for each message. The answer may be sent from here, or later from any thread. What is
  /// not moved out of `m` is reused for the next message. An error thrown here is the answer if the
  /// message has an id; otherwise it is logged, and data_loss or no memory ends the connection.
  virtual void on_message(const std::shared_ptr<connection>& from, message&& m) = 0;
  /// Called while a peer is silent (connection::suspend_spinning): waits until `heard()` is true,
  /// and meanwhile reads the answers that the peer waits for. `unseen`: how long before another
  /// thread takes over this one's connections. Returns false at once if another thread reads them;
  /// returns soon once the handler should stop.
  virtual bool wait_until_heard(const std::function<bool()>& /*heard*/,
                                std::chrono::microseconds /*unseen*/) {
    return false;
  }
  /// The connection has ended; `why` is null if the peer closed it in an orderly way.
  virtual void on_close(const std::shared_ptr<connection>&, const error* /*why*/) {}
};

struct listen_options {
  std::string address = "localhost:0";  ///< "host:port"; empty host: loopback; port 0: any
  int fd = -1;  ///< a listening socket to use in place of the address; the listener owns it
  process_identity self;  ///< if the incarnation is 0, a random one is used
  wire_limits limits;
  bool local_sockets = true;  ///< offer these to callers on this machine; see channel_options
  std::chrono::milliseconds handshake_timeout{10'000};
  std::chrono::milliseconds silence{1'000};  ///< how long a caller may take to send its first byte
  std::chrono::milliseconds time_to_hear{500};  ///< how long a refused caller has to read why
  /// Connections in the handshake at a time, half of them from one address, and as many that have
  /// been refused; if there are more, the oldest is closed.
  int max_handshakes = 64;
};

/// Listens from construction to stop(). Callers that send garbage or nothing are refused without
/// delaying others, and logged, at most one line a second of each kind. There may be as many
/// connections at a time as the process may have file descriptors, less a reserve; further callers
/// are turned away.
class listener {
 public:
  /// Throws permission_denied for an address other than loopback without a secret, TLS or
  /// `insecure`; unavailable if the address cannot be bound; invalid_argument if it is malformed;
  /// and, naming the file, if the credentials for TLS are invalid (see make_tls_context).
  listener(listen_options options, connection_handler& handler);
  ~listener();
  listener(const listener&) = delete;

  /// The address that it is bound to: "127.0.0.1:40123".
  const std::string& address() const;
  /// The port that it is bound to.
  std::uint16_t port() const;
  /// The incarnation that callers are told.
  std::uint64_t incarnation() const;
  /// The number of open connections.
  std::size_t connections() const;

  /// Stops accepting, closes every connection and waits for their handlers. A handler may call it,
  /// and is not waited for itself. May be called more than once.
  void stop();

  class impl;

 private:
  std::shared_ptr<impl> impl_;
};

/// Opens a listening socket on "host:port" that children inherit and exec does not close, for a
/// launcher that passes it on by `--listen_fd`. Returns the descriptor. Throws as listener does.
int listen_socket(const std::string& address);
/// Binds a socket to "host:port" without listening, so that no other process is given the port
/// while nobody listens there; callers are refused. Returns the descriptor. A listener may use the
/// address meanwhile. Throws as listener does.
int reserve_address(const std::string& address);
/// The address that a socket is bound to: "127.0.0.1:40123". Throws invalid_argument if `fd` is not
/// a socket.
std::string address_of_socket(int fd);

}  // namespace deft::ext
