// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/worker.ipp: a task's parts and steps; umbrella of worker/.
#pragma once
#include <algorithm>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/op/plan/recv.hpp>
#include <deft/op/plan/send.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/session/worker/ended_steps.hpp>
#include <deft/session/worker/registered_part.ipp>
#include <deft/session/worker/running_step.ipp>
#include <deft/session/worker/step_journal.ipp>
#include <deft/session/worker/task_links.ipp>
#include <deft/session/worker/task_runtime.ipp>
#include <deft/session/worker/worker.hpp>

namespace deft::ext {

struct worker::session_entry {
  struct part_entry {
    std::shared_ptr<registered_part> part;
    std::shared_ptr<const error> failure;
  };
  std::mutex guard;
  const void* maker = nullptr;       ///< the connection by which the task first heard of it
  bool local = false;                ///< its master is in this process
  const void* owner = nullptr;       ///< the connection that registered parts, or else the maker
  std::weak_ptr<connection> master;  ///< the connection that registered parts
  std::optional<session_master> registered_by;
  std::uint64_t last_step = 0;           ///< the last that was begun
  std::shared_ptr<const error> refused;  ///< which limit was exceeded; null if none
  std::unordered_map<std::uint64_t, part_entry> parts;
  std::unordered_map<std::uint64_t, std::shared_ptr<running_step>> steps;
  ended_steps ended;
  std::shared_ptr<step_journal> journal;
  const std::shared_ptr<early_bytes> early = std::make_shared<early_bytes>(0);

