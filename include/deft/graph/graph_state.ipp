// SPDX-License-Identifier: Apache-2.0
// deft/graph/graph_state.ipp: a graph's tables: pure nodes by what they are, names, collections.
#pragma once
#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <deft/core/printable.hpp>
#include <deft/graph/controls.ipp>
#include <deft/graph/function.hpp>
#include <deft/graph/graph.hpp>
#include <deft/graph/program.ipp>
#include <map>
#include <memory>
#include <mutex>

namespace deft {
namespace detail {

inline std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// What identifies a pure node, taken from a request or from a node.
struct node_key {
  const op_def* def;
  const attr_list* attributes;
  std::span<const output> inputs;
  std::span<const node_ref> controls;
  placement device;
  std::uint32_t hash;

  explicit node_key(const node& n)
      : def(n.def),
        attributes(&n.attributes),
        inputs(n.inputs()),
        controls(n.controls()),
        device(n.device()),
        hash(n.hash()) {}
  node_key(const node_request& r, std::span<const node_ref> c, placement d)
      : def(r.def), attributes(&r.attributes), inputs(r.inputs), controls(c), device(d) {
    std::uint64_t h = mix(address_of(def), device.id());
    if (!attributes->empty()) h = mix(h, hash_attributes(*attributes));
    for (const auto& i : inputs) h = mix(h, i.node->id + i.port * 0x10001u);
    for (const auto& n : controls) h = mix(h, ~n->id);
    hash = static_cast<std::uint32_t>(h ^ h >> 32);
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
  std::size_t operator()(const node* n) const { return wide(n->hash()); }
  std::size_t operator()(const node_key& k) const { return wide(k.hash); }
  /// Every bit of it counts for the table.
  static std::size_t wide(std::uint32_t hash) { return hash * 0x9e3779b97f4a7c15u; }
};
struct node_key_equal {
  using is_transparent = void;
  bool operator()(const node* a, const node* b) const { return a == b; }
  bool operator()(const node_key& k, const node* n) const { return k == node_key(*n); }
  bool operator()(const node* n, const node_key& k) const { return k == node_key(*n); }
};

inline std::atomic<std::uint64_t> last_node_id{0};

/// Adds a reference, unless the last one has been dropped.
inline bool retain_if_alive(node* n) {
  auto r = n->references.load(std::memory_order_relaxed);
  while (r)
    if (n->references.compare_exchange_weak(r, r + 1, std::memory_order_relaxed)) return true;
  return false;
}

}  // namespace detail

namespace ext {

/// What a graph has that is the body of a function. Only the thread that writes it uses this.
struct body_state {
  struct capture {
    output written, value;  ///< as the body uses it; in the graph right around it
    node_ref parameter;
  };
  /// What the body has done so far to a resource.
  struct use {
    node_ref read;  ///< its value before all updates
    node_ref updated;
    std::vector<node_ref> since;  ///< nodes that have used it since
  };

  std::string name;
  std::shared_ptr<graph_state> outer;
  std::size_t parameters = 0;  ///< declared ones
  std::vector<capture> captured = {};
  std::vector<node_ref> controls = {};  ///< of graphs outside
  std::vector<node_ref> effects = {};   ///< are run, whether their values are used or not
  std::map<resource_key, use> uses = {};
  bool ended = false;
};

/// Tables behind a graph; lives as long as its handles and its nodes.
class graph_state : public std::enable_shared_from_this<graph_state> {
 public:
  node_ref add(node_request&& r);
  /// The value of `o`, which is of this graph or of one around it, in this graph.
  output inside(const output& o);
  /// The graph that is the body of no function.
  graph_state& outermost() { return body ? body->outer->outermost() : *this; }
  /// Whether this is the body of a function in `g`, or in a body there.
  bool is_inside(const graph_state& g) const {
    return body && (body->outer.get() == &g || body->outer->is_inside(g));
  }
  void forget(node* n, std::shared_ptr<graph_state>& last);
  const std::string& name_of(const node& n);
  void alias(const node_ref& n, const std::string& name);
  node_ref find(std::string_view name);
  std::vector<node_ref> variables();
  void collect(std::string_view collection, std::string_view scope, const output& o);
  std::vector<output> collected(std::string_view collection, std::string_view scope);
  void end_collections();

