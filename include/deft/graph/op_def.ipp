// SPDX-License-Identifier: Apache-2.0
// deft/graph/op_def.ipp: attributes compared, hashed and printed; the table of operations.
#pragma once
#include <cstring>
#include <deft/core/hash.hpp>
#include <deft/graph/function.hpp>
#include <deft/graph/op_def.hpp>
#include <mutex>
#include <unordered_map>

namespace deft {
namespace {

template <class... F>
struct overloaded : F... {
  using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;  // clang 14 does not deduce for aggregates

bool same_function(const ext::function_def& a, const ext::function_def& b);

bool same_value(const ext::attr_value& a, const ext::attr_value& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&]<class T>(const T& x) {
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, any_array>)
          return x.storage() == y.storage()
                     ? x.type() == y.type() && x.shape() == y.shape()
                     : x.type() == y.type() && x.shape() == y.shape() && x.bytes() == y.bytes() &&
                           std::memcmp(x.raw(), y.raw(), x.bytes()) == 0;
        else if constexpr (std::is_same_v<T, ext::program_ref>)
          return x == y || (x && y && x->hash == y->hash && x->signature == y->signature);
        else if constexpr (std::is_same_v<T, ext::function_ref>)
          return x == y || (x && y && same_function(*x, *y));
        else if constexpr (std::is_same_v<T, double>)
          return std::memcmp(&x, &y, sizeof x) == 0;
        else
          return x == y;
      },
      a);
}

/// Wherever the nodes were written, and whatever they are called.
bool same_function(const ext::function_def& a, const ext::function_def& b) {
  const auto same_node = [](const ext::node_def& x, const ext::node_def& y) {
    return x.op == y.op && x.inputs == y.inputs && x.controls == y.controls &&
           x.outputs == y.outputs && x.requested == y.requested && x.device == y.device &&
           ext::same_attributes(x.attributes, y.attributes);
  };
  return a.hash == b.hash && a.call == b.call && a.parameters == b.parameters &&
         a.results == b.results && std::ranges::equal(a.body.nodes, b.body.nodes, same_node);
}

std::uint64_t hash_value(const ext::attr_value& a) {
  return std::visit(overloaded{
                        [](std::int64_t v) { return ext::mix(1, static_cast<std::uint64_t>(v)); },
                        [](double v) { return ext::mix(2, __builtin_bit_cast(std::uint64_t, v)); },
                        [](const std::string& v) { return ext::hash_bytes(v.data(), v.size()); },
                        [](const ext::integers& v) {
                          std::uint64_t h = 4;
                          for (auto i : v) h = ext::mix(h, static_cast<std::uint64_t>(i));
                          return h;
                        },
                        [](const any_array& v) {
                          std::uint64_t h = ext::mix(5, static_cast<std::uint64_t>(v.type()));
                          for (auto e : v.shape()) h = ext::mix(h, static_cast<std::uint64_t>(e));
                          return ext::mix(h, ext::hash_bytes(v.raw(), v.bytes()));
                        },
                        [](const ext::program_ref& v) { return v ? v->hash : 0; },
                        [](const ext::function_ref& v) { return v ? v->hash : 0; },
                        [](const ext::strings& v) {
                          std::uint64_t h = 7;
                          for (const auto& s : v)
                            h = ext::mix(h, ext::hash_bytes(s.data(), s.size()));
                          return h;
                        },
                        [](const ext::tensor_types& v) {
                          std::uint64_t h = 8;
                          for (const auto& t : v) {
                            h = ext::mix(h, static_cast<std::uint64_t>(t.type));
                            h = ext::mix(h, static_cast<std::uint64_t>(t.shape.rank()));
                            for (auto e : t.shape) h = ext::mix(h, static_cast<std::uint64_t>(e));
                          }
                          return h;
                        },
                    },
                    a);
}

class op_table {
 public:
  op_table() {
    for (const ext::op_def* d : ext::catalog_ops()) add(*d);
  }
  void add(const ext::op_def& def) {
    auto [at, fresh] = ops_.emplace(def.name, &def);
    if (!fresh && at->second != &def)
      ext::fail(errc::already_exists, "two operations of this program are named \"", def.name, '"');
  }
  const auto& ops() {
    ext::op_registration::all.each_new(seen_, [&](const auto& r) { add(r.def()); });
    return ops_;
  }

  std::mutex guard;

