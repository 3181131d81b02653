// SPDX-License-Identifier: Apache-2.0
// What becomes of a round of sync_replicas whose update fails, and of the rounds after it.
#include <array>
#include <atomic>
#include <deft/op/initialized.hpp>
#include <deft/train/monitored_session.hpp>
#include <deft/train/sync_replicas.hpp>
#include <functional>
#include <future>
#include <latch>
#include <optional>

#include "../data/temporary_folder.hpp"
#include "../transport/faulty_stream.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::faulty_network;
using testing::log_lines;
using testing::outcome;
using testing::outcome_of;
using testing::threaded_job;
using namespace std::chrono_literals;

namespace {

/// Passes a number on, and counts how often.
struct counted_number {
  static constexpr std::string_view name = "test_counted_number";
  static constexpr int arity = 1;
  static constexpr dtype_set kernel_types{dtype::float32};
  static inline std::atomic<int> runs{0};

  tensor_type infer(std::span<const tensor_type> in) const { return in[0]; }
  template <class T>
  void compute(const kernel_arguments& a) const {
    a.out<T>()[0] = a.in<T>(0)[0];
    ++runs;
  }
};

/// Where an update stops until it is let go on: before it changes a variable, when it has changed
/// some of them, and when it has changed all.
enum class stop { before, between, after };

/// A replica of a model with variables on two parameter servers: the loss `(a + b) * g`, and after
/// the update `late += 1`.
class replica {
 public:
  /// `stops`: an update waits at each stop until the variable of that stop has a value. `another`:
  /// there is another sync_replicas, of a variable on a third parameter server.
  replica(const std::string& target, int needed, int total, session_options options = {},
          bool stops = true, bool another = false)
      : scope_(new graph_scope(as_default(graph_))),
        a_(at(0, "a")),
        b_(at(1, "b")),
        late_(at(1, "late", false)),
        rate_(at(0, "rate", false, 1.f)),
        step_(on(device("/job:ps/task:0"), [] { return global_step(); })),
        g_("g") {
    if (stops)
      for (const char* name : {"before", "between", "after"}) gates_.push_back(at(0, name, false));
    const auto there = on(device("/job:ps/task:0"));
    const tensor<float> counted(make_node(counted_number{}, {}, rate_.read()));
    tensor<float> rate = counted;
    if (auto then = control_dependencies(reach(stop::before, counted))) rate = identity(counted);
    train_ = sync_replicas(sgd(rate), needed, total, [&] {
               operation up;
               if (auto then = control_dependencies(reach(stop::between)))
                 up = late_.assign_add(1.f);
               const auto then = control_dependencies(up);
               return reach(stop::after);
             }).minimize((a_ + b_) * g_, {a_, b_}, step_);
    if (another) {
      const auto z = at(2, "z");
      sync_replicas(sgd(1), 2, 3).minimize(z * 1.f, {z});
      others_ = z.initializer();
    }
    session_.emplace(target, options);
    scope_.reset();
  }

  graph& model() { return graph_; }
  deft::session& session() { return *session_; }
  /// Whether the gradient counted.
  bool step(float gradient) {
    const auto in_graph = as_default(graph_);
    return session_->run(tensor<bool>(output{train_.handle(), 0}), g_ = gradient);
  }
  void initialize() {
    const auto in_graph = as_default(graph_);
    for (const int ps : {0, 1}) initialize_on(ps);
    if (others_.valid()) session_->run(others_);
  }
  /// Of the variables of one parameter server.
  void initialize_on(int ps) {
    const auto in_graph = as_default(graph_);
    if (ps == 0)
      session_->run(a_.initializer(), rate_.initializer(), step_.initializer());
    else
      session_->run(b_.initializer(), late_.initializer());
  }
  /// Updates go on there.
  void pass(stop at) {
    const auto in_graph = as_default(graph_);
    session_->run(gates_[static_cast<std::size_t>(at)].initializer());
  }
  /// The variables a and b, late and the global step.
  std::array<float, 4> values() {
    const auto in_graph = as_default(graph_);
    const auto [a, b, late] = session_->run(a_, b_, late_);
    return {a, b, late, static_cast<float>(session_->run(step_))};
  }

