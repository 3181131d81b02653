// SPDX-License-Identifier: Apache-2.0
// deft/graph/node.hpp: nodes of the dataflow graph and the handles that keep them alive.
#pragma once
#include <atomic>
#include <deft/core/place.hpp>
#include <deft/device/placement.hpp>
#include <deft/graph/op_def.hpp>
#include <memory>
#include <string>
#include <vector>

namespace deft {

struct node;
class graph_state;

/// Keeps a node alive.
class node_ref {
 public:
  node_ref() = default;
  /// Adds a reference.
  explicit node_ref(node* n);
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
  ~node_ref();

  const node* operator->() const { return node_; }
  const node& operator*() const { return *node_; }
  node* get() const { return node_; }
  node* release() { return std::exchange(node_, nullptr); }
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(const node_ref& a, const node_ref& b) { return a.node_ == b.node_; }

 private:
  node* node_ = nullptr;
};

/// One output of a node, or the node itself where it yields nothing.
struct output {
  node_ref node;
  std::uint32_t port = 0;

  const tensor_type& type() const;
  explicit operator bool() const { return static_cast<bool>(node); }
  friend bool operator==(const output&, const output&) = default;
};

/// What a graph remembers of a variable beside its node.
struct variable_info {
  std::string name;
  output initial;  ///< its first value; empty if it has none
  bool trainable = true;
};

/// A node is immutable once made, but for its name, which it gets when first asked.
struct node {
  std::atomic<std::uint32_t> references{1};
  const op_def* def = nullptr;
  std::uint64_t id = 0;  ///< never reused
  std::uint64_t hash = 0;
  attr_list attributes;
  std::vector<output> inputs;
  std::vector<node_ref> controls;
  node_ref keeps;                    ///< alive as long as this is, not needed to run: a variable
  std::vector<tensor_type> outputs;  ///< empty where the node yields nothing
  placement device;                  ///< as asked for; nullptr: anything
  source_place place;
  std::string prefix;  ///< name scope of the first writer
  std::string name;    ///< empty until asked for: use name_of
  std::unique_ptr<variable_info> variable;
  graph_state* owner = nullptr;

  bool is(op_traits t) const { return def->is(t); }
};

inline node_ref::node_ref(node* n) : node_(n) {
  if (n) n->references.fetch_add(1, std::memory_order_relaxed);
}
/// Frees `n`, whose last reference is gone, and what only it held, without recursion.
void release_node(node* n) noexcept;
inline node_ref::~node_ref() {
  if (node_ && node_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) release_node(node_);
}
inline const tensor_type& output::type() const { return node->outputs[port]; }

/// The node's unique name in its graph: "layer1/matmul", "add_1".
const std::string& name_of(const node& n);

/// Throws `e` again with the node's name and place, if it has none yet.
[[noreturn]] void rethrow_at(const error& e, const node& n);

}  // namespace deft
