// SPDX-License-Identifier: Apache-2.0
// deft/expr/expr.ipp: the part of expressions that does not depend on their types.
#pragma once
#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <deft/core/num_lane.hpp>
#include <deft/expr/feed.hpp>
#include <deft/expr/lower.hpp>
#include <deft/expr/written.ipp>
#include <functional>
#include <mutex>
#include <unordered_map>

namespace deft {

namespace ext {

void infer_elementwise(std::string_view name, typing rule, std::span<const tensor_type> inputs,
                       std::vector<tensor_type>& out) {
  std::size_t first = rule == typing::select ? 1 : 0;
  dtype t = inputs[first].type;
  if (rule == typing::select && inputs[0].type != dtype::boolean)
    fail(errc::invalid_argument, "[", name, "] the condition is ", inputs[0].type, ", not bool");
  for (std::size_t i = first; i < inputs.size(); ++i)
    if (inputs[i].type != t)
      fail(errc::invalid_argument, "[", name, "] the operands' dtypes differ: ", t, " and ",
           inputs[i].type, "; use cast");
  if (!accepts(rule, t)) fail(errc::invalid_argument, "[", name, "] is not defined for ", t);
  dims shape = inputs[0].shape;
  for (const auto& i : inputs.subspan(1)) {
    dims wider;
    if (!broadcast(shape, i.shape, wider))
      fail(errc::invalid_argument, "[", name,
           "] the operands' shapes cannot be broadcast together: ",
           join(inputs, " ", [](const tensor_type& v) { return v.shape; }));
    shape = wider;
  }
  out.push_back({shape, result_of(rule, t)});
}

}  // namespace ext

void feed_value::verify(ext::source_location run) const {
  const ext::tensor_type& t = target_.type();
  if (type() == t.type && ext::fits(t.shape, shape())) return;
  const std::string at = run.known() ? ext::str(" (run ", ext::where_of(run), ")") : std::string();
  throw error(errc::invalid_argument,
              ext::str("[feed] ", type(), shape(), " is fed where ", t, " is expected", at),
              name_of(*target_.node), target_.node->location());
}

namespace detail {

namespace {
/// Of a list of `n` elements.
dims list_extents(std::string_view name, source_location w, dtype type, const dims& declared,
                  std::int64_t n) {
  dims extents = declared;
  std::int64_t known = 1;
  for (auto e : declared) known *= e == dyn ? 1 : e;
  for (auto& e : extents)
    if (e == dyn) e = known ? n / known : 0;
  if (extents.elements() != n)
    throw error(errc::invalid_argument,
                str("[feed] a list of ", n, " elements is fed where ", tensor_type{declared, type},
                    " is expected"),
                std::string(name), w);
  return extents;
}
}  // namespace

any_array string_list_values(std::string_view name, source_location w, const dims& declared,
                             std::span<const std::string_view> list) {
  return {list_extents(name, w, dtype::string, declared, static_cast<std::int64_t>(list.size())),
          list};
}

any_array list_values(std::string_view name, source_location w, dtype type, const dims& declared,
                      std::span<const literal> list) {
  any_array values(type,
                   list_extents(name, w, type, declared, static_cast<std::int64_t>(list.size())));
  visit_dtype(type, [&]<class T>() {
    T* to = values.mutable_data<T>();
    for (const literal& v : list)
      *to++ = std::visit([&](auto s) { return fed_scalar<T>(name, w, s); }, v);
  });
  return values;
}

void refuse_literal_feed(const output& target) {
  throw error(
      errc::invalid_argument,
      str("[feed] a literal is fed where ", target.type(), " is expected: it has another dtype"),
      name_of(*target.node), target.node->location());
}

namespace {
/// Where an operation on `inputs` was written, or near which of them.
template <class Inputs, class Node>
source_location location_among(const Inputs& inputs, source_location w, Node node_of) {
  for (const auto& i : inputs) {
    if (w.known()) break;
    if (const node* n = node_of(i)) w = n->location().nearby();
  }
  return w;
}
}  // namespace

namespace {
constexpr std::uint32_t is_declared_location = 1u
                                               << 31;  // a value that was moved has left its port

struct hash_of_location {
  std::size_t operator()(const source_location& w) const {
    const auto file = reinterpret_cast<std::uintptr_t>(w.file);
    return std::hash<std::uint64_t>()((file ^ w.line) * 0x9E3779B97F4A7C15u >> 16);
  }
};

/// The lines that declare tensors without values, by number.
class declared_locations {
 public:
  /// The port of a tensor that is declared at `w`; 0 if there are too many such lines.
  std::uint32_t port_of(const source_location& w) {
    constexpr std::size_t most = 1 << 20;  // a caller may make up lines
    std::lock_guard lock(guard_);
    if (const auto known = ports_.find(w); known != ports_.end()) return known->second;
    if (all_.size() == most) return 0;
    const auto port = is_declared_location | static_cast<std::uint32_t>(all_.size());
    all_.push_back(w);
    try {
      ports_.emplace(w, port);
    } catch (...) {
      all_.pop_back();
      throw;
    }
    return port;
  }
  source_location at(std::uint32_t port) {
    std::lock_guard lock(guard_);
    const std::size_t number = port & ~is_declared_location;
    return number < all_.size() ? all_[number] : source_location();
  }

