// SPDX-License-Identifier: Apache-2.0
// deft/session/remote.ipp: the client's side of a remote session.
#pragma once
#include <deft/session/protocol.hpp>
#include <deft/session/remote.hpp>
#include <deft/session/server_impl.hpp>
#include <deft/transport/hub.hpp>

namespace deft {
namespace {

/// Nobody tells the hub when a flag is set.
constexpr auto look = std::chrono::milliseconds(2);
/// The master keeps deadlines, and names whom it waits for; the client's are for a lost master.
constexpr auto grace = std::chrono::seconds(5);

/// The client's end of one session: one message a run, one back.
struct remote_session {
  hub links;
  std::shared_ptr<channel> master;
  std::uint64_t id = 0;
  session_options options;
  std::atomic<bool> closed{false};

  explicit remote_session(const session_options& o)
      : links(hub_options{{"client", 0, 0, o.secret.empty() ? secret_of_environment() : o.secret},
                          {}}),
        options(o) {}

  deadline patience() const { return deadline_in(options.connect_timeout); }

  message ask(message&& m, deadline until, const char* what, const plan_limits& limits = {}) {
    auto p = master->call(m);
    auto over = [&] { return p->done() || closed || limits.cancelled(); };
    while (!links.wait_until(over, std::min(until, limits.cancel ? deadline_in(look) : until)) &&
           std::chrono::steady_clock::now() < until) {
    }
    if (p->done()) return p->take();
    master->abandon(*p);
    if (closed) fail(errc::cancelled, "the session was closed");
    if (limits.cancelled()) fail(errc::cancelled, "the run was cancelled");
    fail(errc::deadline_exceeded, what, " takes longer than it may; waiting for ", master->peer());
  }
};

class remote_plan final : public planned {
 public:
  remote_plan(std::shared_ptr<remote_session> s, std::uint64_t number,
              std::vector<tensor_type> types)
      : session_(std::move(s)), number_(number), types_(std::move(types)) {}
  ~remote_plan() override {
    if (!session_->closed && !session_->master->lost()) try {
        session_->master->post(make_message(request::drop_plan, session_->id, number_));
      } catch (const error&) {
        // A master that is lost has dropped it.
      }
  }

  step_results run(std::span<const feed_ref> feeds, const run_options& options) override {
    if (session_->closed) fail(errc::failed_precondition, "the session is closed");
    auto timeout = options.timeout.count() ? options.timeout : session_->options.timeout;
    message m = make_message(request::run_plan, session_->id, number_);
    m.meta = to_bytes(static_cast<std::int64_t>(timeout.count()));
    bool borrows = false;
    for (const auto& f : feeds) m.tensors.push_back(fed_array(f, borrows));
    deadline until = timeout.count() ? deadline_in(timeout + grace) : no_deadline;
    message r;
    try {
      r = ask_or_cancel(std::move(m), until, options);
    } catch (const error&) {
      // What is not written yet may refer to the caller's memory.
      if (borrows && !session_->master->drain(deadline_in(std::chrono::seconds(1))))
        session_->master->close();
      throw;
    }
    std::vector<any_array> values(types_.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (types_[i].type == dtype::none) continue;
      if (next == r.tensors.size())
        fail(errc::internal, session_->master->peer(), " answered with too few values");
      values[i] = std::move(r.tensors[next++]);
      check_answer(values[i], types_[i], session_->master->peer());
    }
    return step_results(std::move(values));
  }

  std::size_t fetches() const override { return types_.size(); }

 private:
  message ask_or_cancel(message&& m, deadline until, const run_options& options) {
    if (!options.cancel) return session_->ask(std::move(m), until, "the step");
    m.flags = can_be_cancelled;
    auto p = session_->master->call(m);
    bool asked = false, done = false;
    // Once the flag is set, the master answers.
    while (!done && std::chrono::steady_clock::now() < until) {
      done = session_->links.wait_for(*p, std::min(until, deadline_in(look)));
      if (done || asked || !*options.cancel) continue;
      message c = make_message(request::cancel_run, session_->id, p->id());
      session_->master->post(c);
      asked = true;
      until = std::min(until, deadline_in(grace));
    }
    if (!done) {
      session_->master->abandon(*p);
      fail(asked ? errc::cancelled : errc::deadline_exceeded,
           asked ? "the run was cancelled" : "the step takes longer than it may", "; waiting for ",
           session_->master->peer());
    }
    return p->take();
  }

  std::shared_ptr<remote_session> session_;
  std::uint64_t number_;
  std::vector<tensor_type> types_;  ///< of the fetches; none for an operation
};

class remote_engine final : public engine {
 public:
  explicit remote_engine(std::shared_ptr<remote_session> s) : session_(std::move(s)) {}
  ~remote_engine() override { remote_engine::close(); }

  std::shared_ptr<planned> make_plan(flat_graph flat, const plan_limits& limits) override {
    std::vector<tensor_type> types;
    for (auto f : flat.fetches)
      types.push_back(f.port == run_only ? tensor_type()
                                         : flat.graph.nodes[f.node].outputs[f.port]);
    message r = ask_about(flat, request::make_plan, limits);
    return std::make_shared<remote_plan>(session_, r.step, std::move(types));
  }

  plan_description describe(flat_graph flat, const plan_limits& limits) override {
    message r = ask_about(flat, request::describe_plan, limits);
    plan_description made;
    in_archive ar(r.meta, r.tensors);
    ar& made.placed& made.passes& made.apart;
    ar.finish();
    return made;
  }

  std::vector<device_info> devices() override {
    message r = session_->ask(make_message(request::cluster_devices, session_->id),
                              session_->patience(), "listing devices");
    std::vector<device_info> list;
    from_bytes(r.meta, list);
    return list;
  }

  void close() override {
    if (session_->closed.exchange(true)) return;
    session_->links.notify();
    try {
      if (!session_->master->lost())
        session_->master->post(make_message(request::close_session, session_->id));
    } catch (const error&) {
      // A master that is lost has closed it.
    }
  }

  void reset(const std::string& container) override {
    message m = make_message(request::reset_cluster, session_->id);
    m.meta = to_bytes(container);
    session_->ask(std::move(m), session_->patience(), "reset");
  }

 private:
  message ask_about(flat_graph& flat, request what, const plan_limits& limits) {
    message m = make_message(what, session_->id);
    out_archive(m.meta, &m.tensors) & flat.graph& flat.fetches;
    const deadline until = std::min(session_->patience(), limits.until);
    m.step = static_cast<std::uint64_t>(std::max<std::int64_t>(
        1, std::chrono::nanoseconds(until - std::chrono::steady_clock::now()).count()));
    return session_->ask(std::move(m), until + grace, "planning", limits);
  }

  std::shared_ptr<remote_session> session_;
};

}  // namespace

std::shared_ptr<engine> connect_engine(const std::string& target, const session_options& options) {
  constexpr std::string_view scheme = "deft://";
  if (!target.starts_with(scheme) || target.find(':', scheme.size()) == target.npos)
    fail(errc::invalid_argument, "the target \"", target, "\" is not of the form deft://host:port");
  std::string address = target.substr(scheme.size());
  if (auto here = server_impl::make_engine_at(address, options)) return here;
  auto s = std::make_shared<remote_session>(options);
  s->master = s->links.connect(address, s->patience());
  message m = make_message(request::open_session);
  m.meta = to_bytes(options);
  s->id = s->ask(std::move(m), s->patience(), "opening a session").session;
  return std::make_shared<remote_engine>(std::move(s));
}

}  // namespace deft
