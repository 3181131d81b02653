// SPDX-License-Identifier: Apache-2.0
// deft/session/client/remote_engine.ipp: the client's side of a remote session.
#pragma once
#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/core/thread.hpp>
#include <deft/graph/function.hpp>
#include <deft/plan/order.hpp>
#include <deft/session/client/remote_engine.hpp>
#include <deft/session/server/server_table.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/session/wire/values.hpp>
#include <deft/session/worker/task_links.hpp>
#include <deft/transport/address.hpp>
#include <deft/transport/channel_group.hpp>

namespace deft::ext {
namespace {

/// The master enforces deadlines, and names the tasks that it waits for. The client waits for its
/// answer as much longer again, within these limits, in case the master itself does not answer.
constexpr std::chrono::nanoseconds least_grace = std::chrono::milliseconds(500),
                                   most_grace = std::chrono::seconds(5);
/// How long for the answer of a run that is cancelled.
constexpr auto grace_of_cancelled = std::chrono::seconds(1);

/// The client's end of a session: each run is one message to the master and one answer.
struct remote_session {
  channel_group links;
  std::shared_ptr<channel> master;
  std::uint64_t id = 0;
  session_options options;
  std::atomic<bool> closed{false};

  explicit remote_session(const session_options& o)
      : links(channel_options{
            {"client", 0, {}, o.credentials.or_of_environment(), o.heartbeat_timeout}, {}}),
        options(o) {}

  /// The limit for connecting and planning: connect_timeout, or the timeout of a run if shorter.
  deadline patience() const {
    return deadline_in(options.timeout.count() ? std::min(options.timeout, options.connect_timeout)
                                               : options.connect_timeout);
  }

  void connect(const std::string& address, const std::string& task, deadline until) {
    check_not_forked();
    const bool limited = options.timeout.count() && options.timeout < options.connect_timeout;
    const auto most = limited ? options.timeout : options.connect_timeout;
    try {
      master = links.dial_and_wait(address, until, {}, task);
    } catch (const error& e) {
      if (e.reason() != error_reason::connect_timeout) throw;
      throw error(limited ? errc::deadline_exceeded : errc::unavailable, e.reason(),
                  str(task, task.empty() ? "" : ": ", timeout_message(address, most, e.message())));
    }
  }

  template <class A>
  A answer_in(pending& p) const {
    try {
      return wire::unpack<A>(p.take());
    } catch (const error& e) {
      // The message came after that of close().
      if (closed && e.code() == errc::not_found) fail(errc::cancelled, "the session was closed");
      throw;
    }
  }

  /// Calls the master, and waits for its answer; a run that is cancelled is cancelled there, too.
  /// `what` is the operation, for messages; `call_id` receives the id of the call.
  template <class M>
  typename M::answer call(M&& m, deadline until, const char* what,
                          const std::stop_token& cancel = {}, std::uint64_t* call_id = nullptr) {
    constexpr bool is_run = std::is_same_v<M, wire::run_plan>;
    const auto begin = std::chrono::steady_clock::now();
    const deadline latest = until == no_deadline
                                ? until
                                : later(until, std::clamp(std::chrono::nanoseconds(until - begin),
                                                          least_grace, most_grace));
    if (cancel.stop_requested()) fail(errc::cancelled, "the run was cancelled");
    if constexpr (is_run) m.can_be_cancelled = cancel.stop_possible();
    auto p = master->call(wire::pack(m));
    if (call_id) *call_id = p->id();
    const std::stop_callback wake(cancel, [this] { links.notify(); });
    links.wait_until([&] { return p->done() || closed || cancel.stop_requested(); }, latest);
    const bool cancelled = !p->done() && !closed && cancel.stop_requested();
    if constexpr (is_run)
      if (cancelled) {
        master->post(wire::pack(wire::cancel_run{id, p->id()}));
        // The master answers a cancelled run, too.
        links.wait_until([&] { return p->done() || closed; },
                         std::min(latest, deadline_in(grace_of_cancelled)));
      }
    if (p->done()) return answer_in<typename M::answer>(*p);
    master->abandon(*p);
    if (closed) fail(errc::cancelled, "the session was closed");
    if (cancelled && is_run)
      fail(errc::cancelled, "the run was cancelled; ", master->peer(), " did not answer in time");
    if (cancelled) fail(errc::cancelled, "the run was cancelled");
    fail(errc::deadline_exceeded, what, " timed out after ", duration_text(until - begin),
         " waiting for ", master->peer());
  }
};

class remote_plan final : public ready_plan {
 public:
  remote_plan(std::shared_ptr<remote_session> s, std::uint64_t number,
              std::vector<tensor_type> types, bool updates)
      : session_(std::move(s)), number_(number), types_(std::move(types)), updates_(updates) {}
  ~remote_plan() override {
    if (is_forked()) return;
    if (!session_->closed && !session_->master->lost()) try {
        session_->master->post(wire::pack(wire::drop_plan{session_->id, number_}));
      } catch (const std::exception&) {
        // A lost master has dropped it; without memory it stays until the session ends.
      }
  }

