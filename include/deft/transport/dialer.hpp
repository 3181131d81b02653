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
/// Has no thread of its own: everything is done by handlers of the callers' loop, which the keeper
/// runs if no other thread does. Lives until it has called back.
class dialer final : public std::enable_shared_from_this<dialer> {
 public:
  /// `tls`: null without TLS. `owner`: no new attempt begins once it is gone.
  dialer(std::string address, std::shared_ptr<const channel_options> options,
         std::shared_ptr<const tls_context> tls, deadline until, std::weak_ptr<const void> owner);

  /// Calls `then` once, on a thread that runs the loop. The error is unavailable, with the address,
  /// the time and the last reason; or, at once, the one with which the server refuses.
  void begin(dial_callback then);

 private:
  using clock = std::chrono::steady_clock;
  using error_ptr = std::shared_ptr<const error>;

  void resolve();
  void connect(std::size_t endpoint);
  void on_connected(std::size_t endpoint, const boost::system::error_code& failed);
  void greet();
  void receive();
  void drop_handshake();
  /// An attempt has failed: tries again if the server may still come up.
  void retry(const error& why);
  void give_up();
  void end(std::shared_ptr<connection_state> c, error_ptr failure);
  /// Runs `f` on this object; an error that it throws is the failure of the attempt.
  template <class F>
  void attempt(F f);
  /// A handler that calls `f` on this object, unless it has ended.
  template <class F>
  auto handler(F f);

  event_loop& loop_ = event_loop::of_callers();
  const std::string address_;
  const std::shared_ptr<const channel_options> options_;
  const std::shared_ptr<const tls_context> tls_;
  const deadline until_;
  const std::weak_ptr<const void> owner_;
  dial_callback then_;
  std::optional<event_loop::upkeep> upkeep_;

  // Used by handlers only.
  boost::asio::steady_timer late_, pause_;
  std::vector<boost::asio::ip::tcp::endpoint> endpoints_;
  boost::asio::ip::tcp::socket socket_;
  std::optional<client_handshake> handshake_;
  message message_;
  clock::time_point began_{};
  std::chrono::milliseconds next_pause_{5};
  bool ended_ = false, told_ = false;
  std::string why_;  ///< the last reason
};

}  // namespace deft::detail
