// SPDX-License-Identifier: Apache-2.0
// Variables while they are restored, and what becomes of sessions that use them meanwhile.
#include <deft/op/initialized.hpp>
#include <deft/train/monitored_session.hpp>
#include <deft/train/optimizers.hpp>
#include <deft/train/sync_replicas.hpp>
#include <deft/transport/listener.hpp>
#include <future>
#include <optional>

#include "../data/temporary_folder.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::log_lines;
using testing::outcome_of;
using testing::own_graph;
using testing::temporary_folder;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(own_graph, "a variable that is restored counts as one without a value") {
  const temporary_folder folder;
  local_cluster c({{"worker", 1}}, {.file_roots = {folder.path().string()}});
  variable<float> w("w", 1.f), u("u", 2.f);
  session s(c.target("worker", 0)), other(c.target("worker", 0));
  s.run(initialize_all());
  const tensor<float> twice = w * 2.f;
  const operation up = w.assign_add(1.f), set = w.assign(5.f);
  other.run(up), other.run(set), other.run(twice);
  s.run(detail::begin_restoring(w));
  CHECK_FALSE(s.run(is_initialized(w)));
  CHECK(s.run(any_tensor(detail::value_generation(w))).item<std::int64_t>() == 0);
  CHECK(outcome_of([&] { other.run(twice); }).code == errc::aborted);
  CHECK(outcome_of([&] { other.run(up); }).code == errc::aborted);
  CHECK(outcome_of([&] { other.run(set); }).code == errc::aborted);
  CHECK(outcome_of([&] { saver().save(s, folder / "m"); }).code == errc::aborted);
  const operation first = detail::initialize_if_empty(w);
  s.run(first);  // does nothing
  const any_tensor value_then(output{first.handle(), 0});
  CHECK(outcome_of([&] { s.run(value_then); }).code == errc::aborted);
  s.run(w.assign(7.f));
  CHECK(outcome_of([&] { s.run(value_then); }).code == errc::aborted);
  CHECK(outcome_of([&] { other.run(twice); }).code == errc::aborted);
  CHECK(outcome_of([&] { s.run(run_options{.timeout = 20ms}, await_initialized(w)); }).code ==
        errc::deadline_exceeded);
  auto waits = s.prepare(await_initialized(w));
  std::thread waiting([&] { waits(); });
  s.run(detail::end_restoring(w));
  waiting.join();
  CHECK(other.run(twice) == 14);
  CHECK(s.run(value_then).item<float>() == 7);
  // Steps that were begun before do not change what was restored.
  CHECK(outcome_of([&] { other.run(up); }).says("\"w\" was restored"));
  CHECK(outcome_of([&] { other.run(set); }).code == errc::aborted);
  session later(c.target("worker", 0));
  later.run(up);
  CHECK(later.run(w) == 8);
  CHECK(other.run(u) == 2);
}

TEST_CASE_FIXTURE(own_graph, "a first value does not replace another") {
  variable<float> w("w", 1.f);
  variable<float, dyn> k("k", ndarray<float, 2>{1, 2});
  session s;
  s.run(detail::initialize_if_empty(w), detail::initialize_if_empty(k));
  CHECK(s.run(w) == 1);
  s.run(w.assign(3.f), k.assign(ndarray<float, 3>{1, 2, 3}));
  s.run(detail::initialize_if_empty(w), detail::initialize_if_empty(k));
  CHECK(s.run(w) == 3);
  CHECK(s.run(k) == ndarray<float, dyn>{1, 2, 3});
}

namespace {

/// A parameter server of the test's own, and a worker, which is the chief.
struct two_servers {
  const int fds[3] = {listen_socket("localhost:0"), listen_socket("localhost:0"),
                      listen_socket("localhost:0")};
  const cluster_spec spec{{"ps", {address_of_socket(fds[0]), address_of_socket(fds[1])}},
                          {"worker", {address_of_socket(fds[2])}}};
  const temporary_folder folder;
  std::optional<server> ps[2];

  two_servers() {
    for (int i = 0; i < 2; ++i)
      ps[i].emplace(spec, "ps", i,
                    server_options{.file_roots = {folder.path().string()}, .listen_fd = fds[i]});
  }
  void restart(int i) {
    ps[i].reset();
    const file_descriptor kept(reserve_address(spec.address("ps", i)));
    ps[i].emplace(spec, "ps", i, server_options{.file_roots = {folder.path().string()}});
  }
  /// `again`: after another one, whose address it takes.
  int as_chief(const std::function<void(task&)>& body, bool again = false) {
    std::vector<std::string> words{
        "test",
        "--job_name=worker",
        str("--ps_hosts=", spec.address("ps", 0), ",", spec.address("ps", 1)),
        "--worker_hosts=" + spec.address("worker", 0),
        "--file_root=" + folder.path().string(),
        str("--listen_fd=", fds[2])};
    std::optional<file_descriptor> kept;
    if (again) words.pop_back(), kept.emplace(reserve_address(spec.address("worker", 0)));
    std::vector<const char*> argv;
    for (const auto& w : words) argv.push_back(w.c_str());
    return task_main(static_cast<int>(argv.size()), argv.data(), body);
  }
};

}  // namespace

