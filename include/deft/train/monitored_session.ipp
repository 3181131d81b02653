// SPDX-License-Identifier: Apache-2.0
// deft/train/monitored_session.ipp: variables that get values together, and hooks.
#pragma once
#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/log.hpp>
#include <deft/op/global_step.hpp>
#include <deft/op/group.hpp>
#include <deft/op/initialized.hpp>
#include <deft/session/session_impl.hpp>
#include <deft/train/checkpoint_index.hpp>
#include <deft/train/hooks.hpp>
#include <deft/train/monitored_session.hpp>
#include <deft/train/recovery.ipp>
#include <deft/train/replicas/operations.hpp>
#include <deft/train/round_nodes.ipp>
#include <deft/train/sync_replicas.hpp>
#include <exception>
#include <optional>
#include <unordered_set>

namespace deft {
namespace {

constexpr const char* checkpoint_name = "model";
constexpr int most_failed_hooks = 3;  ///< runs in a row after which a hook has failed

std::string names_of(const std::vector<any_variable>& variables) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < variables.size() && i < most; ++i)
    text += ext::str(i ? ", " : "", "\"", variables[i].name(), "\"");
  if (variables.size() > most) text += ext::str(" and ", variables.size() - most, " more");
  return text;
}

/// Each worker would train variables of its own, and nothing else would say so.
void warn_of_unused_servers(const task& self, const std::vector<any_variable>& variables,
                            ext::source_location w) {
  constexpr const char* servers = "ps";
  if (variables.empty() || self.cluster().tasks(servers) == 0) return;
  const auto is_there = [](const any_variable& v) {
    const ext::placement at = v.handle().node->device();
    return at && at->job == servers;
  };
  if (std::ranges::any_of(variables, is_there)) return;
  logging::warning("monitored_session", w.known() ? ext::str(" ", ext::where_of(w)) : std::string(),
                   ": this job has tasks of job \"", servers,
                   "\" and no variable of the graph is on them: auto there = "
                   "on(replica_device(self.cluster(), self.device())), before the model is "
                   "written, places them there");
}

std::string newest_checkpoint(const monitored_options& o) {
  return o.checkpoint_dir.empty() ? std::string()
                                  : latest_checkpoint(o.checkpoint_dir, checkpoint_name);
}

/// The options of the first session. Random numbers go on where the session was that saved the
/// checkpoint: one in a single process has its variables to itself, and is not made anew.
session_options first_options(const task& self, const monitored_options& given) {
  session_options o = given.session;
  if (self.distributed() || o.first_step != 0) return o;
  const std::string saved = newest_checkpoint(given);
  if (saved.empty()) return o;
  const detail::checkpoint_index index = detail::read_index(saved);
  o.first_step = index.draws.value_or(static_cast<std::uint64_t>(detail::saved_step(index)));
  return o;
}

/// A number of drawing steps that no session can have made until the global step was `step`, unless
/// it has drawn in more than a million steps for each of those.
std::uint64_t beyond_draws(std::int64_t step) {
  constexpr std::int64_t most = std::int64_t{1} << 43;
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(step, 0, most)) << 20;
}

/// What counts the global step in a run: its updates, or the end of a synchronous round.
std::vector<ext::node_ref> counting_nodes(std::span<const ext::output> fetches,
                                          std::span<const ext::output> fed,
                                          const ext::output& counted) {
  const ext::resource_key key = counted.node->def->resources(counted.node->attributes).front().key;
  const auto counts = [&](const ext::node& n) {
    if (n.def == &ext::record_of<op::arrive_at_round>) return true;
    if (n.def->role != op_role::assign && n.def->role != op_role::update) return false;
    return std::ranges::any_of(n.def->resources(n.attributes),
                               [&](const ext::resource_ref& r) { return r.key == key; });
  };
  std::vector<ext::node_ref> found, left;
  std::unordered_set<const ext::node*> seen;
  const auto visit = [&](const ext::output& o) {
    if (std::ranges::find(fed, o) == fed.end() && seen.insert(o.node.get()).second)
      left.push_back(o.node);
  };
  for (const ext::output& f : fetches) visit(f);
  while (!left.empty()) {
    const ext::node_ref n = std::move(left.back());
    left.pop_back();
    if (counts(*n)) found.push_back(n);
    for (const auto& i : n->inputs()) visit({ext::node_ref(i.node), i.port});
    for (const auto& c : n->controls()) visit({ext::node_ref(c), ext::run_only});
  }
  return found;
}

}  // namespace

