// SPDX-License-Identifier: Apache-2.0
// deft/transport/channel_state.hpp: the state of a channel. Internal.
#pragma once
#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <deft/transport/channel_group.hpp>
#include <deft/transport/connection_state.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace deft::detail {

/// A connection, and the calls whose answers are pending. Shared by the channel and its group.
class channel_state {
 public:
  channel_state(std::shared_ptr<connection_state> c, std::string address,
                std::weak_ptr<channel_group_state> owner, channel_events events);

  void post(const message& m) { connection->send(m); }
  std::shared_ptr<pending> call(message& m, std::shared_ptr<answer_listener> listener);
  void abandon(std::uint64_t id);

  enum class pumped { nothing, part, some };
  /// Handles the messages that have arrived; `part` if there was only a part of one, and `nothing`
  /// also if another thread is doing so.
  pumped pump();
  /// All pending calls fail with `why`. Returns false if they have already.
  bool fail_all(std::shared_ptr<const error> why);
  /// If the connection is lost, ends as if a thread had read that.
  void notice_loss();
  bool gone() const;

  const std::shared_ptr<connection_state> connection;
  const std::string address;
  const std::weak_ptr<channel_group_state> owner;
  std::atomic<bool> told{true};  ///< an event has come since the last pump

 private:
  void deliver();
  void tell(pending& p);
  /// An error for the loss of the peer.
  std::shared_ptr<const error> lost(std::string_view why) const;
  void end(std::shared_ptr<const error> why);
  /// Removes the pending call of that number, and returns it; null if there is none.
  std::shared_ptr<pending> take_call(std::uint64_t id);

  channel_events events_;
  std::mutex pumping_;
  mutable std::mutex guard_;
  std::uint64_t last_id_ = 0;
  bool gone_ = false;
  boost::unordered_flat_map<std::uint64_t, std::shared_ptr<pending>> calls_;
  message incoming_;
};

}  // namespace deft::detail
