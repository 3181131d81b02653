// SPDX-License-Identifier: Apache-2.0
// deft/graph/node.hpp: nodes of the dataflow graph and the handles that keep them alive.
#pragma once
#include <atomic>
#include <deft/core/location.hpp>
#include <deft/core/shared_ref.hpp>
#include <deft/device/placement.hpp>
#include <deft/graph/op_def.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace deft::ext {

struct node;
class graph_state;

/// Frees `n`, which has no references left, and what only it kept alive, without recursion.
void release_node(node* n) noexcept;

/// Keeps a node alive.
class node_ref {
 public:
  node_ref() = default;
  /// Adds a reference.
  DEFT_NOINLINE inline explicit node_ref(node* n);
  /// Takes over a reference.
  static node_ref adopt(node* n) {
    node_ref r;
    r.node_ = n;
    return r;
  }
  node_ref(const node_ref& o) : node_ref(o.node_) {}
  node_ref(node_ref&& o) noexcept : node_(std::exchange(o.node_, nullptr)) {}
  node_ref& operator=(node_ref o) noexcept {
    std::swap(node_, o.node_);
    return *this;
  }
  DEFT_NOINLINE inline ~node_ref();

  const node* operator->() const { return node_; }
  const node& operator*() const { return *node_; }
  node* get() const { return node_; }
  node* release() { return std::exchange(node_, nullptr); }
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(const node_ref& a, const node_ref& b) { return a.node_ == b.node_; }

 private:
  node* node_ = nullptr;
};

/// One output of a node, or the node itself if it has no outputs.
struct output {
  node_ref node;
  std::uint32_t port = 0;

  const tensor_type& type() const;
  explicit operator bool() const { return static_cast<bool>(node); }
  friend bool operator==(const output& a, const output& b) {
    return a.node == b.node && (a.port == b.port || !a.node);
  }
};

/// Data of a variable that is not in its node's attributes.
struct variable_info {
  std::string name;
  output initial;  ///< its first value; empty if it has none
  bool trainable = true;
};

/// Data shared by the nodes that are written in one file under the same scopes. A node with any
/// data of the second half has its own context.
struct node_context {
  graph_state* owner = nullptr;
  placement device;       ///< as requested; nullptr: any device
  std::string prefix;     ///< name scope of the first writer
  const char* file = "";  ///< of the source_location

  std::vector<node_ref> controls = {};
  node_ref keeps = {};  ///< kept alive by the node, not needed to run: a variable
  std::unique_ptr<variable_info> variable = nullptr;
};

/// A node, immutable. Its inputs are stored behind it: 56 bytes and 16 for each input, as graphs
/// may have a million nodes.
struct node {
  struct parts {
    const op_def* def = nullptr;
    std::uint64_t id = 0;
    std::uint32_t hash = 0;
    source_location location;
    type_list outputs;
    attr_list attributes;
    shared_ref<node_context> context;  ///< for this file
  };
  /// With one reference, which is the caller's.
  static node* make(parts&& p, std::span<const output> inputs);
  /// Frees it; its graph must not refer to it.
  static void destroy(node* n) noexcept;

  std::atomic<std::uint32_t> references{1};
  const std::uint32_t input_count;
  const op_def* const def;
  const std::uint64_t id;   ///< never reused
  const type_list outputs;  ///< empty where the node yields nothing
  const attr_list attributes;

  std::span<const output> inputs() const;
  std::span<const node_ref> controls() const { return context_->controls; }
  /// A node that it keeps alive, though it is not needed to run: a variable.
  const node_ref& keeps() const { return context_->keeps; }
  /// Null if it is not a variable.
  const variable_info* variable() const { return context_->variable.get(); }
  source_location location() const { return {context_->file, line_ >> 1, (line_ & 1) != 0}; }
  placement device() const { return context_->device; }
  const std::string& prefix() const { return context_->prefix; }
  graph_state* owner() const { return context_->owner; }
  /// Hash of what identifies a pure node.
  std::uint32_t hash() const { return hash_; }
  bool is(op_traits t) const { return def->is(t); }

 private:
  friend void release_node(node* n) noexcept;
  node(parts&& p, std::uint32_t inputs)
      : input_count(inputs),
        def(p.def),
        id(p.id),
        outputs(std::move(p.outputs)),
        attributes(std::move(p.attributes)),
        hash_(p.hash),
        line_(p.location.line << 1 | unsigned{p.location.approximate}),
        context_(std::move(p.context)) {}

  std::uint32_t hash_, line_;  ///< the line, and in the lowest bit whether it is only near
  shared_ref<node_context> context_;
};

inline std::span<const output> node::inputs() const {
  return {reinterpret_cast<const output*>(this + 1), input_count};
}
// Not inline: calls of these compile faster than their bodies would, and handles are everywhere.
node_ref::node_ref(node* n) : node_(n) {
  if (n) n->references.fetch_add(1, std::memory_order_relaxed);
}
node_ref::~node_ref() {
  if (node_ && node_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) release_node(node_);
}
inline const tensor_type& output::type() const { return node->outputs[port]; }

/// The value that `o` is: what it only checks, or itself. Handles to both are the same tensor: they
/// share its name, its feeds and its gradient. The reference is valid while `o` is.
inline const output& origin_of(const output& o) {
  const output* at = &o;
  while (at->node && at->node->is(op_traits::checks)) at = &at->node->inputs()[0];
  return *at;
}

/// The node's unique name in its graph: "layer1/matmul", "add_1".
const std::string& name_of(const node& n);

/// Throws `e` again with the node's name and place, if it has none yet.
[[noreturn]] void rethrow_at(const error& e, const node& n);

}  // namespace deft::ext
