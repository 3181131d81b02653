// SPDX-License-Identifier: Apache-2.0
// deft/train/monitored_session.ipp: variables that get values together, hooks, and recovery.
#pragma once
#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/log.hpp>
#include <deft/op/group.hpp>
#include <deft/op/initialized.hpp>
#include <deft/plan/order.hpp>
#include <deft/session/session_impl.hpp>
#include <deft/train/checkpoint_index.hpp>
#include <deft/train/hooks.hpp>
#include <deft/train/monitored_session.hpp>
#include <deft/train/sync_replicas.hpp>
#include <exception>
#include <optional>

namespace deft {
namespace {

constexpr const char* checkpoint_name = "model";
constexpr int most_attempts = 10;     ///< of a run, or a recovery: tasks may be lost again
constexpr int most_failed_hooks = 3;  ///< runs in a row after which a hook has failed

bool is_loss(const error& e) { return e.code() == errc::unavailable || e.code() == errc::aborted; }

/// The clauses of `text`, the first one and those that `known` does not have.
std::string news_of(const std::string& text, const std::string& known) {
  constexpr std::string_view between = "; ";
  std::string all;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + between.size()) {
    end = std::min(text.find(between, begin), text.size());
    const std::string clause = text.substr(begin, end - begin);
    if (all.empty() || known.find(clause) == known.npos)
      all += str(all.empty() ? "" : between, clause);
  }
  return all;
}

std::string names_of(const std::vector<any_variable>& variables) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < variables.size() && i < most; ++i)
    text += str(i ? ", " : "", "\"", variables[i].name(), "\"");
  if (variables.size() > most) text += str(" and ", variables.size() - most, " more");
  return text;
}

std::string newest_checkpoint(const monitored_options& o) {
  return o.checkpoint_dir.empty() ? std::string()
                                  : latest_checkpoint(o.checkpoint_dir, checkpoint_name);
}

/// The options of the first session. Random numbers go on at the step where the checkpoint was
/// saved: a session in a single process has its variables to itself, and is not made anew.
session_options first_options(const task& self, const monitored_options& given) {
  session_options o = given.session;
  if (self.distributed() || o.first_step != 0) return o;
  const std::string saved = newest_checkpoint(given);
  if (!saved.empty()) o.first_step = static_cast<std::uint64_t>(detail::saved_step(saved));
  return o;
}

}  // namespace

monitored_session::monitored_session(task& self, monitored_options options, source_place w)
    : self_(self),
      place_(w),
      options_(std::move(options)),
      graph_(current_graph()),
      session_(self, first_options(self, options_)) {
  if (self.is_chief() && !options_.checkpoint_dir.empty())
    options_.hooks.push_back(
        save_checkpoints(options_.checkpoint_dir, {.name = checkpoint_name,
                                                   .every_steps = options_.checkpoint_steps,
                                                   .interval = options_.checkpoint_interval,
                                                   .max_to_keep = options_.max_to_keep,
                                                   .keep_every_hours = options_.keep_every_hours}));
  for (auto& h : options_.hooks) {
    if (!h) fail(errc::invalid_argument, "[monitored_session] one of the hooks is null");
    h->begin();
  }
  if (auto h = detail::replica_hook(self, graph_)) options_.hooks.push_back(std::move(h));
  {
    const scope outside{scope_ref()};  // the caller's devices and control dependencies
    for (const auto& v : graph_.variables()) {
      variables_.emplace_back(v);
      have_values_.push_back(is_initialized(variables_.back()));
    }
  }
  on_signal_ = self.when_asked_to_stop([this] {
    request_stop();
    asked_to_stop_.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  try {
    make_ready(begin + options_.start_timeout);
  } catch (const error& e) {
    // A connection that was lost, and not a task that was waited for in vain.
    const auto until = begin + options_.session.connect_timeout;
    if (!self.distributed() || !is_loss(e) || std::chrono::steady_clock::now() >= until) throw;
    logging::warning(e.what(), "; starting again");
    make_anew(begin + options_.start_timeout, e.code() == errc::aborted);
  }
}

monitored_session::~monitored_session() {
  if (std::uncaught_exceptions() <= exceptions_)
    for (auto& h : options_.hooks) try {
        h->end(context_);
      } catch (const std::exception& e) {
        logging::warning("a hook's end failed: ", e.what());
      } catch (...) {
        logging::warning("a hook's end failed with an exception that is not a std::exception");
      }
  options_.hooks.clear();  // before the session that they use
}

run_options monitored_session::while_starting(std::chrono::steady_clock::time_point until) const {
  const auto left = until - std::chrono::steady_clock::now();
  return {.timeout = std::max<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1)),
          .cancel = asked_to_stop_.get_token()};
}