  step_results run(std::span<const feed_ref> feeds, const run_options& options) override {
    check_not_forked();
    if (session_->closed) fail(errc::failed_precondition, "the session is closed");
    check_feeds(feeds.size());
    auto timeout = options.timeout.count() ? options.timeout : session_->options.timeout;
    wire::run_plan m{session_->id, number_, timeout, false, {}, options.trace != nullptr};
    bool borrows = false;
    for (const auto& f : feeds) m.feeds.push_back(fed_array(f, borrows));
    const deadline until = timeout.count() ? deadline_in(timeout) : no_deadline;
    wire::values r;
    try {
      r = session_->call(std::move(m), until, "the step", options.cancel, options.step);
    } catch (const error& e) {
      const bool lost = session_->master->lost();
      // A message that is not written yet may refer to the caller's memory.
      if (borrows) session_->master->copy_borrowed();
      // A master that answers says so itself.
      if (!lost || !updates_ || e.code() != errc::unavailable) throw;
      throw perhaps_applied(e);
    }
    if (options.trace) options.trace->events = std::move(r.trace);
    std::vector<any_array> values(types_.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (types_[i].type == dtype::none) continue;
      if (next == r.tensors.size())
        fail(errc::internal, session_->master->peer(), " answered with ", next,
             " values, fewer than were fetched");
      values[i] = std::move(r.tensors[next++]);
      check_answer(values[i], types_[i], session_->master->peer());
    }
    return step_results(std::move(values));
  }

  std::size_t fetches() const override { return types_.size(); }

 private:
  std::shared_ptr<remote_session> session_;
  std::uint64_t number_;
  std::vector<tensor_type> types_;  ///< of the fetches; dtype::none for an operation
  const bool updates_;              ///< variables
};

class remote_engine final : public engine {
 public:
  explicit remote_engine(std::shared_ptr<remote_session> s) : session_(std::move(s)) {}
  ~remote_engine() override { remote_engine::close(); }

  std::shared_ptr<ready_plan> make_plan(flat_graph flat, const plan_limits& limits) override {
    check(flat);
    std::vector<tensor_type> types;
    for (auto f : flat.fetches)
      types.push_back(f.port == run_only ? tensor_type()
                                         : flat.graph.nodes[f.node].outputs[f.port]);
    const bool updates = std::ranges::any_of(flat.graph.nodes, plan::has_update);
    const deadline until = std::min(session_->patience(), limits.until);
    const auto made =
        session_->call(wire::make_plan{session_->id, left(limits.until), std::move(flat)}, until,
                       "planning", limits.cancel);
    return std::make_shared<remote_plan>(session_, made.plan, std::move(types), updates);
  }

  plan_description describe(flat_graph flat, const plan_limits& limits) override {
    check(flat);
    const deadline until = std::min(session_->patience(), limits.until);
    return session_
        ->call(wire::describe_plan{session_->id, left(limits.until), std::move(flat)}, until,
               "planning", limits.cancel)
        .made;
  }

  std::vector<device_info> devices() override {
    return session_
        ->call(wire::cluster_devices{session_->id}, session_->patience(), "listing devices")
        .devices;
  }

  /// A client knows its steps by the ids of its calls.
  step_fate fate_of(std::uint64_t step, deadline until) override {
    if (session_->closed) fail(errc::failed_precondition, "the session is closed");
    try {
      return session_
          ->call(wire::resolve_run{session_->id, step, left(until)}, until,
                 "asking how a step ended")
          .fate;
    } catch (const error&) {
      return step_fate::unknown;  // the master is lost, or does not answer
    }
  }

  void close() override {
    if (session_->closed.exchange(true)) return;
    session_->links.notify();
    try {
      if (!session_->master->lost())
        session_->master->post(wire::pack(wire::close_session{session_->id}));
    } catch (const error&) {
      // A lost master has closed it.
    }
  }

  void reset(const std::string& container) override {
    session_->call(wire::reset_cluster{session_->id, container}, session_->patience(),
                   "resetting variables");
  }

 private:
  /// Throws for what the master would not take.
  void check(const flat_graph& flat) const {
    check_fetches(flat.fetches.size());
    const auto is_feed = [](const node_def& n) { return n.op->role == op_role::feed; };
    check_feeds(static_cast<std::size_t>(std::ranges::count_if(flat.graph.nodes, is_feed)));
    each_node(flat.graph, [&](const node_def& n) { check_knows(session_->master->peer(), n); });
  }
  /// The time until `until`, at least 1 ns. Without a deadline it is longer than any limit
  /// that the master takes, and the master then waits for connect_timeout.
  static std::chrono::nanoseconds left(deadline until) {
    return std::max(std::chrono::nanoseconds(1),
                    std::chrono::nanoseconds(until - std::chrono::steady_clock::now()));
  }

  std::shared_ptr<remote_session> session_;
};

}  // namespace

std::shared_ptr<engine> connect_engine(const std::string& target, const session_options& options) {
  constexpr std::string_view scheme = "deft://";
  const auto slash = target.find('/', scheme.size());
  std::string address, task;
  const bool has_form = target.starts_with(scheme) && !failure_of([&] {
                          address = target.substr(scheme.size(), slash - scheme.size());
                          detail::split_address(address);
                          if (slash == target.npos) return;
                          const device_name named = parse_device(target.substr(slash));
                          task = to_string(task_name(named.job, named.task.value()));
                          if (!named.type.empty() || named.replica.value_or(0) != 0)
                            fail(errc::invalid_argument, "more than a task");
                        });
  if (!has_form)
    fail(errc::invalid_argument, "[session] the target \"", target,
         "\" is not of the form deft://host:port, or deft://host:port/job:NAME/task:N if only that "
         "task may answer");
  if (auto here = engine_of_server(address, task, options)) return here;
  auto s = std::make_shared<remote_session>(options);
  const deadline until = s->patience();
  s->connect(address, task, until);
  s->id = s->call(wire::open_session{options}, until, "opening a session").session;
  return std::make_shared<remote_engine>(std::move(s));
}

}  // namespace deft::ext
