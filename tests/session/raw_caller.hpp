// SPDX-License-Identifier: Apache-2.0
// tests/session/raw_caller.hpp: a peer that sends arbitrary messages to a task.
#pragma once
#include <deft/session/launch/local_cluster.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/transport/channel_group.hpp>

#include "session/sessions.hpp"

namespace testing {

struct raw_caller {
  /// What a caller states that calls itself a task: those of one name are one process.
  static constexpr std::uint64_t incarnation_of_tasks = 5;

  raw_caller(const deft::local_cluster& c, const std::string& name, int task = 0)
      : raw_caller(c.spec().address("worker", task), name) {}
  raw_caller(const std::string& address, const std::string& name)
      : raw_caller(address, name, name.starts_with("/job:") ? incarnation_of_tasks : 0) {}
  raw_caller(const std::string& address, std::string name, std::uint64_t incarnation)
      : links({{std::move(name), incarnation, {}, deft::credentials::of_environment()}, {}}),
        to(links.connect(address, soon())) {}

  static deft::ext::deadline soon() { return deft::ext::deadline_in(std::chrono::seconds(60)); }
  deft::ext::message answer(const std::shared_ptr<deft::ext::pending>& p) {
    REQUIRE(links.wait_for(*p, soon()));
    return p->take();
  }
  deft::ext::message answer(deft::ext::message&& m) { return answer(to->call(std::move(m))); }
  std::uint64_t open_session() {
    using namespace deft::ext::wire;
    return unpack<session_opened>(answer(pack(deft::ext::wire::open_session{}))).session;
  }
  /// The outcome of a call that was sent before, or of `m`.
  template <class Call>
  testing::outcome outcome(Call&& c) {
    return outcome_of([&] { answer(std::forward<Call>(c)); });
  }

  deft::ext::channel_group links;
  std::shared_ptr<deft::ext::channel> to;
};

}  // namespace testing