 private:
  static variable<float> at(int ps, const char* name, bool trained = true, float first = 0) {
    return on(device(str("/job:ps/task:", ps)),
              [&] { return variable<float>(name, first, {.trainable = trained}); });
  }
  operation reach(stop s, std::optional<any_tensor> first = {}) const {
    const auto wait = [&] {
      return gates_.empty() ? no_op() : await_initialized(gates_[static_cast<std::size_t>(s)]);
    };
    if (!first) return wait();
    const auto then = control_dependencies(*first);
    return wait();
  }

  graph graph_;
  std::unique_ptr<graph_scope> scope_;  // while the model is written
  variable<float> a_, b_, late_, rate_;
  std::vector<variable<float>> gates_;
  variable<std::int64_t> step_;
  placeholder<float> g_;
  operation train_, others_;
  std::optional<deft::session> session_;
};

using values = std::array<float, 4>;
constexpr stop stops[] = {stop::before, stop::between, stop::after};

/// Three workers: one that only applies the gradients of the others, until the update waits at a
/// stop.
class held_round {
 public:
  explicit held_round(stop at, session_options of_leader = {}, bool another = false)
      : stop_(at),
        before_(counted_number::runs),
        first_(target(1), 2, 3),
        second_(target(2), 2, 3),
        looks_(target(1), 2, 3) {
    looks_.initialize();
    for (const stop s : stops)
      if (s != at) looks_.pass(s);
    leader_.emplace(target(0), 2, 3, of_leader, true, another);
    if (another) leader_->initialize();
  }
  /// Begins a round.
  void begin() {
    updates_.emplace(leader_->session(), leader_->model());
    first_step_ = step_of(first_, 1);
    second_step_ = step_of(second_, 3);
  }
  /// Until the update waits at its stop.
  void wait() {
    const auto arrived = [&] {
      if (stop_ == stop::before) return counted_number::runs != before_;
      const values now = looks_.values();
      return now[0] == -2 && now[1] == -2 && now[3] == 1 && (stop_ == stop::between || now[2] == 1);
    };
    while (!arrived()) std::this_thread::yield();
  }
  /// How the steps of both workers ended.
  std::array<outcome, 2> outcomes() { return {first_step_.get(), second_step_.get()}; }
  /// Those of a next round. `leader_lost`: they may begin before the leader is back.
  std::array<outcome, 2> next(bool leader_lost = false) {
    first_step_ = step_of(first_, 1, leader_lost);
    second_step_ = step_of(second_, 3, leader_lost);
    return outcomes();
  }
  values now() { return looks_.values(); }
  void go_on() { looks_.pass(stop_); }
  /// What whole rounds make of the variables.
  values after_rounds(int rounds) const {
    const auto n = static_cast<float>(rounds);
    return {-2 * n, -2 * n, n, n};
  }

  /// Another session of the leader's worker applies the gradients from now on.
  void replace_leader() {
    updates_.reset();
    leader_.emplace(target(0), 2, 3);
    updates_.emplace(leader_->session(), leader_->model());
  }
  replica& leader() { return *leader_; }
  std::optional<replica_updates>& updates() { return updates_; }
  local_cluster& cluster() { return cluster_; }
  std::string target(int worker) const { return cluster_.target("worker", worker); }

 private:
  static std::future<outcome> step_of(replica& r, float gradient, bool again = false) {
    return std::async(std::launch::async, [&r, gradient, again] {
      for (;;) {
        const outcome o = outcome_of([&] {
          if (!r.step(gradient)) throw error(errc::internal, "the gradient did not count");
        });
        if (!again || o.code != errc::unavailable) return o;
      }
    });
  }