 private:
  std::unordered_map<std::string_view, const ext::op_def*> ops_;
  const ext::op_registration* seen_ = nullptr;  ///< the newest one in `ops_`
};
op_table& table_of_ops() {
  static auto& table = *new op_table;
  return table;
}

}  // namespace

namespace ext {

attr_list make_attributes(std::span<attr_value> values) {
  return std::vector<attr_value>(std::make_move_iterator(values.begin()),
                                 std::make_move_iterator(values.end()));
}

bool same_attributes(std::span<const attr_value> a, std::span<const attr_value> b) {
  if (a.size() != b.size()) return false;
  if (a.data() == b.data()) return true;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same_value(a[i], b[i])) return false;
  return true;
}

std::uint64_t hash_attributes(std::span<const attr_value> a) {
  std::uint64_t h = a.size();
  for (const auto& v : a) h = mix(h, hash_value(v));
  return h;
}

std::string to_string(const attr_value& v) {
  return std::visit(overloaded{
                        [](const std::string& s) { return str('"', s, '"'); },
                        [](const integers& i) { return "[" + join(i, ",") + "]"; },
                        [](const strings& s) { return "[" + join(s, ",") + "]"; },
                        [](const tensor_types& t) {
                          return "[" + join(t, ",", [](const auto& x) { return to_string(x); }) +
                                 "]";
                        },
                        [](const program_ref& p) { return p ? p->signature : std::string(); },
                        [](const function_ref& f) { return f ? f->name : std::string(); },
                        [](const any_array& a) {
                          return a.elements() <= 8 ? to_string(a) : str(a.type(), a.shape());
                        },
                        [](const auto& n) { return str(n); },
                    },
                    v);
}

const program* program_in(std::span<const attr_value> a) {
  for (const auto& v : a)
    if (auto* p = std::get_if<program_ref>(&v)) return p->get();
  return nullptr;
}

void register_op(const op_def& def) {
  auto& t = table_of_ops();
  std::lock_guard lock(t.guard);
  t.add(def);
}

constinit registry<op_registration> op_registration::all;

op_registration::op_registration(const op_def& def, op_functions& functions,
                                 const op_functions& compiled)
    : def_(def) {
  if (compiled.gradient) functions.gradient = compiled.gradient;
  if (compiled.source) functions.source = compiled.source;
  if (compiled.make_call) functions.make_call = compiled.make_call;
  all.add(*this);
}

const op_def* find_op(std::string_view name) {
  auto& t = table_of_ops();
  std::lock_guard lock(t.guard);
  const auto& ops = t.ops();
  auto at = ops.find(name);
  return at == ops.end() ? nullptr : at->second;
}

bool is_known(const op_def& def) { return find_op(def.name) == &def; }

std::vector<const op_def*> known_ops() {
  auto& t = table_of_ops();
  std::lock_guard lock(t.guard);
  std::vector<const op_def*> all;
  for (const auto& [name, def] : t.ops()) all.push_back(def);
  return all;
}

std::size_t known_op_count() {
  auto& t = table_of_ops();
  std::lock_guard lock(t.guard);
  return t.ops().size();
}

gradient_function gradient_of(const op_def& def) {
  table_of_ops();  // the catalog fills in its functions
  return def.functions->gradient;
}

void infer_types(const op_def& def, const infer_context& c, std::vector<tensor_type>& outputs) {
  int n = static_cast<int>(c.inputs.size());
  if (n < def.min_inputs || (def.max_inputs >= 0 && n > def.max_inputs))
    fail(errc::invalid_argument, "[", def.name, "] takes ",
         def.max_inputs == def.min_inputs ? str(def.min_inputs)
         : def.max_inputs < 0             ? str("at least ", def.min_inputs)
                                          : str(def.min_inputs, " to ", def.max_inputs),
         " inputs, not ", n);
  if (c.attributes.size() != def.attributes.size())
    fail(errc::invalid_argument, "[", def.name, "] has ", def.attributes.size(),
         " attributes, not ", c.attributes.size());
  outputs.clear();
  def.infer(c, outputs);
  for (const auto& o : outputs)
    if (!is_valid(o.type) || !is_sound(o.shape))
      fail(errc::invalid_argument, "[", def.name, "] the result would be ", o,
           ", which is not a valid type and shape");
}

}  // namespace ext

}  // namespace deft