std::vector<any_variable> monitored_session::without_values(
    const std::vector<std::size_t>& which, std::chrono::steady_clock::time_point until) {
  std::vector<any_tensor> asked;
  for (const std::size_t i : which) asked.push_back(have_values_[i]);
  std::vector<any_variable> none;
  if (asked.empty()) return none;
  const std::vector<any_array> found = session_.run(while_starting(until), asked, place_);
  for (std::size_t i = 0; i < which.size(); ++i)
    if (!found[i].item<bool>()) none.push_back(variables_[which[i]]);
  return none;
}

void monitored_session::give_values(std::chrono::steady_clock::time_point until, bool lost) {
  std::vector<std::size_t> all, own, others;
  for (std::size_t i = 0; i < variables_.size(); ++i) all.push_back(i);
  if (all.empty()) return;
  if (self_.is_chief()) {
    if (without_values(all, until).empty() && !lost) return;
    const std::string saved = newest_checkpoint(options_);
    auto in_graph = as_default(graph_);
    if (saved.empty()) {
      session_.run(while_starting(until), initialize_all(place_), place_);
    } else {
      saver().restore(session_, saved, {}, place_);
      logging::info("restored ", saved);
    }
    return;
  }
  without_values(all, until);  // waits for the tasks, which devices_of would without an end
  // The chief gives values to what several workers share; what lives here is this worker's own.
  std::vector<output> reads;
  for (const auto& v : variables_) reads.push_back(v.handle());
  const auto devices = session_.impl().devices_of(reads);
  const device_name here = parse_device(self_.device()).task_name();
  for (const std::size_t i : all) (devices[i]->task_name() == here ? own : others).push_back(i);
  std::vector<operation> steps;
  for (const auto& v : without_values(own, until)) steps.push_back(v.initializer());
  if (!steps.empty()) session_.run(while_starting(until), group(steps), place_);
  await_values(others, until);
}

void monitored_session::await_values(const std::vector<std::size_t>& which,
                                     std::chrono::steady_clock::time_point until) {
  std::vector<operation> steps;
  for (const std::size_t i : which) steps.push_back(await_initialized(variables_[i]));
  if (steps.empty()) return;
  // Before the run itself is called long.
  const auto long_time =
      std::min<std::chrono::nanoseconds>(std::chrono::seconds(9), options_.start_timeout / 4);
  const operation await = group(steps);
  for (bool said = false;;) try {
      session_.run(while_starting(std::min(until, std::chrono::steady_clock::now() + long_time)),
                   await, place_);
      return;
    } catch (const error& e) {
      if (e.code() != errc::deadline_exceeded) throw;
      const auto none = without_values(
          which, std::max(until, std::chrono::steady_clock::now() + std::chrono::seconds(5)));
      const std::string what = str("waiting for the chief, ", self_.cluster().chief(),
                                   ", to initialize ", names_of(none));
      if (std::chrono::steady_clock::now() >= until)
        fail(errc::deadline_exceeded, "[monitored_session] timed out ", what);
      if (said || none.empty()) continue;
      logging::warning(what);
      said = true;
    }
}

void monitored_session::make_ready(std::chrono::steady_clock::time_point until) {
  const scope outside{scope_ref()};  // the caller's devices and control dependencies
  give_values(until, false);
  // Random numbers go on where the steps that are counted ended.
  if (const node_ref counted = graph_.find_variable("global_step");
      counted && self_.distributed() && options_.session.first_step == 0) {
    const any_array step =
        session_.run(while_starting(until), any_tensor(output{counted, 0}), place_);
    session_options o = session_.options();
    o.first_step = static_cast<std::uint64_t>(step.item<std::int64_t>());
    if (o.first_step != session_.options().first_step) session_ = deft::session(self_, o);
  }
  for (auto& h : options_.hooks) h->after_create(context_);
}

bool monitored_session::has_kept_values(std::chrono::steady_clock::time_point until) {
  if (have_values_.empty()) return true;
  const auto begin = std::chrono::steady_clock::now();
  for (int attempt = 1;; ++attempt) try {
      const std::vector<any_array> found =
          session_.run(while_starting(until), have_values_, place_);
      return std::ranges::all_of(found, [](const any_array& v) { return v.item<bool>(); });
    } catch (const error& e) {
      if (e.code() == errc::aborted) return false;  // a task has restarted
      const auto now = std::chrono::steady_clock::now();
      // Errors that come at once do not end by waiting, as when this task's own server was stopped.
      const bool in_vain = attempt >= most_attempts && now - begin < std::chrono::seconds(1);
      if (e.code() != errc::unavailable || now >= until || in_vain || should_stop()) throw;
    }
}