monitored_session::monitored_session(task& self, monitored_options options, ext::source_location w)
    : self_(self),
      location_(w),
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
    if (!h) ext::fail(errc::invalid_argument, "[monitored_session] one of the hooks is null");
    h->begin();
  }
  if (auto h = detail::replica_hook(self, graph_)) options_.hooks.push_back(std::move(h));
  {
    const ext::scope outside{ext::scope_ref()};  // the caller's devices and control dependencies
    for (const auto& v : graph_.variables()) {
      variables_.emplace_back(v);
      generations_.push_back(detail::value_generation(variables_.back()));
    }
    warn_of_unused_servers(self, variables_, w);
    if (!variables_.empty())
      for (const auto& n : at_rounds<op::rounds_generation>(graph_))
        generations_.emplace_back(ext::output{n, 0});
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

void monitored_session::close() {
  if (std::exchange(closed_, true)) return;
  std::exception_ptr first;
  for (; ended_ < options_.hooks.size(); ++ended_) try {
      end(*options_.hooks[ended_]);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  if (first) std::rethrow_exception(first);
}

void monitored_session::end(hook& h) {
  constexpr int most = 3;
  for (int attempt = 1;; ++attempt) try {
      return h.end(context_);
    } catch (const error& e) {
      if (attempt == most) throw;
      recover(e, 0, true);
    }
}

monitored_session::~monitored_session() {
  if (std::uncaught_exceptions() <= exceptions_) try {
      close();
    } catch (const std::exception& e) {
      logging::log(logging::level::error, "a hook's end failed: ", e.what());
      self_.note_failure();
    } catch (...) {
      logging::log(logging::level::error,
                   "a hook's end failed with an exception that is not a std::exception");
      self_.note_failure();
    }
  options_.hooks.clear();  // before the session that they use
}

run_options monitored_session::while_starting(std::chrono::steady_clock::time_point until) const {
  const auto left = until - std::chrono::steady_clock::now();
  return {.timeout = std::max<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1)),
          .cancel = asked_to_stop_.get_token()};
}

std::vector<std::int64_t> monitored_session::generations(
    std::chrono::steady_clock::time_point until) {
  std::vector<std::int64_t> all;
  if (generations_.empty()) return all;
  for (const any_array& g : session_.run(while_starting(until), generations_, location_))
    all.push_back(g.item<std::int64_t>());
  return all;
}

std::vector<any_variable> monitored_session::without_values(
    std::chrono::steady_clock::time_point until) {
  return without_values(generations(until));
}

std::vector<any_variable> monitored_session::without_values(
    const std::vector<std::int64_t>& generations) const {
  std::vector<any_variable> none;
  for (std::size_t i = 0; i < variables_.size(); ++i)
    if (!generations[i]) none.push_back(variables_[i]);
  return none;
}

