// SPDX-License-Identifier: Apache-2.0
// deft/train/replicas/rounds.ipp: rounds of replicas.
#pragma once
#include <algorithm>
#include <deft/core/log.hpp>
#include <deft/train/replicas/rounds.hpp>

namespace deft::ext {

std::shared_ptr<replica_barrier::membership> replica_barrier::join(std::uint64_t session,
                                                                   std::string_view task,
                                                                   std::int64_t needed,
                                                                   std::int64_t total) {
  if (needed != needed_ || total != total_)
    deft::ext::fail(errc::invalid_argument, "[sync_replicas] other replicas aggregate ", needed_,
                    " of ", total_, " gradients, and this one ", needed, " of ", total);
  std::shared_ptr<membership> token;  // destroyed without the lock
  std::lock_guard lock(guard_);
  member& m = members_[session];
  if ((token = m.token.lock())) return token;
  token = std::make_shared<membership>(shared_from_this(), session);
  // One that comes again, over a new connection, is as it was.
  m = {.task = std::string(task),
       .token = token,
       .revoked = std::ranges::count(revoked_, session) > 0,
       .round = rounds_.round()};
  remember(m);
  return token;
}

void replica_barrier::remember(const member& m) {
  if (const auto before = std::ranges::find(left_, m.task); before != left_.end())
    left_.erase(before);
}

void replica_barrier::take_part(const membership& m, std::span<const std::string> left) {
  wakers woken(*this);
  std::lock_guard lock(guard_);
  member& me = members_.at(m.session());
  expect_member(me);
  me.leads = true;
  lost_leads_ = false;
  if (std::exchange(me.left, false)) {
    me.round = rounds_.round();
    remember(me);
  }
  for (const std::string& task : left) {
    const bool here = std::ranges::any_of(members_, [&](const auto& other) {
      return other.second.task == task && !other.second.left;
    });
    if (here || std::ranges::count(left_, task) > 0 ||
        static_cast<std::int64_t>(left_.size()) + 1 >= total_)
      continue;
    left_.push_back(task);
  }
  if (complete()) woken.leaders.next();
}

std::int64_t replica_barrier::needed_now() const {
  const auto there = total_ - static_cast<std::int64_t>(left_.size());
  return std::min(needed_, std::max<std::int64_t>(there, 1));
}

std::int64_t replica_barrier::current() const {
  std::lock_guard lock(guard_);
  return rounds_.round();
}

std::optional<bool> replica_barrier::arrive(const membership& m, std::uint64_t step,
                                            std::int64_t begun, wait_list::ticket& t, waker w) {
  wakers woken(*this);
  std::lock_guard lock(guard_);
  member& me = members_.at(m.session());
  if (me.failure) {
    me.arrived.erase(step);
    throw error(*std::exchange(me.failure, nullptr));
  }
  expect_whole();
  expect_member(me);
  const auto before = me.arrived.find(step);
  if (before != me.arrived.end() && rounds_.is_over(before->second)) {
    const step_barrier::arrival a = before->second;
    me.arrived.erase(before);
    me.round = rounds_.round();
    if (a.round == failed_round_) throw error(*why_);
    return a.counts;
  }
  if (before != me.arrived.end() && me.left && !leader_) {
    me.arrived.erase(before);
    rounds_.withdraw({me.task, m.session()});
    return false;
  }
  if (before == me.arrived.end()) {
    if (me.left) return false;
    const bool led =
        std::ranges::any_of(members_, [](const auto& other) { return other.second.leads; });
    if (!led && lost_leads_)
      deft::ext::fail(errc::unavailable,
                      "[sync_replicas] the session that applies the gradients was lost");
    if (!led)
      deft::ext::fail(errc::failed_precondition,
                      "[sync_replicas] nobody applies the gradients: a session that is not a "
                      "monitored_session needs replica_updates");
    if (!leader_ && rounds_.is_stale(std::min(begun, me.round))) {
      me.round = rounds_.round();
      return false;
    }
    // In a round that is being applied it only waits for the end.
    me.arrived[step] =
        leader_ ? rounds_.late() : rounds_.arrive({me.task, m.session()}, needed_now());
    if (complete()) woken.leaders.next();
  }
  rounds_.waiting().add(t, std::move(w));
  return {};
}

void replica_barrier::step_ended(const membership& m, std::uint64_t step) {
  std::lock_guard lock(guard_);
  if (const auto at = members_.find(m.session()); at != members_.end())
    at->second.arrived.erase(step);
}

std::vector<std::uint64_t> replica_barrier::await(const membership& m, wait_list::ticket& t,
                                                  waker w) {
  std::lock_guard lock(guard_);
  member& me = members_.at(m.session());
  if (me.left || me.revoked)
    deft::ext::fail(errc::cancelled, "[sync_replicas] the replica has left its rounds");
  me.leads = true;
  lost_leads_ = false;
  std::vector<std::uint64_t> sessions;
  if (!complete()) {
    leaders_.add(t, std::move(w));
    return sessions;
  }
  leader_ = m.session();
  for (const auto& [task, session] : rounds_.arrived()) sessions.push_back(session);
  return sessions;
}

void replica_barrier::begin_next(bool applied, wakers& woken) {
  if (!applied)
    for (auto& [session, m] : members_)
      for (auto& [step, a] : m.arrived) a.counts &= rounds_.is_over(a);
  rounds_.begin_next();
  leader_.reset();
  woken.arrivals.all();
  woken.pauses.all();
}

void replica_barrier::end(const membership& m) {
  wakers woken(*this);
  std::lock_guard lock(guard_);
  if (leader_ != m.session())
    deft::ext::fail(errc::failed_precondition,
                    "[end_round] the round was not granted to this session");
  begin_next(true, woken);
}

void replica_barrier::fail(const membership& m, const error& why, bool in_part) {
  wakers woken(*this);
  std::lock_guard lock(guard_);
  auto failure = std::make_shared<const error>(why);
  if (leader_ == m.session()) {
    if (in_part) tear(why.message());
    failed_round_ = rounds_.round();
    why_ = std::move(failure);
    begin_next(false, woken);
    return;
  }
  members_.at(m.session()).failure = std::move(failure);
  woken.arrivals.all();
}

void replica_barrier::forget(const member& m) {
  // Its task may have joined with a newer session before it noticed that this one was lost.
  const bool here = std::ranges::any_of(members_, [&](const auto& other) {
    const member& o = other.second;
    return &o != &m && o.task == m.task && !o.left && !o.revoked;
  });
  if (here || std::ranges::count(left_, m.task) > 0) return;
  left_.push_back(m.task);
  // Under the lock, so that lines of two threads are in the order of what they say.
  if (std::ssize(left_) == total_)
    logging::info(m.task, " was the last to leave synchronous training");
  else
    logging::info(m.task, " has left synchronous training, where ", left_.size(), " of ", total_,
                  " replicas are no longer expected; a step averages ", needed_now());
}

void replica_barrier::leave(const membership& m) {
  wakers woken(*this);
  std::lock_guard lock(guard_);
  member& me = members_.at(m.session());
  if (std::exchange(me.left, true)) return;
  forget(me);
  woken.leaders.all();
  woken.arrivals.all();  // its own, which wait in vain
}

void replica_barrier::lost(const membership& m) {
  wakers woken(*this);
  std::lock_guard lock(guard_);
  const auto at = members_.find(m.session());
  if (at == members_.end() || !at->second.token.expired()) return;
  if (!at->second.left) forget(at->second);
  lost_leads_ |= at->second.leads && !at->second.left;
  if (at->second.revoked) {
    constexpr std::size_t most = 1024;
    revoked_.push_back(m.session());
    if (revoked_.size() > most) revoked_.pop_front();
  }
  if (leader_ == m.session()) {
    tear(str(at->second.task, " was lost while it applied gradients"));
    begin_next(false, woken);
  }
  members_.erase(at);
  woken.leaders.all();
}

replica_barrier::state replica_barrier::describe_state() const {
  std::lock_guard lock(guard_);
  std::int64_t there = 0;
  for (const auto& [session, m] : members_) there += !m.left;
  const auto gone = static_cast<std::int64_t>(left_.size());
  return {needed_now(), std::max<std::int64_t>(total_ - there - gone, 0), left_};
}

void replica_barrier::restart() {
  wakers woken(*this);
  std::lock_guard lock(guard_);
  torn_by_.clear();
  ++generation_;
  for (auto& [session, m] : members_) {
    m.revoked = true;
    m.leads = false;
  }
  begin_next(false, woken);
  woken.leaders.all();
}
void replica_barrier::clear() {
  wakers woken(*this);
  std::lock_guard lock(guard_);
  torn_by_.clear();
  ++generation_;
  begin_next(false, woken);
}

void replica_barrier::tear(std::string cause) {
  torn_by_ = std::move(cause);
  logging::warning("an update of synchronous training may have been applied in part: ", torn_by_,
                   "; its rounds wait until the variables are restored");
}
void replica_barrier::expect_whole() const {
  if (!torn_by_.empty())
    deft::ext::fail(errc::aborted,
                    "[sync_replicas] an update may have been applied in part: ", torn_by_,
                    "; the variables have to be restored");
}
void replica_barrier::expect_member(const member& m) {
  if (m.revoked)
    deft::ext::fail(errc::aborted,
                    "[sync_replicas] the variables were restored after this session began: make a "
                    "new one");
}
std::int64_t replica_barrier::generation() const {
  std::lock_guard lock(guard_);
  return torn_by_.empty() ? generation_ : 0;
}
bool replica_barrier::is_whole(wait_list::ticket& t, waker w) {
  std::lock_guard lock(guard_);
  if (!torn_by_.empty()) rounds_.waiting().add(t, std::move(w));
  return torn_by_.empty();
}
std::string replica_barrier::describe() const { return str(needed_, " of ", total_, " replicas"); }

}  // namespace deft::ext