  local_cluster cluster_{{"ps", 3}, {"worker", 3}};
  const stop stop_;
  const int before_;
  replica first_, second_, looks_;
  std::optional<replica> leader_;
  std::optional<replica_updates> updates_;
  std::future<outcome> first_step_, second_step_;
};

void check_all(const std::array<outcome, 2>& all, errc code, const std::string& says) {
  for (const outcome& o : all) {
    CAPTURE(o);
    CHECK(o.code == code);
    CHECK(o.says(says));
  }
}
void check_success(const std::array<outcome, 2>& all) { check_all(all, errc{}, ""); }
constexpr const char* lost_leader =
    "/job:worker/replica:0/task:0 was lost while it applied gradients";
constexpr const char* in_part = "an update may have been applied in part";

/// The variables after a round that was held at a stop.
values held_values(stop at) {
  const float late = at == stop::after ? 1 : 0;
  return at == stop::before ? values{} : values{-2, -2, late, 1};
}

/// The rounds stand still: `r` was held at a stop, which it may pass now.
void check_torn(held_round& r, stop at, const std::string& why) {
  for (const bool first : {true, false}) {
    const auto all = first ? r.outcomes() : r.next();
    check_all(all, errc::aborted, in_part);
    check_all(all, errc::aborted, why);
    CHECK(r.now() == held_values(at));
    r.go_on();
  }
}

/// What becomes of a round whose update has failed, with the code `code`, at a stop: it fails if
/// nothing was changed. Else the rounds stand still, as a task whose part of the update has not
/// ended knows only that it changed something. `left`: another session is the next leader.
void check_fate(held_round& r, stop at, errc code, const std::string& why, bool left = false) {
  if (at != stop::before) return check_torn(r, at, why);
  check_all(r.outcomes(), code, why);
  CHECK(r.now() == values{});
  r.go_on();
  if (left) r.replace_leader();
  check_success(r.next());
  CHECK(r.now() == r.after_rounds(1));
}

/// Connections of the leader's worker to a parameter server, which can be ended.
class weak_connection {
 public:
  weak_connection(held_round& r, int ps) : round_(r), ps_(ps) {
    r.leader().initialize_on(1 - ps);
    faulty_network network({});
    r.leader().initialize_on(ps);
    way_ = network.handle();
  }
  /// The next message ends it, later ones go over another.
  void end() { way_->ended = true; }
  /// At once.
  void cut() {
    end();
    replica pokes(round_.target(0), 2, 3);
    (void)outcome_of([&] { pokes.values(); });
  }

 private:
  held_round& round_;
  const int ps_;
  std::shared_ptr<testing::link> way_;
};

}  // namespace

TEST_CASE(
    "an update whose connection is lost fails its round, or tears it if it changed something") {
  for (const stop at : stops) {
    CAPTURE(static_cast<int>(at));
    log_lines lines;
    held_round r(at);
    weak_connection leader_to_ps(r, 1);
    r.begin();
    r.wait();
    leader_to_ps.cut();
    check_fate(r, at, errc::unavailable, "lost /job:ps/replica:0/task:1");
  }
}

TEST_CASE(
    "an update of a leader whose connection to the barrier is lost is never taken for whole") {
  for (const stop at : stops) {
    CAPTURE(static_cast<int>(at));
    log_lines lines;
    held_round r(at);
    weak_connection leader_to_ps(r, 0);
    r.begin();
    r.wait();
    leader_to_ps.cut();
    // Either the barrier notices first that the session is gone, which tears the round, or the
    // leader says first, over a new connection, what it knows.
    if (at != stop::before) {
      check_torn(r, at, in_part);
      continue;
    }
    for (const outcome& o : r.outcomes()) {
      CAPTURE(o);
      CHECK(testing::is_loss(o.code));
    }
    CHECK(r.now() == values{});
  }
}

TEST_CASE("an update that was applied, although its answer is lost, has ended its round") {
  log_lines lines;
  held_round r(stop::after);
  weak_connection leader_to_ps(r, 0);
  r.begin();
  r.wait();
  leader_to_ps.end();
  r.go_on();
  check_success(r.outcomes());
  CHECK(r.now() == r.after_rounds(1));
  // It leads again, over a new connection.
  check_success(r.next(true));
  CHECK(r.now() == r.after_rounds(2));
}

TEST_CASE("an update that times out fails its round, or tears it if it changed something") {
  for (const stop at : stops) {
    CAPTURE(static_cast<int>(at));
    log_lines lines;
    held_round r(at, {.timeout = 2s});
    r.begin();
    check_fate(r, at, errc::deadline_exceeded, "timed out after 2 s");
  }
}

TEST_CASE(
    "an update that its replica cancels fails its round, or tears it if it changed something") {
  for (const stop at : stops) {
    CAPTURE(static_cast<int>(at));
    log_lines lines;
    held_round r(at, {}, true);
    r.begin();
    r.wait();
    // Its updates are cancelled, as it cannot leave the rounds of the other sync_replicas.
    r.cluster().kill("ps", 2);
    r.updates()->leave();
    check_fate(r, at, errc::aborted, "cancelled", true);
  }
}

TEST_CASE("a leader whose session ends during its update tears the round") {
  for (const bool killed : {false, true})
    for (const stop at : stops) {
      CAPTURE(killed);
      CAPTURE(static_cast<int>(at));
      log_lines lines;
      held_round r(at);
      r.begin();
      r.wait();
      if (killed)
        r.cluster().kill("worker", 0);
      else
        r.leader().session().close();
      check_torn(r, at, lost_leader);
    }
}

