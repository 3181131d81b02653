// SPDX-License-Identifier: Apache-2.0
// deft/session/server_requests.ipp: what a server answers to each kind of message.
#pragma once
#include <deft/core/log.hpp>
#include <deft/op/plan/copy.hpp>
#include <deft/op/plan/recv.hpp>
#include <deft/op/plan/send.hpp>
#include <deft/session/master.hpp>
#include <deft/session/protocol.hpp>
#include <deft/session/server_impl.hpp>

namespace deft {
namespace {

constexpr std::uint64_t most_planning_time = std::uint64_t{1} << 50;  // nanoseconds: 13 days
constexpr std::size_t most_signals = 65'536;

void answer(connection& to, message&& m, std::uint64_t id) {
  m.kind = message_kind::reply;
  m.id = id;
  to.send(m);
}
void answer_error(connection& to, std::uint64_t id, const error& e) {
  message m;
  encode_error(m, id, e);
  to.send(m);
}

/// Answers call `id` with what `make` returns or throws; nobody may be there any more.
template <class F>
void answer_with(connection& to, std::uint64_t id, F&& make) {
  message m;
  auto failure = caught([&] { m = make(); });
  auto lost = caught([&] {
    if (failure)
      answer_error(to, id, *failure);
    else
      answer(to, std::move(m), id);
  });
  if (lost) logging::info("an answer is lost: ", lost->what());
}

/// What a client sends is no part of a plan yet, and fetches what is there.
void check_request(const flat_graph& flat) {
  check(flat.graph);
  for (const auto& n : flat.graph.nodes)
    if (is_transfer(n.op->role))
      throw error(errc::invalid_argument, str("[", n.op->name, "] is for plans only"), n.name,
                  n.place);
  check(flat.graph, flat.fetches);
  if (flat.fetches.empty()) fail(errc::invalid_argument, "nothing is fetched");
}

std::vector<feed_ref> feeds_of(const std::vector<any_array>& tensors) {
  std::vector<feed_ref> feeds;
  for (const auto& t : tensors) feeds.push_back(feed_ref::share(t));
  return feeds;
}

}  // namespace

void server_impl::on_message(const std::shared_ptr<connection>& from, message&& m) {
  if (auto failure = caught([&] { handle(from, m); })) throw error(*failure);
}

void server_impl::handle(const std::shared_ptr<connection>& from, message& m) {
  auto kind = static_cast<request>(m.kind);
  if (kind < request::open_session) return handle_worker(from, m);
  if (kind < request::wait_signal) {
    if (handle_client(from, m)) return;
  } else if (kind <= request::done) {
    return handle_signals(from, m);
  }
  fail(errc::unimplemented, "a message of kind ", static_cast<unsigned>(m.kind),
       " is not known here");
}

void server_impl::handle_worker(const std::shared_ptr<connection>& from, message& m) {
  switch (static_cast<request>(m.kind)) {
    case request::register_part: {
      plan::part p;
      incarnation_list peers;
      in_archive ar(m.meta, m.tensors);
      ar& p& peers;
      ar.finish();
      return worker_->register_part(m.session, m.step, std::move(p), peers, from.get());
    }
    case request::run_part:
      return run_part(from, m);
    case request::tensor:
      return worker_->deliver(m, from.get());
    case request::cancel_step:
      return worker_->cancel(m.session, m.step);
    case request::drop_part:
      return worker_->drop_part(m.session, m.step);
    case request::drop_session:
      return worker_->drop_session(m.session);
    case request::devices: {
      message r;
      r.meta = to_bytes(task_->devices());
      return answer(*from, std::move(r), m.id);
    }
    case request::reset: {
      std::string container;
      from_bytes(m.meta, container);
      task_->store().clear(container);
      return answer(*from, message(), m.id);
    }
    default:
      break;
  }
  fail(errc::unimplemented, "a message of kind ", static_cast<unsigned>(m.kind),
       " is not known here");
}

void server_impl::run_part(const std::shared_ptr<connection>& from, message& m) {
  std::uint64_t handle = 0;
  from_bytes(m.meta, handle);
  auto tensors = std::make_shared<std::vector<any_array>>(std::move(m.tensors));
  std::uint64_t id = m.id;
  worker_->run_part(m.session, m.step, handle, feeds_of(*tensors), from,
                    [from, id, tensors](step_outcome o) {
                      answer_with(*from, id, [&] {
                        if (o.failure) throw error(*o.failure);
                        message r;
                        for (std::size_t i = 0; i < o.pool->code().fetches(); ++i)
                          if (const any_array& v = o.frame->peek(i); v.valid())
                            r.tensors.push_back(v);
                        return r;
                      });
                      if (o.frame) o.pool->give_back(std::move(o.frame));
                    });
}

std::shared_ptr<server_impl::client_session> server_impl::session_of(std::uint64_t id) {
  std::lock_guard lock(guard_);
  auto at = sessions_.find(id);
  if (stopped_) fail(errc::unavailable, task_->name(), " is stopping");
  if (at == sessions_.end())
    fail(errc::not_found, "there is no session ", id, " on ", task_->name());
  return at->second;
}

bool server_impl::handle_client(const std::shared_ptr<connection>& from, message& m) {
  switch (static_cast<request>(m.kind)) {
    case request::open_session: {
      session_options options;
      from_bytes(m.meta, options);
      auto s = std::make_shared<client_session>();
      s->owner = from.get();
      s->master = make_master(task_, worker_, options);
      message r;
      r.session = random_incarnation();
      {
        std::lock_guard lock(guard_);
        if (stopped_) fail(errc::unavailable, "the server is stopping");
        sessions_.emplace(r.session, std::move(s));
      }
      answer(*from, std::move(r), m.id);
      return true;
    }
    case request::make_plan:
    case request::describe_plan: {
      auto s = session_of(m.session);
      // Placing may wait for other tasks: not on the thread that reads.
      auto flat = std::make_shared<flat_graph>();
      in_archive ar(m.meta, m.tensors);
      ar & flat->graph & flat->fetches;
      ar.finish();
      plan_limits limits;
      if (m.step && m.step <= most_planning_time)
        limits.until = deadline_in(std::chrono::nanoseconds(m.step));
      const bool make = static_cast<request>(m.kind) == request::make_plan;
      worker_->elsewhere().run([from, s, flat, limits, make, id = m.id] {
        answer_with(*from, id, [&] {
          check_request(*flat);
          message r;
          if (!make) {
            auto made = s->master->describe(std::move(*flat), limits);
            out_archive(r.meta, &r.tensors) & made.placed& made.passes& made.apart;
            return r;
          }
          auto plan = s->master->make_plan(std::move(*flat), limits);
          std::lock_guard lock(s->guard);
          r.step = ++s->next_plan;
          s->plans.emplace(r.step, std::move(plan));
          return r;
        });
      });
      return true;
    }
    case request::run_plan:
      run_plan(from, m);
      return true;
    case request::drop_plan: {
      auto s = session_of(m.session);
      std::shared_ptr<planned> dropped;
      std::lock_guard lock(s->guard);
      auto at = s->plans.find(m.step);
      if (at != s->plans.end()) dropped = std::move(at->second), s->plans.erase(at);
      return true;
    }
    case request::cluster_devices: {
      auto s = session_of(m.session);
      worker_->elsewhere().run([from, s, id = m.id] {
        answer_with(*from, id, [&] {
          message r;
          r.meta = to_bytes(s->master->devices());
          return r;
        });
      });
      return true;
    }
    case request::reset_cluster: {
      auto s = session_of(m.session);
      std::string container;
      from_bytes(m.meta, container);
      worker_->elsewhere().run([from, s, container, id = m.id] {
        answer_with(*from, id, [&] {
          s->master->reset(container);
          return message();
        });
      });
      return true;
    }
    case request::cancel_run: {
      auto s = session_of(m.session);
      std::lock_guard lock(s->guard);
      auto at = s->running.find(m.step);
      if (at != s->running.end()) *at->second = true;
      return true;
    }
    case request::close_session: {
      std::shared_ptr<client_session> s;
      {
        std::lock_guard lock(guard_);
        auto at = sessions_.find(m.session);
        if (at == sessions_.end()) return true;
        s = std::move(at->second);
        sessions_.erase(at);
      }
      s->master->close();
      return true;
    }
    default:
      return false;
  }
}

void server_impl::run_plan(const std::shared_ptr<connection>& from, message& m) {
  auto s = session_of(m.session);
  std::int64_t timeout = 0;
  from_bytes(m.meta, timeout);
  std::shared_ptr<planned> plan;
  {
    std::lock_guard lock(s->guard);
    auto at = s->plans.find(m.step);
    if (at == s->plans.end())
      fail(errc::not_found, "there is no plan ", m.step, " of this session");
    plan = at->second;
  }
  auto run = [from, plan, id = m.id](std::vector<any_array>& tensors, const run_options& options) {
    answer_with(*from, id, [&] {
      auto feeds = feeds_of(tensors);
      step_results results = plan->run(feeds, options);
      message r;
      for (std::size_t i = 0; i < plan->fetches(); ++i) {
        const any_array& v = results.peek(i);
        if (v.valid()) r.tensors.push_back(v);
      }
      return r;
    });
  };
  run_options options;
  options.timeout = std::chrono::nanoseconds(timeout);
  // A cheap plan of this task alone runs on the thread that read the message, and answers from it.
  if (plan->quick()) return run(m.tensors, options);
  if (m.flags & can_be_cancelled) {
    auto cancel = std::make_shared<std::atomic<bool>>(false);
    options.cancel = cancel;
    std::lock_guard lock(s->guard);
    s->running[m.id] = std::move(cancel);
  }
  auto tensors = std::make_shared<std::vector<any_array>>(std::move(m.tensors));
  worker_->elsewhere().run([run, tensors, options, s, id = m.id] {
    run(*tensors, options);
    if (!options.cancel) return;
    std::lock_guard lock(s->guard);
    s->running.erase(id);
  });
}

void server_impl::handle_signals(const std::shared_ptr<connection>& from, message& m) {
  std::string name;
  from_bytes(m.meta, name);
  switch (static_cast<request>(m.kind)) {
    case request::wait_signal: {
      std::lock_guard lock(guard_);
      if (!signals_.contains(name)) {
        if (waiting_.size() == most_signals)
          fail(errc::resource_exhausted, "too many wait for signals of ", task_->name());
        waiting_.emplace(name, std::pair(std::weak_ptr(from), m.id));
        return;
      }
      break;
    }
    case request::set_signal:
      signal(name);
      break;
    default: {
      if (!is_worker(name)) fail(errc::not_found, "there is no worker \"", name, "\"");
      std::lock_guard lock(guard_);
      users_[name].done = true;
      changed_.notify_all();
    }
  }
  if (m.id) answer(*from, message(), m.id);
}

void server_impl::signal(const std::string& name) {
  std::vector<std::pair<std::weak_ptr<connection>, std::uint64_t>> released;
  {
    std::lock_guard lock(guard_);
    if (signals_.size() == most_signals)
      fail(errc::resource_exhausted, task_->name(), " has too many signals");
    signals_.insert(name);
    auto [begin, end] = waiting_.equal_range(name);
    for (auto i = begin; i != end; ++i) released.push_back(i->second);
    waiting_.erase(begin, end);
  }
  changed_.notify_all();
  for (auto& [who, id] : released)
    if (auto c = who.lock()) try {
        answer(*c, message(), id);
      } catch (const error&) {
        // It is gone, and waits no more.
      }
}

}  // namespace deft
