// SPDX-License-Identifier: Apache-2.0
// deft/op/gradients.ipp: differentiates the nodes from the loss back to the inputs.
#pragma once
#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <deft/core/hash.hpp>
#include <deft/op/broadcast_to.hpp>
#include <deft/op/gradients.hpp>
#include <deft/op/pad.hpp>
#include <deft/op/plan/unfuse.hpp>
#include <deft/op/scatter.hpp>
#include <deft/op/sum_to.hpp>
#include <optional>

namespace deft::ext::plan {
namespace grad {

struct key {
  const node* n;
  std::uint32_t port;
  friend bool operator==(const key&, const key&) = default;
};
struct key_hash {
  std::size_t operator()(const key& k) const {
    return mix(reinterpret_cast<std::uintptr_t>(k.n), k.port);
  }
};

/// Whether input `i` has the shape of the result whatever the `dyn` extents are: then its gradient
/// needs no sum over broadcast axes.
inline bool never_broadcast(const node& n, std::size_t i) {
  const dims &in = n.inputs()[i].type().shape, &out = n.outputs[0].shape;
  if (in.rank() != out.rank()) return false;
  for (int axis = 0; axis < out.rank(); ++axis) {
    if (in[axis] != out[axis]) return false;
    if (in[axis] != dyn) continue;
    for (std::size_t other = 0; other < n.inputs().size(); ++other) {
      const dims& d = n.inputs()[other].type().shape;
      int at = axis - (out.rank() - d.rank());
      if (n.inputs()[other].node != n.inputs()[i].node && at >= 0 && d[at] != 1) return false;
    }
  }
  return true;
}

/// One call of gradients(). Fused nodes are differentiated through the primitive nodes that they
/// stand for; values inside are computed again where the gradient needs them, which costs less than
/// storing them.
class reverse_pass {
 public:
  reverse_pass(const any_tensor& loss, std::span<const any_tensor> xs) : xs_(xs) {
    for (const auto& x : xs) exact_.insert(origin_of(x.handle()).node.get());
    root_ = canonical(loss.handle());
    for (const auto& x : xs) targets_.push_back(canonical(origin_of(x.handle())));
    collect();
  }

  std::vector<any_tensor> run(const any_tensor& loss) {
    name_scope_ = std::make_unique<scope>(push_name{"gradients"});
    if (depends(root_.node.get())) {
      any_tensor one = detail::literal_like(1, loss.type(), loss.handle().node->location());
      add(root_, loss.rank() ? broadcast_to(one, loss) : one);
      for (auto n = order_.rbegin(); n != order_.rend(); ++n) step(*n);
    }
    std::vector<any_tensor> result;
    for (const auto& t : targets_) result.push_back(total(t));
    return result;
  }

 private:
  /// The value itself; for a fused node, that of its last primitive.
  output canonical(const output& o) {
    // Every read of a variable counts as the variable, unless the read itself was asked for.
    if (o.node->def->role == op_role::read && o.node->keeps() && !exact_.contains(o.node.get()))
      return {o.node->keeps(), 0};
    if (!is_fused(*o.node)) return o;
    auto [at, fresh] = opened_.try_emplace(o.node.get());
    if (fresh) {
      at->second = unfuse(o.node).back();
      fused_of_.emplace(at->second.node.get(), o);
      kept_.push_back(o.node);
    }
    return at->second;
  }

  bool depends(const node* n) const { return depends_.contains(n); }

  /// Nodes between the targets and the loss, inputs first.
  void collect() {
    struct frame {
      node_ref n;
      std::size_t next;
    };
    boost::unordered_flat_set<const node*> seen, wanted;
    for (const auto& t : targets_) wanted.insert(t.node.get());
    std::vector<frame> stack{{root_.node, 0}};
    seen.insert(root_.node.get());
    while (!stack.empty()) {
      frame& f = stack.back();
      if (f.next < f.n->inputs().size()) {
        output i = canonical(f.n->inputs()[f.next++]);
        if (seen.insert(i.node.get()).second) stack.push_back({i.node, 0});
        continue;
      }
      node_ref n = f.n;
      stack.pop_back();
      bool on_path = wanted.contains(n.get());
      for (const auto& i : n->inputs()) on_path |= depends(canonical(i).node.get());
      if (!on_path) continue;
      depends_.insert(n.get());
      order_.push_back(n);
    }
  }

