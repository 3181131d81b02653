// SPDX-License-Identifier: Apache-2.0
// deft/session/session.ipp: the plans that a session keeps; umbrella of session/ and of those of
// its folders without one of their own.
#pragma once
#include <algorithm>
#include <deft/core/hash.hpp>
#include <deft/core/log.hpp>
#include <deft/core/thread.hpp>
#include <deft/op/plan/unfuse.hpp>
#include <deft/session/client/remote_engine.ipp>
#include <deft/session/cluster/cluster_spec.ipp>
#include <deft/session/cluster/own_address.ipp>
#include <deft/session/explain.ipp>
#include <deft/session/launch/task.hpp>
#include <deft/session/master/master.hpp>
#include <deft/session/session_impl.hpp>
#include <deft/session/threads/background_work.ipp>
#include <deft/session/threads/watchdog.ipp>

namespace deft {
namespace {

/// A plan shared by expressions that differ in literals, with the values of those literals.
class bound_plan final : public ext::ready_plan {
 public:
  bound_plan(std::shared_ptr<ext::ready_plan> plan, std::vector<any_array> literals)
      : plan_(std::move(plan)), literals_(std::move(literals)) {}

  ext::step_results run(std::span<const ext::feed_ref> feeds, const run_options& options) override {
    std::vector<ext::feed_ref> all(feeds.begin(), feeds.end());
    for (const auto& v : literals_) all.push_back(ext::feed_ref::share(v));
    return plan_->run(all, options);
  }
  std::size_t fetches() const override { return plan_->fetches(); }
  bool is_local() const override { return plan_->is_local(); }

