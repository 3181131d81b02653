// SPDX-License-Identifier: Apache-2.0
#include <deft/session/launch/local_cluster.hpp>
#include <deft/session/session.hpp>

#include "sessions.hpp"

using namespace deft;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph,
                  "after a reset every plan, old or new, of any session sees variables empty") {
  variable<float, 2> w("w", zeros());
  auto init = initialize_all();
  auto up = w.assign_add(1.f);
  local_cluster c{{"worker", 1}};
  for (const bool remote : {false, true}) {
    CAPTURE(remote);
    session s = remote ? session(c.target("worker", 0)) : session();
    auto other = remote ? std::make_unique<session>(c.target("worker", 0)) : nullptr;
    session& t = other ? *other : s;
    s.run(init), s.run(up);
    CHECK(s.run(w)(0) == 1.f);
    CHECK(t.run(w * 3.f)(0) == 3.f);
    s.reset();
    auto empty = [&](session& x, const auto& fetch) {
      return testing::error_of([&] { x.run(fetch); })
          .starts_with("failed_precondition: variable \"w\" is not initialized");
    };
    CHECK(empty(s, w));         // cached
    CHECK(empty(s, w + 0.5f));  // new
    CHECK(empty(t, w * 3.f));
    CHECK(empty(t, up));
    s.run(init);  // cached, too
    CHECK(s.run(w)(1) == 0.f);
    CHECK(t.run(w * 2.f)(1) == 0.f);
    t.run(up);
    CHECK(s.run(w + 0.5f)(1) == 1.5f);
    s.reset();
  }
}
