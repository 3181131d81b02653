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

namespace deft::ext {

class channel_group;
class channel;
}  // namespace deft::ext

namespace deft::detail {
class channel_state;
class channel_group_state;
}  // namespace deft::detail

namespace deft::ext {

class pending;

/// Notified of the answer to a call.
class answer_listener {
 public:
  virtual ~answer_listener() = default;
  /// The answer has arrived, but is not visible to others yet. An error thrown here replaces it.
  virtual void on_answer(message&) {}
  /// `p` is done. Called on the thread that reads or that closes the channel, without locks,
  /// possibly before `call` has returned. It may send, but not wait on the channels.
  virtual void answered(pending& p) = 0;
};

/// A call, and its answer once it has arrived.
class pending {
 public:
  /// Whether there is an answer, or an error in its place. Cheap.
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Moves the answer out. Throws the error that the peer sent; unavailable, naming the peer, if
  /// the channel was lost; failed_precondition if the call is not done.
  message take();
  /// The answer, valid as long as this object. Throws as take does.
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
  std::shared_ptr<answer_listener> listener_;  ///< until notified, or the call is abandoned
};

/// A client's connection to one server. Thread-safe.
class channel {
 public:
  explicit channel(std::shared_ptr<detail::channel_state> s) : state_(std::move(s)) {}
  /// Closes it.
  ~channel();
  channel(const channel&) = delete;

  /// Sends without expecting an answer. Throws unavailable, naming the peer, if the channel is
  /// lost.
  void post(const message& m);
  /// Gives `m` an id, sends it, and returns the pending call; wait for it by
  /// channel_group::wait_for. `listener`, if given, is notified of the answer. Throws unavailable,
  /// naming the peer, if the channel is lost.
  std::shared_ptr<pending> call(message& m, std::shared_ptr<answer_listener> listener = {});
  std::shared_ptr<pending> call(message&& m, std::shared_ptr<answer_listener> listener = {}) {
    return call(m, std::move(listener));
  }
  /// Forgets a call: its answer will be dropped, and its listener is not notified.
  void abandon(const pending& p);

  /// Waits until everything sent has been written; see connection::drain.
  bool drain(deadline until);
  /// See connection::copy_borrowed. Closes the connection if there is no memory for that.
  void copy_borrowed();
  /// Closes the connection. Pending calls fail with `cancelled`; on_lost is not called.
  void close();
  bool lost() const;
  /// Calls on_lost now if the connection is lost and no thread has noticed yet.
  void notice_loss();
  /// The reason, once the channel is lost: "lost /job:ps/replica:0/task:0 at 127.0.0.1:2222: it
  /// ended the connection".
  std::string why_lost() const;

  const peer_info& peer() const;
  /// As given to connect.
  const std::string& address() const;

 private:
  std::shared_ptr<detail::channel_state> state_;
};

/// Handlers of what happens on a channel outside of calls, on the thread that reads, without locks;
/// they may send, but not wait on the channels. What on_message throws ends the channel.
struct channel_events {
  std::function<void(message&&)> on_message;  ///< a message that is not an answer
  std::function<void(const error&)> on_lost;  ///< after all pending calls have failed
};

/// Takes a channel, or the error if there is none. It may send, but not wait on the channels.
using link_callback =
    std::function<void(std::shared_ptr<channel>, std::shared_ptr<const error> failure)>;

struct channel_options {
  process_identity self{"client", 0, {}, {}};
  wire_limits limits{};
  /// Use a local socket for servers on this machine, and shared memory for large tensors, if the
  /// system supports both. DEFT_LOCAL_SOCKETS=0 in the environment turns this off everywhere.
  bool local_sockets = true;
};

/// "timed out after 60 s waiting for 10.0.0.1:2222: Connection refused". `why` is what the last
/// attempt to connect failed with.
std::string timeout_message(const std::string& address, std::chrono::nanoseconds waited,
                            const std::string& why);

/// A client's channels, and waiting for them. The first thread that waits is the leader: it reads
/// all channels and distributes answers, without a thread switch for its own. The others sleep
/// until their answer has arrived or they can become the leader. While no thread waits, one of the
/// library's reads. Thread-safe.
class channel_group {
 public:
  /// Throws, naming the file, if the credentials for TLS are invalid (see make_tls_context).
  explicit channel_group(channel_options options = {});
  /// Closes every channel. No thread may still be waiting on the group.
  ~channel_group();
  channel_group(const channel_group&) = delete;

  /// Connects to `address` ("host:port") and performs the handshake. Retries until the deadline
  /// while no server answers there, and logs that it does. Throws unavailable, with the reason
  /// connect_timeout and a timeout_message; if the server refuses, at once the code
  /// (unauthenticated, failed_precondition, …) and the message that it sent. A server has to be a
  /// task of a cluster; `task`: the one that the caller wants ("/job:ps/replica:0/task:0"), by
  /// whose name the server has to answer, with a certificate for it if TLS is used, else
  /// failed_precondition; empty: any.
  std::shared_ptr<channel> connect(const std::string& address, deadline until,
                                   channel_events events = {}, const std::string& task = {});
  /// As connect, but the message of a connect_timeout is only what the last attempt failed with:
  /// the caller says how long it has waited.
  std::shared_ptr<channel> dial_and_wait(const std::string& address, deadline until,
                                         channel_events events = {}, const std::string& task = {});
  /// As dial_and_wait, without waiting: calls `then` once, on the thread that reads the channels.
  void dial(const std::string& address, deadline until, channel_events events, link_callback then,
            const std::string& task = {});

  /// Waits until `ready()` is true; false if the deadline passed first. `ready` is called on this
  /// thread, without locks: after every answer to a call without a listener, after notify(), and
  /// often while spinning, so it should be cheap. Must not be called from channel_events.
  template <class Predicate>
  bool wait_until(Predicate&& ready, deadline until = no_deadline) {
    using F = std::remove_reference_t<Predicate>;
    return wait([](void* f) -> bool { return (*static_cast<F*>(f))(); },
                const_cast<void*>(static_cast<const void*>(std::addressof(ready))), until);
  }
  bool wait_for(const pending& p, deadline until = no_deadline) {
    return wait_until([&] { return p.done(); }, until);
  }
  /// As wait_until, but also reads what arrives for other threads, as long as none of them waits
  /// itself.
  template <class Predicate>
  bool read_until(Predicate&& ready, deadline until) {
    using F = std::remove_reference_t<Predicate>;
    return wait([](void* f) -> bool { return (*static_cast<F*>(f))(); },
                const_cast<void*>(static_cast<const void*>(std::addressof(ready))), until, true);
  }
  /// As wait_until, for a thread that also serves connections; no other thread takes over its
  /// connections before `unseen` is over. Returns false at once if another thread already reads.
  template <class Predicate>
  bool serve_until(Predicate&& ready, std::chrono::microseconds unseen) {
    using F = std::remove_reference_t<Predicate>;
    return serve([](void* f) -> bool { return (*static_cast<F*>(f))(); },
                 const_cast<void*>(static_cast<const void*>(std::addressof(ready))), unseen);
  }
  /// Handles what has arrived, without waiting.
  void poll() {
    wait_until([] { return false; }, deadline{});
  }
  /// Call it when something that a `ready` depends on has changed. From any thread, with any locks
  /// held.
  void notify();

 private:
  bool wait(bool (*ready)(void*), void* context, deadline until, bool for_others = false);
  bool serve(bool (*ready)(void*), void* context, std::chrono::microseconds unseen);
  std::shared_ptr<detail::channel_group_state> state_;
};

}  // namespace deft::ext
