// SPDX-License-Identifier: Apache-2.0
// deft/session/master/task_directory.ipp: connects to the tasks that a graph needs.
#pragma once
#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/core/thread.hpp>
#include <deft/session/master/task_directory.hpp>
#include <deft/session/threads/awaited.hpp>
#include <deft/session/wire/codec.hpp>

namespace deft {

task_directory::task_directory(std::shared_ptr<task_runtime> self, std::shared_ptr<worker> cluster,
                               session_options options)
    : self_(std::move(self)),
      self_name_(intern(self_->name())),
      cluster_(std::move(cluster)),
      options_(std::move(options)),
      session_(random_incarnation()),
      steps_(options_.first_step) {
  if (!options_.stream) options_.stream = 0;
  if (cluster_) incarnations_ = cluster_->links().standing();
}

void task_directory::check_open() const {
  check_not_forked();
  if (cluster_ && cluster_->stopped()) throw cluster_->stopped_error();
  if (closed()) fail(errc::failed_precondition, "the session is closed");
}

void task_directory::begin_step(std::weak_ptr<session_events> s, std::uint64_t& number,
                                std::uint64_t& ended_below) {
  std::lock_guard lock(guard_);
  number = next_step();
  under_way_.emplace(number, std::move(s));
  ended_below = under_way_.begin()->first;
}
void task_directory::end_step(std::uint64_t number) {
  std::lock_guard lock(guard_);
  under_way_.erase(number);
}

void task_directory::note_failure(std::uint64_t number, std::vector<placement> tasks) {
  std::lock_guard lock(guard_);
  failures_.emplace_back(number, std::move(tasks));
  if (failures_.size() > most_failures) failures_.pop_front();
}

step_fate task_directory::fate_of(std::uint64_t number, deadline until) {
  std::vector<placement> tasks;
  {
    std::lock_guard lock(guard_);
    const auto at = std::ranges::find(failures_, number, &decltype(failures_)::value_type::first);
    if (at == failures_.end()) return step_fate::unknown;
    tasks = at->second;
  }
  std::vector<step_fate> fates;
  if (const auto own = std::ranges::find(tasks, self_name_); own != tasks.end()) {
    tasks.erase(own);
    // The own part has ended, or the step would not have.
    const auto known = std::make_shared<step_fate>(step_fate::unknown);
    cluster_->settle(session_, number, [known](step_fate f) { *known = f; });
    fates.push_back(*known);
  }
  while (!tasks.empty()) {
    std::vector<placement> again;  // their connections were lost once more
    for (auto t : tasks) {
      const auto failure = failure_of([&] { fates.push_back(ask_for_fate(number, t, until)); });
      if (!failure) continue;
      const bool over = std::chrono::steady_clock::now() >= until || closed();
      if (failure->code() == errc::unavailable && !over)
        again.push_back(t);
      else
        fates.push_back(step_fate::unknown);  // it has restarted, or cannot be reached
    }
    tasks = std::move(again);
  }
  const auto all = [&](step_fate f) {
    return std::ranges::count(fates, f) == static_cast<std::ptrdiff_t>(fates.size());
  };
  if (all(step_fate::unchanged)) return step_fate::unchanged;
  if (std::ranges::count(fates, step_fate::unknown)) return step_fate::unknown;
  return all(step_fate::applied) ? step_fate::applied : step_fate::in_part;
}

step_fate task_directory::ask_for_fate(std::uint64_t number, placement task, deadline until) {
  const auto there = link(task, until);
  const auto answer = there->call(wire::pack(wire::settle_step{session_, number}));
  cluster_->channels().wait_until([&] { return answer->done() || cluster_->stopped() || closed(); },
                                  until);
  if (answer->done()) return wire::unpack<wire::fate_of_step>(answer->get()).fate;
  there->abandon(*answer);
  return step_fate::unknown;
}

std::vector<std::shared_ptr<session_events>> task_directory::steps() const {
  std::vector<std::shared_ptr<session_events>> all;
  std::lock_guard lock(guard_);
  for (const auto& [number, weak] : under_way_)
    if (auto s = weak.lock()) all.push_back(std::move(s));
  return all;
}
void task_directory::on_link_lost(const wire::link_lost& l) {
  if (l.session != session_) return;
  for (const auto& s : steps()) s->on_link_lost(l);
}
void task_directory::on_channel_lost() {
  for (const auto& s : steps()) s->on_channel_lost();
}
void task_directory::look_at_runs() {
  for (const auto& s : steps()) s->look_at_runs();
}

std::map<placement, std::uint64_t> task_directory::incarnations() const {
  std::lock_guard lock(guard_);
  return incarnations_;
}

std::uint64_t task_directory::known_incarnation(placement task) const {
  std::lock_guard lock(guard_);
  const auto at = incarnations_.find(task);
  return at == incarnations_.end() ? 0 : at->second;
}
void task_directory::note_incarnation(placement task, std::uint64_t incarnation) {
  std::lock_guard lock(guard_);
  incarnations_.emplace(task, incarnation);
}

void task_directory::when_linked(placement task, deadline until, link_callback then) {
  const std::uint64_t known = known_incarnation(task);
  const deadline most = known ? deadline_in(task_links::reconnect_time) : patience();
  cluster_->links().when_linked(
      task, std::min(until, most), known, closing(),
      [self = shared_from_this(), task, shorter = most < until, then = std::move(then)](
          std::shared_ptr<channel> c, std::shared_ptr<const error> failure) {
        if (c) self->note_incarnation(task, c->peer().incarnation);
        if (failure && failure->code() == errc::aborted)
          failure = std::make_shared<const error>(
              errc::aborted,
              failure->message() + "; its variables and this session's plans there are lost");
        if (failure && failure->code() == errc::deadline_exceeded && shorter)
          failure = std::make_shared<const error>(errc::unavailable, failure->message());
        then(std::move(c), std::move(failure));
      });
}

std::shared_ptr<channel> task_directory::link(placement task, deadline until) {
  const auto link = std::make_shared<awaited<std::shared_ptr<channel>>>();
  when_linked(task, until, [link, w = cluster_](auto c, auto failure) {
    link->bring(w->channels(), std::move(failure), std::move(c));
  });
  cluster_->channels().wait_until([&] { return link->over() || closed(); });
  if (!link->over()) fail(errc::cancelled, "the session was closed");
  return link->get();
}

/// Connects to all unknown tasks, and asks each for its devices once it is connected.
class task_directory::learning final : public std::enable_shared_from_this<learning> {
 public:
  learning(std::shared_ptr<task_directory> d, std::vector<placement> unknown, deadline until,
           std::function<void(std::shared_ptr<const error>)> then)
      : directory_(std::move(d)),
        unknown_(std::move(unknown)),
        own_(directory_->self_->devices()),
        until_(until),
        then_(std::move(then)),
        left_(unknown_.size() + 1) {}