  /// Null if it is not known.
  std::shared_ptr<running_step> find(std::uint64_t step) const {
    const auto at = steps.find(step);
    return at == steps.end() ? nullptr : at->second;
  }
  std::shared_ptr<running_step> make(std::uint64_t step, std::shared_ptr<worker> w,
                                     std::uint64_t session) {
    auto made = std::make_shared<running_step>(std::move(w), session, step, journal, early);
    steps.emplace(step, made);
    return made;
  }
};

worker::worker(std::shared_ptr<task_runtime> task, cluster_spec cluster, process_identity self)
    : task_(std::move(task)), links_(std::move(cluster), std::move(self), background_) {}

std::shared_ptr<worker> worker::make(std::shared_ptr<task_runtime> task, cluster_spec cluster,
                                     process_identity self) {
  auto made = std::make_shared<worker>(std::move(task), std::move(cluster), std::move(self));
  made->links_.on_message([weak = std::weak_ptr(made)](message&& m) {
    auto w = weak.lock();
    if (!w) return;
    if (m.kind == static_cast<message_kind>(wire::tensors::number))
      w->deliver(wire::unpack<wire::tensors>(m), nullptr);
    else if (m.kind == static_cast<message_kind>(wire::link_lost::number))
      for (const auto l = wire::unpack<wire::link_lost>(m); const auto& master : w->masters())
        master->on_link_lost(l);
  });
  made->links_.on_lost([weak = std::weak_ptr(made)](placement lost, const error& why) {
    const auto w = weak.lock();
    if (!w) return;
    w->tell_of_loss(lost, why);
    for (const auto& master : w->masters()) master->on_channel_lost();
  });
  return made;
}

error worker::stopped_error() const {
  return error(errc::unavailable, str(to_string(task_->name()), " was stopped"));
}
error worker::interrupted_error() const {
  return error(errc::cancelled, str(to_string(task_->name()), " was interrupted"));
}

std::shared_ptr<worker::session_entry> worker::find(std::uint64_t session) {
  std::lock_guard lock(guard_);
  auto at = sessions_.find(session);
  return at == sessions_.end() ? nullptr : at->second;
}

std::shared_ptr<worker::session_entry> worker::find_or_make(std::uint64_t session,
                                                            const void* from) {
  std::lock_guard lock(guard_);
  if (stopped_) throw stopped_error();
  const auto known = sessions_.find(session);
  if (known != sessions_.end()) return known->second;
  if (from && sessions_of_[from] >= most_sessions)
    fail(errc::resource_exhausted, "a connection has at most ", most_sessions, " sessions on ",
         task_->name());
  auto made = std::make_shared<session_entry>();
  made->maker = made->owner = from;
  const auto before = std::ranges::find(journals_, session, &lost_session::id);
  if (before != journals_.end()) {
    made->journal = std::move(before->journal);
    made->registered_by = std::move(before->master);
    journals_.erase(before);
  } else {
    made->journal = std::make_shared<step_journal>();
  }
  sessions_.emplace(session, made);
  if (from) ++sessions_of_[from];
  return made;
}

/// Checks a part from another process: a valid graph whose transfers lead to tasks of the cluster.
void worker::check_part(const plan::part& p) const {
  validate(p.graph);
  validate(p.graph, p.fetches);
  for (const auto& n : p.graph.nodes) {
    if (n.op->role != op_role::send && n.op->role != op_role::receive) continue;
    const device_name peer =
        parse_device(n.op->role == op_role::send ? decode<op::send>(n.attributes).peer
                                                 : decode<op::recv>(n.attributes).peer);
    if (!peer.task || *peer.task >= cluster().tasks(peer.job) ||
        !(peer == task_name(peer.job, *peer.task)))
      throw error(errc::invalid_argument,
                  str("[", n.op->name, "] the cluster has no task ", peer, "; it is ", cluster()),
                  n.name, n.location);
  }
}

void worker::register_part(std::uint64_t session, std::uint64_t handle, plan::part p,
                           const incarnation_list& peers,
                           const std::shared_ptr<connection>& owner) {
  session_entry::part_entry made;
  made.failure = failure_of([&] {
    // A master of this process has checked the part.
    if (owner) check_part(p);
    const std::string master = owner ? owner->peer().name : std::string();
    made.part = std::make_shared<registered_part>(std::move(p), task_->resources(session, master),
                                                  peers, master);
  });
  if (made.failure == out_of_memory) throw std::bad_alloc();  // ends a connection: see dispatch
  auto s = find_or_make(session, owner.get());
  std::lock_guard lock(s->guard);
  s->owner = owner.get();
  s->master = owner;
  s->registered_by = session_master();
  if (owner) s->registered_by = {owner.get(), owner->peer().name, owner->peer().incarnation};
  s->local = !owner;
  if (owner && s->parts.size() >= most_parts && !s->parts.contains(handle)) {
    s->refused = make_failure(errc::resource_exhausted, "a session has at most ", most_parts,
                              " parts on ", to_string(task_->name()));
    throw error(*s->refused);
  }
  s->parts[handle] = std::move(made);
}

bool worker::may_be_master(std::uint64_t session, const connection& from) {
  const auto is = [&](const std::optional<session_master>& m) {
    if (!m) return true;
    if (from.peer().incarnation == 0) return m->connection == &from;
    return m->connection && m->incarnation == from.peer().incarnation &&
           m->name == from.peer().name;
  };
  std::lock_guard lock(guard_);
  if (masters_.contains(session)) return false;  // it is in this process
  if (const auto at = sessions_.find(session); at != sessions_.end()) {
    std::lock_guard inner(at->second->guard);
    return is(at->second->registered_by);
  }
  const auto lost = std::ranges::find(journals_, session, &lost_session::id);
  return lost == journals_.end() || is(lost->master);
}

void worker::drop_part(std::uint64_t session, std::uint64_t handle) {
  session_entry::part_entry dropped;  // destroyed without the lock
  if (auto s = find(session)) {
    std::lock_guard lock(s->guard);
    auto at = s->parts.find(handle);
    if (at == s->parts.end()) return;
    dropped = std::move(at->second);
    s->parts.erase(at);
  }
}

void worker::forget(std::uint64_t session, const std::shared_ptr<const error>& why,
                    bool keeps_journal) {
  constexpr std::size_t remembered = 4096;
  std::shared_ptr<session_entry> s;
  {
    std::lock_guard lock(guard_);
    masters_.erase(session);
    auto at = sessions_.find(session);
    if (at == sessions_.end()) return;
    dropped_.push_back(session);
    if (dropped_.size() > remembered) dropped_.pop_front();
    s = std::move(at->second);
    sessions_.erase(at);
    if (keeps_journal) {
      // A client cannot be told from another once its connection is lost.
      const bool is_task = s->registered_by && s->registered_by->incarnation != 0;
      keep_journal({session, s->journal, is_task ? s->registered_by : std::nullopt});
    }
    if (const auto of = sessions_of_.find(s->maker); of != sessions_of_.end() && --of->second == 0)
      sessions_of_.erase(of);
  }
  std::vector<std::shared_ptr<running_step>> steps;
  {
    std::lock_guard lock(s->guard);
    for (auto& [number, step] : s->steps) steps.push_back(std::move(step));
    s->steps.clear();
  }
  for (auto& step : steps) step->stop(why);
}

/// With the lock held.
void worker::keep_journal(lost_session s) {
  journals_.push_back(std::move(s));
  if (journals_.size() <= most_journals) return;
  journals_.pop_front();
  journals_dropped_ = true;
}

void worker::drop_session(std::uint64_t session) {
  forget(session, make_failure(errc::cancelled, "the session of the step was closed"));
}

void worker::connection_lost(const void* owner, const peer_info& peer, std::uint64_t newer) {
  std::vector<std::uint64_t> gone;
  std::vector<std::shared_ptr<running_step>> steps;
  {
    std::lock_guard lock(guard_);
    unknown_step_queries_.erase(owner);
    for (const auto& [id, s] : sessions_) {
      std::lock_guard inner(s->guard);
      if (!s->local && s->owner == owner)
        gone.push_back(id);
      else
        for (const auto& [number, step] : s->steps)
          if (!newer || step->begun_after() < newer) steps.push_back(step);
    }
  }
  const auto why =
      make_failure(errc::cancelled, "the connection to the master of the step was lost");
  for (auto id : gone) forget(id, why, true);
  error lost(errc::unavailable, str("lost ", peer.name, " while waiting for its values"));
  for (auto& step : steps) step->peer_lost(peer.name, peer.incarnation, lost);
}

/// Values sent to `task` may not have arrived. Steps there that have not begun do not learn that
/// from their end of the connection, so the masters are told.
void worker::tell_of_loss(placement task, const error& why) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> last_steps;
  {
    std::lock_guard lock(guard_);
    for (const auto& [id, s] : sessions_) {
      std::lock_guard inner(s->guard);
      last_steps.emplace_back(id, s->last_step);
    }
  }
  for (const auto& [session, step] : last_steps) tell_of_loss(session, step, task, why);
}