  void add(const output& o, any_tensor g) { sums_[{o.node.get(), o.port}].push_back(std::move(g)); }

  any_tensor total(const output& o) {
    auto at = sums_.find({o.node.get(), o.port});
    if (at == sums_.end()) return {};
    auto& parts = at->second;
    any_tensor sum = parts.size() > 1 ? detail::sum_of_slices(parts) : any_tensor();
    if (!sum.valid()) sum = detail::sum_of(std::move(parts));
    parts.assign(1, sum);
    return sum;
  }

  void step(const node_ref& n) {
    for (std::uint32_t port = 1; port < n->outputs.size(); ++port)
      if (sums_.contains({n.get(), port}))
        throw error(errc::unimplemented,
                    str("[", n->def->name, "] has no gradient through its output ", port),
                    name_of(*n), n->location());
    any_tensor dz = total({n, 0});
    if (!dz.valid()) return;
    bool inner = std::ranges::any_of(
        n->inputs(), [&](const output& i) { return depends(canonical(i).node.get()); });
    if (!inner) return;
    // A gradient runs where its operation does.
    std::optional<scope> there;
    if (n->device()) there.emplace(device(*n->device()));
    const gradient_function gradient = gradient_of(*n->def);
    if (!gradient)
      throw error(errc::unimplemented,
                  str("[", n->def->name, "] has no gradient",
                      is_known(*n->def)
                          ? ""
                          : " in this program: a file that uses it must include deft/deft.hpp"),
                  name_of(*n), n->location());
    location_scope here(n->location().nearby());
    std::vector<output> outputs;
    for (std::uint32_t i = 0; i < n->outputs.size(); ++i) {
      auto fused = fused_of_.find(n.get());
      outputs.push_back(fused == fused_of_.end() ? output{n, i} : fused->second);
    }
    std::vector<output> g = gradient(*n, outputs, dz.handle());
    for (std::size_t i = 0; i < g.size() && i < n->inputs().size(); ++i) {
      output in = canonical(n->inputs()[i]);
      if (!g[i] || !depends(in.node.get())) continue;
      any_tensor di(g[i]), like(n->inputs()[i]);
      add(in, n->is(op_traits::elementwise) && !never_broadcast(*n, i) ? sum_to(di, like) : di);
    }
  }

  std::span<const any_tensor> xs_;
  output root_;
  std::vector<output> targets_;
  std::vector<node_ref> order_, kept_;
  boost::unordered_flat_set<const node*> depends_, exact_;
  boost::unordered_flat_map<const node*, output> opened_, fused_of_;
  boost::unordered_flat_map<key, std::vector<any_tensor>, key_hash> sums_;
  std::unique_ptr<scope> name_scope_;
};

}  // namespace grad

std::vector<any_tensor> gradients(const any_tensor& loss, std::span<const any_tensor> xs) {
  if (!is_floating(loss.type()))
    throw error(errc::invalid_argument,
                str("[gradients] the loss is ", loss.type(), "; expected a floating dtype"),
                name_of(loss), loss.handle().node->location());
  for (const auto& x : xs)
    if (!is_floating(x.type()))
      throw error(errc::invalid_argument,
                  str("[gradients] cannot differentiate with respect to ", x.type(),
                      "; expected a floating dtype"),
                  name_of(x), x.handle().node->location());
  return grad::reverse_pass(loss, xs).run(loss);
}

any_tensor zeros_like(const any_tensor& x) {
  return broadcast_to(detail::literal_like(0, x.type(), x.handle().node->location()), x);
}

}  // namespace deft::ext::plan
