// SPDX-License-Identifier: Apache-2.0
// deft/graph/graph.ipp: umbrella of graph/, and how nodes end.
#pragma once
#include <algorithm>
#include <deft/graph/controls.ipp>
#include <deft/graph/dot.ipp>
#include <deft/graph/function.ipp>
#include <deft/graph/graph.hpp>
#include <deft/graph/graph_def.ipp>
#include <deft/graph/graph_state.ipp>
#include <deft/graph/node_text.ipp>
#include <deft/graph/op_def.ipp>
#include <deft/graph/program.ipp>
#include <memory>
#include <mutex>

namespace deft {
namespace ext {

node* node::make(parts&& p, std::span<const output> inputs) {
  static_assert(sizeof(node) % alignof(output) == 0 && sizeof(node) <= 56);
  void* room = ::operator new(sizeof(node) + inputs.size_bytes());
  auto* n = new (room) node(std::move(p), static_cast<std::uint32_t>(inputs.size()));
  std::uninitialized_copy(inputs.begin(), inputs.end(), reinterpret_cast<output*>(n + 1));
  return n;
}

void node::destroy(node* n) noexcept {
  std::destroy_n(reinterpret_cast<output*>(n + 1), n->input_count);
  n->~node();
  ::operator delete(n);
}

void release_node(node* first) noexcept {
  std::vector<node*> dead;
  // Recurses only without memory.
  auto drop = [&](node_ref& r) {
    node* n = r.release();
    if (!n || n->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    try {
      dead.push_back(n);
    } catch (const std::bad_alloc&) {
      release_node(n);
    }
  };
  auto next = [&] {
    if (dead.empty()) return static_cast<node*>(nullptr);
    node* const n = dead.back();
    dead.pop_back();
    return n;
  };
  for (node* n = first; n; n = next()) {
    std::shared_ptr<graph_state> last;
    n->owner()->forget(n, last);
    auto* inputs = reinterpret_cast<output*>(n + 1);
    for (std::uint32_t i = 0; i < n->input_count; ++i) drop(inputs[i].node);
    // Keep what the context holds alive until the context is freed, or this would recurse.
    std::vector<node_ref> held;
    try {
      held.assign(n->controls().begin(), n->controls().end());
      if (n->keeps()) held.push_back(n->keeps());
      if (n->variable() && n->variable()->initial) held.push_back(n->variable()->initial.node);
    } catch (const std::bad_alloc&) {
      // The context drops them.
    }
    node::destroy(n);
    for (auto& h : held) drop(h);
  }
}

const std::string& name_of(const node& n) { return n.owner()->name_of(n); }

void rethrow_at(const error& e, const node& n) {
  if (!e.node().empty()) throw e;
  throw e.with_node(name_of(n), n.location(), e.device());
}

}  // namespace ext

namespace {
/// A state whose collections, which hold nodes, end with the last copy of this pointer: nodes keep
/// the state itself.
std::shared_ptr<ext::graph_state> new_state() {
  auto state = std::make_shared<ext::graph_state>();
  ext::graph_state* const it = state.get();
  return {it, [kept = std::move(state)](ext::graph_state* s) { s->end_collections(); }};
}
thread_local graph* thread_graph = nullptr;
constinit thread_local const ext::source_location* thread_location = nullptr;
}  // namespace

graph::graph() : state_(new_state()) {}

ext::node_ref graph::add(ext::node_request&& r) {
  if (thread_location) r.location = *thread_location;
  return state_->add(std::move(r));
}
std::size_t graph::size() const {
  std::lock_guard lock(state_->guard);
  return state_->count;
}
std::vector<ext::node_ref> graph::variables() const { return state_->variables(); }
ext::node_ref graph::find(std::string_view name) const { return state_->find(name); }
ext::node_ref graph::find_variable(std::string_view name) const {
  ext::node_ref n = state_->outermost().find(name);
  return n && n->variable() ? n : ext::node_ref();
}
void graph::alias(const ext::node_ref& n, const std::string& name) { state_->alias(n, name); }
void graph::collect(std::string_view collection, std::string_view scope, const ext::output& o) {
  state_->collect(collection, scope, o);
}
std::vector<ext::output> graph::collected(std::string_view collection,
                                          std::string_view scope) const {
  return state_->collected(collection, scope);
}
void graph::set_seed(std::uint64_t seed) {
  ext::graph_state& all = state_->outermost();
  std::lock_guard lock(all.guard);
  all.seed = seed;
  all.next_random = 0;
}
std::uint64_t graph::seed() const {
  ext::graph_state& all = state_->outermost();
  std::lock_guard lock(all.guard);
  return all.seed;
}
std::uint64_t graph::next_random() {
  ext::graph_state& all = state_->outermost();
  std::lock_guard lock(all.guard);
  return all.next_random++;
}
std::uint64_t graph::next_session() {
  std::lock_guard lock(state_->guard);
  return state_->next_session++;
}
bool graph::is_body_in(const ext::node& n) const { return state_->is_inside(*n.owner()); }
graph graph::of(const ext::node& n) { return graph(n.owner()->shared_from_this()); }

graph& current_graph() {
  if (thread_graph) return *thread_graph;
  static auto& process_graph = *new graph;
  return process_graph;
}

namespace ext {

graph graph_for(const node& n) {
  return thread_graph && thread_graph->is_body_in(n) ? *thread_graph : graph::of(n);
}

graph_scope::graph_scope(graph g) : mine_(std::move(g)), outer_(thread_graph) {
  thread_graph = &mine_;
}
graph_scope::~graph_scope() { thread_graph = outer_; }

location_scope::location_scope(source_location location)
    : mine_(location), outer_(thread_location) {
  if (mine_.known()) thread_location = &mine_;
}
location_scope::~location_scope() { thread_location = outer_; }

}  // namespace ext

void set_seed(std::uint64_t seed) { current_graph().set_seed(seed); }

}  // namespace deft
