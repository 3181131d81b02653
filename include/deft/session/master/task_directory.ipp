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

namespace deft::ext {

task_directory::task_directory(std::shared_ptr<task_runtime> self, std::shared_ptr<worker> cluster,
                               session_options options)
    : self_(std::move(self)),
      self_name_(intern(self_->name())),
      cluster_(std::move(cluster)),
      options_(std::move(options)),
      session_(random_incarnation()),
      steps_(options_.first_step),
      draws_(options_.first_step) {
  if (!options_.stream) options_.stream = 0;
  if (!cluster_) return;
  incarnations_ = cluster_->links().standing();
  ends_with_task_.emplace(cluster_->stopping(), closes{this});
}

void task_directory::check_open() const {
  check_not_forked();
  if (cluster_ && cluster_->stopped()) throw cluster_->stopped_error();
  if (closed()) fail(errc::failed_precondition, "the session is closed");
}

error task_directory::ended_error(const plan_limits& limits) const {
  if (cluster_->stopped()) return cluster_->stopped_error();
  if (closed()) return error(errc::cancelled, "the session was closed");
  if (limits.cancelled()) return error(errc::cancelled, "the run was cancelled");
  return error(errc::deadline_exceeded, "timed out waiting for answers of other tasks");
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

void task_directory::note_failure(std::uint64_t number, step_updates updates) {
  std::lock_guard lock(guard_);
  failures_.emplace_back(number, std::move(updates));
  if (failures_.size() > most_failures) failures_.pop_front();
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
void task_directory::warn_of_long_runs() {
  for (const auto& s : steps()) s->warn_of_long_runs();
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
        if (c) failure = failure_of([&] { self->note_incarnation(task, c->peer().incarnation); });
        if (failure && failure->code() == errc::aborted)
          failure = make_failure(
              errc::aborted, failure->message(),
              "; its variables and this session's plans there are lost: the request failed");
        if (failure && failure->code() == errc::deadline_exceeded && shorter)
          failure = failure_of(
              [&] { throw error(errc::unavailable, failure->reason(), failure->message()); });
        then(failure ? nullptr : std::move(c), std::move(failure));
      });
}

void task_directory::when_linked(const std::vector<placement>& tasks, deadline until,
                                 links_callback then) {
  if (tasks.empty()) return then({}, nullptr);
  const auto links = std::make_shared<std::vector<std::shared_ptr<channel>>>(tasks.size());
  const auto all = std::make_shared<countdown>(
      tasks.size(), [links, then = std::move(then)](std::shared_ptr<const error> failure) {
        failure ? then({}, std::move(failure)) : then(std::move(*links), nullptr);
      });
  for (std::size_t i = 0; i < tasks.size(); ++i)
    when_linked(tasks[i], until,
                [links, all, i](std::shared_ptr<channel> c, std::shared_ptr<const error> failure) {
                  const bool failed = failure != nullptr;
                  if (!failed) (*links)[i] = std::move(c);
                  all->end_one(std::move(failure), failed);
                });
}

/// Connects to all unknown tasks, and asks each for its devices once it is connected.
class task_directory::learning final : public std::enable_shared_from_this<learning> {
 public:
  learning(std::shared_ptr<task_directory> d, std::vector<placement> unknown, deadline until,
           failure_callback then)
      : directory_(std::move(d)),
        unknown_(std::move(unknown)),
        own_(directory_->self_->devices()),
        until_(until),
        left_(unknown_.size() + 1, std::move(then)) {}

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
                                why ? self->left_.end_one(std::move(why)) : self->ask(t, c);
                              });
    }
    directory_->cluster_->links().when_reached(
        missing, {directory_->options_.connect_timeout, until_}, directory_->closing(),
        // The incarnation is noted when the task gets a part: until then it may restart.
        [self = shared_from_this()](placement t, const std::shared_ptr<channel>& c) {
          self->ask(t, c);
        },
        [self = shared_from_this()](const std::shared_ptr<const error>& failure) {
          self->left_.end_one(failure, failure != nullptr);
        });
  }

 private:
  struct query final : answer_listener {
    std::shared_ptr<learning> asks;
    placement task;
    bool repeated;
    query(std::shared_ptr<learning> l, placement t, bool again)
        : asks(std::move(l)), task(t), repeated(again) {}
    void answered(pending& p) override {
      auto failure = failure_of([&] {
        auto answer = wire::unpack<wire::device_list>(p.get());
        asks->fill_in(answer);
        std::lock_guard lock(asks->directory_->guard_);
        asks->directory_->devices_[task] = std::move(answer.devices);
      });
      asks->end_or_repeat(task, std::move(failure), repeated);
    }
  };

  void ask(placement t, const std::shared_ptr<channel>& c, bool repeated = false) {
    auto failure = failure_of([&] {
      wire::devices m;
      for (const auto& d : own_) m.known_kernels.push_back(d.kernels->hash());
      c->call(wire::pack(m), std::make_shared<query>(shared_from_this(), t, repeated));
    });
    if (failure) end_or_repeat(t, std::move(failure), repeated);
  }

  /// A channel may have been lost long before, unnoticed: then a new one is tried, or says why
  /// there is none.
  void end_or_repeat(placement t, std::shared_ptr<const error> failure, bool repeated) {
    if (!failure || failure->code() != errc::unavailable || repeated)
      return left_.end_one(std::move(failure));
    const auto worse = failure_of([&] {
      directory_->when_linked(t, until_,
                              [self = shared_from_this(), t](const std::shared_ptr<channel>& c,
                                                             std::shared_ptr<const error> why) {
                                why ? self->left_.end_one(std::move(why)) : self->ask(t, c, true);
                              });
    });
    if (worse) left_.end_one(std::move(failure));
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

  const std::shared_ptr<task_directory> directory_;
  const std::vector<placement> unknown_;
  const std::vector<device_info> own_;
  const deadline until_;
  countdown left_;  ///< answers, and 1 until all tasks are connected
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
                                  failure_callback then) {
  auto unknown = unknown_of(tasks);
  if (unknown.empty()) return then(nullptr);
  std::make_shared<learning>(shared_from_this(), std::move(unknown), limits.until, std::move(then))
      ->begin();
}

void task_directory::learn(const std::vector<placement>& tasks, const plan_limits& limits) {
  if (knows(tasks)) return;
  await(limits, [&](auto then) { when_learned(tasks, limits, std::move(then)); });
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

void task_directory::doubt_registration(placement task) {
  std::lock_guard lock(guard_);
  if (const auto at = registered_by_.find(task); at != registered_by_.end()) at->second.reset();
}
bool task_directory::note_registration(placement task, const std::shared_ptr<channel>& link) {
  std::lock_guard lock(guard_);
  const auto [at, fresh] = registered_by_.try_emplace(task, link);
  return !fresh && std::exchange(at->second, link).lock() != link;
}

}  // namespace deft::ext
