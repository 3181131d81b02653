// SPDX-License-Identifier: Apache-2.0
// The random numbers that a session draws.
#include <deft/op/random_uniform.hpp>
#include <deft/session/launch/local_cluster.hpp>
#include <deft/session/session.hpp>

#include "sessions.hpp"

using namespace deft;

namespace {

using numbers = std::vector<float>;

/// Draws of `steps` runs in each of `sessions` sessions, one after another, on a new graph.
std::vector<numbers> drawn(std::size_t sessions, int steps, const std::string& target = {},
                           const session_options& options = {}, const char* where = "") {
  graph g;
  auto in = as_default(g);
  set_seed(7);
  auto there = on(device(where));
  tensor<float> x = random_uniform(shape<>);
  std::vector<numbers> all(sessions);
  for (auto& mine : all) {
    session s = target.empty() ? session(options) : session(target, options);
    for (int i = 0; i < steps; ++i) mine.push_back(s.run(x));
  }
  return all;
}

}  // namespace

TEST_CASE("sessions on one graph draw different numbers, and a program repeats its own") {
  const auto first = drawn(3, 4);
  CHECK(first[0] != first[1]);
  CHECK(first[1] != first[2]);
  CHECK(first[0][0] != first[0][1]);
  CHECK(drawn(3, 4) == first);
}

TEST_CASE("a client draws what a single process draws, wherever the operation runs") {
  local_cluster c{{"worker", 2}};
  const auto alone = drawn(2, 3);
  CHECK(drawn(2, 3, c.target("worker", 0)) == alone);
  CHECK(drawn(2, 3, c.target("worker", 0), {}, "/job:worker/task:1") == alone);
}

TEST_CASE("a session with a given stream continues where another one stopped") {
  const auto whole = drawn(1, 6, {}, {.stream = 5})[0];
  CHECK(whole != drawn(1, 6)[0]);
  const auto rest = drawn(1, 2, {}, {.stream = 5, .first_step = 4})[0];
  CHECK(rest == numbers(whole.begin() + 4, whole.end()));
  local_cluster c{{"worker", 1}};
  CHECK(drawn(1, 2, c.target("worker", 0), {.stream = 5, .first_step = 4})[0] == rest);
}

TEST_CASE("tasks have streams of their own, and worker 0 that of a single process") {
  testing::own_graph own;
  auto stream = [](std::uint64_t task) { return *detail::numbered({}, task).options.stream; };
  CHECK(stream(0) == 0);
  CHECK(stream(0) != stream(1));  // the second and third session on this graph
  graph g;
  auto in = as_default(g);
  CHECK(stream(3) == 3);
  CHECK(*session().options().stream == 1 << 20);  // the second session, of task 0
}
