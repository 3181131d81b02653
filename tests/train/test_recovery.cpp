// SPDX-License-Identifier: Apache-2.0
// Monitored sessions that lose connections and tasks.
#include <deft/train/monitored_session.hpp>
#include <deft/transport/listener.hpp>
#include <latch>
#include <optional>

#include "../data/temporary_folder.hpp"
#include "../transport/faulty_stream.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::faulty_network;
using testing::log_lines;
using testing::threaded_job;

namespace {

/// Runs `body` as worker 0 of a cluster with a parameter server and another worker.
void as_chief(const std::function<void(task&)>& body) {
  threaded_job job(1, 2);
  std::latch over(1);
  const auto codes = job.run([&](task& self) {
    if (!self.is_chief()) return over.wait();
    try {
      body(self);
    } catch (...) {
      over.count_down();
      throw;
    }
    over.count_down();
  });
  CHECK(codes == std::vector<int>(3, 0));
}

}  // namespace

TEST_CASE("a step is applied once, however often connections are lost") {
  for (const char* const at : {"/job:ps/task:0", "/job:worker/task:0"}) {
    CAPTURE(at);
    log_lines lines;
    std::int64_t ran = 0, last = 0;
    {
      faulty_network network({.cuts = 1});
      as_chief([&](task& self) {
        const auto w = on(device(at), [] { return variable<std::int64_t>("w", 0); });
        // Always 1, which the planner does not know.
        const auto x = on(device("/job:worker/task:1"), [] {
          return tensor<std::int64_t>(cast<std::int64_t>(random_uniform(shape<>)) + 1);
        });
        const operation train = on(device(at), [&] { return operation(w.assign_add(x)); });
        monitored_session s(self);
        for (; ran < 1000; ++ran) CHECK(s.run(x, train) == 1);
        for (;; std::this_thread::yield()) try {
            last = s.run(w);
            break;
          } catch (const error& e) {
            CHECK(testing::is_loss(e.code()));
          }
      });
    }
    CHECK(last == 1000);
    const std::string text = join(lines.take(), "\n");
    CHECK(text.find("; recovering") != text.npos);
  }
}

TEST_CASE("what an applied step fetches is computed again, without its updates") {
  log_lines lines;
  int fed = 0;
  {
    faulty_network network({.cuts = 1}, 7);
    as_chief([&](task& self) {
      auto at_ps = on(device("/job:ps/task:0"));
      variable<float> w("w", 0.f);
      placeholder<float> x("x");
      const operation train = w.assign_add(1.f);
      tensor<float> y = x * 2.f;
      monitored_session s(self);
      for (; fed < 1000; ++fed) {
        const auto [got, now] = s.run(y, w, train, x = static_cast<float>(fed));
        CHECK(got == 2.f * static_cast<float>(fed));
        // Before the update, or after it.
        CHECK(now >= static_cast<float>(fed));
        CHECK(now <= static_cast<float>(fed) + 1);
      }
    });
  }
  CHECK(fed == 1000);
}

TEST_CASE("a task without variables that restarts interrupts training, and no more") {
  const int fds[] = {listen_socket("localhost:0"), listen_socket("localhost:0"),
                     listen_socket("localhost:0")};
  const cluster_spec spec{{"ps", {address_of_socket(fds[0])}},
                          {"worker", {address_of_socket(fds[1]), address_of_socket(fds[2])}}};
  const server ps(spec, "ps", 0, {.listen_fd = fds[0]});
  std::optional<server> other(std::in_place, spec, "worker", 1,
                              server_options{.listen_fd = fds[2]});
  const std::string ps_hosts = "--ps_hosts=" + spec.address("ps", 0),
                    workers = str("--worker_hosts=", spec.address("worker", 0), ",",
                                  spec.address("worker", 1)),
                    fd = str("--listen_fd=", fds[1]);
  const char* argv[] = {"test",           "--job_name=worker", "--task_index=0",
                        ps_hosts.c_str(), workers.c_str(),     fd.c_str()};
  log_lines lines;
  float last = 0;
  CHECK(task_main(6, argv, [&](task& self) {
          auto at_ps = on(device("/job:ps/task:0"));
          variable<float> w("w", 0.f);
          placeholder<float> x("x");
          const tensor<float> tower = on(device("/job:worker/task:1"), [&] { return x * 2.f; });
          const operation train = w.assign_add(tower);
          monitored_session s(self);
          for (int i = 0; i < 30; ++i) {
            if (i % 10 == 5) {
              other.reset();
              const file_descriptor kept(reserve_address(spec.address("worker", 1)));
              other.emplace(spec, "worker", 1);
            }
            CHECK(s.run(tower, train, x = 1.f) == 2);
          }
          last = s.session().run(w);
        }) == 0);
  CHECK(last == 60);
  const std::string text = join(lines.take(), "\n");
  CAPTURE(text);
  CHECK(text.find("/job:worker/replica:0/task:1") != text.npos);
}

