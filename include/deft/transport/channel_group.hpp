// SPDX-License-Identifier: Apache-2.0
// deft/transport/channel_group.hpp: a process's outbound channels, driven by the threads that wait
// for them.
#pragma once
#include <atomic>
#include <deft/transport/connection.hpp>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace deft {

class channel_group;
class channel;
namespace detail {
class channel_state;
class channel_group_state;
}  // namespace detail

class pending;

/// Whom to tell that an answer has come.
class answer_listener {
 public:
  virtual ~answer_listener() = default;
  /// The answer is there, and nobody else sees it yet: what it throws takes its place.
  virtual void came(message&) {}
  /// `p` is done. On the thread that reads, or the one that closes the channel, without locks;
  /// perhaps before `call` has returned. It may send, but not wait on the channels.
  virtual void answered(pending& p) = 0;
};

/// The answer to a call, once it is there.
class pending {
 public:
  /// Whether there is an answer, or an error in its place. Cheap.
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// The answer; moves it out. Throws the error that the peer sent, or unavailable naming the peer
  /// if the channel was lost; failed_precondition if it is not done.
  message take();
  /// The answer, which lives as long as this. Throws as take does.
  message& get();
  /// Whether get would throw.
  bool failed() const { return done() && error_ != nullptr; }
  std::uint64_t id() const { return id_; }

 private:
  friend class detail::channel_state;
  std::atomic<bool> done_{false};
  std::uint64_t id_ = 0;
  message answer_;
  std::shared_ptr<const error> error_;
  std::shared_ptr<answer_listener> listener_;  ///< until it is told, or the call abandoned
};

/// A connection to one server. Thread-safe.
class channel {
 public:
  explicit channel(std::shared_ptr<detail::channel_state> s) : state_(std::move(s)) {}
  /// Closes it.
  ~channel();
  channel(const channel&) = delete;

  /// Sends without expecting an answer. Throws unavailable, naming the peer, if the channel is
  /// lost.
  void post(const message& m);
  /// Gives `m` an id, sends it, and returns where its answer will be: see
  /// channel_group::wait_until. Then it is told to `listener`, if there is one. Throws unavailable,
  /// naming the peer, if the channel is lost.
  std::shared_ptr<pending> call(message& m, std::shared_ptr<answer_listener> listener = {});
  std::shared_ptr<pending> call(message&& m, std::shared_ptr<answer_listener> listener = {}) {
    return call(m, std::move(listener));
  }
  /// Forgets a call: its answer will be dropped, and nobody is told.
  void abandon(const pending& p);

  /// Waits until all that was sent is written; see connection::drain. On false, close() makes sure
  /// that nothing refers to the sent tensors any more.
  bool drain(deadline until);
  /// Ends it. What is pending fails as cancelled; on_lost is not called.
  void close();
  bool lost() const;
  /// "lost /job:ps/replica:0/task:0 at 127.0.0.1:2222: it ended the connection", once it is.
  std::string why_lost() const;

  const peer_info& peer() const;
  /// As given to connect.
  const std::string& address() const;

 private:
  std::shared_ptr<detail::channel_state> state_;
};

/// What happens on a channel without anyone having asked; called on the thread that reads, without
/// locks. They may send, but not wait on the channels.
struct channel_events {
  std::function<void(message&&)> on_message;  ///< a message that is no answer
  std::function<void(const error&)> on_lost;  ///< after all that was pending has failed
};

struct channel_options {
  process_identity self{"client", 0, {}, {}};
  wire_limits limits{};
  /// Servers of this machine are reached by local sockets, and large tensors of theirs by shared
  /// memory, where the system has both. Off for all: DEFT_LOCAL_SOCKETS=0 in the environment.
  bool local_sockets = true;
};

/// Channels, and the waiting for them. The first thread that waits leads: it reads all channels and
/// hands out answers, without a thread switch for its own; the others sleep until theirs is there
/// or the lead is free. While nobody waits, a thread of deft's reads what comes. Thread-safe.
class channel_group {
 public:
  /// Throws what is wrong with the credentials' files for TLS, by name.
  explicit channel_group(channel_options options = {});
  /// Closes every channel. Nobody may wait on it any more.
  ~channel_group();
  channel_group(const channel_group&) = delete;

  /// Connects and shakes hands. Retries while nobody answers at `address` ("host:port"), and logs
  /// whom it waits for. Throws deadline_exceeded naming the address and the last reason; refusals
  /// (unauthenticated, failed_precondition, …) with the server's sentence, at once.
  std::shared_ptr<channel> connect(const std::string& address, deadline until,
                                   channel_events events = {});

  /// Returns once `ready()` is true: true, or false if the time was over first. `ready` is called
  /// on this thread, without locks: after every answer, whenever notify() was called, and often
  /// while spinning, so it should cost little. Must not be called from channel_events.
  template <class Predicate>
  bool wait_until(Predicate&& ready, deadline until = no_deadline) {
    using F = std::remove_reference_t<Predicate>;
    return wait([](void* f) -> bool { return (*static_cast<F*>(f))(); },
                const_cast<void*>(static_cast<const void*>(std::addressof(ready))), until);
  }
  bool wait_for(const pending& p, deadline until = no_deadline) {
    return wait_until([&] { return p.done(); }, until);
  }
  /// Reads what arrives for others, unless one of them waits himself, until `ready()` or the time
  /// is over; as wait_until.
  template <class Predicate>
  bool read_until(Predicate&& ready, deadline until) {
    using F = std::remove_reference_t<Predicate>;
    return wait([](void* f) -> bool { return (*static_cast<F*>(f))(); },
                const_cast<void*>(static_cast<const void*>(std::addressof(ready))), until, true);
  }
  /// As wait_until, by a thread that serves connections too, which nobody takes the place of before
  /// `unseen` is over. False at once if another thread reads already.
  template <class Predicate>
  bool serve_until(Predicate&& ready, std::chrono::microseconds unseen) {
    using F = std::remove_reference_t<Predicate>;
    return serve([](void* f) -> bool { return (*static_cast<F*>(f))(); },
                 const_cast<void*>(static_cast<const void*>(std::addressof(ready))), unseen);
  }
  /// Reads what has arrived, without waiting.
  void poll() {
    wait_until([] { return false; }, deadline{});
  }
  /// Something that a `ready` depends on has changed. From any thread, with any locks held.
  void notify();

 private:
  bool wait(bool (*ready)(void*), void* context, deadline until, bool for_others = false);
  bool serve(bool (*ready)(void*), void* context, std::chrono::microseconds unseen);
  std::shared_ptr<detail::channel_group_state> state_;
};

}  // namespace deft
