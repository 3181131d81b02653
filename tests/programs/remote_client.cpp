// SPDX-License-Identifier: Apache-2.0
// tests/programs/remote_client.cpp TARGET COMMAND: a client in a process of its own.
//   sum       adds on two workers, reads the shared variable, and prints both
//   own       runs an expression that only this program has compiled; its signature, then values
//   errors    prints what a division by zero on worker 1 says
//   cancel    cancels a long step, then runs a short one
//   timeout   lets a long step run out of time, then runs a short one
//   fate      cancels steps with updates, and prints how they ended
//   trace     prints where the nodes of a traced run were
//   hang      says that it runs, and runs a long step
#include <cstdio>
#include <cstring>
#include <deft/deft.hpp>
#include <thread>

using namespace deft;
using namespace deft::ext;
using namespace std::chrono_literals;

namespace {

tensor<float> long_step() {
  auto there = on(device("/job:worker/task:1"));
  tensor<float, 256, 256> a = broadcast_to(constant(0.001f), shape<256, 256>);
  tensor<float, 256, 256> b = a;
  for (int i = 0; i < 4000; ++i) b = matmul(b, a);
  return sum(b);
}

void print(const error& e) {
  std::printf("%s|%s|%s\n", std::string(to_string(e.code())).c_str(), e.what(), e.device().c_str());
}

int run(const char* target, const char* command) {
  auto is = [&](const char* name) { return std::strcmp(command, name) == 0; };
  session s(target, {.fold = false});
  if (is("sum")) {
    placeholder<float, dyn> x("x");
    tensor<float, dyn> a, b;
    if (auto there = on(device("/job:worker/task:0"))) a = x + 1.f;
    if (auto there = on(device("/job:worker/task:1"))) b = a * 2.f;
    auto v = on(device("/job:ps/task:0"), [] { return variable<float>("shared", 0.f); });
    auto step = s.prepare(b, v.assign_add(1.f).value(), feeds(x));
    std::vector<float> values(1'000'000, 1.f);
    step(values);
    auto [last, count] = step(values);
    float held = s.run(v);
    std::printf("%g %g %g on %s, %zu devices\n", static_cast<double>(last(999'999)),
                static_cast<double>(count), static_cast<double>(held), s.device_of(b).c_str(),
                list_devices(s).size());
    return 0;
  }
  if (is("own")) {
    placeholder<float, dyn> x("x");
    auto own = square(x * 0.25f - 3.f) + tanh(x) * 0.f;
    tensor<float, dyn> y;
    if (auto there = on(device("/job:worker/task:1"))) y = square(x * 0.25f - 3.f) + tanh(x) * 0.f;
    auto v = s.run(y, x = {4, 8, 12});
    std::printf("%s\n%g %g %g on %s\n",
                deft::detail::program_of<decltype(own)>()->signature.c_str(),
                static_cast<double>(v(0)), static_cast<double>(v(1)), static_cast<double>(v(2)),
                s.device_of(y).c_str());
    return 0;
  }
  if (is("errors")) {
    placeholder<int> x("x");
    tensor<int> y;
    if (auto there = on(device("/job:worker/task:1"))) y = identity(1 / x);
    try {
      s.run(y, x = 0);
    } catch (const error& e) {
      print(e);
    }
    std::printf("%d\n", s.run(y, x = 1));
    return 0;
  }
  if (is("trace")) {
    placeholder<float, 4> x("x");
    tensor<float> one, two;
    if (auto there = on(device("/job:worker/task:1"))) one = sum(x);
    if (auto there = on(device("/job:worker/task:0"))) two = exp(one);
    step_trace t;
    s.run(run_options{.trace = &t}, two, x = {1, 2, 3, 4});
    for (const char* wanted : {"sum", "exp"})
      for (const auto& e : t.events)
        if (e.node == wanted) std::printf("%s on %s\n", wanted, e.device.c_str());
    return 0;
  }
  if (is("fate")) {
    const auto at = [](const char* name, auto f) { return on(device(name), f); };
    const auto v = at("/job:ps/task:0", [] { return variable<float>("v", 0.f); });
    const auto never = at("/job:worker/task:1", [] { return variable<float>("never", 0.f); });
    const operation waits = await_initialized(never);
    operation after;
    {
      auto scope = control_dependencies(waits);
      after = v.assign_add(1.f);
    }
    s.run(v.initializer());
    const auto value = [&] { return static_cast<double>(s.run(v)); };
    // The fate of a run of both, which is cancelled once v has a value.
    const auto fate_of = [&](const operation& update, double expected) {
      std::uint64_t number = 0;
      cancel_source cancel;
      std::jthread later([&] {
        while (value() != expected) std::this_thread::yield();
        cancel.cancel();
      });
      try {
        s.run(run_options{.cancel = cancel.token(), .step = &number}, waits, update);
      } catch (const error&) {
      }
      return s.fate_of(number);
    };
    step_fate fate = step_fate::unknown;
    while (fate == step_fate::unknown) fate = fate_of(after, 0);  // until it had begun
    std::printf("%s, %g\n", fate == step_fate::unchanged ? "unchanged" : "another", value());
    fate = fate_of(v.assign_add(1.f), 1);
    std::printf("%s, %g\n", fate == step_fate::applied ? "applied" : "another", value());
    return s.fate_of(1'000'000) == step_fate::unknown ? 0 : 1;
  }
  auto slow = long_step();
  auto step = s.prepare(slow);
  if (is("hang")) {
    std::printf("running\n");
    std::fflush(stdout);
    step();
    return 0;
  }
  try {
    if (is("timeout")) {
      step(run_options{.timeout = 100ms});
    } else {
      cancel_source cancel;
      std::thread later([&] { cancel.cancel(); });
      struct joins {
        std::thread& t;
        ~joins() { t.join(); }
      } join{later};
      step(run_options{.cancel = cancel.token()});
    }
  } catch (const error& e) {
    print(e);
  }
  std::printf("%d\n", s.run(identity(constant(5))));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return run(argv[1], argv[2]);
  } catch (const error& e) {
    print(e);
    return 1;
  }
}