TEST_CASE("a recovery that fails says how long it was tried, not how long the last attempt was") {
  const int fds[] = {listen_socket("localhost:0"), listen_socket("localhost:0")};
  const cluster_spec spec{{"ps", {address_of_socket(fds[0])}},
                          {"worker", {address_of_socket(fds[1])}}};
  std::optional<server> ps(std::in_place, spec, "ps", 0, server_options{.listen_fd = fds[0]});
  const std::string ps_hosts = "--ps_hosts=" + spec.address("ps", 0),
                    workers = "--worker_hosts=" + spec.address("worker", 0),
                    fd = str("--listen_fd=", fds[1]);
  const char* argv[] = {"test",           "--job_name=worker", "--task_index=0",
                        ps_hosts.c_str(), workers.c_str(),     fd.c_str()};
  log_lines lines;
  testing::outcome o;
  CHECK(task_main(6, argv, [&](task& self) {
          auto at_ps = on(device("/job:ps/task:0"));
          variable<float> w("w", 0.f);
          const operation train = w.assign_add(1.f);
          monitored_session s(self, {.start_timeout = std::chrono::seconds(3)});
          s.run(train);
          ps.reset();
          const file_descriptor kept(reserve_address(spec.address("ps", 0)));
          o = testing::outcome_of([&] { s.run(train); });
          ps.emplace(spec, "ps", 0);  // for the worker to say that it is done
        }) == 0);
  CAPTURE(o);
  const auto at = o.message.find("; recovery failed after ");
  REQUIRE(at != std::string::npos);
  CHECK(o.message.find(": timed out after ", at) == std::string::npos);
}

TEST_CASE("a variable of a worker that restarts is restored, whoever initialized it meanwhile") {
  const testing::temporary_folder folder;
  const int fds[] = {listen_socket("localhost:0"), listen_socket("localhost:0")};
  const cluster_spec spec{{"worker", {address_of_socket(fds[0]), address_of_socket(fds[1])}}};
  std::optional<server> other(
      std::in_place, spec, "worker", 1,
      server_options{.file_roots = {folder.path().string()}, .listen_fd = fds[1]});
  const std::string workers = str("--worker_hosts=", spec.address("worker", 0), ",",
                                  spec.address("worker", 1)),
                    fd = str("--listen_fd=", fds[0]),
                    root = "--file_root=" + folder.path().string();
  const char* argv[] = {"test",          "--job_name=worker", "--task_index=0",
                        workers.c_str(), fd.c_str(),          root.c_str()};
  log_lines lines(logging::level::info);
  std::vector<float> seen;
  CHECK(task_main(6, argv, [&](task& self) {
          const auto w = on(device("/job:worker/task:1"), [] { return variable<float>("w", 0.f); });
          const operation train = group(w.assign_add(1.f), global_step().assign_add(1));
          monitored_session s(self,
                              {.checkpoint_dir = folder.path().string(), .checkpoint_steps = 4});
          for (int i = 0; i < 10; ++i) {
            if (i == 6) {
              other.reset();
              const file_descriptor kept(reserve_address(spec.address("worker", 1)));
              other.emplace(spec, "worker", 1,
                            server_options{.file_roots = {folder.path().string()}});
              // As the worker that restarts does.
              session(other->target()).run(w.initializer());
            }
            s.run(train);
            seen.push_back(s.session().run(w));
          }
        }) == 0);
  const std::string text = join(lines.take(), "\n");
  CAPTURE(text);
  CHECK(seen == std::vector<float>{1, 2, 3, 4, 5, 6, 5, 6, 7, 8});
}

TEST_CASE("a session that is asked to stop does not wait for workers that have not come") {
  std::int64_t steps = 0;
  float last = 0;
  as_chief([&](task& self) {
    auto scope = on(replica_device(self.cluster(), self.device()));
    variable<float> w("w", 0.f);
    const operation train = sync_replicas(sgd(1), 2, 2).minimize(w * 1.f, global_step());
    monitored_session s(self);
    std::jthread stops([&] { s.request_stop(); });
    while (!s.should_stop()) s.run(train), ++steps;
    stops.join();
    s.run(train);  // asked a moment later, the last run would be this one
    last = s.session().run(w);
  });
  CHECK(steps <= 1);
  CHECK(last == 0);
}
