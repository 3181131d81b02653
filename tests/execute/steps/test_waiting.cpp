// SPDX-License-Identifier: Apache-2.0
// Steps that wait for others, by the queue of fifo.hpp.
#include <thread>

#include "fifo.hpp"
#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

float first(const any_array& a) { return a.data<float>()[0]; }

}  // namespace

using testing::own_graph, testing::pop, testing::push;

TEST_CASE_FIXTURE(own_graph, "a run waits for another run's value, in order") {
  placeholder<float, dyn> x("x");
  operation put = push("q", any_tensor(x));
  any_tensor got = pop("q") * 2;
  session s;
  std::thread reader([&] {
    for (int i = 0; i < 200; ++i) CHECK(first(s.run(got)) == 2.f * static_cast<float>(i));
  });
  for (int i = 0; i < 200; ++i) s.run(put, x = {static_cast<float>(i)});
  reader.join();
}

TEST_CASE_FIXTURE(own_graph, "nodes that do not depend on a waiting node run") {
  placeholder<float, dyn> x("x");
  // In the order of the graph the value is taken before it is put; only the queue makes one wait
  // for the other.
  any_tensor got = pop("q") + 1;
  operation put = push("q", any_tensor(x));
  session s;
  auto r = s.run(got, put, x = {4.f});
  CHECK(first(r) == 5.f);
  // Two waiting nodes resume independently.
  any_tensor a = pop("a"), b = pop("b");
  operation to_b = push("b", any_tensor(x)), to_a = push("a", any_tensor(b) + 1);
  any_tensor both = a * 10 + b;
  auto t = s.run(both, to_a, to_b, x = {1.f});
  CHECK(first(t) == 21.f);
}

TEST_CASE_FIXTURE(own_graph, "a node that a wait needs is not fused with nodes after the wait") {
  using namespace std::chrono_literals;
  constexpr std::int64_t n = 8192;  // large enough for a region with further results
  placeholder<float, n> x("x");
  ndarray<float, n> ones;
  std::ranges::fill(ones, 1.f);
  auto popped = [&](const char* queue) { return any_tensor(reshape(pop(queue), shape<n>)); };
  session s({.timeout = 60s});
  // A region would have two results.
  any_tensor twice = any_tensor(x) * 2.f, thrice = twice + popped("region");
  operation put = push("region", twice);
  CHECK(first(s.run(thrice, put, x = ones)) == 4.f);
  // So would the updates of two variables.
  variable<float, n> v("v", zeros()), w("w", zeros());
  auto up = v.assign_add(x);
  auto after = assign_add(any_tensor(w), any_tensor(up.value()) * popped("updates"));
  operation put_up = push("updates", any_tensor(up.value()));
  s.run(initialize_all());
  s.run(after, put_up, x = ones);
  CHECK(s.run(w)(0) == 1.f);
  // So would a gradient's node that yields the loss.
  placeholder<float, 4, 8> logits("logits");
  placeholder<std::int32_t, 4> label("label");
  any_tensor loss = softmax_cross_entropy(any_tensor(logits), any_tensor(label));
  any_tensor weight = any_tensor(reshape(pop("pair"), shape<4>));
  auto [gradient] = gradients(sum(loss * weight), any_tensor(logits));
  operation put_loss = push("pair", loss);
  ndarray<float, 4, 8> l;
  std::ranges::fill(l, 0.f);
  const any_array g = s.run(gradient, put_loss, logits = l, label = {0, 1, 2, 3});
  CHECK(g.data<float>()[1] == doctest::Approx(std::log(8.) / 8));
}

TEST_CASE_FIXTURE(own_graph, "a waiting run can be cancelled, time out, or be closed") {
  any_tensor got = pop("never");
  session s;
  cancel_source cancel;
  std::string e;
  std::thread waits(
      [&] { e = testing::error_of([&] { s.run(run_options{.cancel = cancel.token()}, got); }); });
  cancel.cancel();
  waits.join();
  CHECK(e.starts_with("cancelled: the run was cancelled"));
  e = testing::error_of([&] { s.run(run_options{.timeout = std::chrono::milliseconds(5)}, got); });
  CHECK(e.starts_with("deadline_exceeded: "));
  std::thread other([&] { e = testing::error_of([&] { s.run(got); }); });
  s.close();
  other.join();
  CHECK((e.starts_with("cancelled: ") || e.starts_with("failed_precondition: ")));
}

TEST_CASE_FIXTURE(own_graph, "an error in another lane ends waiting lanes") {
  placeholder<std::int32_t> d("d");
  any_tensor got = pop("never");
  any_tensor bad = any_tensor(d) / any_tensor(d);
  session s;
  for (int i = 0; i < 20; ++i)
    CHECK(
        testing::error_of([&] { s.run(got, bad, d = 0); }).starts_with("invalid_argument: [div]"));
}

TEST_CASE_FIXTURE(own_graph, "a queue lives on its task, and another task can put values") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  placeholder<float, dyn> x("x");
  auto at_ps = [&](auto f) { return on(device("/job:ps/task:0"), f); };
  operation put = at_ps([&] { return push("q", any_tensor(x)); });
  any_tensor got = at_ps([&] { return pop("q"); });
  any_tensor used = on(device("/job:worker/task:1"), [&] { return got * 3; });
  session s0(c.target("worker", 0)), s1(c.target("worker", 1));
  std::thread reader([&] {
    for (int i = 0; i < 50; ++i) CHECK(first(s1.run(used)) == 3.f * static_cast<float>(i));
  });
  for (int i = 0; i < 50; ++i) s0.run(put, x = {static_cast<float>(i)});
  reader.join();
  // A waiting run does not block its task.
  std::thread waits([&] { static_cast<void>(testing::error_of([&] { s1.run(used); })); });
  for (int i = 0; i < 20; ++i) CHECK(s0.run(x, x = {1.f})(0) == 1.f);
  s1.close();
  waits.join();
}