void worker::tell_of_loss(std::uint64_t session, std::uint64_t step, placement task,
                          const error& why) {
  const auto s = find(session);
  if (!s) return;
  std::unique_lock lock(s->guard);
  const auto master = s->master.lock();
  lock.unlock();
  if (master) try {
      master->send(wire::pack(wire::link_lost{session, step, to_string(task_->name()),
                                              to_string(*task), why.message()}));
    } catch (const error&) {
      // The master is lost, and its session with it.
    } catch (const std::bad_alloc&) {
      master->close();  // it would wait
    }
}

void worker::add_master(std::uint64_t session, std::weak_ptr<session_events> master) {
  std::lock_guard lock(guard_);
  masters_[session] = std::move(master);
}

std::vector<std::shared_ptr<session_events>> worker::masters() const {
  std::vector<std::shared_ptr<session_events>> all;
  std::lock_guard lock(guard_);
  for (const auto& [session, weak] : masters_)
    if (auto m = weak.lock()) all.push_back(std::move(m));
  return all;
}

worker::background_reads::background_reads(const std::shared_ptr<worker>& w) : worker_(w) {
  ++worker_->background_reads_;
  worker_->read_lately_ = true;
  if (!worker_->reading_.exchange(true)) try {
      worker_->background_.run([w] { w->read_for_others(); });
    } catch (const std::exception&) {
      worker_->reading_ = false;  // the keeper thread reads, more slowly
    }
}
worker::background_reads::~background_reads() { --worker_->background_reads_; }

void worker::read_for_others() {
  constexpr auto a_while = std::chrono::seconds(5);
  for (;;) {
    while (!channels().read_until([&] { return stopped_.load(); }, deadline_in(a_while)) &&
           (read_lately_.exchange(false) || background_reads_ > 0))
      for (const auto& m : masters()) m->warn_of_long_runs();
    reading_ = false;
    // A run may have begun in between.
    if (stopped_ || background_reads_ == 0 || reading_.exchange(true)) return;
  }
}

void worker::resolve_outcome(std::uint64_t session, std::uint64_t step, const void* from,
                             step_journal::callback then) {
  cancel(session, step);
  std::shared_ptr<step_journal> journal;
  {
    std::lock_guard lock(guard_);
    const auto at = std::ranges::find(journals_, session, &lost_session::id);
    if (const auto known = sessions_.find(session); known != sessions_.end())
      journal = known->second->journal;
    else if (at != journals_.end())
      journal = at->journal;
    else if (!journals_dropped_ && unknown_step_queries_[from]++ < most_unheard)
      // Messages of a lost connection may still be read: the step must not begin by one of them.
      keep_journal({session, journal = std::make_shared<step_journal>()});
  }
  journal ? journal->ask(step, std::move(then)) : then(step_fate::unknown);
}

void worker::ended(std::uint64_t session, std::uint64_t step) {
  std::shared_ptr<running_step> last;  // destroyed without the lock
  auto s = find(session);
  if (!s) return;
  std::lock_guard lock(s->guard);
  if (const auto at = s->steps.find(step); at != s->steps.end()) {
    last = std::move(at->second);
    s->steps.erase(at);
  }
  s->ended.insert(step);
}

