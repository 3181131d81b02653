// SPDX-License-Identifier: Apache-2.0
// deft/transport/lookups.hpp: looks up addresses on threads of their own. Internal.
#pragma once
#include <deft/core/error.hpp>
#include <deft/transport/asio.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace deft::detail {

/// Lookups of addresses that a slow name server may hold up: callers that ask for the same address
/// share one lookup, and a limited number of lookups are under way at a time.
/// (Asio's resolver has one thread, where a name that nobody knows would hold up all others.)
/// Thread-safe; lives as long as the process.
class lookups {
 public:
  using endpoints = std::vector<boost::asio::ip::tcp::endpoint>;
  /// Called on a thread that runs the context that was given.
  using callback = std::function<void(endpoints, std::shared_ptr<const error>)>;
  static constexpr int most_at_once = 16;

  /// `resolve`: looks up an address, or throws.
  explicit lookups(std::function<endpoints(const std::string&)> resolve)
      : resolve_(std::move(resolve)) {}
  lookups(const lookups&) = delete;

  /// Calls `then` with what `address` resolves to, or with the error. Throws unavailable if the
  /// system cannot start a thread.
  void ask(boost::asio::io_context& context, const std::string& address, callback then);

 private:
  struct asked {
    boost::asio::io_context* context;
    callback then;
  };
  void run();

  const std::function<endpoints(const std::string&)> resolve_;
  std::mutex guard_;
  std::map<std::string, std::vector<asked>> asked_;  ///< by address, until it has been looked up
  std::deque<std::string> waiting_;                  ///< addresses that no thread looks up yet
  int threads_ = 0;
};

}  // namespace deft::detail
