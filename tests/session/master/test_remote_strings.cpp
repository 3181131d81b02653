// SPDX-License-Identifier: Apache-2.0
// Strings between the tasks of a cluster, and by way of a remote master.
#include <deft/session/launch/local_cluster.hpp>
#include <optional>
#include <string>
#include <vector>

#include "session/sessions.hpp"

using namespace deft;
using testing::error_of;
using testing::outcome_of;
using testing::own_graph;

namespace {
const std::string odd("a\0\xff", 3), long_one(5'000'000, 'x');
using strings = ndarray<std::string, dyn>;
}  // namespace

TEST_CASE_FIXTURE(own_graph, "strings are fed, sent between tasks and fetched") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  placeholder<std::string, dyn> x("x");
  tensor<std::string, dyn> there;
  tensor<bool, dyn> compared;
  tensor<std::string, 2> fixed;
  if (auto first = on(device("/job:worker/task:0"))) there = identity(x);
  if (auto second = on(device("/job:worker/task:1"))) {
    fixed = constant({"a", odd});
    compared = there == x;
  }
  const strings given{"", odd, long_one};
  for (const int master : {0, 1}) {
    session s(c.target("worker", master));
    for (int run = 0; run < 3; ++run) {
      const auto [text, equal, two] = s.run(there, compared, fixed, x = given);
      CHECK(text == given);
      CHECK(equal == ndarray<bool, dyn>{true, true, true});
      CHECK(two(1) == odd);
    }
    CHECK(s.run(there, x = strings()).size() == 0);
    auto step = s.prepare(there, feeds(x));
    CHECK(step(std::vector<std::string>{"p", "q"}) == strings{"p", "q"});
    CHECK(error_of([&] {
            s.run(there, feed(any_tensor(x), 1.f));
          }).find("a literal is fed where string") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(own_graph, "variables of strings live on their task") {
  local_cluster c{{"ps", 1}, {"worker", 1}};
  std::optional<variable<std::string, dyn>> v;
  std::optional<variable<std::string>> one;
  if (auto ps = on(device("/job:ps/task:0"))) {
    v.emplace("v", strings{"first"});
    one.emplace("one", "text");
  }
  placeholder<std::string, dyn> x("x");
  const operation assign = v->assign(x);
  tensor<bool> same_text = *one == constant("text");
  {
    session s(c.target("worker", 0));
    s.run(initialize_all());
    CHECK(s.run(*v) == strings{"first"});
    s.run(assign, x = strings{odd, long_one});
    CHECK(s.device_of(*v).starts_with("/job:ps/"));
  }
  session other(c.target("worker", 0));
  CHECK(other.run(*v) == strings{odd, long_one});
  CHECK(other.run(same_text));
  CHECK(other.run(*one) == "text");
}
