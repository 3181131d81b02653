// SPDX-License-Identifier: Apache-2.0
// deft/session/master/task_answers.ipp: queries of several tasks, for whose answers no thread
// waits.
#pragma once
#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/session/master/task_directory.hpp>
#include <deft/session/threads/watchdog.hpp>
#include <deft/session/wire/codec.hpp>
#include <optional>

namespace deft::ext {

/// Calls to several tasks, over once all are answered, the time is over, or the session is closed.
class task_directory::answers final : public answer_listener,
                                      public std::enable_shared_from_this<answers> {
 public:
  answers(std::shared_ptr<task_directory> d, std::vector<task_call> calls, deadline until,
          failure_callback then)
      : directory_(std::move(d)),
        calls_(std::move(calls)),
        until_(std::min(until, directory_->patience())),
        then_(std::move(then)),
        pending_(calls_.size()) {}

  void begin() {
    watch_.emplace(until_, std::stop_token(), directory_->closing());
    on_stop_.emplace(watch_->stop(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->check_finished();
    });
    auto failure = failure_of([&] {
      for (std::size_t i = 0; i < calls_.size(); ++i)
        pending_[i] = calls_[i].by->call(calls_[i].m, shared_from_this());
    });
    {
      std::lock_guard lock(guard_);
      sent_ = true;
      failure_ = std::move(failure);
    }
    check_finished();
  }

  void answered(pending&) override { check_finished(); }

 private:
  void check_finished() {
    {
      std::lock_guard lock(guard_);
      if (!sent_ || over_) return;
      const bool all = std::ranges::all_of(pending_, [](const auto& p) { return p && p->done(); });
      over_ = all || failure_ != nullptr || watch_->stop().stop_requested();
      if (!over_) return;
    }
    if (!failure_) failure_ = failure_of([&] { check(); });
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (pending_[i] && !pending_[i]->done()) calls_[i].by->abandon(*pending_[i]);
    then_(failure_);
  }

  /// Throws the first error that was answered, or says who has not answered.
  void check() {
    std::string missing;
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (pending_[i]->done())
        pending_[i]->get();
      else
        missing += str(missing.empty() ? "" : ", ", calls_[i].by->peer().name);
    if (missing.empty()) return;
    if (directory_->cluster_->stopped() || directory_->closed()) throw directory_->ended_error({});
    fail(errc::deadline_exceeded, "timed out after ", duration_text(until_ - began_),
         " waiting for an answer from ", missing);
  }

  const std::shared_ptr<task_directory> directory_;
  std::vector<task_call> calls_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  const deadline until_;
  const failure_callback then_;
  std::mutex guard_;
  bool sent_ = false, over_ = false;
  std::vector<std::shared_ptr<pending>> pending_;  ///< null if not called; constant once sent_
  std::shared_ptr<const error> failure_;
  // Declared last, as it uses all of the above.
  std::optional<watched> watch_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

void task_directory::when_answered(std::vector<task_call> calls, deadline until,
                                   failure_callback then) {
  if (calls.empty()) return then(nullptr);
  std::make_shared<answers>(shared_from_this(), std::move(calls), until, std::move(then))->begin();
}

/// Asks the tasks of a step how it ended, again if their connections are lost meanwhile.
class task_directory::outcome_queries final : public std::enable_shared_from_this<outcome_queries> {
 public:
  outcome_queries(std::shared_ptr<task_directory> d, std::uint64_t number,
                  const step_updates& updates, deadline until, std::function<void(step_fate)> then)
      : directory_(std::move(d)),
        number_(number),
        wanted_(updates.tasks.size() + (updates.known ? 1 : 0)),
        until_(until),
        then_(std::move(then)) {
    if (updates.known) fates_.push_back(*updates.known);
  }

  void begin(const std::vector<placement>& tasks) {
    watch_.emplace(until_, std::stop_token(), directory_->closing());
    on_stop_.emplace(watch_->stop(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->end(step_fate::unknown);
    });
    for (auto t : tasks)
      if (t == directory_->self_name_)
        directory_->cluster_->resolve_outcome(
            directory_->session_, number_, nullptr,
            [self = shared_from_this()](step_fate f) { self->add(f); });
      else
        ask(t);
  }

 private:
  struct query final : answer_listener {
    std::shared_ptr<outcome_queries> asks;
    placement task;
    query(std::shared_ptr<outcome_queries> s, placement t) : asks(std::move(s)), task(t) {}
    void answered(pending& p) override {
      step_fate f{};
      const auto failure = failure_of([&] { f = wire::unpack<wire::fate_of_step>(p.get()).fate; });
      failure ? asks->ask_again(task, *failure) : asks->add(f);
    }
  };

  void ask(placement task) {
    directory_->when_linked(
        task, until_,
        [self = shared_from_this(), task](const std::shared_ptr<channel>& c,
                                          std::shared_ptr<const error> failure) {
          if (!failure)
            failure = failure_of([&] {
              auto p =
                  c->call(wire::pack(wire::resolve_step{self->directory_->session_, self->number_}),
                          std::make_shared<query>(self, task));
              std::unique_lock lock(self->guard_);
              if (!self->over_) return static_cast<void>(self->asked_.emplace_back(c, p));
              lock.unlock();
              c->abandon(*p);
            });
          if (failure) self->ask_again(task, *failure);
        });
  }
  void ask_again(placement task, const error& failure) {
    const bool over = watch_->stop().stop_requested() || directory_->cluster_->stopped() ||
                      directory_->cluster_->links().has_ended(task) ||
                      std::chrono::steady_clock::now() >= until_;
    if (failure.code() == errc::unavailable && !over)
      ask(task);
    else
      add(step_fate::unknown);  // it has restarted, or cannot be reached
  }

  void add(step_fate f) {
    {
      std::lock_guard lock(guard_);
      fates_.push_back(f);
      if (fates_.size() < wanted_) return;
    }
    end(of_all());
  }
  step_fate of_all() const {
    const auto all = [&](step_fate f) {
      return std::ranges::count(fates_, f) == static_cast<std::ptrdiff_t>(fates_.size());
    };
    if (all(step_fate::unchanged)) return step_fate::unchanged;
    if (std::ranges::count(fates_, step_fate::unknown)) return step_fate::unknown;
    return all(step_fate::applied) ? step_fate::applied : step_fate::in_part;
  }
  void end(step_fate f) {
    if (over_.exchange(true)) return;
    decltype(asked_) asked;
    {
      std::lock_guard lock(guard_);
      asked.swap(asked_);
    }
    for (const auto& [by, answer] : asked)
      if (!answer->done()) by->abandon(*answer);
    then_(f);
  }

  const std::shared_ptr<task_directory> directory_;
  const std::uint64_t number_;
  const std::size_t wanted_;  ///< fates
  const deadline until_;
  const std::function<void(step_fate)> then_;
  std::mutex guard_;
  std::vector<step_fate> fates_;
  std::vector<std::pair<std::shared_ptr<channel>, std::shared_ptr<pending>>> asked_;
  std::atomic<bool> over_{false};
  // Declared last, as it uses all of the above.
  std::optional<watched> watch_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

void task_directory::fate_of(std::uint64_t number, deadline until,
                             std::function<void(step_fate)> then) {
  std::optional<step_updates> updates;
  {
    std::lock_guard lock(guard_);
    const auto at = std::ranges::find(failures_, number, &decltype(failures_)::value_type::first);
    if (at != failures_.end()) updates = at->second;
  }
  if (!updates) return then(step_fate::unknown);
  if (updates->tasks.empty()) return then(updates->known.value_or(step_fate::unchanged));
  std::make_shared<outcome_queries>(shared_from_this(), number, *updates, until, std::move(then))
      ->begin(updates->tasks);
}

}  // namespace deft::ext
