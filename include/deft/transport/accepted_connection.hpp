// SPDX-License-Identifier: Apache-2.0
// deft/transport/accepted_connection.hpp: one connection that a listener has accepted. Internal.
#pragma once
#include <atomic>
#include <chrono>
#include <deft/transport/asio.hpp>
#include <deft/transport/connection_state.hpp>
#include <deft/transport/handshake.hpp>
#include <deft/transport/serving_threads.hpp>
#include <memory>
#include <optional>
#include <string>

namespace deft::detail {
class connection_table;

/// Performs the handshake, then passes messages to the handler. Served by one thread at a time.
class accepted_connection final : public served,
                                  public std::enable_shared_from_this<accepted_connection> {
 public:
  /// `local`: accepted on a local socket, to which a caller moves once it has been authenticated by
  /// TCP.
  accepted_connection(std::shared_ptr<connection_table> table,
                      std::shared_ptr<connection_state> state, bool local);

  /// The connection whose handler the calling thread is running; null if none.
  static const accepted_connection*& current();

  void begin();
  void close();
  /// The host of the caller's address. Any thread may call it; peer() is only for the serving
  /// thread.
  const std::string& host() const { return host_; }
  const peer_info& peer() const { return state_->peer; }
  bool shakes_hands() const { return phase_ < phase::welcome && !leaving_; }
  /// Whether it still gives the caller time to read why it was refused.
  bool is_refused() const { return phase_ == phase::refused && !state_->closed_here(); }

  // These need the table's lock.
  void mark_open() { phase_ = phase::open; }
  void take_offer(const local_offer& offer);
  bool has_offered(const local_offer::token& token) const;
  /// False if the offer has been used.
  bool withdraw_offer() { return std::exchange(offer_stands_, false); }

  work serve() override;
  bool look_again(std::chrono::steady_clock::time_point now) override;
  void rest() override;
  bool wait_until_heard(std::chrono::microseconds unseen) override;
  void resume() override;

 private:
  /// welcome: authenticated, but the caller has not yet said which socket it will use.
  enum class phase { silent, greeting, welcome, open, refused, ended };

  static constexpr int messages_at_once = 16;

  work go_on();
  void begin_timer(std::chrono::milliseconds after);
  bool shake_hands();
  bool is_settled();
  void replace_offering();
  void open();
  work receive();
  std::shared_ptr<const error> dispatch();
  void refuse(const error& why);
  void wait_for_end();
  bool drop_input();
  void end(const std::shared_ptr<const error>& why);

  const std::shared_ptr<connection_table> table_;
  const std::shared_ptr<connection_state> state_;
  const bool local_;
  const std::string host_;
  std::shared_ptr<connection> connection_;
  bool handler_knows_ = false, rested_ = false;
  std::optional<server_handshake> handshake_;
  peer_terms terms_;
  local_offer offer_;
  bool offered_ = false, offer_stands_ = false;  ///< an offer was made; it is unused
  message message_;
  arrival_wait wait_;
  boost::asio::steady_timer timer_;
  std::atomic<unsigned> turn_{0};  ///< counts timers; an old one is ignored
  std::atomic<bool> late_{false}, leaving_{false};
  bool not_admitted_ = false;          ///< by the handler
  std::atomic<bool> replaced_{false};  ///< by a local socket
  std::atomic<phase> phase_{phase::silent};
};

}  // namespace deft::detail
