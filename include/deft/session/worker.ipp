// SPDX-License-Identifier: Apache-2.0
// deft/session/worker.ipp: a task's parts, steps and links.
#pragma once
#include <algorithm>
#include <deft/core/log.hpp>
#include <deft/op/plan/recv.hpp>
#include <deft/op/plan/send.hpp>
#include <deft/session/protocol.hpp>
#include <deft/session/running_step.ipp>
#include <deft/session/worker.hpp>

namespace deft {

struct worker::session_entry {
  struct part_entry {
    std::shared_ptr<registered_part> part;
    std::shared_ptr<const error> failure;
  };
  std::mutex guard;
  bool local = false;           ///< of a master of this process
  const void* owner = nullptr;  ///< the connection that registered, or else first sent something
  std::unordered_map<std::uint64_t, part_entry> parts;
  std::unordered_map<std::uint64_t, std::shared_ptr<running_step>> steps;
  std::deque<std::uint64_t> ended;  ///< what still comes for these is dropped

  bool has_ended(std::uint64_t step) const { return std::ranges::count(ended, step) != 0; }
  void note_end(std::uint64_t step) {
    constexpr std::size_t remembered = 256;
    ended.push_back(step);
    if (ended.size() > remembered) ended.pop_front();
  }
};

worker::worker(std::shared_ptr<task_runtime> task, cluster_spec cluster, process_identity self)
    : task_(std::move(task)),
      cluster_(std::move(cluster)),
      hub_(hub_options{std::move(self), {}}) {}

error worker::stopped_error() const {
  return error(errc::unavailable, str(to_string(task_->name()), " was stopped"));
}

std::shared_ptr<worker::peer_link> worker::link_entry(placement task) {
  std::lock_guard lock(links_guard_);
  auto& entry = links_[task];
  if (!entry) entry = std::make_shared<peer_link>();
  return entry;
}

std::shared_ptr<channel> worker::standing_link(placement task) {
  auto peer = link_entry(task);
  std::lock_guard lock(peer->guard);
  return peer->channel && !peer->channel->lost() ? peer->channel : nullptr;
}

std::map<placement, std::uint64_t> worker::standing() {
  std::vector<placement> tasks;
  {
    std::lock_guard lock(links_guard_);
    for (const auto& [task, l] : links_) tasks.push_back(task);
  }
  // Nothing was read while nobody waited: a link may have ended without notice.
  if (!tasks.empty()) hub_.poll();
  std::map<placement, std::uint64_t> incarnations;
  for (auto task : tasks)
    if (auto c = standing_link(task)) incarnations.emplace(task, c->peer().incarnation);
  return incarnations;
}

std::shared_ptr<channel> worker::link(placement task, deadline until, std::uint64_t incarnation) {
  if (!task->task || *task->task >= cluster_.tasks(task->job))
    fail(errc::not_found, "the cluster has no task ", *task, "; it is ", cluster_);
  const std::string& address = cluster_.address(task->job, *task->task);
  auto peer = link_entry(task);
  // Nothing was read while nobody waited: an old link may have ended without notice.
  if (!incarnation) hub_.poll();
  std::unique_lock lock(peer->guard);
  for (;;) {
    if (stopped_) throw stopped_error();
    if (peer->channel && !peer->channel->lost() &&
        (!incarnation || peer->channel->peer().incarnation == incarnation))
      return peer->channel;
    if (!peer->connecting) break;
    if (peer->changed.wait_until(lock, until) == std::cv_status::timeout)
      fail(errc::deadline_exceeded, *task, " at ", address, " cannot be reached in time");
  }
  peer->connecting = true;
  auto old = std::move(peer->channel);
  lock.unlock();
  old.reset();
  std::shared_ptr<channel> fresh;
  channel_events events;
  events.on_message = [self = weak_from_this()](message&& m) {
    auto w = self.lock();
    if (w && m.kind == static_cast<message_kind>(request::tensor)) w->deliver(m, nullptr);
  };
  auto failure = caught([&] { fresh = hub_.connect(address, until, std::move(events)); });
  lock.lock();
  peer->connecting = false;
  peer->channel = fresh;
  peer->changed.notify_all();
  lock.unlock();
  if (failure) throw error(failure->code(), str(*task, ": ", failure->message()));
  if (stopped_) {
    fresh->close();
    throw stopped_error();
  }
  if (incarnation && fresh->peer().incarnation != incarnation)
    fail(errc::aborted, *task, " at ", address, " has restarted");
  return fresh;
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
  auto [at, fresh] = sessions_.try_emplace(session);
  if (fresh) {
    at->second = std::make_shared<session_entry>();
    at->second->owner = from;
  }
  return at->second;
}

/// What another process sent: a sound graph, whose transfers lead to tasks of the cluster. Names
/// are kept for good, so they are looked at first.
void worker::check_part(const plan::part& p) const {
  check(p.graph);
  check(p.graph, p.fetches);
  for (const auto& n : p.graph.nodes) {
    if (n.op->role != op_role::send && n.op->role != op_role::receive) continue;
    const device_name peer =
        parse_device(n.op->role == op_role::send ? decode<op::send>(n.attributes).peer
                                                 : decode<op::recv>(n.attributes).peer);
    if (!peer.task || *peer.task >= cluster_.tasks(peer.job) ||
        !(peer == task_name(peer.job, *peer.task)))
      throw error(errc::invalid_argument,
                  str("[", n.op->name, "] the cluster has no task ", peer, "; it is ", cluster_),
                  n.name, n.place);
  }
}

void worker::register_part(std::uint64_t session, std::uint64_t handle, plan::part p,
                           const incarnation_list& peers, const connection* owner) {
  session_entry::part_entry made;
  made.failure = caught([&] {
    // A master of this process has checked what it made.
    if (owner) check_part(p);
    made.part = std::make_shared<registered_part>(std::move(p), task_->resources(), peers,
                                                  owner ? owner->peer().name : "");
  });
  auto s = find_or_make(session, owner);
  std::lock_guard lock(s->guard);
  s->owner = owner;
  s->local = !owner;
  s->parts[handle] = std::move(made);
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

void worker::forget(std::uint64_t session, const std::shared_ptr<const error>& why) {
  constexpr std::size_t remembered = 4096;
  std::shared_ptr<session_entry> s;
  {
    std::lock_guard lock(guard_);
    dropped_.push_back(session);
    if (dropped_.size() > remembered) dropped_.pop_front();
    auto at = sessions_.find(session);
    if (at == sessions_.end()) return;
    s = std::move(at->second);
    sessions_.erase(at);
  }
  std::vector<std::shared_ptr<running_step>> steps;
  {
    std::lock_guard lock(s->guard);
    for (auto& [number, step] : s->steps) steps.push_back(std::move(step));
    s->steps.clear();
  }
  for (auto& step : steps) step->stop(why);
}

void worker::drop_session(std::uint64_t session) {
  forget(session,
         std::make_shared<const error>(errc::cancelled, "the session of the step was closed"));
}

void worker::connection_lost(const void* owner, const peer_info& peer) {
  std::vector<std::uint64_t> gone;
  std::vector<std::shared_ptr<running_step>> steps;
  {
    std::lock_guard lock(guard_);
    for (const auto& [id, s] : sessions_) {
      std::lock_guard inner(s->guard);
      if (!s->local && s->owner == owner)
        gone.push_back(id);
      else
        for (const auto& [number, step] : s->steps) steps.push_back(step);
    }
  }
  auto why = std::make_shared<const error>(errc::cancelled, "the master of the step is gone");
  for (auto id : gone) forget(id, why);
  error lost(errc::unavailable, str("lost ", peer.name, " while values of it were expected"));
  for (auto& step : steps) step->peer_lost(peer.name, peer.incarnation, lost);
}

void worker::ended(std::uint64_t session, std::uint64_t step) {
  std::shared_ptr<running_step> last;  // destroyed without the lock
  auto s = find(session);
  if (!s) return;
  std::lock_guard lock(s->guard);
  s->note_end(step);
  auto at = s->steps.find(step);
  if (at == s->steps.end()) return;
  last = std::move(at->second);
  s->steps.erase(at);
}

void worker::run_part(std::uint64_t session, std::uint64_t step, std::uint64_t handle,
                      std::vector<feed_ref> feeds, std::shared_ptr<connection> from,
                      step_callback done) {
  session_entry::part_entry entry;
  std::shared_ptr<running_step> running;
  auto failure = caught([&] {
    if (stopped_) throw stopped_error();
    auto s = find(session);
    if (!s) fail(errc::not_found, "there is no session ", session, " on ", task_->name());
    std::lock_guard lock(s->guard);
    auto at = s->parts.find(handle);
    if (at == s->parts.end())
      fail(errc::not_found, "there is no part ", handle, " of this session on ", task_->name());
    entry = at->second;
    if (s->owner != from.get()) from.reset();
    if (entry.failure) throw error(*entry.failure);
    std::size_t wanted = entry.part->code().feeds().size();
    if (wanted != feeds.size())
      fail(errc::invalid_argument, "a step has ", feeds.size(), " feeds, not ", wanted);
    if (s->has_ended(step)) fail(errc::aborted, "step ", step, " has ended already");
    auto& slot = s->steps[step];
    if (!slot) slot = std::make_shared<running_step>(shared_from_this(), session, step);
    running = slot;
  });
  if (failure) return done({nullptr, nullptr, std::move(failure)});
  if (!running->begin(std::move(entry.part), std::move(feeds), std::move(from), done))
    return done({nullptr, nullptr,
                 std::make_shared<const error>(errc::already_exists,
                                               str("step ", step, " is running already"))});
  // A session that was dropped in between took no notice of this step.
  if (stopped_)
    running->stop(std::make_shared<const error>(stopped_error()));
  else if (!find(session))
    running->stop(std::make_shared<const error>(errc::cancelled, "the session was closed"));
}

void worker::deliver(message& m, const void* from) {
  if (m.tensors.size() != 1) fail(errc::invalid_argument, "a value without its tensor");
  const std::uint64_t session = m.session, step = m.step;
  {
    std::lock_guard lock(guard_);
    if (!sessions_.contains(session) && (!from || std::ranges::count(dropped_, session))) return;
  }
  auto s = find_or_make(session, from);
  std::shared_ptr<running_step> running;
  {
    std::lock_guard lock(s->guard);
    auto at = s->steps.find(step);
    if (at != s->steps.end()) {
      running = at->second;
    } else {
      if (s->has_ended(step)) return;
      running = std::make_shared<running_step>(shared_from_this(), session, step);
      s->steps.emplace(step, running);
    }
  }
  running->deliver(m.flags, std::move(m.tensors[0]));
}

void worker::cancel(std::uint64_t session, std::uint64_t step) {
  auto s = find(session);
  if (!s) return;
  std::shared_ptr<running_step> running;
  {
    std::lock_guard lock(s->guard);
    auto at = s->steps.find(step);
    if (at == s->steps.end()) {
      // Values may still come, of a part that was told later.
      if (!s->has_ended(step)) s->note_end(step);
      return;
    }
    running = at->second;
  }
  running->stop(std::make_shared<const error>(errc::cancelled, "the step was cancelled"));
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
  std::vector<std::shared_ptr<peer_link>> links;
  {
    std::lock_guard lock(links_guard_);
    for (const auto& [task, l] : links_) links.push_back(l);
  }
  for (auto& l : links) {
    std::shared_ptr<channel> c;
    std::lock_guard lock(l->guard);
    c = l->channel;
    if (c) c->close();
  }
  hub_.notify();
}

}  // namespace deft
