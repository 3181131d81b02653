// SPDX-License-Identifier: Apache-2.0
// deft/transport/handshake.hpp: how two processes identify and authenticate each other.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <deft/graph/op_def.hpp>
#include <deft/transport/credentials.hpp>
#include <deft/transport/credit.hpp>
#include <deft/transport/message.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace deft {

namespace ext {

/// Version of frames and handshake; peers of different versions refuse each other.
inline constexpr std::uint16_t protocol_version = 16;

/// The tasks of a cluster, a line each with the task's address: "/job:ps/task:0 at ps0:2222".
class task_list {
 public:
  task_list() = default;
  task_list(std::vector<std::string> lines);
  task_list(std::initializer_list<std::string> lines)
      : task_list(std::vector<std::string>(lines)) {}

  const std::vector<std::string>& lines() const { return lines_; }
  /// The same for the same lines, in any process; 0 for none.
  std::uint64_t hash() const { return hash_; }
  /// Whether the address of task `name` ("/job:ps/replica:0/task:0") is that of all interfaces of
  /// its machine, which only this process gives as its own: "0.0.0.0:2222", "[::]:2222".
  bool is_open(const std::string& name) const;
  /// The lines without the addresses of these tasks.
  task_list without_addresses(const std::vector<std::string>& names) const;

 private:
  std::vector<std::string> lines_;
  std::uint64_t hash_ = 0;
};

/// How a process introduces itself.
struct process_identity {
  std::string name;               ///< "/job:ps/replica:0/task:0", "worker/0", "client"
  std::uint64_t incarnation = 0;  ///< of a server: a new number after each restart
  task_list cluster;              ///< empty matches any
  deft::credentials credentials;  ///< used as they are, without the environment
  /// A peer from which nothing is received for this long counts as lost; zero: never. Both ends
  /// send heartbeats.
  std::chrono::milliseconds heartbeat_timeout{20'000};
  credit_window window{};  ///< of each connection to this process
};

/// What is known about the other end after the handshake.
struct peer_info {
  std::string name;
  std::string address;            ///< "127.0.0.1:2222"
  std::uint64_t incarnation = 0;  ///< of a server
  /// Both ends proved that they know the secret, or showed certificates that match their names.
  bool authenticated = false;
  bool local = false;               ///< on this machine, connected through a local socket
  bool same_catalog = true;         ///< if true, the lists below are empty
  std::vector<std::string> lacks;   ///< "op/version" that this process has and the peer has not
  std::vector<std::string> offers;  ///< "op/version" that the peer has and this process has not

  /// Whether the peer has this operation, in the same version and with the same body.
  bool knows(const op_def& op) const;
  /// Why it does not: "does not have version 1 of this operation", or that it has another body.
  std::string why_unknown(const op_def& op) const;
  /// The peer in messages: "/job:ps/replica:0/task:0 at 127.0.0.1:2222".
  std::string to_string() const;
};

inline std::string to_string(const peer_info& p) { return p.to_string(); }

/// "op/version"; of an operation of the program's own "op/version/hash", of the text of its body,
/// or, of an algorithm, which cannot be compared, of its signature.
std::string catalog_entry(const op_def& op);
/// The sorted entries of all operations of this process.
std::vector<std::string> catalog_list();

/// A new incarnation: 64 random bits, never 0.
std::uint64_t random_incarnation();

}  // namespace ext

namespace detail {
class connection_state;

/// What one end requires of the other.
struct peer_terms {
  std::chrono::milliseconds timeout{};  ///< of silence, after which the other end counts as lost
  credit_window window{};               ///< for messages sent to this end
};

/// Offers an authenticated caller on the same machine a local socket to continue on, with tokens by
/// which both ends recognize each other there.
struct local_offer {
  using token = std::array<std::uint8_t, 16>;
  std::string name;  ///< empty: no offer
  token caller{}, server{};
};
bool same_token(const local_offer::token& a, const local_offer::token& b);

/// Fills `to` with `n` random bytes from the system, at most 256.
void random_bytes(void* to, std::size_t n);
/// Throws data_loss if `m` has another kind, or has tensors.
void check_kind(const message& m, message_kind kind);

/// The client's side of the handshake, one message at a time. Fills in `peer` of its connection.
class client_handshake {
 public:
  /// `task`: see channel_group::dial. `local_sockets`: continue on a local socket if the server
  /// offers one.
  client_handshake(std::shared_ptr<connection_state> c, const process_identity& self,
                   std::string task, bool local_sockets);
  ~client_handshake();
  /// Sends the first message.
  void begin();
  /// The connection on which the next message has to come; once the server is accepted, the one to
  /// use.
  const std::shared_ptr<connection_state>& connection() const { return connection_; }
  /// Handles a message that was received on it. Returns true once the server is accepted and the
  /// heartbeats have begun. Throws the reason if it is not.
  bool on_message(const message& m);
  /// The connection was lost. Returns true if the server is accepted nevertheless, on another
  /// connection. Throws the reason if it is not: `why`, or what the server refused with.
  bool on_lost(const error& why);
  void close();

 private:
  void on_challenge(const message& m);
  bool on_welcome(const message& m);
  bool settle();
  void on_settled(const message& m);
  bool stay(const std::string& why);
  bool accept();

  void check_server(const std::string& name) const;

  const process_identity& self_;
  const std::string task_;
  struct said;
  const std::unique_ptr<said> said_;
  std::shared_ptr<connection_state> connection_;
  std::shared_ptr<connection_state> first_;  ///< while another one is tried
};

/// The server's side of the handshake, one message at a time. Fills in `c.peer`.
class server_handshake {
 public:
  server_handshake(connection_state& c, const process_identity& self);
  ~server_handshake();
  /// Returns true once the caller is accepted. Throws the reason if it is refused, which the caller
  /// has not been told yet; `admit` may throw too. `offer` is called last, for a caller on this
  /// machine that can use a local socket; if it makes an offer, the caller has yet to say which
  /// socket it will use.
  bool on_message(const message& m, const std::function<void(const peer_info&)>& admit,
                  const std::function<local_offer()>& offer);
  /// The caller's terms, once its hello has arrived.
  peer_terms terms() const;

 private:
  void on_hello(const message& m);
  void on_proof(const message& m, const std::function<void(const peer_info&)>& admit,
                const std::function<local_offer()>& offer);

  connection_state& connection_;
  const process_identity& self_;
  struct said;
  std::unique_ptr<said> said_;  ///< set by the hello
};
}  // namespace detail

}  // namespace deft
