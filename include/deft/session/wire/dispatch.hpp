// SPDX-License-Identifier: Apache-2.0
// deft/session/wire/dispatch.hpp: a table from the kind of a message to what handles it.
#pragma once
#include <array>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/transport/connection.hpp>
#include <memory>

namespace deft::wire {

/// Who sent a message, and may wait for its answer.
class caller {
 public:
  caller(std::shared_ptr<connection> from, std::uint64_t id) : from_(std::move(from)), id_(id) {}

  const std::shared_ptr<connection>& from() const { return from_; }
  /// Of the call; 0 if nobody waits.
  std::uint64_t id() const { return id_; }

  /// Throws unavailable if the caller is gone.
  template <class A>
  void answer(A&& a) const {
    send(pack(std::forward<A>(a)));
  }
  /// Answers with what `make` returns or throws; the caller may be gone.
  template <class F>
  void answer_with(F&& make) const {
    message m;
    if (auto failure = failure_of([&] { m = pack(make()); })) {
      m = message();
      encode_error(m, id_, *failure);
    }
    if (auto lost = failure_of([&] { send(std::move(m)); }))
      logging::info("an answer is lost: ", lost->what());
  }

 private:
  void send(message&& m) const {
    m.id = id_;
    from_->send(m);
  }

  std::shared_ptr<connection> from_;
  std::uint64_t id_;
};

/// Handlers are members `void handle(const caller&, M&&)` of one class for a message M each. One
/// that takes a message with an answer gives it now or later; other messages need none, but a
/// caller that waits for it gets one.
template <auto... Handlers>
class dispatch_table {
 public:
  /// Throws unimplemented for a kind that nobody handles, and what the handler throws.
  template <class Self>
  static void dispatch(Self& self, const caller& from, message& m) {
    static constexpr auto table = make<Self>();
    const auto kind = static_cast<std::size_t>(m.kind);
    if (kind >= table.size() || !table[kind])
      fail(errc::unimplemented, "a message of kind ", kind, " is not known here");
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
      (self.*Handler)(from, unpack<M>(m));
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

}  // namespace deft::wire
