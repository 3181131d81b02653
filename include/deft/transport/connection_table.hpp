// SPDX-License-Identifier: Apache-2.0
// deft/transport/connection_table.hpp: the connections of a listener, and their shared state.
// Internal.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deft/core/limited_log.hpp>
#include <deft/transport/accepted_connection.hpp>
#include <deft/transport/listener.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace deft::detail {

/// Connections share ownership, so that a handler may stop or even destroy the listener.
class connection_table : public std::enable_shared_from_this<connection_table> {
 public:
  connection_table(listen_options&& o, connection_handler& h) : options(std::move(o)), handler(h) {}

  // Set before the first connection, then constant.
  listen_options options;
  connection_handler& handler;
  event_loop& loop = event_loop::of_servers();
  std::string address;     ///< that the listener is bound to
  std::string local_name;  ///< of the local socket offered to callers; empty: none
  std::size_t most = 0;    ///< connections at a time

  /// Begins to serve a connection accepted from `address`, or turns it away.
  void add(std::unique_ptr<stream> s, const std::string& address, bool local);
  /// Makes the offer of a local socket for a caller that has just been authenticated.
  local_offer offer_to(accepted_connection& c);
  /// The connection that was offered `token` and has not used it, which is then used; null if there
  /// is none.
  std::shared_ptr<accepted_connection> claim(const local_offer::token& token);
  /// Takes the offer back. False if it has been used.
  bool withdraw(accepted_connection& c);

  /// False if the listener is stopping.
  bool count_open(accepted_connection& c);
  void count_closed();
  /// The number of open connections.
  std::size_t count() const;
  /// A thread enters the handler without a message. False if the listener is stopping.
  bool begin_helping();
  void end_helping();
  bool has(const accepted_connection& c) const;
  void remove(const accepted_connection& c);
  /// `warns`: even of what may be a lost connection.
  void log_refusal(const std::string& address, const error& why, bool warns);

  bool stopping() const { return stopping_; }
  /// Accepts no more connections. False the second time.
  bool stop();
  void close_all();
  /// Waits until all have ended, except the one whose handler makes this call.
  void wait_for_all();

 private:
  void make_room(const std::string& host);

  mutable std::mutex guard_;
  std::condition_variable changed_;
  std::unordered_map<const accepted_connection*, std::shared_ptr<accepted_connection>> all_;
  std::list<std::shared_ptr<accepted_connection>> not_open_yet_;  ///< the oldest first
  std::size_t open_ = 0;
  int helping_ = 0;
  logging::limited refused_, turned_away_;
  std::atomic<bool> stopping_{false};
};

}  // namespace deft::detail
