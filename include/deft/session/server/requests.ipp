// SPDX-License-Identifier: Apache-2.0
// deft/session/server/requests.ipp: handles each kind of message that a server receives.
#pragma once
#include <deft/graph/function.hpp>
#include <deft/op/plan/copy.hpp>
#include <deft/op/plan/recv.hpp>
#include <deft/op/plan/send.hpp>
#include <deft/session/master/master.hpp>
#include <deft/session/server/server_impl.hpp>
#include <deft/session/wire/values.hpp>

namespace deft::ext {

struct server_impl::requests
    : wire::dispatch_table<
          &server_impl::on_register_part, &server_impl::on_run_part, &server_impl::on_tensors,
          &server_impl::on_cancel_step, &server_impl::on_resolve_step, &server_impl::on_drop_part,
          &server_impl::on_drop_session, &server_impl::on_devices, &server_impl::on_reset,
          &server_impl::on_open_session, &server_impl::on_make_plan, &server_impl::on_describe_plan,
          &server_impl::on_run_plan, &server_impl::on_cancel_run, &server_impl::on_resolve_run,
          &server_impl::on_drop_plan, &server_impl::on_cluster_devices,
          &server_impl::on_reset_cluster, &server_impl::on_close_session,
          &server_impl::on_wait_signal, &server_impl::on_set_signal, &server_impl::on_done> {};

void server_impl::on_message(const std::shared_ptr<connection>& from, message&& m) {
  requests::dispatch(*this, wire::caller(from, m), m);
}

void server_impl::check_sender(const connection& from, const wire::message_rule& rule,
                               std::uint64_t session) {
  const auto refuse = [&](const auto&... why) {
    fail(errc::permission_denied, why..., ", not ", from.peer(), " (", rule.name, ")");
  };
  switch (rule.may_send) {
    case wire::sender::anyone:
      return;
    case wire::sender::task:
      if (!coordination_->is_member(from)) refuse("only tasks of the cluster may do that");
      return;
    case wire::sender::step_tasks:
      if (coordination_->is_member(from)) return;
      [[fallthrough]];
    case wire::sender::master:
      if (!worker_->may_be_master(session, from))
        refuse("only the master of session ", session, " may do that");
      return;
    case wire::sender::client:
      if (!sessions_.may_be_owner(session, &from) && !coordination_->is_member(from))
        refuse("only the client that opened session ", session, " may do that");
  }
}

/// Serves the worker's channels: the answers of other tasks in a run come on those.
bool server_impl::wait_until_heard(const std::function<bool()>& heard,
                                   std::chrono::microseconds unseen) {
  return worker_->channels().serve_until([&] { return heard() || worker_->stopped(); }, unseen);
}

// From masters and workers.

void server_impl::on_register_part(const wire::caller& from, wire::register_part&& m) {
  worker_->register_part(m.session, m.handle, std::move(m.part), m.incarnations, from.from());
}

void server_impl::on_run_part(const wire::caller& from, wire::run_part&& m) {
  auto feeds = std::make_shared<std::vector<any_array>>(std::move(m.feeds));
  worker_->run_part(m, feeds_of(*feeds), from.from(), [from, feeds](step_outcome o) {
    from.answer_with([&] {
      if (o.failure) throw error(*o.failure);
      wire::values fetched;
      for (std::size_t i = 0; i < o.pool->code().fetches(); ++i)
        if (const any_array& v = o.frame->peek(i); v.valid()) fetched.tensors.push_back(v);
      std::ranges::move(o.values, std::back_inserter(fetched.tensors));
      fetched.keys = std::move(o.keys);
      fetched.trace = std::move(o.trace);
      return fetched;
    });
    if (o.frame) o.pool->give_back(std::move(o.frame));
  });
}

void server_impl::on_tensors(const wire::caller& from, wire::tensors&& m) {
  worker_->deliver(std::move(m), from.from().get());
}
void server_impl::on_cancel_step(const wire::caller&, wire::cancel_step&& m) {
  worker_->cancel(m.session, m.step);
}
void server_impl::on_resolve_step(const wire::caller& from, wire::resolve_step&& m) {
  worker_->resolve_outcome(m.session, m.step, from.from().get(), [from](step_fate f) {
    from.answer_with([f] { return wire::fate_of_step{f}; });
  });
}
void server_impl::on_drop_part(const wire::caller&, wire::drop_part&& m) {
  worker_->drop_part(m.session, m.handle);
}
void server_impl::on_drop_session(const wire::caller&, wire::drop_session&& m) {
  worker_->drop_session(m.session);
}
void server_impl::on_devices(const wire::caller& from, wire::devices&& m) {
  wire::device_list all{task_->devices()};
  for (auto& d : all.devices) {
    const bool known = std::ranges::count(m.known_kernels, d.kernels->hash());
    all.known_kernels.push_back(known ? d.kernels->hash() : 0);
    if (known) d.kernels = nullptr;
  }
  from.answer(all);
}
void server_impl::on_reset(const wire::caller& from, wire::reset&& m) {
  task_->store().clear(m.container);
  from.answer(wire::nothing());
}

// From clients. Nothing here waits for other tasks.

namespace {

/// Checks a client's graph, which must be valid, without operations that only plans have, and its
/// fetches.
void check_request(const flat_graph& flat) {
  validate(flat.graph);
  each_node(flat.graph, [](const node_def& n) {
    if (is_transfer(n.op->role))
      throw error(errc::invalid_argument,
                  str("[", n.op->name, "] may only occur in plans, not in a client's graph"),
                  n.name, n.location);
  });
  validate(flat.graph, flat.fetches);
  if (flat.fetches.empty()) fail(errc::invalid_argument, "[run] nothing is fetched");
  check_fetches(flat.fetches.size());
}

plan_limits limits_within(std::chrono::nanoseconds patience) {
  constexpr std::chrono::nanoseconds most{std::int64_t{1} << 50};  // 13 days
  plan_limits limits;
  if (patience.count() > 0 && patience <= most) limits.until = deadline_in(patience);
  return limits;
}

}  // namespace

void server_impl::on_open_session(const wire::caller& from, wire::open_session&& m) {
  auto master = make_master(task_, worker_, m.options);
  from.answer(wire::session_opened{
      sessions_.open(std::make_shared<client_session>(std::move(master), from.from().get()))});
}

/// Calls `work` with the session, the request and its limits, on a background thread, once
/// everything that it needs to know of other tasks is known. It answers, or throws.
template <class Request, class Work>
void server_impl::when_known(const wire::caller& from, Request&& m, Work work) {
  auto s = sessions_.find(m.session);
  auto request = std::make_shared<std::remove_cvref_t<Request>>(std::move(m));
  auto begin = [from, s, request, work](std::shared_ptr<const error> failure,
                                        const plan_limits& limits) {
    if (!failure) failure = failure_of([&] { work(s, *request, limits); });
    if (failure) from.fail(*failure);
  };
  worker_->background().run([w = worker_, s, request, begin] {
    plan_limits limits;
    const graph_def* g = nullptr;
    bool known = false;
    const auto failure = failure_of([&] {
      if constexpr (requires { request->flat; }) {
        limits = limits_within(request->patience);
        check_request(request->flat);
        g = &request->flat.graph;
      }
      known = s->master().when_known(
          g, limits, [w, begin, limits](const std::shared_ptr<const error>& missing) {
            if (missing) return begin(missing, limits);
            const auto busy = failure_of(
                [&] { w->background().run([begin, limits] { begin(nullptr, limits); }); });
            if (busy) begin(busy, limits);
          });
    });
    if (failure || known) begin(failure, limits);
  });
}

void server_impl::on_make_plan(const wire::caller& from, wire::make_plan&& m) {
  when_known(
      from, std::move(m),
      [from](const std::shared_ptr<client_session>& s, wire::make_plan& request,
             const plan_limits& limits) {
        s->master().make_plan(
            std::move(request.flat), limits,
            [from, s, id = request.session](const std::shared_ptr<const error>& failure,
                                            std::shared_ptr<ready_plan> plan) {
              if (failure) return from.fail(*failure);
              from.answer_with([&] { return wire::plan_made{id, s->keep(std::move(plan))}; });
            });
      });
}

void server_impl::on_describe_plan(const wire::caller& from, wire::describe_plan&& m) {
  when_known(
      from, std::move(m),
      [from](const std::shared_ptr<client_session>& s, wire::describe_plan& request,
             const plan_limits& limits) {
        from.answer(wire::plan_described{s->master().describe(std::move(request.flat), limits)});
      });
}

namespace {

/// `trace` may be null.
wire::values answer_of(step_results& results, std::size_t fetches, step_trace* trace) {
  wire::values fetched;
  if (trace) fetched.trace = std::move(trace->events);
  for (std::size_t i = 0; i < fetches; ++i)
    if (const any_array& v = results.peek(i); v.valid()) fetched.tensors.push_back(v);
  return fetched;
}

/// A client that sends requests and does not read the answers would fill the memory.
void check_reads(const connection& client) {
  constexpr std::size_t most_unread = std::size_t{1} << 30;
  if (const auto unread = client.queued(); unread > most_unread)
    fail(errc::resource_exhausted, "the client has not read ", unread, " bytes of answers");
}

}  // namespace

void server_impl::on_run_plan(const wire::caller& from, wire::run_plan&& m) {
  auto s = sessions_.find(m.session);
  auto plan = s->plan(m.plan);
  run_options options;
  options.timeout = m.timeout;
  const auto trace = m.trace ? std::make_shared<step_trace>() : nullptr;
  options.trace = trace.get();
  // On this thread, which reads messages: it could not read a cancel_run meanwhile.
  const bool at_once = !m.can_be_cancelled && plan->is_quick(m.feeds);
  const bool others_run = !plan->is_local();
  if (m.can_be_cancelled) options.cancel = s->begin_run(from.id());
  auto answer = [from, s, plan, trace, others_run, can_be_cancelled = m.can_be_cancelled,
                 w = worker_](run_outcome o) {
    if (o.failure && o.step) s->note_failure(from.id(), o.step);
    from.answer_with([&] {
      if (o.failure) throw error(*o.failure);
      return answer_of(*o.results, plan->fetches(), trace.get());
    });
    if (can_be_cancelled) s->end_run(from.id());
    if (!others_run) return;
    from.from()->resume_spinning();
    w->channels().notify();
  };
  auto start = [from, plan, options, answer](std::vector<any_array>&& feeds) {
    const auto failure = failure_of([&] {
      check_reads(*from.from());
      plan->start(std::move(feeds), options, answer);
    });
    if (failure) answer({std::nullopt, failure});
  };
  if (at_once) return start(std::move(m.feeds));
  if (others_run) {
    from.from()->suspend_spinning();
    return start(std::move(m.feeds));
  }
  auto later = [start, feeds = std::make_shared<std::vector<any_array>>(std::move(m.feeds))] {
    start(std::move(*feeds));
  };
  const auto busy = failure_of([&] { worker_->background().run(later); });
  if (busy) answer({std::nullopt, busy});
}

void server_impl::on_cancel_run(const wire::caller&, wire::cancel_run&& m) {
  sessions_.find(m.session)->cancel_run(m.call);
}
void server_impl::on_resolve_run(const wire::caller& from, wire::resolve_run&& m) {
  auto s = sessions_.find(m.session);
  const std::uint64_t step = s->failed_step(m.call);
  if (step == 0) return from.answer(wire::fate_of_step());
  s->master().fate_of(step, limits_within(m.patience).until, [from, s](step_fate f) {
    from.answer_with([f] { return wire::fate_of_step{f}; });
  });
}
void server_impl::on_drop_plan(const wire::caller&, wire::drop_plan&& m) {
  sessions_.find(m.session)->drop(m.plan);
}

void server_impl::on_cluster_devices(const wire::caller& from, wire::cluster_devices&& m) {
  when_known(from, std::move(m),
             [from](const std::shared_ptr<client_session>& s, wire::cluster_devices&,
                    const plan_limits&) { from.answer(wire::device_list{s->master().devices()}); });
}

void server_impl::on_reset_cluster(const wire::caller& from, wire::reset_cluster&& m) {
  auto s = sessions_.find(m.session);
  s->master().reset(m.container, [from, s](const std::shared_ptr<const error>& failure) {
    if (failure) return from.fail(*failure);
    from.answer_with([] { return wire::nothing(); });
  });
}

void server_impl::on_close_session(const wire::caller&, wire::close_session&& m) {
  sessions_.close(m.session);
}

// From other tasks of a job.

void server_impl::on_wait_signal(const wire::caller& from, wire::wait_signal&& m) {
  coordination_->on_wait(from, std::move(m));
}
void server_impl::on_set_signal(const wire::caller& from, wire::set_signal&& m) {
  coordination_->on_signal(from, std::move(m));
}
void server_impl::on_done(const wire::caller& from, wire::done&& m) {
  coordination_->on_done(from, std::move(m));
}

}  // namespace deft::ext