  void begin() {
    std::vector<placement> missing;
    for (auto t : unknown_) {
      if (!directory_->known_incarnation(t)) {
        missing.push_back(t);
        continue;
      }
      directory_->when_linked(t, until_,
                              [self = shared_from_this(), t](const std::shared_ptr<channel>& c,
                                                             std::shared_ptr<const error> why) {
                                why ? self->end_one(std::move(why)) : self->ask(t, c);
                              });
    }
    directory_->cluster_->links().when_reached(
        missing, {directory_->options_.connect_timeout, until_}, directory_->closing(),
        // The incarnation is noted when the task gets a part: until then it may restart.
        [self = shared_from_this()](placement t, const std::shared_ptr<channel>& c) {
          self->ask(t, c);
        },
        [self = shared_from_this()](const std::shared_ptr<const error>& failure) {
          self->end_one(failure, failure != nullptr);
        });
  }

 private:
  struct question final : answer_listener {
    std::shared_ptr<learning> asks;
    placement task;
    question(std::shared_ptr<learning> l, placement t) : asks(std::move(l)), task(t) {}
    void answered(pending& p) override {
      asks->end_one(failure_of([&] {
        auto answer = wire::unpack<wire::device_list>(p.get());
        asks->fill_in(answer);
        std::lock_guard lock(asks->directory_->guard_);
        asks->directory_->devices_[task] = std::move(answer.devices);
      }));
    }
  };

  void ask(placement t, const std::shared_ptr<channel>& c) {
    auto failure = failure_of([&] {
      wire::devices m;
      for (const auto& d : own_) m.known_kernels.push_back(d.kernels->hash());
      c->call(wire::pack(m), std::make_shared<question>(shared_from_this(), t));
    });
    if (failure) end_one(std::move(failure));
  }

  /// Fills in the kernels that were left out, as this task has the same.
  void fill_in(wire::device_list& answer) const {
    for (std::size_t i = 0; i < answer.known_kernels.size(); ++i) {
      if (answer.known_kernels[i] == 0) continue;
      const auto same = std::ranges::find_if(
          own_, [&](const device_info& d) { return d.kernels->hash() == answer.known_kernels[i]; });
      if (i >= answer.devices.size() || same == own_.end())
        fail(errc::data_loss, "a list of devices leaves out kernels that this task does not have");
      answer.devices[i].kernels = same->kernels;
    }
  }