  std::mutex guard;
  std::size_t count = 0;
  std::uint64_t seed = 0, next_random = 0, next_session = 0;
  std::unique_ptr<body_state> body;  ///< null: it is not a body

 private:
  node_ref add_here(node_request&& r, const scope_ref& s, std::span<const node_ref> controls);
  node_ref add_to_body(node_request&& r, const scope_ref& s);
  output variable_inside(const node_ref& v);
  void number_calls(node_request& r);
  std::string unique_name(const std::string& base);
  const std::string& known_name(const node& n);
  node_ref insert(node_request&& r, const detail::node_key& key, const scope_ref& s);
  void check_owners(const node_request& r, std::span<const node_ref> controls) const;
  void check_new_variable(const node_request& r, const std::string& name);
  const std::string& give_name(const node* n, std::string name);
  /// Throws invalid_argument: graphs are written for readers that take names in UTF-8 only.
  static void check_given_name(std::string_view name, std::string_view operation);
  type_list share(std::span<const tensor_type> types);
  shared_ref<node_context> context_for(placement device, std::string_view prefix, const char* file);

  boost::unordered_flat_set<node*, detail::node_key_hash, detail::node_key_equal> interned_;
  std::unordered_map<std::string, const node*> names_;  ///< and aliases
  std::unordered_map<const node*, std::string> own_names_;
  std::unordered_map<std::string, std::uint64_t> next_suffix_;
  std::unordered_multimap<const node*, std::string> aliases_;
  std::vector<node*> variables_;
  struct member {
    std::string collection, scope;
    output of;
  };
  std::vector<member> collected_;
  bool collects_ = true;  ///< there are graph objects, with the last of which collections end
  // The contexts made last, which the next nodes probably share.
  std::array<type_list, 64> types_;
  std::array<shared_ref<node_context>, 16> contexts_;
  std::vector<tensor_type> in_types_, out_types_;  ///< of the node that is written
  std::shared_ptr<graph_state> self_;              ///< held while there are nodes
};

node_ref graph_state::add(node_request&& r) {
  for (std::size_t i = 0; i < r.inputs.size(); ++i)
    if (!r.inputs[i])
      throw error(errc::failed_precondition, str("an empty tensor is used as operand ", i + 1),
                  std::string(r.name.empty() ? r.def->name : r.name), r.location);
  const scope_ref& s = r.scope ? *r.scope : current_scope();
  number_calls(r);
  return body ? add_to_body(std::move(r), s) : add_here(std::move(r), s, controls_of(s));
}

node_ref graph_state::add_here(node_request&& r, const scope_ref& s,
                               std::span<const node_ref> controls) {
  auto wanted = [&] {
    const bool valued = !r.inputs.empty() && !r.inputs[0].node->outputs.empty();
    try {
      return resolve_device(
          s, {r.def->name, r.name, valued ? r.inputs[0].type().type : dtype::none, r.def->role});
    } catch (const error& e) {  // of a device function
      throw e.with_node(std::string(r.name.empty() ? r.def->name : r.name), r.location);
    }
  };
  placement device = r.device ? *r.device : wanted();
  detail::node_key key(r, controls, device);
  std::lock_guard lock(guard);
  if (!is_one_of(traits_of(*r.def, r.attributes), op_traits::stateful) && r.name.empty()) {
    auto found = interned_.find(key);
    if (found != interned_.end()) {
      if (detail::retain_if_alive(*found)) return node_ref::adopt(*found);
      interned_.erase(found);
    }
  }
  return insert(std::move(r), key, s);
}

type_list graph_state::share(std::span<const tensor_type> types) {
  if (types.empty()) return {};
  std::uint64_t h = types.size();
  for (const auto& t : types) {
    h = mix(h, static_cast<std::uint64_t>(t.type));
    for (auto e : t.shape) h = mix(h, static_cast<std::uint64_t>(e));
  }
  type_list& there = types_[h % types_.size()];
  if (!std::ranges::equal(there, types)) there = std::vector(types.begin(), types.end());
  return there;
}

shared_ref<node_context> graph_state::context_for(placement device, std::string_view prefix,
                                                  const char* file) {
  const std::size_t h =
      mix(mix(device.id(), std::hash<std::string_view>()(prefix)), detail::address_of(file));
  auto& there = contexts_[h % contexts_.size()];
  if (!there || there->device != device || there->prefix != prefix || there->file != file)
    there = shared_ref<node_context>::make(this, device, std::string(prefix), file);
  return there;
}

node_ref graph_state::insert(node_request&& r, const detail::node_key& key, const scope_ref& s) {
  const std::string_view prefix = s ? std::string_view(s->name_prefix) : std::string_view();
  try {
    check_given_name(r.name, r.def->name);
    check_owners(r, key.controls);
    in_types_.clear();
    for (const auto& i : r.inputs) {
      if (i.node->outputs.empty())
        fail(errc::invalid_argument, "[", r.def->name, "] an operation yields no value");
      in_types_.push_back(i.type());
    }
    infer_types(*r.def, {in_types_, r.attributes}, out_types_);
  } catch (const error& e) {
    throw e.with_node(str(prefix, printable(r.name.empty() ? r.def->name : r.name)), r.location);
  }
  std::string name;
  if (!r.name.empty()) {
    name = str(prefix, r.name);
    if (r.variable)
      check_new_variable(r, name);
    else
      name = unique_name(name);
  }
  node::parts p;
  p.def = r.def;
  p.id = ++detail::last_node_id;
  p.hash = key.hash;
  p.location = r.location;
  p.outputs = share(out_types_);
  p.attributes = std::move(r.attributes);
  if (key.controls.empty() && !r.variable && !r.keeps)
    p.context = context_for(key.device, prefix, r.location.file);
  else
    p.context =
        shared_ref<node_context>::make(node_context{this,
                                                    key.device,
                                                    std::string(prefix),
                                                    r.location.file,
                                                    {key.controls.begin(), key.controls.end()},
                                                    std::move(r.keeps),
                                                    std::move(r.variable)});
  // The tables must not remove it before it is in them.
  std::unique_ptr<node, void (*)(node*)> made(node::make(std::move(p), r.inputs), &node::destroy);
  node* n = made.get();
  if (!name.empty())
    give_name(n, std::move(name));
  else if (!is_one_of(traits_of(*n->def, n->attributes), op_traits::stateful))
    interned_.insert(n);
  if (n->variable()) variables_.push_back(n);
  if (count++ == 0) self_ = shared_from_this();
  return node_ref::adopt(made.release());
}

void graph_state::check_owners(const node_request& r, std::span<const node_ref> controls) const {
  auto check = [&](const node* n, const char* rule, std::size_t number) {
    if (!n || n->owner() == this) return;
    if (const auto& of = n->owner()->body)
      fail(errc::invalid_argument, "[", r.def->name, "] the ", n->def->name, " made ",
           where_of(n->location()), " is in the body of \"", of->name,
           "\": only the results of the body can be used outside");
    const auto which = number ? str("number ", number, " is ") : std::string();
    const auto made =
        n->location().known() ? str(" made ", where_of(n->location())) : std::string();
    fail(errc::invalid_argument, "[", r.def->name, "] ", rule, ": ", which, "the ", n->def->name,
         made,
         "; auto scope = as_default(graph_of(t)) makes the graph of a tensor t current in this "
         "thread");
  };
  for (std::size_t i = 0; i < r.inputs.size(); ++i)
    if (r.keeps)
      check(r.inputs[i].node.get(), "variable and value are of different graphs", 0);
    else
      check(r.inputs[i].node.get(), "the operands are of different graphs", i + 1);
  for (const auto& c : controls) check(c.get(), "a control dependency is of another graph", 0);
}

const std::string& graph_state::give_name(const node* n, std::string name) {
  names_[name] = n;
  return own_names_[n] = std::move(name);
}

void graph_state::check_given_name(std::string_view name, std::string_view operation) {
  if (!is_utf8(name))
    fail(errc::invalid_argument, "[", operation, "] \"", printable(name),
         "\" is not a valid name: it is not UTF-8");
}

void graph_state::check_new_variable(const node_request& r, const std::string& name) {
  auto taken = names_.find(name);
  if (taken == names_.end() || taken->second->references == 0) return;
  const node& other = *taken->second;
  throw error(errc::already_exists,
              other.variable() ? str("[variable] a variable named \"", name,
                                     "\" exists already: it was made ", where_of(other.location()))
                               : str("[variable] the name \"", name, "\" is taken by the ",
                                     other.def->name, " made ", where_of(other.location())),
              name, r.location);
}

std::string graph_state::unique_name(const std::string& base) {
  if (!names_.contains(base)) return base;
  for (auto& next = next_suffix_[base];;) {
    std::string name = str(base, "_", ++next);
    if (!names_.contains(name)) return name;
  }
}

const std::string& graph_state::name_of(const node& n) {
  std::lock_guard lock(guard);
  if (!n.is(op_traits::checks)) return known_name(n);
  if (auto at = own_names_.find(&n); at != own_names_.end()) return at->second;
  const std::string& of = known_name(*origin_of(n.inputs()[0]).node);
  return give_name(&n, unique_name(str(of, '/', n.def->name)));
}

const std::string& graph_state::known_name(const node& n) {
  if (auto at = own_names_.find(&n); at != own_names_.end()) return at->second;
  std::string_view base = n.def->name;
  if (const program* p = program_in(n.attributes)) base = p->code.back().op->name;
  return give_name(&n, unique_name(str(n.prefix(), base)));
}

void graph_state::alias(const node_ref& n, const std::string& name) {
  check_given_name(name, "name");
  std::lock_guard lock(guard);
  auto [at, fresh] = names_.emplace(name, n.get());
  if (!fresh && at->second != n.get())
    fail(errc::already_exists, "[name] the name \"", name, "\" is taken by the node made ",
         where_of(at->second->location()));
  if (fresh) aliases_.emplace(n.get(), name);
}

node_ref graph_state::find(std::string_view name) {
  std::lock_guard lock(guard);
  auto at = names_.find(std::string(name));
  if (at == names_.end()) return {};
  auto* n = const_cast<node*>(at->second);
  return detail::retain_if_alive(n) ? node_ref::adopt(n) : node_ref();
}

std::vector<node_ref> graph_state::variables() {
  if (body) return outermost().variables();
  std::lock_guard lock(guard);
  std::vector<node_ref> alive;
  for (node* n : variables_)
    if (detail::retain_if_alive(n)) alive.push_back(node_ref::adopt(n));
  return alive;
}

void graph_state::collect(std::string_view collection, std::string_view scope, const output& o) {
  if (body)
    fail(errc::unimplemented, "a value in the body of \"", body->name, "\" cannot be one of ",
         collection, ": return it as a result");
  std::lock_guard lock(guard);
  if (!collects_)
    fail(errc::failed_precondition, "the graph object is gone, which would keep ", collection);
  for (const member& m : collected_)
    if (m.of == o && m.collection == collection && m.scope == scope) return;
  collected_.push_back({std::string(collection), std::string(scope), o});
}

std::vector<output> graph_state::collected(std::string_view collection, std::string_view scope) {
  std::lock_guard lock(guard);
  std::vector<output> found;
  for (const member& m : collected_)
    if (m.collection == collection && m.scope.starts_with(scope) &&
        std::ranges::find(found, m.of) == found.end())
      found.push_back(m.of);
  return found;
}

void graph_state::end_collections() {
  std::vector<member> ended;  // released without the lock, which forget takes
  std::lock_guard lock(guard);
  collects_ = false;
  ended.swap(collected_);
}

void graph_state::forget(node* n, std::shared_ptr<graph_state>& last) {
  std::lock_guard lock(guard);
  auto at = interned_.find(n);  // compares addresses: another node may stand for the same key
  if (at != interned_.end()) interned_.erase(at);
  auto drop_name = [&](const std::string& name) {
    auto named = names_.find(name);
    if (named != names_.end() && named->second == n) names_.erase(named);
  };
  if (auto named = own_names_.find(n); named != own_names_.end()) {
    drop_name(named->second);
    own_names_.erase(named);
  }
  if (!aliases_.empty()) {
    auto [begin, end] = aliases_.equal_range(n);
    for (auto i = begin; i != end; ++i) drop_name(i->second);
    aliases_.erase(begin, end);
  }
  if (n->variable()) std::erase(variables_, n);
  if (--count == 0) last = std::move(self_);
}

}  // namespace ext
}  // namespace deft