bool monitored_session::recover(const error& why, std::uint64_t step, bool updated) {
  if (!self_.distributed() || !is_loss(why)) throw;
  logging::warning(why.what(), "; recovering");
  const auto began = std::chrono::steady_clock::now(), until = began + options_.start_timeout;
  try {
    const bool lost = !has_kept_values(until);
    if (lost) {
      updated = false;  // they get other values
    } else if (step != 0) {
      const step_fate fate = session_.fate_of(step, until - std::chrono::steady_clock::now());
      if (fate == step_fate::unknown) fail(errc::unavailable, "nobody knows how the step ended");
      if (fate == step_fate::in_part)
        logging::warning("the step was applied in part, and is not repeated");
      updated |= fate != step_fate::unchanged;
    }
    make_anew(until, lost);
    logging::warning(self_.device(), " has recovered");
    return updated;
  } catch (const error& e) {
    throw error(why.code(),
                str(why.message(), "; recovery failed after ",
                    duration_text(std::chrono::steady_clock::now() - began), ": ",
                    news_of(e.message(), why.message())),
                why.node(), why.where(), why.device());
  }
}

void monitored_session::make_anew(std::chrono::steady_clock::time_point until, bool lost) {
  for (int attempt = 1;; ++attempt) try {
      auto in_graph = as_default(graph_);
      session_ = deft::session(self_, session_.options());
      if (lost) {
        const scope outside{scope_ref()};
        give_values(until, true);
        lost = false;  // whatever else fails, they are not given others again
      }
      return make_ready(until);
    } catch (const error& e) {
      if (!is_loss(e) || attempt == most_attempts || std::chrono::steady_clock::now() >= until ||
          should_stop())
        throw;
      lost |= e.code() == errc::aborted;  // another task has restarted
    }
}

step_results monitored_session::compute_again(std::span<const output> fetches,
                                              std::span<const output> fed,
                                              std::span<const feed_ref> values,
                                              const run_options& options, source_place w) {
  std::vector<output> asked;
  for (const output& f : fetches) {
    if (f.port == run_only) continue;
    asked.push_back(f);
    const plan_description needed = session_.describe_request({&f, 1}, {});
    if (std::ranges::any_of(needed.placed.nodes, plan::is_update))
      throw error(
          errc::data_loss,
          "the step was applied, but a value that only it yields was lost with a connection",
          name_of(*f.node), f.node->place());
  }
  // A fed tensor that is fetched too is one that the run needs.
  asked.insert(asked.end(), fed.begin(), fed.end());
  std::vector<any_array> all(fetches.size());
  if (asked.size() == fed.size()) return step_results(std::move(all));
  step_results found = session_.run_request(asked, fed, values, options, w);
  for (std::size_t i = 0, next = 0; i < fetches.size(); ++i)
    if (fetches[i].port != run_only) all[i] = found.take(next++);
  return step_results(std::move(all));
}

step_results monitored_session::run_request(std::span<const output> fetches,
                                            std::span<const output> targets,
                                            std::span<const feed_ref> feeds,
                                            const run_options& options, source_place w) {
  std::optional<step_results> results;
  std::vector<run_arguments> added;  // by each hook
  bool updated = false;              // the variables
  for (int attempt = 1; !results; ++attempt) {
    std::uint64_t own = 0, &step = options.step ? *options.step : own;
    step = 0;
    try {
      std::vector<output> all(fetches.begin(), fetches.end());
      std::vector<output> fed(targets.begin(), targets.end());
      std::vector<feed_ref> values(feeds.begin(), feeds.end());
      run_options o = options;
      o.step = &step;
      if (!o.timeout.count()) o.timeout = session_.options().timeout;
      added.clear();
      for (const auto& h : options_.hooks) {
        const run_arguments& a = added.emplace_back(h->before_run(context_));
        for (const auto& t : a.fetches) all.push_back(t.handle());
        for (const auto& f : a.feeds) fed.push_back(f.target()), values.push_back(f.value());
        o.timeout = std::max(o.timeout, a.timeout);
        if (a.trace && !o.trace) o.trace = a.trace;
      }
      results.emplace(updated ? compute_again(all, fed, values, o, w)
                              : session_.run_request(all, fed, values, o, w));
      for (const auto& a : added) {
        if (a.trace && a.trace != o.trace) *a.trace = *o.trace;
        if (a.graph) *a.graph = session_.describe_request(all, fed).placed;
      }
    } catch (const error& e) {
      if (attempt == most_attempts) throw;
      updated = recover(e, step, updated);
    }
  }
  std::size_t next = fetches.size();
  std::vector<any_array> values;
  std::exception_ptr lost;  // each hook hears of the run before the session recovers
  for (std::size_t i = 0; i < options_.hooks.size(); ++i) {
    values.clear();
    for (std::size_t n = added[i].fetches.size(); n > 0; --n)
      values.push_back(results->peek(next++));
    try {
      options_.hooks[i]->after_run(context_, values);
    } catch (const error& e) {
      if (!is_loss(e)) throw;
      if (!lost) lost = std::current_exception();
    }
  }
  if (lost) try {
      std::rethrow_exception(lost);
    } catch (const error& e) {
      // After every run: it is not a loss, though the code says so.
      if (failed_hooks_ == most_failed_hooks) throw;
      recover(e, 0, true);  // the run itself has succeeded
    }
  failed_hooks_ = lost ? failed_hooks_ + 1 : 0;
  return std::move(*results);
}

}  // namespace deft