 private:
  std::shared_ptr<ext::ready_plan> plan_;
  std::vector<any_array> literals_;
};

ext::flat_graph flatten_checked(std::span<const ext::output> fetches,
                                std::span<const ext::output> feeds) {
  if (fetches.empty()) ext::fail(errc::invalid_argument, "[run] nothing is fetched");
  std::vector<std::pair<std::uint64_t, std::uint32_t>> fed;
  for (const auto& f : feeds) fed.emplace_back(f.node->id, f.port);
  std::ranges::sort(fed);
  if (const auto twice = std::ranges::adjacent_find(fed); twice != fed.end())
    for (const auto& f : feeds)
      if (f.node->id == twice->first)
        ext::fail(errc::invalid_argument, "[run] \"", name_of(*f.node), "\" is fed twice");
  return ext::flatten(fetches, feeds, ext::plan::unfuse_where_needed(fetches, feeds));
}

}  // namespace

namespace ext {

std::uint64_t session_impl::hash_of(std::span<const output> fetches,
                                    std::span<const output> feeds) {
  std::uint64_t h = fetches.size();
  for (const auto& f : fetches) h = mix(h, f.node->id * 0x10001u + f.port);
  for (const auto& f : feeds) h = mix(h, f.node->id * 0x10001u + f.port + 1);
  return h;
}

std::shared_ptr<ready_plan> session_impl::find_plan(std::span<const output> fetches,
                                                    std::span<const output> feeds,
                                                    const run_options& options) {
  check_not_forked();
  std::uint64_t hash = hash_of(fetches, feeds);
  auto same = [&](const entry& e) {
    return e.fetches == fetches.size() && e.key.size() == fetches.size() + feeds.size() &&
           std::equal(fetches.begin(), fetches.end(), e.key.begin()) &&
           std::equal(feeds.begin(), feeds.end(),
                      e.key.begin() + static_cast<std::ptrdiff_t>(e.fetches));
  };
  {
    std::lock_guard lock(guard_);
    if (closed_) fail(errc::failed_precondition, "the session is closed");
    auto [begin, end] = by_hash_.equal_range(hash);
    for (auto i = begin; i != end; ++i)
      if (same(*i->second)) {
        if (i->second != entries_.begin()) entries_.splice(entries_.begin(), entries_, i->second);
        return i->second->plan;
      }
  }
  auto plan = make_plan(fetches, feeds, options);
  // Dropped entries free nodes and kernels, which must not happen under the lock.
  std::list<entry> dropped;
  std::lock_guard lock(guard_);
  auto [first, last] = by_hash_.equal_range(hash);
  for (auto i = first; i != last; ++i)
    if (same(*i->second)) return i->second->plan;  // another thread was faster
  entry e{hash, {fetches.begin(), fetches.end()}, fetches.size(), plan};
  e.key.insert(e.key.end(), feeds.begin(), feeds.end());
  entries_.push_front(std::move(e));
  by_hash_.emplace(hash, entries_.begin());
  while (entries_.size() > std::max<std::size_t>(options_.cached_plans, 1)) {
    auto oldest = std::prev(entries_.end());
    auto [begin, end] = by_hash_.equal_range(oldest->hash);
    for (auto i = begin; i != end; ++i)
      if (i->second == oldest) {
        by_hash_.erase(i);
        break;
      }
    dropped.splice(dropped.begin(), entries_, oldest);
  }
  return plan;
}

plan_limits session_impl::limits_of(const run_options& options) const {
  plan_limits limits;
  const auto timeout = options.timeout.count() ? options.timeout : options_.timeout;
  if (timeout.count()) limits.until = deadline_in(timeout);
  limits.cancel = options.cancel;
  return limits;
}

void session_impl::check_graphs(std::span<const output> fetches) {
  for (const auto& f : fetches)
    if (f.node->owner() != fetches[0].node->owner())
      fail(errc::invalid_argument, "[run] the fetches \"", name_of(*fetches[0].node), "\" and \"",
           name_of(*f.node), "\" are from different graphs");
  if (fetches.empty() || graph::of(*fetches[0].node) == made_in_ || warned_.exchange(true)) return;
  const node& n = *fetches[0].node;
  logging::warning(
      "\"", name_of(n), "\"", n.location().known() ? " " + where_of(n.location()) : "",
      " is run by a session that was made while another graph was current; auto scope = "
      "as_default(graph_of(t)) makes the graph of a tensor t current in a thread");
}

void session_impl::rethrow(const error& e, std::span<const output> fetches,
                           source_location w) const {
  const std::string run = w.known() ? str(" (run ", where_of(w), ")") : std::string();
  const auto with_advice = [&](const char* advice) {
    return e.with_message(str(e.message(), advice, run));
  };
  switch (e.reason()) {
    case error_reason::not_fed:
      throw with_advice(": feed one, as in s.run(fetch, placeholder = value)");
    case error_reason::not_needed:
      throw with_advice("");
    case error_reason::uninitialized:
      if (fetches.empty()) break;
      throw with_advice(graph::of(*fetches[0].node) == current_graph()
                            ? "; run initialize_all(), once all variables have been created, those "
                              "of optimizers included"
                            : "; initialize_all() initializes the current graph of this thread, "
                              "which is another one: auto scope = as_default(graph_of(t)) makes "
                              "that of t current");
    case error_reason::none:
    case error_reason::connect_timeout:
      break;
  }
  if (e.where().known() || !w.known()) throw;
  throw e.with_node(e.node(), w, e.device());
}

std::shared_ptr<ready_plan> session_impl::make_plan(std::span<const output> fetches,
                                                    std::span<const output> feeds,
                                                    const run_options& options) {
  check_graphs(fetches);
  const plan_limits limits = limits_of(options);
  flat_graph flat = flatten_checked(fetches, feeds);
  auto literals = plan::literals_of(flat.graph);
  if (literals.empty()) return engine_->make_plan(std::move(flat), limits);
  return plan_family(std::move(flat), std::move(literals), feeds.size(), limits);
}

plan_description session_impl::describe(std::span<const output> fetches,
                                        std::span<const output> feeds) {
  check_not_forked();
  {
    std::lock_guard lock(guard_);
    if (closed_) fail(errc::failed_precondition, "the session is closed");
  }
  return engine_->describe(flatten_checked(fetches, feeds), limits_of({}));
}

std::shared_ptr<ready_plan> session_impl::plan_family(flat_graph flat,
                                                      std::vector<integers> literals,
                                                      std::size_t feeds,
                                                      const plan_limits& limits) {
  plan::plan_shape key(flat);
  std::shared_ptr<family> members;
  std::vector<bool> is_runtime_literal;
  std::shared_ptr<ready_plan> plan, outdated;  // destroyed without the lock
  decltype(families_) dropped;
  {
    std::lock_guard lock(guard_);
    if (families_.size() > options_.cached_plans) families_.swap(dropped);
    auto& found = families_[std::move(key)];
    if (!found)
      found = std::make_shared<family>(
          family{literals, std::vector<bool>(literals.size(), false), nullptr});
    members = found;
    for (std::size_t i = 0; i < literals.size(); ++i)
      if (!members->is_runtime_literal[i] && literals[i] != members->literals[i]) {
        members->is_runtime_literal[i] = true;
        outdated = std::exchange(members->plan, nullptr);
      }
    is_runtime_literal = members->is_runtime_literal;
    plan = members->plan;
  }
  if (std::ranges::find(is_runtime_literal, true) == is_runtime_literal.end())
    return engine_->make_plan(std::move(flat), limits);
  auto values = plan::literal_values(flat.graph, is_runtime_literal);
  if (!plan) {
    plan::feed_literals(flat, is_runtime_literal, feeds);
    plan = engine_->make_plan(std::move(flat), limits);
    std::lock_guard lock(guard_);
    if (members->is_runtime_literal == is_runtime_literal) members->plan = plan;
  }
  return std::make_shared<bound_plan>(std::move(plan), std::move(values));
}

void session_impl::close() {
  {
    std::lock_guard lock(guard_);
    closed_ = true;
  }
  engine_->close();
}

}  // namespace ext

session::session(session_options options) : session(detail::numbered(std::move(options))) {}
session::session(const detail::numbered_options& o)
    : session(ext::make_master(std::make_shared<ext::task_runtime>(ext::local_task_name(),
                                                                   ext::settings_of(o.options),
                                                                   ext::file_roots::anywhere()),
                               nullptr, o.options),
              o.options) {}
session::session(task& self, session_options options)
    : session(self, detail::numbered(std::move(options),
                                     static_cast<std::uint64_t>(std::max(self.index(), 0)))) {}
session::session(task& self, const detail::numbered_options& o)
    : session(self.engine_for(o.options), o.options) {}
session::session(std::shared_ptr<ext::engine> on, session_options options)
    : impl_(std::make_shared<ext::session_impl>(std::move(on), std::move(options))) {}
session::session(session&&) noexcept = default;
session& session::operator=(session&& o) noexcept {
  session before(std::move(*this));
  impl_ = std::move(o.impl_);
  return *this;
}
session::~session() {
  if (ext::is_forked())
    new std::shared_ptr(std::move(impl_));  // leaked: the other process still uses it
  else if (impl_)
    impl_->close();
}

ext::step_results session::run_request(std::span<const ext::output> fetches,
                                       std::span<const ext::output> targets,
                                       std::span<const ext::feed_ref> feeds,
                                       const run_options& options, ext::source_location w) {
  if (options.step) *options.step = 0;
  try {
    return impl_->find_plan(fetches, targets, options)->run(feeds, options);
  } catch (const error& e) {
    impl_->rethrow(e, fetches, w);
  }
}

std::shared_ptr<ext::ready_plan> session::plan_request(std::span<const ext::output> fetches,
                                                       std::span<const ext::output> feeds,
                                                       ext::source_location w) {
  try {
    return impl_->find_plan(fetches, feeds);
  } catch (const error& e) {
    impl_->rethrow(e, fetches, w);
  }
}

namespace ext {

std::string session_impl::device_of(const output& o) {
  return to_string(*node_for(describe({&o, 1}, {}), name_of(*o.node)).device);
}

std::vector<placement> session_impl::devices_of(std::span<const output> outputs) {
  const plan_description made = describe(outputs, {});
  std::vector<placement> devices;
  for (const auto& o : outputs) devices.push_back(node_for(made, name_of(*o.node)).device);
  return devices;
}

}  // namespace ext

std::string session::device_of(const any_tensor& t) { return impl_->device_of(t.handle()); }

ext::plan_description session::describe_request(std::span<const ext::output> fetches,
                                                std::span<const ext::output> targets) {
  return impl_->describe(fetches, targets);
}

step_fate session::fate_of(std::uint64_t step, std::chrono::nanoseconds timeout) {
  return step ? impl_->on().fate_of(step, ext::deadline_in(timeout)) : step_fate::unknown;
}

std::vector<device_info> session::devices() { return impl_->on().devices(); }
void session::close() { impl_->close(); }
void session::reset(const std::string& container) { impl_->on().reset(container); }
const session_options& session::options() const { return impl_->options(); }
graph session::graph() const { return impl_->made_in(); }

std::string requested_device(const any_tensor& t) {
  ext::placement d = t.handle().node->device();
  return d ? to_string(*d) : std::string();
}

namespace detail {
std::string placements(session& s, std::span<const output> tensors) {
  std::vector<std::string> names;
  std::size_t width = 0;
  for (const auto& t : tensors) {
    names.push_back(name_of(*t.node));
    width = std::max(width, names.back().size());
  }
  std::string text;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    text += names[i] + std::string(width - names[i].size() + 1, ' ') +
            s.impl().device_of(tensors[i]) + "\n";
  return text;
}
numbered_options numbered(session_options options, std::uint64_t index) {
  // A task index above 2^20 would share its stream with another session, which is harmless.
  const std::uint64_t number = current_graph().next_session();
  if (!options.stream) options.stream = number << 20 | index;
  return numbered_options(std::move(options));
}
std::shared_ptr<engine> engine_at(const std::string& target, const session_options& options) {
  return connect_engine(target, options);
}
void refuse_empty_fetch(std::string_view function, std::size_t argument, std::size_t element,
                        source_location w) {
  const auto which =
      element ? str("element ", element, " of argument ", argument) : str("argument ", argument);
  throw error(errc::failed_precondition,
              str("[", function, "] ", which,
                  " is empty: a tensor or operation that was declared, but never assigned"),
              {}, w);
}
void refuse_unfed(const output& target) {
  throw error(errc::invalid_argument,
              "[prepare] the step takes a value for this tensor, and none was given",
              name_of(*origin_of(target).node), target.node->location());
}
any_array take_result(step_results& r, std::size_t i) { return r.take(i); }
const void* peek_result(step_results& r, std::size_t i) { return r.peek(i).raw(); }
}  // namespace detail

}  // namespace deft