void worker::run_part(const wire::run_part& order, std::vector<feed_ref> feeds,
                      std::shared_ptr<connection> from, step_callback done) {
  const std::uint64_t session = order.session, step = order.step;
  const bool remote = from != nullptr;
  session_entry::part_entry entry;
  std::shared_ptr<running_step> running;
  std::vector<std::shared_ptr<running_step>> over;
  auto failure = failure_of([&] {
    if (stopped_) throw stopped_error();
    auto s = find(session);
    if (!s) fail(errc::not_found, task_->name(), " has no session ", session);
    std::lock_guard lock(s->guard);
    if (s->ended.raise(order.ended_below))
      for (const auto& [number, other] : s->steps)
        if (number < order.ended_below) over.push_back(other);
    auto at = s->parts.find(order.handle);
    if (at == s->parts.end() && s->refused) throw error(*s->refused);
    if (at == s->parts.end())
      fail(errc::not_found, task_->name(), " has no part ", order.handle, " of this session");
    entry = at->second;
    if (s->owner != from.get()) from.reset();
    if (entry.failure) throw error(*entry.failure);
    std::size_t wanted = entry.part->code().feeds().size();
    if (wanted != feeds.size())
      fail(errc::invalid_argument, "the part takes ", wanted, " feeds, but got ", feeds.size());
    if (s->ended.contains(step) && s->refused) throw error(*s->refused);
    if (remote && s->steps.size() >= most_steps && !s->steps.contains(step))
      fail(errc::resource_exhausted, "a session has at most ", most_steps, " unfinished steps on ",
           task_->name());
    if (s->ended.contains(step) || !s->journal->begin(step))
      fail(errc::aborted, "step ", step,
           s->steps.contains(step) ? " has already begun" : " has already ended");
    s->last_step = std::max(s->last_step, step);
    if ((running = s->find(step))) return;
    const auto unmade = failure_of([&] { running = s->make(step, shared_from_this(), session); });
    if (!unmade) return;
    s->journal->end(step, step_fate::unchanged);
    throw error(*unmade);
  });
  // The order to stop them was lost with a connection, or values came too late.
  for (const auto& o : over)
    o->stop(make_failure(errc::cancelled, "the master has ended the step"));
  if (failure) return done({nullptr, nullptr, std::move(failure)});
  if (!running->begin(order, std::move(entry.part), std::move(feeds), std::move(from), done))
    return done({nullptr, nullptr, make_failure(errc::cancelled, "the step was cancelled")});
  // If the session was dropped in between, this step was missed.
  if (stopped_)
    running->stop(std::make_shared<const error>(stopped_error()));
  else if (!find(session))
    running->stop(make_failure(errc::cancelled, "the session was closed"));
}

void worker::deliver(wire::tensors&& values, const void* from) {
  const std::uint64_t session = values.session, step = values.step;
  {
    std::lock_guard lock(guard_);
    if (!sessions_.contains(session) && (!from || std::ranges::count(dropped_, session))) return;
  }
  auto s = find_or_make(session, from);
  std::shared_ptr<running_step> running;
  std::shared_ptr<const void> unclaimed;
  {
    std::lock_guard lock(s->guard);
    running = s->find(step);
    if (!running) {
      if (s->ended.contains(step)) return;
      if (from && s->steps.size() >= most_steps) {
        s->ended.insert(step);
        s->refused = make_failure(errc::resource_exhausted, "a session has at most ", most_steps,
                                  " unfinished steps on ", to_string(task_->name()));
        throw error(*s->refused);
      }
      running = s->make(step, shared_from_this(), session);
    }
    // The sender must not wait for a session that may never be opened here.
    if (s->parts.empty()) unclaimed = std::move(values.credit);
  }
  running->deliver(std::move(values));
}

void worker::cancel(std::uint64_t session, std::uint64_t step) {
  auto s = find(session);
  if (!s) return;
  std::shared_ptr<running_step> running;
  {
    std::lock_guard lock(s->guard);
    auto at = s->steps.find(step);
    if (at == s->steps.end()) {
      // Values may still arrive, from a task that was told later.
      s->ended.insert(step);
      return;
    }
    running = at->second;
  }
  running->stop(make_failure(errc::cancelled, "the step was cancelled"));
}

void worker::stop() {
  std::vector<std::uint64_t> all;
  {
    std::lock_guard lock(guard_);
    stopped_ = true;
    for (const auto& [id, s] : sessions_) all.push_back(id);
  }
  auto why = std::make_shared<const error>(stopped_error());
  for (auto id : all) forget(id, why);
  stopping_.request_stop();
  links_.stop(*why);
}

}  // namespace deft::ext
