// SPDX-License-Identifier: Apache-2.0
// deft/graph/graph.ipp: umbrella of graph/, and the graph's tables.
#pragma once
#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <deft/graph/graph.hpp>
#include <deft/graph/graph_def.ipp>
#include <deft/graph/op_def.ipp>
#include <deft/graph/program.ipp>
#include <deft/graph/region.ipp>
#include <mutex>

namespace deft {
namespace detail {

inline std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// What makes two pure nodes the same, seen in a request or in a node.
struct node_key {
  const op_def* def;
  const attr_list* attributes;
  std::span<const output> inputs;
  std::span<const node_ref> controls;
  placement device;
  std::uint64_t hash;

  explicit node_key(const node& n)
      : def(n.def),
        attributes(&n.attributes),
        inputs(n.inputs),
        controls(n.controls),
        device(n.device),
        hash(n.hash) {}
  node_key(const node_request& r, std::span<const node_ref> c, placement d)
      : def(r.def), attributes(&r.attributes), inputs(r.inputs), controls(c), device(d) {
    hash = mix(address_of(def), device.id());
    if (!attributes->empty()) hash = mix(hash, hash_attributes(*attributes));
    for (const auto& i : inputs) hash = mix(hash, i.node->id + i.port * 0x10001u);
    for (const auto& n : controls) hash = mix(hash, ~n->id);
  }

  friend bool operator==(const node_key& a, const node_key& b) {
    return a.hash == b.hash && a.def == b.def && a.device == b.device &&
           std::ranges::equal(a.inputs, b.inputs) && std::ranges::equal(a.controls, b.controls) &&
           same_attributes(*a.attributes, *b.attributes);
  }
};

struct node_key_hash {
  using is_transparent = void;
  using is_avalanching = void;
  std::size_t operator()(const node* n) const { return n->hash; }
  std::size_t operator()(const node_key& k) const { return k.hash; }
};
struct node_key_equal {
  using is_transparent = void;
  bool operator()(const node* a, const node* b) const { return a == b; }
  bool operator()(const node_key& k, const node* n) const { return k == node_key(*n); }
  bool operator()(const node* n, const node_key& k) const { return k == node_key(*n); }
};

inline std::atomic<std::uint64_t> last_node_id{0};

/// Adds a reference unless the last one is gone.
inline bool retain_if_alive(node* n) {
  auto r = n->references.load(std::memory_order_relaxed);
  while (r)
    if (n->references.compare_exchange_weak(r, r + 1, std::memory_order_relaxed)) return true;
  return false;
}

}  // namespace detail

/// Tables behind a graph; lives as long as its handles and its nodes.
class graph_state : public std::enable_shared_from_this<graph_state> {
 public:
  node_ref add(node_request&& r);
  void forget(node* n, std::shared_ptr<graph_state>& last);
  const std::string& name_of(node& n);
  void alias(const node_ref& n, const std::string& name);
  node_ref find(std::string_view name);
  std::vector<node_ref> variables();

  std::mutex guard;
  std::size_t count = 0;
  std::uint64_t seed = 0, next_random = 0;

 private:
  std::string unique_name(const std::string& base);
  node_ref insert(node_request&& r, const detail::node_key& key, const scope_ref& s);
  void check_new_variable(const node_request& r, const std::string& name);