void monitored_session::give_values(std::chrono::steady_clock::time_point until, bool lost) {
  if (variables_.empty()) return;
  // Also waits for the tasks, which devices_of would without an end.
  const std::vector<std::int64_t> now = generations(until);
  const std::vector<any_variable> none = without_values(now);
  if (self_.is_chief()) {
    const bool torn = none.empty() && std::ranges::count(now, 0) > 0;
    const bool are_kept =
        !lost || (now.size() == seen_.size() &&
                  std::equal(now.begin(), now.begin() + std::ssize(variables_), seen_.begin()));
    if (torn && are_kept && newest_checkpoint(options_).empty()) return keep_torn(until);
    if (!none.empty() || torn || lost) give_all(until);
    return;
  }
  // The chief gives values to what several workers share; what lives here is this worker's own.
  std::vector<ext::output> reads;
  for (const auto& v : none) reads.push_back(v.handle());
  std::vector<operation> steps;
  if (!reads.empty()) {
    const auto devices = session_.impl().devices_of(reads);
    const device_name here = parse_device(self_.device()).task_name();
    for (std::size_t i = 0; i < none.size(); ++i)
      if (devices[i]->task_name() == here) steps.push_back(detail::initialize_if_empty(none[i]));
  }
  if (!steps.empty()) session_.run(while_starting(until), group(steps), location_);
  await_values(until);
}

void monitored_session::give_all(std::chrono::steady_clock::time_point until) {
  const std::string saved = newest_checkpoint(options_);
  auto in_graph = as_default(graph_);
  std::vector<operation> begin, end;
  if (self_.distributed())
    for (const auto& v : variables_) {
      begin.push_back(detail::begin_restoring(v));
      end.push_back(detail::end_restoring(v));
    }
  // Gradients of the values that are taken away count no more.
  const std::vector<ext::node_ref> rounds = at_rounds<op::restart_rounds>(graph_);
  // A state that is restored in part is seen as such, by the next chief, too: values count when all
  // are there.
  if (!begin.empty()) session_.run(while_starting(until), group(begin), location_);
  if (!rounds.empty())
    session_.run(while_starting(until), detail::make_group(rounds, location_), location_);
  if (saved.empty())
    session_.run(while_starting(until), initialize_all(location_), location_);
  else
    saver().restore(session_, saved, {}, location_);
  if (!end.empty()) session_.run(while_starting(until), group(end), location_);
  given_ = saved.empty() ? "the variables were initialized anew" : ext::str("restored ", saved);
  logging::info(given_);
}

void monitored_session::keep_torn(std::chrono::steady_clock::time_point until) {
  auto in_graph = as_default(graph_);
  session_.run(while_starting(until),
               detail::make_group(at_rounds<op::restart_rounds>(graph_), location_), location_);
  given_ = "an update may have been applied in part, and there is no checkpoint to restore";
  logging::warning(given_);
}

void monitored_session::await_values(std::chrono::steady_clock::time_point until) {
  std::vector<operation> steps;
  for (const auto& v : variables_) steps.push_back(await_initialized(v));
  for (const auto& n : at_rounds<op::await_whole_rounds>(graph_)) steps.emplace_back(n);
  // Before the run itself is called long.
  const auto long_time =
      std::min<std::chrono::nanoseconds>(std::chrono::seconds(9), options_.start_timeout / 4);
  const operation await = group(steps);
  for (bool said = false;;) try {
      session_.run(while_starting(std::min(until, std::chrono::steady_clock::now() + long_time)),
                   await, location_);
      // A restoration may be under way, on some tasks: it is not if nothing changes.
      const std::vector<std::int64_t> now = generations(until);
      if (std::ranges::count(now, 0) == 0 && generations(until) == now) return;
    } catch (const error& e) {
      if (e.code() != errc::deadline_exceeded) throw;
      const auto none = without_values(
          std::max(until, std::chrono::steady_clock::now() + std::chrono::seconds(5)));
      const std::string what = ext::str("waiting for the chief, ", self_.cluster().chief(), ", to ",
                                        none.empty() ? "restore" : "initialize", " ",
                                        none.empty() ? "the variables" : names_of(none));
      if (std::chrono::steady_clock::now() >= until)
        ext::fail(errc::deadline_exceeded, "[monitored_session] timed out ", what);
      if (said) continue;
      logging::warning(what);
      said = true;
    }
}

