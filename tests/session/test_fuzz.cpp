// SPDX-License-Identifier: Apache-2.0
// An authenticated client sends mutated frames, graphs, parts and feeds to a task. The task
// survives every one, answers or ends the connection, and serves a good client afterwards.
#include <sys/socket.h>

#include <deft/kernels/constant_folding.hpp>
#include <deft/plan/passes.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/session/worker/running_step.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <deft/transport/channel_group.hpp>
#include <deft/transport/connection_state.hpp>

#include "mutate.hpp"
#include "sample_model.hpp"
#include "sessions.hpp"
#include "transport/wire.hpp"

using namespace deft;
using namespace deft::ext;
using testing::dice;
using testing::outcome_of;
using testing::sample_model;
using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t mutants = 100'000;
#elif defined(__SANITIZE_THREAD__)
constexpr std::size_t mutants = 2'000;
#else
constexpr std::size_t mutants = 20'000;
#endif

namespace {

constexpr const char* secret = "shared";
deadline soon() { return deadline_in(60s); }
channel_options client_options() {
  return {{"client", 0, {}, credentials{.secret = secret}.or_of_environment()}, {}};
}

std::vector<any_array> good_feeds() {
  any_array x(dtype::float32, dims{3, 6}), label(dtype::int32, dims{3});
  std::fill_n(static_cast<float*>(x.mutable_raw()), 18, 0.5f);
  std::fill_n(static_cast<std::int32_t*>(label.mutable_raw()), 3, 1);
  return {x, label};
}

void mutate_feeds(std::vector<any_array>& feeds, dice& d) {
  switch (d.below(5)) {
    case 0:
      if (!feeds.empty()) feeds.pop_back();
      break;
    case 1:
      feeds.push_back(any_array::scalar(1.f));
      break;
    case 2: {
      any_array wild(dtype::int32, dims{3});
      for (int i = 0; i < 3; ++i)
        static_cast<std::int32_t*>(wild.mutable_raw())[i] =
            static_cast<std::int32_t>(d.odd_number());
      if (!feeds.empty()) feeds.back() = wild;
      break;
    }
    case 3:
      if (!feeds.empty())
        d.pick(feeds) = any_array(every_dtype[d.below(every_dtype.size())],
                                  dims{static_cast<std::int64_t>(d.below(4)), 6});
      break;
    default:
      std::reverse(feeds.begin(), feeds.end());
  }
  for (auto& f : feeds)  // an invalid bool would end the connection
    if (f.type() == dtype::boolean) std::fill_n(static_cast<char*>(f.mutable_raw()), f.bytes(), 1);
}

/// A client that sends messages without the checks of a real one.
class attacker {
 public:
  explicit attacker(const std::string& address) : address_(address) { connect(); }

  std::uint64_t session() const { return session_; }
  /// Sends a call and waits for its answer; returns false if that is an error.
  bool ask(message&& m) {
    try {
      last_ = finish(to_->call(m));
      return true;
    } catch (const error& e) {
      refusal_ = e.what();
      if (to_->lost()) connect();
      return false;
    }
  }
  /// The same between two other messages, so that there is an answer in any case.
  bool ask_among(std::span<const message> before, message&& m, const message& after) {
    try {
      for (const auto& b : before) to_->post(b);
      auto p = to_->call(m);
      to_->post(after);
      last_ = finish(p);
      return true;
    } catch (const error&) {
      if (to_->lost()) connect();
      return false;
    }
  }
  void post(const message& m) {
    try {
      to_->post(m);
    } catch (const error&) {
      connect();
    }
  }
  message& answer() { return last_; }
  /// Why the last call failed.
  const std::string& refusal() const { return refusal_; }

 private:
  message finish(const std::shared_ptr<pending>& p) {
    if (!links_.wait_for(*p, soon())) {
      MESSAGE("the task does not answer");
      throw std::runtime_error("the task does not answer");
    }
    return p->take();
  }
  void connect() {
    to_ = links_.connect(address_, soon());
    session_ = finish(to_->call(wire::pack(wire::open_session{{.connect_timeout = 1ms}}))).session;
  }

