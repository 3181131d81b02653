// SPDX-License-Identifier: Apache-2.0
// deft/train/saver_names.ipp: what a saver saves under which names and with which axes, and how
// that compares with a checkpoint.
#pragma once
#include <algorithm>
#include <deft/core/printable.hpp>
#include <deft/op/transpose.hpp>
#include <deft/train/checkpoint_index.hpp>
#include <deft/train/saver.hpp>

namespace deft {
namespace {

using named_variables = std::map<std::string, any_variable>;

/// Names may come from a file.
std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i)
    text += ext::str(i ? ", " : "", "\"", ext::printable(names[i]), "\"");
  if (names.size() > most) text += ext::str(" and ", names.size() - most, " more");
  return text;
}

/// Throws unless `order` is one of the axes of `v`.
void check_axes(const std::string& name, const axes& order, const any_variable& v) {
  std::vector<std::int64_t> sorted(order.value.begin(), order.value.end());
  std::ranges::sort(sorted);
  bool sound = static_cast<int>(sorted.size()) == v.rank();
  for (std::size_t i = 0; i < sorted.size(); ++i)
    sound &= sorted[i] == static_cast<std::int64_t>(i);
  if (!sound)
    ext::fail(errc::invalid_argument, "[saver] \"", name, "\" is to be transposed by ", order.value,
              ", which is no order of the axes of variable \"", v.name(), "\", ",
              ext::tensor_type{v.shape(), v.type()});
}

void check_transposed(const saver_options& o, const named_variables& saved) {
  for (const auto& [name, order] : o.transposed) {
    const auto v = saved.find(name);
    if (v == saved.end())
      ext::fail(errc::invalid_argument, "[saver] \"", ext::printable(name),
                "\" is to be transposed, and no variable is saved under this name");
    check_axes(name, order, v->second);
  }
}

/// Adds the variables that were given to those that were named.
saver_options with_names(saver_options o) {
  for (const auto& v : o.variables) {
    const auto [there, fresh] = o.named.emplace(v.name(), v);
    if (!fresh)
      ext::fail(errc::invalid_argument, "[saver] two variables have the name \"", v.name(), "\"");
  }
  o.variables.clear();
  std::map<const ext::node*, std::string_view> names;
  for (const auto& [name, v] : o.named) {
    if (!detail::is_possible_name(name))
      ext::fail(errc::invalid_argument, "[saver] \"", ext::printable(name),
                "\" cannot be the name of a tensor in a file");
    const auto [first, fresh] = names.emplace(v.handle().node.get(), name);
    if (!fresh)
      ext::fail(errc::invalid_argument, "[saver] variable \"", v.name(), "\" has two names, \"",
                first->second, "\" and \"", name, "\": it is saved, and restored, under one");
  }
  if (!o.named.empty()) check_transposed(o, o.named);
  return o;
}

/// The graph of all of these, or the current one.
graph common_graph(const named_variables& variables) {
  if (variables.empty()) return current_graph();
  const graph g = graph::of(*variables.begin()->second.handle().node);
  for (const auto& [name, v] : variables)
    if (!(graph::of(*v.handle().node) == g))
      ext::fail(errc::invalid_argument, "[saver] variable \"", v.name(),
                "\" is of another graph than \"", variables.begin()->second.name(), "\"");
  return g;
}

[[noreturn]] void fail_comparison(const std::string& path, const checkpoint_comparison& c) {
  std::string text;
  for (const auto& m : c.mismatched) text += ext::str(text.empty() ? "" : "; ", m);
  if (!c.missing.empty())
    text += ext::str(text.empty() ? "" : "; ", "it does not have ", list_of(c.missing));
  if (!c.extra.empty()) text += ext::str("; only it has ", list_of(c.extra));
  ext::fail(c.mismatched.empty() ? errc::not_found : errc::invalid_argument, "[saver] ", path,
            " does not fit the variables: ", text);
}

/// `shape`, whose axes `order` has in a file, there.
dims in_file(const dims& shape, const dims& order) {
  dims there = shape;
  for (int i = 0; i < order.rank(); ++i) there[static_cast<int>(order[i])] = shape[i];
  return there;
}

/// A value as it is in a file. Axis j of the result is axis i of the value for order[i] = j.
any_tensor to_file(const any_tensor& value, const dims& order) {
  if (order.rank() == 0) return value;
  dims inverse = order;
  for (int i = 0; i < order.rank(); ++i) inverse[static_cast<int>(order[i])] = i;
  return transpose(value, axes(inverse));
}

}  // namespace

saver::saver(saver_options options) : options_(with_names(std::move(options))) {
  graph_ = common_graph(options_.named);
}

std::map<std::string, any_variable> saver::variables() const {
  if (!options_.named.empty()) return options_.named;
  named_variables all;
  for (const auto& v : graph_.variables()) {
    const any_variable found(v);
    all.emplace(found.name(), found);
  }
  if (all.empty()) ext::fail(errc::failed_precondition, "[saver] the graph has no variables");
  check_transposed(options_, all);
  return all;
}

dims saver::axes_in_file(const std::string& name) const {
  const auto given = options_.transposed.find(name);
  return given == options_.transposed.end() ? dims() : given->second.value;
}

namespace {
/// Whether values of dtype `from` are restored to a variable of `to`, as they are or cast.
bool can_restore(dtype from, dtype to) {
  return from == to || (ext::is_floating(from) && ext::is_floating(to) &&
                        (ext::is_half(from) || ext::is_half(to)));
}
}  // namespace

checkpoint_comparison saver::compare_with(const detail::checkpoint_index& index,
                                          const named_variables& all) const {
  checkpoint_comparison c;
  for (const auto& [name, v] : all) {
    const auto saved = index.tensors.find(name);
    if (saved == index.tensors.end()) {
      c.missing.push_back(name);
      continue;
    }
    const detail::saved_tensor& t = saved->second;
    const dims order = axes_in_file(name), shape = in_file(v.shape(), order);
    if (can_restore(t.holds.type, v.type()) && ext::fits(shape, t.holds.shape)) {
      c.restorable.push_back(name);
      continue;
    }
    const dims& found = t.holds.shape;
    dims reversed;
    const bool hint = can_restore(t.holds.type, v.type()) && order.rank() == 0 &&
                      found.rank() > 1 &&
                      op::transpose{op::transpose::reversed(found.rank())}.shape(found, reversed) &&
                      ext::fits(v.shape(), reversed);
    c.mismatched.push_back(ext::str(
        "\"", name, "\" is ", ext::tensor_type{v.shape(), v.type()},
        order.rank() ? ext::str(", transposed by ", order, " ", ext::tensor_type{shape, v.type()})
                     : "",
        ", and ", t.type.empty() ? to_string(t.holds) : ext::printable(t.type),
        " in the checkpoint",
        hint ? "; saver_options.transposed restores axes in another order" : ""));
  }
  for (const auto& [name, t] : index.tensors)
    if (!all.contains(name)) c.extra.push_back(name);
  return c;
}

checkpoint_comparison saver::compare(const std::string& path) const {
  return compare_with(detail::read_index(path), variables());
}

}  // namespace deft