void monitored_session::make_ready(std::chrono::steady_clock::time_point until) {
  const ext::scope outside{ext::scope_ref()};  // the caller's devices and control dependencies
  give_values(until, false);
  seen_ = generations(until);
  if (const ext::node_ref counted = graph_.find_variable("global_step");
      counted && self_.distributed()) {
    const any_array step =
        session_.run(while_starting(until), any_tensor(ext::output{counted, 0}), location_);
    began_at_ = step.item<std::int64_t>();
    // Random numbers go on beyond those that an earlier process of this task may have drawn.
    session_options o = session_.options();
    if (!ready_ && options_.session.first_step == 0) o.first_step = beyond_draws(began_at_);
    if (o.first_step > session_.options().first_step) session_ = deft::session(self_, o);
  }
  ready_ = true;
  for (std::size_t i = ended_; i < options_.hooks.size(); ++i)
    options_.hooks[i]->after_create(context_);
}

ext::output monitored_session::step_after(std::span<const ext::output> fetches,
                                          std::span<const ext::output> fed) {
  constexpr std::size_t most_kept = 8;
  auto in_graph = as_default(graph_);
  const ext::output counted = any_tensor(detail::expect_global_step("monitored_session")).handle();
  std::vector<ext::output> key(fetches.begin(), fetches.end());
  key.insert(key.end(), fed.begin(), fed.end());
  const std::lock_guard lock(steps_guard_);
  const auto known = std::ranges::find(steps_after_, key, [](auto& s) { return s.first; });
  if (known != steps_after_.end()) return known->second;
  const ext::scope outside{ext::scope_ref()};
  const ext::control_scope after(counting_nodes(fetches, fed, counted));
  const ext::output step = detail::read_variable(counted, location_);
  if (steps_after_.size() == most_kept) steps_after_.erase(steps_after_.begin());
  return steps_after_.emplace_back(std::move(key), step).second;
}

ext::step_results monitored_session::run_request(std::span<const ext::output> fetches,
                                                 std::span<const ext::output> targets,
                                                 std::span<const ext::feed_ref> feeds,
                                                 const run_options& options,
                                                 ext::source_location w) {
  if (closed_) ext::fail(errc::failed_precondition, "[monitored_session] it was closed");
  std::optional<ext::step_results> results;
  std::vector<run_arguments> added;  // by each hook
  bool updated = false;              // the variables
  for (int attempt = 1; !results; ++attempt) {
    std::uint64_t own = 0, &step = options.step ? *options.step : own;
    step = 0;
    try {
      std::vector<ext::output> all(fetches.begin(), fetches.end());
      std::vector<ext::output> fed(targets.begin(), targets.end());
      std::vector<ext::feed_ref> values(feeds.begin(), feeds.end());
      run_options o = options;
      o.step = &step;
      if (!o.timeout.count()) o.timeout = session_.options().timeout;
      added.clear();
      bool counted = false;
      for (const auto& h : options_.hooks) {
        const run_arguments& a = added.emplace_back(h->before_run(context_));
        for (const auto& t : a.fetches) all.push_back(t.handle());
        for (const auto& f : a.feeds) fed.push_back(f.target()), values.push_back(f.value());
        o.timeout = std::max(o.timeout, a.timeout);
        if (a.trace && !o.trace) o.trace = a.trace;
        counted |= a.global_step;
      }
      // Computed again, the updates have been made.
      if (counted) all.push_back(step_after(updated ? std::span<const ext::output>() : all, fed));
      results.emplace(updated ? compute_again(all, fed, values, o, w)
                              : session_.run_request(all, fed, values, o, w));
      for (const auto& a : added) {
        if (a.trace && a.trace != o.trace) *a.trace = *o.trace;
        if (a.graph) *a.graph = session_.describe_request(all, fed).placed;
      }
      if (counted) context_.global_step_ = results->peek(all.size() - 1).item<std::int64_t>();
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