  void end_one(std::shared_ptr<const error> failure, bool ends_all = false) {
    {
      std::lock_guard lock(guard_);
      if (left_ == 0) return;
      if (failure && !failure_) failure_ = std::move(failure);
      left_ = ends_all ? 0 : left_ - 1;
      if (left_ > 0) return;
    }
    then_(failure_);
  }

  const std::shared_ptr<task_directory> directory_;
  const std::vector<placement> unknown_;
  const std::vector<device_info> own_;
  const deadline until_;
  const std::function<void(std::shared_ptr<const error>)> then_;
  std::mutex guard_;
  std::size_t left_;  ///< answers, and 1 until all tasks are connected
  std::shared_ptr<const error> failure_;
};

std::vector<placement> task_directory::unknown_of(const std::vector<placement>& tasks) const {
  std::vector<placement> unknown;
  std::lock_guard lock(guard_);
  for (auto t : tasks)
    if (t != self_name_ && !devices_.contains(t)) unknown.push_back(t);
  return unknown;
}

bool task_directory::knows(const std::vector<placement>& tasks) const {
  return unknown_of(tasks).empty();
}

void task_directory::when_learned(const std::vector<placement>& tasks, const plan_limits& limits,
                                  std::function<void(std::shared_ptr<const error>)> then) {
  auto unknown = unknown_of(tasks);
  if (unknown.empty()) return then(nullptr);
  std::make_shared<learning>(shared_from_this(), std::move(unknown), limits.until, std::move(then))
      ->begin();
}

void task_directory::learn(const std::vector<placement>& tasks, const plan_limits& limits) {
  if (knows(tasks)) return;
  const auto known = std::make_shared<awaited<>>();
  when_learned(tasks, limits, [known, w = cluster_](std::shared_ptr<const error> failure) {
    known->bring(w->channels(), std::move(failure));
  });
  channel_group& h = cluster_->channels();
  const std::stop_callback wake(limits.cancel, [&h] { h.notify(); });
  // When the time is over, the connecting thread reports what is missing; give it a second for
  // that.
  h.wait_until(
      [&] { return known->over() || cluster_->stopped() || closed() || limits.cancelled(); },
      later(limits.until, std::chrono::seconds(1)));
  if (cluster_->stopped()) throw cluster_->stopped_error();
  if (closed()) fail(errc::cancelled, "the session was closed");
  if (limits.cancelled()) fail(errc::cancelled, "the run was cancelled");
  if (!known->over())
    fail(errc::deadline_exceeded, "timed out waiting for the devices of ",
         join(tasks, ", ", [](placement t) { return to_string(*t); }));
  known->get();
}

std::vector<device_info> task_directory::devices_of(const std::vector<placement>& tasks) const {
  std::vector<device_info> all;
  std::lock_guard lock(guard_);
  for (auto t : tasks) {
    const auto& of_task = t == self_name_ ? self_->devices() : devices_.at(t);
    all.insert(all.end(), of_task.begin(), of_task.end());
  }
  return all;
}

bool task_directory::note_registration(placement task, const std::shared_ptr<channel>& link) {
  std::lock_guard lock(guard_);
  const auto [at, fresh] = registered_by_.try_emplace(task, link);
  return !fresh && std::exchange(at->second, link).lock() != link;
}

void task_directory::wait_for(std::span<const task_call> calls) {
  const auto unanswered = [](const task_call& c) { return !c.answer->done(); };
  cluster_->channels().wait_until(
      [&] { return cluster_->stopped() || closed() || std::ranges::none_of(calls, unanswered); },
      patience());
  std::string missing;
  for (const task_call& c : calls) {
    if (!unanswered(c)) continue;
    c.by->abandon(*c.answer);
    missing += str(missing.empty() ? "" : ", ", c.by->peer().name);
  }
  for (const task_call& c : calls)
    if (!unanswered(c)) c.answer->get();
  if (missing.empty()) return;
  if (cluster_->stopped()) throw cluster_->stopped_error();
  if (closed()) fail(errc::cancelled, "the session was closed");
  fail(errc::deadline_exceeded, "timed out after ", duration_text(options_.connect_timeout),
       " waiting for an answer from ", missing);
}

void task_directory::call_all(const std::vector<placement>& tasks, const message& m) {
  if (tasks.empty()) return;
  // All links come first: if one task cannot be reached, none is called.
  std::vector<task_call> calls;
  for (auto t : tasks) calls.push_back({link(t, no_deadline), nullptr});
  for (auto& c : calls) c.answer = c.by->call(message(m));
  wait_for(calls);
}

}  // namespace deft