 private:
  std::mutex guard_;
  std::vector<source_location> all_;
  std::unordered_map<source_location, std::uint32_t, hash_of_location> ports_;
};
declared_locations& locations_of_empty() {
  static auto& places = *new declared_locations;
  return places;
}
}  // namespace

output declared_empty(source_location w) {
  // What this thread declared lately needs no lock.
  struct recent {
    source_location location;
    std::uint32_t port = 0;  ///< 0: none
  };
  constexpr std::size_t slots = 64;
  static thread_local constinit recent cache[slots] = {};
  recent& r = cache[hash_of_location()(w) % slots];
  if (r.port == 0 || r.location != w) r = {w, locations_of_empty().port_of(w)};
  return {{}, r.port};
}

source_location location_of_empty(const output& empty) {
  if (empty.node || !(empty.port & is_declared_location)) return {};
  return locations_of_empty().at(empty.port);
}

void refuse_empty(std::string_view what) {
  fail(errc::failed_precondition, "an empty ", what,
       " is used: it was declared, but never assigned");
}

output value_of(const node_ref& n, source_location w) {
  if (!n) throw error(errc::not_found, "[tensor] the graph has no node of that name", {}, w);
  if (n->outputs.empty())
    throw error(errc::invalid_argument,
                str("[tensor] expects a node with a value, and got an operation, ", n->def->name,
                    ": operation(n) runs it"),
                name_of(*n), w);
  return {n, 0};
}

void refuse_empty_operand(std::string_view op, std::size_t number, source_location w,
                          const output& empty) {
  throw error(errc::failed_precondition, str("an empty tensor is used as operand ", number),
              std::string(op), w.known() ? w : location_of_empty(empty).nearby());
}

void refuse_literal(const literal& v, dtype type, std::string node, source_location w) {
  throw error(errc::invalid_argument,
              str("the literal ", std::visit([](auto s) { return str(s); }, v), " does not fit ",
                  type, is_floating(type) && v.index() < 2 ? " exactly" : ""),
              std::move(node), w);
}

any_tensor add_node(const op_def& def, int first_value, std::span<const any_argument> arguments,
                    source_location w) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].is_literal && !arguments[i].tensor)
      refuse_empty_operand(
          def.name, i + 1,
          location_among(arguments, w, [](const any_argument& x) { return x.tensor.node.get(); }),
          arguments[i].tensor);
  dtype literals = dtype::none;
  const auto values = arguments.subspan(static_cast<std::size_t>(std::max(first_value, 0)));
  for (const auto& a : values)
    if (a.tensor && literals == dtype::none) literals = a.tensor.type().type;
  for (const auto& a : values)
    if (a.is_literal && literals == dtype::none)
      literals = std::visit(
          []<class T>(T) {
            return dtype_of<std::conditional_t<std::integral<T>, std::int32_t, T>>;
          },
          a.number);
  boost::container::small_vector<output, 8> inputs;
  for (const auto& a : arguments) {
    if (!a.is_literal) {
      inputs.push_back(a.tensor);
      continue;
    }
    try {
      inputs.push_back(literal_like(a.number, literals, w).handle());
    } catch (const error& e) {
      throw error(
          e.code(), e.message(), std::string(def.name),
          location_among(arguments, w, [](const any_argument& x) { return x.tensor.node.get(); }));
    }
  }
  return add_node(def, {}, inputs, w);
}

any_tensor add_node(const op_def& def, attr_list attributes, std::span<const output> inputs,
                    source_location w, const scope_ref* s) {
  const source_location location =
      location_among(inputs, w, [](const output& i) { return i.node.get(); });
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i]) refuse_empty_operand(def.name, i + 1, location, inputs[i]);
  graph g = inputs.empty() ? current_graph() : graph_for(*inputs[0].node);
  return any_tensor(output{g.add({.def = &def,
                                  .attributes = std::move(attributes),
                                  .inputs = inputs,
                                  .location = location,
                                  .scope = s}),
                           0});
}

output as_declared(output o, const tensor_type& type, source_location w) {
  if (!o) return o;
  const tensor_type& t = o.type();
  if (t.type != type.type || !may_equal(type.shape, t.shape))
    throw error(errc::invalid_argument, str("[tensor] ", t, " is not a tensor of ", type),
                name_of(*origin_of(o).node), o.node->location());
  if (fits(type.shape, t.shape)) return o;
  static const op_def& ensure_shape = *find_op("ensure_shape");
  // It is where the value is, and waits for nothing else.
  return {graph_for(*o.node).add({.def = &ensure_shape,
                                  .attributes = {integers(type.shape.begin(), type.shape.end())},
                                  .inputs = {&o, 1},
                                  .location = w.known() ? w : o.node->location(),
                                  .scope = &no_scopes,
                                  .device = o.node->device()}),
          0};
}

any_array scalar_of(const literal& v, dtype type) {
  if (type == dtype::string)
    fail(errc::invalid_argument, "the literal ", std::visit([](auto s) { return str(s); }, v),
         " where strings are expected");
  any_array value(type, dims{});
  visit_dtype(type, [&]<class T>() {
    std::visit(
        [&]<class S>(S s) {
          if constexpr (!is_floating_type<T> && std::floating_point<S>)
            fail(errc::invalid_argument, "a floating literal with a tensor of ", type, ": ", s);
          else
            *value.mutable_data<T>() = survive<T>(s);
        },
        v);
  });
  return value;
}

any_tensor literal_like(const literal& v, dtype type, source_location w) {
  return add_constant(scalar_of(v, type), w);
}

any_tensor add_constant(any_array value, source_location w) {
  static const op_def& constant = *find_op("constant");
  return add_node(constant, {std::move(value)}, {}, w);
}

}  // namespace detail
}  // namespace deft
