// SPDX-License-Identifier: Apache-2.0
// deft/graph/serialize.hpp: graphs and their parts written to an archive, and read and checked.
//
// One `serialize` a type, in Boost.Serialization's form: it feeds Boost's XML archive, and deft's
// own (transport/archive.hpp), which says `compact`. Only compact archives load. What is loaded is
// sound by itself; whether a graph is, validate(graph_def) says afterwards.
#pragma once
#include <deft/graph/function.hpp>
#include <deft/graph/graph_def.hpp>
#include <string>
#include <string_view>
#include <type_traits>

namespace deft {

namespace ext {

/// A value with the name that readable archives show. Compact archives ignore the name.
template <class T>
struct named_value {
  const char* name;
  T& value;
};
/// `ar & named("inputs", n.inputs)`
template <class T>
named_value<T> named(const char* name, T& value) {
  return {name, value};
}

}  // namespace ext

namespace detail {

template <class Archive>
inline constexpr bool is_compact = requires {
  typename Archive::compact;
};

/// The longest name of a device or source file that a peer may send.
inline constexpr std::size_t longest_name = 1'024;

inline placement device_of_wire(const std::string& text) {
  if (text.empty()) return nullptr;
  thread_local std::pair<std::string, placement> last;  // runs of nodes share their device
  if (last.first == text) return last.second;
  if (text.size() > longest_name)
    fail(errc::resource_exhausted, "the device name \"", std::string_view(text).substr(0, 80),
         "\" is refused: it is too long (limit 1,024 bytes)");
  last = {text, intern(parse_device(text))};
  return last.second;
}

/// The name of a source file that a peer sent, shared by the nodes that come in a row. "?" if it is
/// too long, as it only appears in messages.
inline std::shared_ptr<const std::string> file_of_wire(const std::string& text) {
  thread_local std::weak_ptr<const std::string> last;
  if (auto same = last.lock(); same && *same == text) return same;
  auto name = std::make_shared<const std::string>(text.size() > longest_name ? "?" : text);
  last = name;
  return name;
}
inline std::string& device_text(placement d) {
  thread_local std::pair<placement, std::string> last{};
  if (last.first != d) last = {d, d ? to_string(*d) : std::string()};
  return last.second;
}
inline const op_def* op_of_wire(const std::string& name) {
  const op_def* op = find_op(name);
  if (!op) fail(errc::not_found, "this process has no operation \"", name, "\"");
  return op;
}

/// Maximum number of bytes that a value may claim to have, so that products of extents never
/// overflow.
inline constexpr std::uint64_t most_bytes = std::uint64_t{1} << 60;

/// Bytes of a value, or of the offsets of one of strings but the first; extents that are not known
/// count as 1.
/// Throws invalid_argument for extents below 0 (except `dyn`, where allowed) and for products above
/// that limit.
inline std::uint64_t checked_bytes(dtype type, const dims& shape, bool may_be_dyn) {
  std::uint64_t bytes = type == dtype::string ? sizeof(std::int64_t) : size_of_dtype(type);
  bool none = false;
  for (auto e : shape) {
    if (e < 0 && !(may_be_dyn && e == dyn))
      fail(errc::invalid_argument, "received an extent of ", e);
    if (e == 0) none = true;
    if (e <= 1) continue;
    if (bytes && static_cast<std::uint64_t>(e) > most_bytes / bytes)
      fail(errc::invalid_argument, "received a shape larger than any memory");
    bytes *= static_cast<std::uint64_t>(e);
  }
  return none ? 0 : bytes;
}

/// Text that is not stored as a std::string.
template <class Archive>
void write_text(Archive& ar, const char* what, std::string_view text) {
  if constexpr (is_compact<Archive>) {
    ar& text;
  } else {
    std::string copy(text);
    ar& named(what, copy);
  }
}
template <class Archive>
void serialize_op(Archive& ar, const op_def*& op) {
  if constexpr (Archive::is_saving::value) {
    write_text(ar, "op", op->name);
  } else {
    thread_local std::string name;
    ar& named("op", name);
    op = op_of_wire(name);
  }
}
template <class Archive>
void serialize_name(Archive& ar, node_name& name) {
  if constexpr (Archive::is_saving::value) {
    write_text(ar, "name", name.str());
  } else {
    std::string text;
    ar& named("name", text);
    name = std::move(text);
  }
}
template <class Archive>
void serialize_device(Archive& ar, const char* what, placement& d) {
  if constexpr (Archive::is_saving::value) {
    ar& named(what, device_text(d));
  } else {
    thread_local std::string text;
    ar& named(what, text);
    d = device_of_wire(text);
  }
}

/// An attribute that nodes share.
template <class Archive, class T>
void serialize_shared(Archive& ar, const char* what, std::shared_ptr<const T>& value) {
  if constexpr (Archive::is_saving::value) {
    T copy = value ? *value : T();
    ar& named(what, copy);
  } else {
    auto made = std::make_shared<T>();
    ar& named(what, *made);
    value = std::move(made);
  }
}

}  // namespace detail

template <class Archive>
requires detail::is_compact<Archive>
void serialize(Archive& ar, dtype& t, unsigned) {
  auto code = static_cast<std::uint8_t>(t);
  ar& code;
  t = ext::dtype_of_number(code);
  if (t == dtype::none && code != 0) ext::fail(errc::invalid_argument, "unknown dtype ", code);
}

template <class Archive>
void serialize(Archive& ar, dims& d, unsigned) {
  auto rank = static_cast<std::uint8_t>(d.n);
  ar& ext::named("rank", rank);
  if (rank > max_rank) ext::fail(errc::invalid_argument, "a rank of ", rank, ", above ", max_rank);
  d.n = rank;
  for (int i = 0; i < rank; ++i) ar& ext::named("extent", d.e[i]);
}

/// Elements are written as raw bytes, outside the archive if it supports that.
template <class Archive>
void serialize(Archive& ar, any_array& a, unsigned) {
  dtype type = a.type();
  dims shape = a.shape();
  ar& ext::named("type", type) & ext::named("shape", shape);
  if constexpr (!detail::is_compact<Archive>) {
    std::string text = to_string(a);
    ar& ext::named("elements", text);
  } else if constexpr (Archive::is_saving::value) {
    ar.put_elements(a);
  } else {
    if (!ext::is_valid(type)) ext::fail(errc::invalid_argument, "an array without a dtype");
    a = ar.get_elements(type, shape, detail::checked_bytes(type, shape, false));
  }
}

template <class Archive>
void serialize(Archive& ar, graph_def& g, unsigned) {
  ar& ext::named("nodes", g.nodes);
}

namespace ext {

template <class Archive>
void serialize(Archive& ar, tensor_type& t, unsigned) {
  ar& named("type", t.type) & named("shape", t.shape);
  if constexpr (!Archive::is_saving::value) detail::checked_bytes(t.type, t.shape, true);
}

template <class Archive>
void serialize(Archive& ar, owned_location& w, unsigned) {
  if constexpr (Archive::is_saving::value) {
    detail::write_text(ar, "file", w.file);
    ar& named("line", w.line) & named("approximate", w.approximate);
  } else {
    thread_local std::string file;
    unsigned line = 0;
    bool approximate = false;
    ar& named("file", file) & named("line", line) & named("approximate", approximate);
    w = owned_location(detail::file_of_wire(file), line, approximate);
  }
}

template <class Archive>
void serialize(Archive& ar, instruction& c, unsigned) {
  detail::serialize_op(ar, c.op);
  ar& named("type", c.type) & named("leaves", c.leaves) & named("count", c.count);
  if (c.count > std::size(c.args))
    fail(errc::invalid_argument, "[", c.op->name, "] an instruction with ", c.count, " arguments");
  for (int i = 0; i < c.count; ++i) ar& named("arg", c.args[i]);
}

template <class Archive>
void serialize(Archive& ar, program_piece& p, unsigned) {
  ar& named("first", p.first) & named("last", p.last);
}

template <class Archive>
void serialize(Archive& ar, program_output& o, unsigned) {
  ar& named("value", o.value) & named("where", o.where) & named("keepdims", o.keepdims);
}

/// A loaded program is checked, and its signature and hash are computed again: they are not sent.
template <class Archive>
void serialize(Archive& ar, program& p, unsigned) {
  ar& named("inputs", p.inputs) & named("immediates", p.immediates) & named("code", p.code) &
      named("outputs", p.outputs) & named("row_axes", p.row_axes) & named("pieces", p.pieces);
  if constexpr (!Archive::is_saving::value) {
    validate(p);
    p.seal();
  }
}

template <class Archive>
void serialize(Archive& ar, node_def& n, unsigned);
template <class Archive>
void serialize(Archive& ar, edge_def& e, unsigned);
/// What `seal` computes is not sent. Whether a function is sound, validate says afterwards, with
/// the graph of the node that has it.
template <class Archive>
void serialize(Archive& ar, function_def& f, unsigned) {
  ar& named("name", f.name) & named("body", f.body) & named("parameters", f.parameters) &
      named("results", f.results) & named("call", f.call);
  if constexpr (!Archive::is_saving::value) f.seal();
}

/// The index of the alternative, then its value.
template <class Archive>
void serialize(Archive& ar, attr_value& v, unsigned) {
  auto kind = static_cast<std::uint8_t>(v.index());
  ar& named("kind", kind);
  if constexpr (!Archive::is_saving::value) {
    auto choose = [&]<std::size_t... Index>(std::index_sequence<Index...>) {
      return ((kind == Index ? (v.template emplace<Index>(), true) : false) || ...);
    };
    if (!choose(std::make_index_sequence<std::variant_size_v<attr_value>>()))
      fail(errc::invalid_argument, "unknown kind of attribute: ", kind);
  }
  std::visit(
      [&]<class T>(T& value) {
        if constexpr (std::is_same_v<T, program_ref>)
          detail::serialize_shared(ar, "program", value);
        else if constexpr (std::is_same_v<T, function_ref>)
          detail::serialize_shared(ar, "function", value);
        else
          ar& named("value", value);
      },
      v);
}

/// As a vector of its elements.
template <class Archive, class T>
void serialize(Archive& ar, shared_list<T>& list, unsigned) {
  std::vector<T> items;
  if constexpr (Archive::is_saving::value) items.assign(list.begin(), list.end());
  ar& named("items", items);
  if constexpr (!Archive::is_saving::value) list = std::move(items);
}

template <class Archive>
void serialize(Archive& ar, edge_def& e, unsigned) {
  ar& named("node", e.node) & named("port", e.port);
}

template <class Archive>
void serialize(Archive& ar, node_def& n, unsigned) {
  detail::serialize_op(ar, n.op);
  detail::serialize_name(ar, n.name);
  ar& named("attributes", n.attributes) & named("inputs", n.inputs) &
      named("controls", n.controls) & named("outputs", n.outputs);
  detail::serialize_device(ar, "requested", n.requested);
  detail::serialize_device(ar, "device", n.device);
  ar& named("location", n.location);
}

}  // namespace ext

}  // namespace deft