  std::string address_;
  channel_group links_{client_options()};
  std::shared_ptr<channel> to_;
  std::uint64_t session_ = 0;
  message last_;
  std::string refusal_;
};

struct target {
  local_cluster cluster{{{"worker", 2}}, {.credentials = {.secret = secret}}};
  testing::log_lines log;  // thousands of refusals are logged
  std::string address = cluster.spec().address("worker", 0);

  target() { set_host_memory_limit(std::size_t{256} << 20); }
  ~target() { set_host_memory_limit(0); }

  /// A correct client is served.
  void serves() {
    log.take();
    attacker good(address);
    for (bool initial : {true, false}) {
      bool planned =
          good.ask(wire::pack(wire::make_plan{good.session(), 0s, sample_model(false, initial)}));
      CHECK_MESSAGE(planned, good.refusal());
      wire::run_plan run{.session = good.session(), .plan = good.answer().step};
      if (!initial) run.feeds = good_feeds();
      bool ran = good.ask(wire::pack(run));
      CHECK_MESSAGE(ran, good.refusal());
    }
  }
};

/// How far mutated messages got.
struct tally {
  std::size_t all = 0, planned = 0, ran = 0;
  /// Some mutants are refused at once, and some are not.
  void check_spread() const {
    MESSAGE(all, " mutants, ", planned, " planned, ", ran, " ran");
    CHECK(ran > all / 50);
    CHECK(ran < all - all / 10);
  }
};

void send_plan(attacker& a, flat_graph& flat, dice& d, bool bytes, tally& n) {
  ++n.all;
  message plan = wire::pack(wire::make_plan{a.session(), 0s, flat});
  if (bytes) mutate(plan.meta, d);
  if (!a.ask(std::move(plan))) return;
  ++n.planned;
  auto number = a.answer().step;
  wire::run_plan run{.session = a.session(), .plan = number, .feeds = good_feeds()};
  if (d.chance(3)) mutate_feeds(run.feeds, d);
  n.ran += a.ask(wire::pack(run));
  a.post(wire::pack(wire::drop_plan{a.session(), number}));
}

void send_part(attacker& a, plan::part& p, std::uint64_t step, dice& d, bool bytes, tally& n) {
  ++n.all;
  const std::uint64_t session = 4711, handle = 1;
  message part = wire::pack(wire::register_part{session, handle, p, {}});
  if (bytes) mutate(part.meta, d);
  wire::run_part run{session, step, handle, 0, step, good_feeds()};
  if (d.chance(3)) mutate_feeds(run.feeds, d);
  std::vector<message> before{std::move(part)};
  for (const auto& node : p.graph.nodes) {
    if (node.op != &record_of<op::recv> || node.attributes.empty()) continue;
    const auto* key = std::get_if<std::string>(&node.attributes[0]);
    any_array value(dtype::float32, d.chance(8) ? dims{2, 4} : dims{3, 4});
    std::memset(value.mutable_raw(), 0, value.bytes());
    const auto number = key ? static_cast<std::uint32_t>(std::atoi(key->c_str())) : 0;
    before.push_back(wire::pack(wire::tensors{session, step, {number}, {value}}));
  }
  // A part may wait for values that never arrive.
  n.ran += a.ask_among(before, wire::pack(run), wire::pack(wire::cancel_step{session, step}));
}

}  // namespace

TEST_CASE("a mutated graph gets a plan or is refused, and runs or fails") {
  target t;
  const flat_graph good = sample_model(false);
  t.serves();
  attacker a(t.address);
  tally n;
  for (std::size_t i = 0; i < mutants * 40 / 100; ++i) {
    CAPTURE(i);
    dice d(i);
    flat_graph flat = good;
    bool bytes = d.chance(3);
    if (!bytes)
      for (std::size_t k = 1 + d.below(3); k > 0; --k) mutate(flat.graph, flat.fetches, d);
    static_cast<void>(
        outcome_of([&] { send_plan(a, flat, d, bytes, n); }));  // some cannot be serialized
    if (i % 5000 == 4999) t.serves();
  }
  n.check_spread();
  t.serves();
}

