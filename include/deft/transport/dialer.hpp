// SPDX-License-Identifier: Apache-2.0
// deft/transport/dialer.hpp: connects to a server. Internal.
#pragma once
#include <deft/transport/address.hpp>
#include <deft/transport/channel_group.hpp>
#include <deft/transport/connection_state.hpp>
#include <deft/transport/handshake.hpp>
#include <deft/transport/tls_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace deft::detail {

/// Takes a connection after its handshake, or the reason why there is none.
using dial_callback =
    std::function<void(std::shared_ptr<connection_state>, std::shared_ptr<const error>)>;

/// Connects and performs the handshake, and tries again until the deadline while no server answers.
/// If the name has several addresses, each has 250 ms before the next one is tried as well, and is
/// followed at once if it refuses; the first that completes the handshake wins. (RFC 8305, 5.)
/// Has no thread of its own: everything is done by handlers of the callers' loop, which the keeper
/// runs if no other thread does. Lives until it has called back.
class dialer final : public std::enable_shared_from_this<dialer> {
 public:
  /// `task`: see channel_group::dial. `tls`: null without TLS. `owner`: no new attempt begins once
  /// it is gone.
  dialer(std::string address, std::string task, std::shared_ptr<const channel_options> options,
         std::shared_ptr<const tls_context> tls, deadline until, std::weak_ptr<const void> owner);

  /// Calls `then` once, on a thread that runs the loop. The error is unavailable, with the address,
  /// the time and the last reason; or, at once, the one with which the server refuses.
  void begin(dial_callback then);

 private:
  using clock = std::chrono::steady_clock;
  using error_ptr = std::shared_ptr<const error>;
  using endpoint = boost::asio::ip::tcp::endpoint;

  /// A connection to one of the addresses, up to the end of its handshake.
  struct attempt {
    attempt(const endpoint& e, boost::asio::io_context& context) : to(e), socket(context) {}
    const endpoint to;
    boost::asio::ip::tcp::socket socket;
    std::optional<client_handshake> handshake;  ///< once connected
    message received;
    bool over = false;
  };
  using attempt_ptr = std::shared_ptr<attempt>;

  void resolve();
  void connect_next();
  void connect(const endpoint& to);
  void on_connected(const attempt_ptr& a, const boost::system::error_code& failed);
  void receive(const attempt_ptr& a);
  void drop(attempt& a);
  void drop_all();
  void on_failure(const attempt_ptr& a, const error& why);
  void note(const error& why);
  /// Nothing is under way any more: tries again if the server may still come up.
  void retry(const error& why);
  void give_up();
  void end(std::shared_ptr<connection_state> c, error_ptr failure);
  /// Runs `f`; `failed` handles an error that it throws.
  template <class F, class Failed>
  void guarded(F f, Failed failed);
  /// A handler that calls `f` on this object, unless it has ended.
  template <class F>
  auto handler(F f);
  /// A handler that calls `f` on this object and `a`, unless one of them is over.
  template <class F>
  auto handler_of(const attempt_ptr& a, F f);

  event_loop& loop_ = event_loop::of_callers();
  const std::string address_, task_;
  const std::shared_ptr<const channel_options> options_;
  const std::shared_ptr<const tls_context> tls_;
  const deadline until_;
  const std::weak_ptr<const void> owner_;
  dial_callback then_;
  std::optional<event_loop::upkeep> upkeep_;

  // Used by handlers only.
  boost::asio::steady_timer late_, pause_, next_address_;
  std::vector<endpoint> endpoints_;
  std::size_t next_ = 0;          ///< of endpoints_, which has not been tried yet
  std::vector<endpoint> failed_;  ///< to try again, while others are under way
  std::vector<attempt_ptr> attempts_;
  clock::time_point began_{};
  std::chrono::milliseconds next_pause_{5};
  bool ended_ = false, warned_ = false;
  std::string why_;  ///< the last reason
};

}  // namespace deft::detail
