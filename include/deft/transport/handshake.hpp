// SPDX-License-Identifier: Apache-2.0
// deft/transport/handshake.hpp: who talks to whom, and how each proves it.
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

/// Version of frames and handshake; peers of different versions refuse each other.
inline constexpr std::uint16_t protocol_version = 8;

/// What one end says of itself.
struct process_identity {
  std::string name;                  ///< "/job:ps/replica:0/task:0", "worker/0", "client"
  std::uint64_t incarnation = 0;     ///< of a server: another number after each restart
  std::vector<std::string> cluster;  ///< a line for each task and its address; none fit any
  deft::credentials credentials;     ///< as they are: nothing is taken from the environment
  /// Whoever it talks to and of whom nothing comes for so long is lost; zero: never. Both ends send
  /// heartbeats meanwhile.
  std::chrono::milliseconds heartbeat_timeout{20'000};
  credit_window window{};  ///< of each connection to it
};

/// What is known of the other end after the handshake.
struct peer_info {
  std::string name;
  std::string address;            ///< "127.0.0.1:2222"
  std::uint64_t incarnation = 0;  ///< of a server
  /// Both ends proved that they know the secret, or showed certificates that fit their names.
  bool authenticated = false;
  bool local = false;               ///< on this machine, connected by a local socket
  bool same_catalog = true;         ///< the lists below are empty if so
  std::vector<std::string> lacks;   ///< "op/version" that this process has and the peer has not
  std::vector<std::string> offers;  ///< "op/version" that the peer has and this process has not

  /// Whether the peer has an operation of this name in our version.
  bool knows(const op_def& op) const;
  /// "/job:ps/replica:0/task:0 at 127.0.0.1:2222", for messages.
  std::string to_string() const;
};
inline std::string to_string(const peer_info& p) { return p.to_string(); }

/// "op/version" of every operation that this process has, sorted.
std::vector<std::string> catalog_list();

/// 64 random bits, never 0: an incarnation.
std::uint64_t random_incarnation();

namespace detail {
class connection_state;

/// What an end asks of the other.
struct peer_terms {
  std::chrono::milliseconds timeout{};  ///< of silence, after which it gives the other up
  credit_window window{};               ///< of what it is sent
};

/// A local socket by which a welcome caller of the same machine may go on, and what either end
/// says there so that the other knows it again.
struct local_offer {
  using token = std::array<std::uint8_t, 16>;
  std::string name;  ///< empty: there is none
  token caller{}, server{};
};
bool same_token(const local_offer::token& a, const local_offer::token& b);

/// From the system, at most 256 bytes.
void random_bytes(void* to, std::size_t n);
/// Throws data_loss if `m` is of another kind, or has tensors.
void check_kind(const message& m, message_kind kind);

/// Waits for the server's part, fills in the peer, begins the heartbeats, and throws where the ends
/// do not get on. Returns the connection to go on with: `c`, or one by a local socket in its place
/// where the server offers one and `local_sockets` says so.
std::shared_ptr<connection_state> shake_hands_as_client(const std::shared_ptr<connection_state>& c,
                                                        const process_identity& self,
                                                        deadline until, bool local_sockets);

/// The server's part, a message at a time. Fills in `c.peer`.
class server_handshake {
 public:
  server_handshake(connection_state& c, const process_identity& self);
  ~server_handshake();
  /// True once the caller is welcome. Throws why it is not, which it is still to be told; `admit`
  /// may throw too. `offer` is asked last, for a caller of this machine that can use it; where it
  /// offers something, the caller still says where it goes on.
  bool on_message(const message& m, const std::function<void(const peer_info&)>& admit,
                  const std::function<local_offer()>& offer);
  /// Once it has said hello.
  peer_terms terms() const;

 private:
  void on_hello(const message& m);
  void on_proof(const message& m, const std::function<void(const peer_info&)>& admit,
                const std::function<local_offer()>& offer);

  connection_state& connection_;
  const process_identity& self_;
  struct said;
  std::unique_ptr<said> said_;  ///< from the hello on
};
}  // namespace detail

}  // namespace deft