TEST_CASE("mutated parts are registered or refused, and run or fail") {
  target t;
  std::vector<device_info> devices;
  device_name own = task_name("worker", 0);
  for (int i = 0; i < 2; ++i)
    for (auto& info : task_runtime(task_name("worker", i)).devices()) devices.push_back(info);
  auto parts =
      plan::run_passes(sample_model(true), devices, {.own_task = intern(own)}, evaluate_on_host)
          .parts;
  REQUIRE(parts.size() == 2);
  const plan::part good = parts[0];
  REQUIRE(*good.task == own);
  t.serves();
  attacker a(t.address);
  tally n;
  for (std::size_t i = 0; i < mutants * 40 / 100; ++i) {
    CAPTURE(i);
    dice d(i + 1'000'000);
    plan::part p = good;
    bool bytes = d.chance(3);
    if (!bytes)
      for (std::size_t k = 1 + d.below(3); k > 0; --k) mutate(p.graph, p.fetches, d);
    static_cast<void>(outcome_of([&] { send_part(a, p, i, d, bytes, n); }));
    if (i % 5000 == 4999) t.serves();
  }
  // On a GPU most runs are cancelled before they end.
  if (testing::usual_device() == "cpu:0") n.check_spread();
  t.serves();
}

TEST_CASE("messages of every kind, with any content, end in an answer") {
  target t;
  t.serves();
  attacker a(t.address);
  const message plan = wire::pack(wire::make_plan{a.session(), 0s, sample_model(false)});
  for (std::size_t i = 0; i < mutants * 15 / 100; ++i) {
    CAPTURE(i);
    dice d(i + 2'000'000);
    using enum wire::kind;
    const wire::kind kinds[] = {register_part, run_part,     tensors,
                                cancel_step,   drop_part,    drop_session,
                                devices,       reset,        make_plan,
                                run_plan,      drop_plan,    cluster_devices,
                                reset_cluster, cancel_run,   set_signal,
                                resolve_run,   resolve_step, describe_plan,
                                done,          open_session, static_cast<wire::kind>(d.below(100))};
    message m(static_cast<message_kind>(d.pick(kinds)));
    m.session = d.chance(2) ? a.session() : d.below(3);
    m.step = d.below(4);
    m.flags = static_cast<std::uint32_t>(d.odd_number());
    switch (d.below(4)) {
      case 0:
        m.meta = plan.meta;
        m.tensors = plan.tensors;
        break;
      case 1:
        m.meta = to_bytes(static_cast<std::uint64_t>(d.odd_number()));
        break;
      case 2:
        m.meta = to_bytes(testing::odd_text(d));
        break;
      default:
        break;
    }
    if (d.chance(2)) mutate(m.meta, d);
    if (d.chance(2)) mutate_feeds(m.tensors, d);
    // Once this call is answered, all messages before it were read.
    a.ask_among({&m, 1}, wire::pack(wire::devices()), wire::pack(wire::cancel_step{1, 1}));
    if (i % 5000 == 4999) t.serves();
  }
  t.serves();
}

TEST_CASE("mutated frames are answered, or end the connection") {
  target t;
  message good = wire::pack(wire::make_plan{1, 0s, sample_model(false)});
  good.id = 9;
  const auto more = good_feeds();
  good.tensors.insert(good.tensors.end(), more.begin(), more.end());
  const std::vector<std::byte> sound = detail::flatten_frame(good);
  for (std::size_t i = 0; i < mutants * 5 / 100; ++i) {
    CAPTURE(i);
    dice d(i + 3'000'000);
    testing::bare_socket first(t.address);
    testing::bare_socket raw(::dup(first.handle()));  // writes past deft's own connection
    auto c = std::make_shared<detail::connection_state>(first.stream(),
                                                        wire_limits::before_authentication());
    const auto self = client_options().self;
    testing::shake_hands(c, self);
    std::vector<std::byte> bytes = sound;
    if (d.chance(2)) {
      mutate(bytes, d);
    } else {  // the header alone
      bytes[d.below(detail::header_bytes)] = std::byte(d.next());
    }
    raw.write(bytes);
    ::shutdown(raw.handle(), SHUT_WR);
    c->set_limits({});
    message answer;
    // Answers, a refusal, or nothing; then the end.
    auto o = outcome_of([&] {
      while (c->receive(answer, soon())) {
      }
    });
    CHECK(o.code != errc::deadline_exceeded);
    c->close();
    if (i % 1000 == 999) t.serves();
  }
  t.serves();
}
