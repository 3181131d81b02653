// SPDX-License-Identifier: Apache-2.0
#include <deft/session/wire/dispatch.hpp>
#include <deft/transport/channel_group.hpp>

#include "session/sessions.hpp"
#include "transport/wire.hpp"

using namespace deft;
using namespace deft::ext;
using testing::outcome_of;

namespace {

struct receiver {
  std::uint64_t cancelled = 0;
  std::string container;

  void on_cancel(const wire::caller&, wire::cancel_step&& m) { cancelled = m.step; }
  void on_reset(const wire::caller&, wire::reset&& m) { container = m.container; }
  void dispatch(message m) {
    wire::dispatch_table<&receiver::on_cancel, &receiver::on_reset>::dispatch(*this, {nullptr, 0},
                                                                              m);
  }
};

}  // namespace

TEST_CASE("a message is passed to its handler") {
  receiver r;
  r.dispatch(wire::pack(wire::cancel_step{1, 2}));
  CHECK(r.cancelled == 2);
  r.dispatch(wire::pack(wire::reset{"models"}));
  CHECK(r.container == "models");
}

TEST_CASE("a message without a handler is refused, naming its kind") {
  receiver r;
  for (const auto kind : {wire::kind::done, static_cast<wire::kind>(63),
                          static_cast<wire::kind>(64), static_cast<wire::kind>(65'535)}) {
    const auto o = outcome_of([&] { r.dispatch(message(static_cast<message_kind>(kind))); });
    CHECK(o.code == errc::unimplemented);
    CHECK(o.says(str("this task does not know messages of kind ", static_cast<unsigned>(kind))));
  }
}

TEST_CASE("an answer that cannot be sent is replaced by the error, and the connection stays") {
  testing::test_handler handler;
  handler.came = [](const auto& from, message&& m) {
    wire::caller(from, m).answer_with([] { return wire::values{{any_array()}, {}, {}}; });
  };
  listener l(testing::options_of_test(), handler);
  channel_group links(testing::client_of_test());
  const auto c = links.connect(l.address(), testing::soon());
  const auto p = c->call(message(message_kind::first_free));
  REQUIRE(links.wait_for(*p, testing::soon()));
  const auto o = outcome_of([&] { p->take(); });
  CHECK(o.code == errc::internal);
  CHECK(o.says("cannot send an empty tensor"));
  CHECK_FALSE(c->lost());
}