  boost::unordered_flat_set<node*, detail::node_key_hash, detail::node_key_equal> interned_;
  std::unordered_map<std::string, node*> names_;
  std::unordered_map<std::string, std::uint64_t> next_suffix_;
  std::unordered_multimap<const node*, std::string> aliases_;
  std::vector<node*> variables_;
  std::shared_ptr<graph_state> self_;  ///< held while there are nodes
};

node_ref graph_state::add(node_request&& r) {
  const scope_ref& s = r.scope ? *r.scope : current_scope();
  placement device = r.device
                         ? *r.device
                         : resolve_device(s, {r.def->name, r.name,
                                              r.inputs.empty() || r.inputs[0].node->outputs.empty()
                                                  ? dtype::none
                                                  : r.inputs[0].type().type});
  detail::node_key key(r, controls_of(s), device);
  std::lock_guard lock(guard);
  if (!r.def->is(op_traits::stateful) && r.name.empty()) {
    auto found = interned_.find(key);
    if (found != interned_.end()) {
      if (detail::retain_if_alive(*found)) return node_ref::adopt(*found);
      interned_.erase(found);
    }
  }
  return insert(std::move(r), key, s);
}

node_ref graph_state::insert(node_request&& r, const detail::node_key& key, const scope_ref& s) {
  auto n = std::make_unique<node>();
  n->def = r.def;
  n->hash = key.hash;
  n->device = key.device;
  n->place = r.place;
  if (s) n->prefix = s->name_prefix;
  try {
    std::vector<tensor_type> types;
    types.reserve(r.inputs.size());
    for (const auto& i : r.inputs) {
      if (i.node->outputs.empty())
        fail(errc::invalid_argument, "[", r.def->name, "] an operation yields no value");
      types.push_back(i.type());
    }
    infer_types(*r.def, {types, r.attributes}, n->outputs);
  } catch (const error& e) {
    throw error(e.code(), e.message(),
                n->prefix + (r.name.empty() ? std::string(r.def->name) : r.name), r.place);
  }
  if (!r.name.empty()) {
    std::string name = n->prefix + r.name;
    if (r.variable) check_new_variable(r, name);
    n->name = r.variable ? name : unique_name(name);
  }
  n->inputs.assign(r.inputs.begin(), r.inputs.end());
  n->controls.assign(key.controls.begin(), key.controls.end());
  n->attributes = std::move(r.attributes);
  n->variable = std::move(r.variable);
  n->keeps = std::move(r.keeps);
  n->id = ++detail::last_node_id;
  n->owner = this;
  if (!n->is(op_traits::stateful) && n->name.empty()) interned_.insert(n.get());
  if (!n->name.empty()) names_[n->name] = n.get();
  if (n->variable) variables_.push_back(n.get());
  if (count++ == 0) self_ = shared_from_this();
  return node_ref::adopt(n.release());
}

void graph_state::check_new_variable(const node_request& r, const std::string& name) {
  auto taken = names_.find(name);
  if (taken == names_.end() || taken->second->references == 0) return;
  if (!taken->second->variable)
    fail(errc::already_exists, "[variable] the name \"", name, "\" is taken by the ",
         taken->second->def->name, " made ", where_of(taken->second->place));
  fail(errc::already_exists, "[variable] a variable named \"", name,
       "\" is alive already: made at ", taken->second->place, ", and again at ", r.place);
}

std::string graph_state::unique_name(const std::string& base) {
  if (!names_.contains(base)) return base;
  for (auto& next = next_suffix_[base];;) {
    std::string name = str(base, "_", ++next);
    if (!names_.contains(name)) return name;
  }
}

const std::string& graph_state::name_of(node& n) {
  std::lock_guard lock(guard);
  if (n.name.empty()) {
    std::string_view base = n.def->name;
    if (const program* p = program_in(n.attributes)) base = p->code.back().op->name;
    n.name = unique_name(n.prefix + std::string(base));
    names_[n.name] = &n;
  }
  return n.name;
}

void graph_state::alias(const node_ref& n, const std::string& name) {
  std::lock_guard lock(guard);
  auto [at, fresh] = names_.emplace(name, n.get());
  if (!fresh && at->second != n.get())
    fail(errc::already_exists, "the name \"", name, "\" is taken by the node made ",
         where_of(at->second->place));
  if (fresh) aliases_.emplace(n.get(), name);
}

node_ref graph_state::find(std::string_view name) {
  std::lock_guard lock(guard);
  auto at = names_.find(std::string(name));
  if (at == names_.end() || !detail::retain_if_alive(at->second)) return {};
  return node_ref::adopt(at->second);
}

std::vector<node_ref> graph_state::variables() {
  std::lock_guard lock(guard);
  std::vector<node_ref> alive;
  for (node* n : variables_)
    if (detail::retain_if_alive(n)) alive.push_back(node_ref::adopt(n));
  return alive;
}

void graph_state::forget(node* n, std::shared_ptr<graph_state>& last) {
  std::lock_guard lock(guard);
  auto at = interned_.find(n);  // compares addresses: another node may stand for the same key
  if (at != interned_.end()) interned_.erase(at);
  auto drop_name = [&](const std::string& name) {
    auto named = names_.find(name);
    if (named != names_.end() && named->second == n) names_.erase(named);
  };
  if (!n->name.empty()) drop_name(n->name);
  if (!aliases_.empty()) {
    auto [begin, end] = aliases_.equal_range(n);
    for (auto i = begin; i != end; ++i) drop_name(i->second);
    aliases_.erase(begin, end);
  }
  if (n->variable) std::erase(variables_, n);
  if (--count == 0) last = std::move(self_);
}

void release_node(node* first) noexcept {
  std::vector<node*> dead{first};
  auto drop = [&](node* n) {
    if (n && n->references.fetch_sub(1, std::memory_order_acq_rel) == 1) dead.push_back(n);
  };
  while (!dead.empty()) {
    node* n = dead.back();
    dead.pop_back();
    std::shared_ptr<graph_state> last;
    n->owner->forget(n, last);
    for (auto& i : n->inputs) drop(i.node.release());
    for (auto& c : n->controls) drop(c.release());
    drop(n->keeps.release());
    if (n->variable) drop(n->variable->initial.node.release());
    delete n;
  }
}

const std::string& name_of(const node& n) { return n.owner->name_of(const_cast<node&>(n)); }

void rethrow_at(const error& e, const node& n) {
  if (!e.node().empty()) throw e;
  throw error(e.code(), e.message(), name_of(n), n.place, e.device());
}

graph::graph() : state_(std::make_shared<graph_state>()) {}
node_ref graph::add(node_request&& r) { return state_->add(std::move(r)); }
std::size_t graph::size() const {
  std::lock_guard lock(state_->guard);
  return state_->count;
}
std::vector<node_ref> graph::variables() const { return state_->variables(); }
node_ref graph::find(std::string_view name) const { return state_->find(name); }
node_ref graph::find_variable(std::string_view name) const {
  node_ref n = state_->find(name);
  return n && n->variable ? n : node_ref();
}
void graph::alias(const node_ref& n, const std::string& name) { state_->alias(n, name); }
void graph::set_seed(std::uint64_t seed) {
  std::lock_guard lock(state_->guard);
  state_->seed = seed;
  state_->next_random = 0;
}
std::uint64_t graph::seed() const {
  std::lock_guard lock(state_->guard);
  return state_->seed;
}
std::uint64_t graph::next_random() {
  std::lock_guard lock(state_->guard);
  return state_->next_random++;
}
graph graph::of(const node& n) { return graph(n.owner->shared_from_this()); }

namespace {
thread_local graph* thread_graph = nullptr;
}

graph& current_graph() {
  if (thread_graph) return *thread_graph;
  static auto& process_graph = *new graph;
  return process_graph;
}

graph_scope::graph_scope(graph g) : mine_(std::move(g)), outer_(thread_graph) {
  thread_graph = &mine_;
}
graph_scope::~graph_scope() { thread_graph = outer_; }

void set_seed(std::uint64_t seed) { current_graph().set_seed(seed); }

namespace {
std::shared_ptr<const void> with_controls(std::vector<node_ref> nodes) {
  auto outer = controls_of(current_scope());
  nodes.insert(nodes.begin(), outer.begin(), outer.end());
  return std::make_shared<const std::vector<node_ref>>(std::move(nodes));
}
}  // namespace

control_scope::control_scope(std::vector<node_ref> nodes)
    : scope(push_controls{with_controls(std::move(nodes))}) {}

std::span<const node_ref> controls_of(const scope_ref& s) {
  if (!s || !s->controls) return {};
  return *static_cast<const std::vector<node_ref>*>(s->controls.get());
}

}  // namespace deft
