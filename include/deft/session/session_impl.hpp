// SPDX-License-Identifier: Apache-2.0
// deft/session/session_impl.hpp: the plans that a session keeps.
#pragma once
#include <atomic>
#include <deft/plan/plan_shape.hpp>
#include <deft/session/session.hpp>
#include <list>
#include <mutex>
#include <unordered_map>

namespace deft::ext {

/// An engine and a cache of plans, keyed by the exact fetches and feeds. A cached plan owns its
/// nodes, so an expression that is written again finds them. Expressions that differ only in
/// literals, such as `x * i` in a loop, have different nodes; from the second one on they share one
/// plan, to which the literals that differed are fed. Such graphs are compared, not only hashed.
class session_impl {
 public:
  session_impl(std::shared_ptr<engine> on, session_options options)
      : engine_(std::move(on)), options_(std::move(options)) {}

  std::shared_ptr<ready_plan> find_plan(std::span<const output> fetches,
                                        std::span<const output> feeds,
                                        const run_options& options = {});
  plan_description describe(std::span<const output> fetches, std::span<const output> feeds);
  /// The device that computes `o` if only `o` is fetched.
  std::string device_of(const output& o);
  /// The devices that compute them if all are fetched in one run.
  std::vector<placement> devices_of(std::span<const output> outputs);
  engine& on() { return *engine_; }
  /// For what asks about its steps when the session itself may have been replaced.
  std::shared_ptr<engine> shared_engine() const { return engine_; }
  const session_options& options() const { return options_; }
  /// The graph that was current when the session was made.
  const graph& made_in() const { return made_in_; }
  /// Throws `e` as a run of `fetches` reports it: if a variable is not initialized, the
  /// message says how to initialize it, or how to make its graph current. Called only
  /// while `e` is handled. Errors without a line get `w`, that of the run.
  [[noreturn]] void rethrow(const error& e, std::span<const output> fetches,
                            source_location w) const;
  void close();

 private:
  struct entry {
    std::uint64_t hash;
    std::vector<output> key;  ///< fetches, then feeds
    std::size_t fetches;
    std::shared_ptr<ready_plan> plan;
  };
  /// What is known of the graphs that share one plan shape.
  struct family {
    std::vector<integers> literals;        ///< of the fused nodes of the first graph
    std::vector<bool> is_runtime_literal;  ///< for each fused node
    std::shared_ptr<ready_plan> plan;      ///< the plan fed with these; null until it is made
  };
  static std::uint64_t hash_of(std::span<const output> fetches, std::span<const output> feeds);
  plan_limits limits_of(const run_options& options) const;
  /// Throws invalid_argument if `fetches` are from several graphs; warns, once, if they are from
  /// another graph than the session's.
  void check_graphs(std::span<const output> fetches);
  std::shared_ptr<ready_plan> make_plan(std::span<const output> fetches,
                                        std::span<const output> feeds, const run_options& options);
  std::shared_ptr<ready_plan> plan_family(flat_graph flat, std::vector<integers> literals,
                                          std::size_t feeds, const plan_limits& limits);

  std::shared_ptr<engine> engine_;
  session_options options_;
  const graph made_in_ = current_graph();
  std::atomic<bool> warned_{false};
  std::mutex guard_;
  std::list<entry> entries_;  ///< most recently used first
  std::unordered_multimap<std::uint64_t, std::list<entry>::iterator> by_hash_;
  struct plan_shape_hash {
    std::size_t operator()(const plan::plan_shape& o) const { return o.hash(); }
  };
  std::unordered_map<plan::plan_shape, std::shared_ptr<family>, plan_shape_hash> families_;
  bool closed_ = false;
};

}  // namespace deft::ext