TEST_CASE("a state that was restored in part is restored by the next chief") {
  two_servers cluster;
  log_lines lines(logging::level::info);
  std::vector<float> seen;
  CHECK(cluster.as_chief([&](task& self) {
    const auto a = on(device("/job:ps/task:0"), [] { return variable<float>("a", 0.f); });
    const auto b = on(device("/job:ps/task:1"), [] { return variable<float>("b", 0.f); });
    const auto step = on(device("/job:ps/task:0"), [] { return global_step(); });
    const operation train = group(a.assign_add(1.f), b.assign_add(1.f), step.assign_add(1));
    const monitored_options options{.checkpoint_dir = cluster.folder.path().string(),
                                    .checkpoint_steps = 2};
    {
      monitored_session s(self, options);
      for (int i = 0; i < 3; ++i) s.run(train);
    }  // model-3
    {
      session s(self);
      s.run(train);
      // As a chief that was killed after it had assigned one of them.
      s.run(detail::begin_restoring(a), detail::begin_restoring(b), detail::begin_restoring(step));
      s.run(a.assign(100.f));
    }
    monitored_session s(self, options);
    s.run(train);
    const auto [now_a, now_b] = s.session().run(a, b);
    seen = {now_a, now_b};
  }) == 0);
  CHECK(seen == std::vector<float>{4, 4});
}

TEST_CASE(
    "a round that a lost replica may have applied in part is restored, or kept if it cannot be") {
  for (const bool saves : {true, false}) {
    CAPTURE(saves);
    two_servers cluster;
    log_lines lines(logging::level::info);
    float last = 0;
    CHECK(cluster.as_chief([&](task& self) {
      const auto there = on(device("/job:ps/task:0"));
      const variable<float> w("w", 0.f);
      const auto train = sync_replicas(sgd(1), 1, 1).minimize(w * -1.f, global_step());
      const monitored_options options{.checkpoint_dir =
                                          saves ? cluster.folder.path().string() : std::string()};
      {
        monitored_session s(self, options);
        for (int i = 0; i < 3; ++i) s.run(train);
      }  // model-3
      {
        // As a replica that is killed when its update has changed one of the variables.
        const auto node = [](const char* collection) {
          return current_graph().collected(collection, "").front().node;
        };
        const tensor<std::string, dyn> left(node("sync_replicas/join")->inputs()[0]);
        const any_tensor grant(output{node("sync_replicas/grant"), 0});
        session lost(self);
        lost.run(operation(node("sync_replicas/join")), left = ndarray<std::string, dyn>());
        auto step =
            std::async(std::launch::async, [&] { return outcome_of([&] { lost.run(train); }); });
        lost.run(grant);
        lost.run(w.assign(100.f));
        lost.close();
        CHECK(step.get().code == errc::cancelled);
      }
      monitored_session s(self, options);
      s.run(train);
      last = s.session().run(w);
    }) == 0);
    CHECK(last == (saves ? 4 : 101));
    const std::string text = join(lines.take(), "\n");
    CAPTURE(text);
    CHECK(text.find(saves ? "restored " + (cluster.folder / "model-3").string()
                          : "there is no checkpoint to restore") != text.npos);
  }
}

TEST_CASE("a recovery says whether training goes on from a checkpoint or begins anew") {
  for (const bool saves : {true, false}) {
    CAPTURE(saves);
    two_servers cluster;
    log_lines lines;
    std::vector<float> seen;
    CHECK(cluster.as_chief([&](task& self) {
      const auto a = on(device("/job:ps/task:0"), [] { return variable<float>("a", 0.f); });
      const auto b = on(device("/job:ps/task:1"), [] { return variable<float>("b", 0.f); });
      const auto step = on(device("/job:ps/task:0"), [] { return global_step(); });
      const operation train = group(a.assign_add(1.f), b.assign_add(1.f), step.assign_add(1));
      monitored_session s(self,
                          {.checkpoint_dir = saves ? cluster.folder.path().string() : std::string(),
                           .checkpoint_steps = 2});
      for (int i = 0; i < 5; ++i) {
        if (i == 3) cluster.restart(1);
        s.run(train);
      }
      const auto [now_a, now_b] = s.session().run(a, b);
      seen = {now_a, now_b};
    }) == 0);
    CHECK(seen == (saves ? std::vector<float>{4, 4} : std::vector<float>{2, 2}));
    const std::string text = join(lines.take(), "\n");
    CAPTURE(text);
    CHECK(text.find(saves ? "has recovered: restored " + (cluster.folder / "model-2").string() +
                                "; training goes on at global step 2"
                          : "has recovered: the variables were initialized anew; training goes on "
                            "at global step 0") != text.npos);
  }
}

TEST_CASE("random numbers of a job that is started again are others") {
  two_servers cluster;
  std::vector<float> drawn;
  const auto draw = [&](task& self) {
    auto at_ps = on(device("/job:ps/task:0"));
    const auto step = global_step();
    const tensor<float> x = random_uniform(shape<>);
    const operation train = step.assign_add(1);
    monitored_session s(self);
    for (int i = 0; i < 20; ++i) {
      drawn.push_back(s.run(x));
      if (i % 5 == 4) s.run(train);  // draws more often than it counts
      if (i == 10) cluster.restart(1);
    }
  };
  CHECK(cluster.as_chief(draw) == 0);
  CHECK(cluster.as_chief(draw, true) == 0);
  std::ranges::sort(drawn);
  CHECK(drawn.size() == 40);
  CHECK(std::ranges::adjacent_find(drawn) == drawn.end());
}
