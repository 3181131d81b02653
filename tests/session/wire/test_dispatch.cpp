// SPDX-License-Identifier: Apache-2.0
#include <deft/session/wire/dispatch.hpp>

#include "session/sessions.hpp"

using namespace deft;
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
