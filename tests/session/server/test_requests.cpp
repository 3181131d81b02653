// SPDX-License-Identifier: Apache-2.0
// What a task answers to messages that no session of ours would send.
#include <deft/session/wire/codec.hpp>
#include <deft/transport/hub.hpp>

#include "session/sessions.hpp"

using namespace deft;
using testing::outcome_of;
using namespace std::chrono_literals;

TEST_CASE("who waits for a message that has no answer gets one") {
  local_cluster c{{"worker", 1}};
  hub h;
  auto to = h.connect(c.spec().address("worker", 0), deadline_in(60s));
  for (message m : {wire::pack(wire::close_session{77}), wire::pack(wire::cancel_step{77, 1}),
                    wire::pack(wire::drop_session{77})}) {
    auto p = to->call(m);
    REQUIRE(h.wait_for(*p, deadline_in(60s)));
    CHECK(p->take().kind == message_kind::reply);
  }
}

TEST_CASE("calls of sessions and plans that are not there are refused") {
  local_cluster c{{"worker", 1}};
  hub h;
  auto to = h.connect(c.spec().address("worker", 0), deadline_in(60s));
  auto ask = [&](message&& m) {
    auto p = to->call(m);
    REQUIRE(h.wait_for(*p, deadline_in(60s)));
    return outcome_of([&] { p->take(); });
  };
  CHECK(ask(wire::pack(wire::run_plan{.session = 5})).code == errc::not_found);
  message opened = [&] {
    auto p = to->call(wire::pack(wire::open_session{}));
    REQUIRE(h.wait_for(*p, deadline_in(60s)));
    return p->take();
  }();
  const auto session = wire::unpack<wire::session_opened>(opened).session;
  CHECK(ask(wire::pack(wire::run_plan{.session = session, .plan = 3})).code == errc::not_found);
  CHECK(ask(wire::pack(wire::cluster_devices{session})).code == errc{});
}
