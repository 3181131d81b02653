// SPDX-License-Identifier: Apache-2.0
// deft/train/recovery.ipp: how a monitored session goes on when tasks were lost.
#pragma once
#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/log.hpp>
#include <deft/plan/order.hpp>
#include <deft/session/session_impl.hpp>
#include <deft/train/monitored_session.hpp>
#include <deft/train/round_updates.hpp>

namespace deft {
namespace {

constexpr int most_attempts = 10;  ///< of a run, or a recovery: tasks may be lost again

bool is_loss(const error& e) { return e.code() == errc::unavailable || e.code() == errc::aborted; }

/// The clauses of `text`, the first one and those that `known` does not have.
std::string news_of(const std::string& text, const std::string& known) {
  constexpr std::string_view between = "; ";
  std::string all;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + between.size()) {
    end = std::min(text.find(between, begin), text.size());
    const std::string clause = text.substr(begin, end - begin);
    if (all.empty() || known.find(clause) == known.npos)
      all += ext::str(all.empty() ? "" : between, clause);
  }
  return all;
}

/// Without the time of the last of several attempts.
std::string without_time(std::string text) {
  constexpr std::string_view before = ": timed out after ", after = " waiting for ";
  const auto begin = text.find(before), end = text.find(after, std::min(begin, text.size()));
  if (end != text.npos) text.erase(begin + 1, end - begin - 1);
  return text;
}

}  // namespace

bool monitored_session::has_kept_values(std::chrono::steady_clock::time_point until) {
  if (generations_.empty()) return true;
  const auto begin = std::chrono::steady_clock::now();
  for (int attempt = 1;; ++attempt) try {
      const std::vector<std::int64_t> now = generations(until);
      return now == seen_ && std::ranges::count(now, 0) == 0;
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
    given_.clear();
    const bool lost = !has_kept_values(until);
    if (lost) {
      updated = false;  // they get other values
    } else if (step != 0) {
      const step_fate fate = session_.fate_of(step, until - std::chrono::steady_clock::now());
      if (fate == step_fate::unknown)
        ext::fail(errc::unavailable, "nobody knows how the step ended");
      if (fate == step_fate::in_part)
        logging::warning("the step was applied in part, and is not repeated");
      updated |= fate != step_fate::unchanged;
    }
    make_anew(until, lost);
    if (given_.empty())
      given_ = lost ? "the chief has restored or initialized the variables"
                    : "the variables have kept their values";
    logging::warning(
        self_.device(), " has recovered: ", given_,
        began_at_ < 0 ? "" : ext::str("; training goes on at global step ", began_at_));
    return updated;
  } catch (const error& e) {
    throw why.with_message(ext::str(why.message(), "; recovery failed after ",
                                    ext::duration_text(std::chrono::steady_clock::now() - began),
                                    ": ", news_of(without_time(e.message()), why.message())));
  }
}

void monitored_session::make_anew(std::chrono::steady_clock::time_point until, bool lost) {
  for (int attempt = 1;; ++attempt) try {
      auto in_graph = as_default(graph_);
      for (const auto& h : options_.hooks)
        if (auto* updates = dynamic_cast<ext::round_updates*>(h.get())) updates->end_updates();
      session_options o = session_.options();  // with the same stream, which goes on
      o.first_step = session_.impl().on().draws().value_or(o.first_step);
      session_ = deft::session(self_, o);
      if (lost) {
        const ext::scope outside{ext::scope_ref()};
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

ext::step_results monitored_session::compute_again(std::span<const ext::output> fetches,
                                                   std::span<const ext::output> fed,
                                                   std::span<const ext::feed_ref> values,
                                                   const run_options& options,
                                                   ext::source_location w) {
  std::vector<ext::output> asked;
  for (const ext::output& f : fetches) {
    if (f.port == ext::run_only) continue;
    asked.push_back(f);
    const ext::plan_description needed = session_.describe_request({&f, 1}, {});
    if (std::ranges::any_of(needed.placed.nodes, ext::plan::has_update))
      throw error(
          errc::data_loss,
          "the step was applied, but a value that only it yields was lost with a connection",
          name_of(*f.node), f.node->location());
  }
  // A fed tensor that is fetched too is one that the run needs.
  asked.insert(asked.end(), fed.begin(), fed.end());
  std::vector<any_array> all(fetches.size());
  if (asked.size() == fed.size()) return ext::step_results(std::move(all));
  ext::step_results found = session_.run_request(asked, fed, values, options, w);
  for (std::size_t i = 0, next = 0; i < fetches.size(); ++i)
    if (fetches[i].port != ext::run_only) all[i] = found.take(next++);
  return ext::step_results(std::move(all));
}

}  // namespace deft
