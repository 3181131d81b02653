// SPDX-License-Identifier: Apache-2.0
// deft/session/wire/dispatch.hpp: calls the handler for the kind of a message.
#pragma once
#include <array>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/session/wire/senders.hpp>
#include <deft/transport/connection.hpp>
#include <memory>

namespace deft::ext::wire {

/// The sender of a message, which may wait for an answer.
class caller {
 public:
  caller(std::shared_ptr<connection> from, std::uint64_t id) : from_(std::move(from)), id_(id) {}
  /// Counts `m` as a call until the last copy is destroyed, unless it has values of a step, which
  /// credit limits. Throws resource_exhausted if the sender has too many; see
  /// connection::begin_call.
  caller(std::shared_ptr<connection> from, const message& m) : caller(std::move(from), m.id) {
    if (m.kind != static_cast<message_kind>(tensors::number))
      counted_ = std::make_shared<const counted>(from_, m);
  }

  const std::shared_ptr<connection>& from() const { return from_; }
  /// The id of the call; 0 if the sender does not wait for an answer.
  std::uint64_t id() const { return id_; }

  /// Sends an answer. Throws unavailable if the connection is lost.
  template <class A>
  void answer(A&& a) const {
    send(pack(std::forward<A>(a)));
  }
  /// Answers with what `make` returns or throws. If neither can be sent, ends the connection, as
  /// the peer would wait.
  template <class F>
  void answer_with(F&& make) const {
    message m;
    if (const auto failure = failure_of([&] { m = pack(make()); })) return fail(*failure);
    send_or_end([&] { return std::move(m); });
  }
  /// Answers with an error, likewise.
  void fail(const error& failure) const {
    send_or_end([&] { return of_error(failure); });
  }

 private:
  template <class F>
  void send_or_end(F&& make) const {
    const auto unsent = failure_of([&] { send(make()); });
    if (!unsent) return;
    if (!from_->lost() && failure_of([&] { send(of_error(*unsent)); })) from_->close();
    (void)failure_of([&] { logging::info("an answer could not be sent: ", unsent->what()); });
  }
  message of_error(const error& failure) const {
    message m;
    encode_error(m, id_, failure);
    return m;
  }
  void send(message&& m) const {
    m.id = id_;
    if (const auto unread = from_->queued();
        unread > connection::most_bytes() && m.kind != message_kind::error) {
      m = message();
      encode_error(
          m, id_,
          error(errc::resource_exhausted, str("the answer is dropped, as ", from_->peer(),
                                              " has not read ", unread, " bytes of others")));
    }
    from_->send(m);
  }

  struct counted {
    std::shared_ptr<connection> by;
    std::size_t bytes;
    counted(std::shared_ptr<connection> c, const message& m)
        : by(std::move(c)), bytes(m.meta.size()) {
      for (const auto& t : m.tensors) bytes += t.bytes();
      by->begin_call(bytes);
    }
    ~counted() { by->end_call(bytes); }
  };

  std::shared_ptr<connection> from_;
  std::uint64_t id_;
  std::shared_ptr<const counted> counted_;
};

/// A table of handlers: members `void handle(const caller&, M&&)` of one class, one for each
/// message M. If the class has a member `check_sender(connection, rule, session)`, that throws for
/// a message that the sender may not send. The handler of a message with an answer sends it, now or
/// later. For a message without one, an empty answer is sent if the caller waits.
template <auto... Handlers>
class dispatch_table {
 public:
  /// Throws unimplemented for a kind without a handler, and what the handler throws.
  template <class Self>
  static void dispatch(Self& self, const caller& from, message& m) {
    static constexpr auto table = make<Self>();
    const auto kind = static_cast<std::size_t>(m.kind);
    if (kind >= table.size() || !table[kind])
      fail(errc::unimplemented, "this task does not know messages of kind ", kind);
    table[kind](self, from, m);
  }

 private:
  static constexpr std::size_t kinds = 64;
  template <class Self>
  using entry = void (*)(Self&, const caller&, message&);

  template <class Self, class M>
  static constexpr std::size_t kind_of(void (Self::*)(const caller&, M&&)) {
    return static_cast<std::size_t>(M::number);
  }
  template <auto Handler, class Self, class M>
  static constexpr entry<Self> entry_of(void (Self::*)(const caller&, M&&)) {
    return [](Self& self, const caller& from, message& m) {
      auto unpacked = unpack<M>(m);
      std::uint64_t session = 0;
      if constexpr (requires { unpacked.session; }) session = unpacked.session;
      if constexpr (requires { self.check_sender(*from.from(), rule_of(M::number), session); })
        self.check_sender(*from.from(), rule_of(M::number), session);
      (self.*Handler)(from, std::move(unpacked));
      if constexpr (!requires { typename M::answer; })
        if (from.id()) from.answer(nothing());
    };
  }
  template <class Self>
  static constexpr std::array<entry<Self>, kinds> make() {
    std::array<entry<Self>, kinds> all{};
    ((all[kind_of(Handlers)] = entry_of<Handlers>(Handlers)), ...);
    return all;
  }
};

}  // namespace deft::ext::wire