TEST_CASE("an update whose parameter server restarts tears the round") {
  // Before, the task may not have been called yet: then nothing was changed.
  for (const stop at : {stop::between, stop::after}) {
    CAPTURE(static_cast<int>(at));
    log_lines lines;
    held_round r(at);
    r.begin();
    r.wait();
    r.cluster().restart("ps", 1);
    for (const outcome& o : r.outcomes()) {
      CAPTURE(o);
      CHECK(testing::is_loss(o.code));
    }
    replica fresh(r.target(1), 2, 3);
    fresh.initialize_on(1);
    const auto o = outcome_of([&] { fresh.step(1); });
    CAPTURE(o);
    CHECK(o.code == errc::aborted);
    CHECK(o.says(in_part));
  }
}

namespace {

/// Runs `body` as the chief of a cluster with two parameter servers and another worker.
void as_chief(const std::string& folder, const std::function<void(task&)>& body) {
  threaded_job job(2, 2, {"--file_root=" + folder});
  std::latch over(1);
  const auto codes = job.run([&](task& self) {
    if (!self.is_chief()) return over.wait();
    const std::unique_ptr<std::latch, void (*)(std::latch*)> ends(
        &over, [](std::latch* l) { l->count_down(); });
    body(self);
  });
  CHECK(codes == std::vector<int>(4, 0));
}

}  // namespace

TEST_CASE(
    "plain sessions of a torn round get aborted until a chief has restored, and new ones train") {
  for (const bool saves : {true, false}) {
    CAPTURE(saves);
    const testing::temporary_folder folder;
    log_lines lines;
    as_chief(folder.path().string(), [&](task& self) {
      const auto worker = [&](int i) {
        return str("deft://", self.cluster().address("worker", i), "/job:worker/task:", i);
      };
      const std::string mine = worker(0), others = worker(1);
      const auto as_monitored = [&] {
        replica r(mine, 1, 2, {}, false);
        const auto in_graph = as_default(r.model());
        monitored_session s(self,
                            {.checkpoint_dir = saves ? folder.path().string() : std::string()});
      };
      as_monitored();
      replica a(mine, 1, 2), b(others, 1, 2), looks(others, 1, 2);
      looks.pass(stop::before), looks.pass(stop::after);
      {
        std::optional<replica> lost(std::in_place, others, 1, 2);
        replica_updates updates(lost->session(), lost->model());
        auto step = std::async(std::launch::async, [&] { return outcome_of([&] { b.step(1); }); });
        while (looks.values() != values{-1, -1, 0, 1}) std::this_thread::yield();
        lost->session().close();
        const outcome o = step.get();
        CAPTURE(o);
        CHECK(o.code == errc::aborted);
      }
      looks.pass(stop::between);
      const auto is_torn = [&](replica& r) {
        const auto o = outcome_of([&] { r.step(1); });
        CAPTURE(o);
        CHECK(o.code == errc::aborted);
        CHECK(o.says(in_part));
      };
      {
        replica fresh(others, 1, 2);
        replica_updates updates(fresh.session(), fresh.model());
        for (replica* r : {&a, &b, &fresh, &b}) is_torn(*r);
        const auto in_graph = as_default(fresh.model());
        const auto saved =
            outcome_of([&] { saver().save(fresh.session(), (folder / "m").string()); });
        CAPTURE(saved);
        CHECK(saved.code == errc::aborted);
      }
      CHECK(looks.values() == values{-1, -1, 0, 1});

      as_monitored();
      const values first = saves ? values{0, 0, 0, 0} : values{-1, -1, 0, 1};
      CHECK(looks.values() == first);
      for (replica* r : {&a, &b}) {
        const auto o = outcome_of([&] { r->step(1); });
        CAPTURE(o);
        CHECK(o.code == errc::aborted);
        CHECK(o.says("make a new one"));
      }
      replica fresh(mine, 1, 2), other(others, 1, 2);
      replica_updates updates(fresh.session(), fresh.model());
      CHECK(fresh.step(1));
      CHECK(looks.values() == values{first[0] - 1, first[1] - 1, first[2] + 1, first[3] + 1});
      CHECK(other.step(2));
      CHECK(looks.values() == values{first[0] - 3, first[1] - 3, first[2] + 2, first[3] + 2});
    });
  }
}
