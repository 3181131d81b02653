// SPDX-License-Identifier: Apache-2.0
// deft/core/safetensors.ipp: the header of safetensors files, and their elements with checksums.
#pragma once
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <deft/core/crc32c.hpp>
#include <deft/core/json.ipp>
#include <deft/core/log.hpp>
#include <deft/core/printable.hpp>
#include <deft/core/safetensors.hpp>
#include <deft/core/stored_elements.hpp>
#include <vector>

namespace deft {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

namespace json = boost::json;

constexpr std::size_t longest_header = 100'000'000;  ///< the format's limit
constexpr std::size_t chunk_bytes = 1u << 19;        ///< stays in the cache for its checksum
constexpr std::uint64_t piece_bytes = 1u << 21;      ///< for one thread: a huge page
/// The system copies a third faster between a file and memory that begin a cache line alike.
constexpr std::size_t data_alignment = 64;

constexpr std::string_view metadata_key = "__metadata__";
// Among the file's metadata, which other readers ignore: checksums of the header, with this one
// written as zeros, and of each array.
constexpr std::string_view own_keys = "deft.", header_key = "deft.header_crc32c",
                           array_key = "deft.crc32c.";

std::string_view name_of_type(dtype t) { return ext::traits_of(t).names.safetensors; }
/// The dtype is none if there is no such type.
ext::stored_elements stored_as(std::string_view name) {
  const dtype t = ext::dtype_named(&ext::element_names::safetensors, name);
  return {t, ext::size_of_dtype(t)};
}

std::string hex(std::uint32_t v) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(8, '0');
  for (std::size_t i = 8; i-- > 0; v >>= 4) text[i] = digits[v & 15];
  return text;
}
std::optional<std::uint32_t> from_hex(std::string_view text) {
  std::uint32_t v = 0;
  const auto [at, e] = std::from_chars(text.data(), text.data() + text.size(), v, 16);
  if (e != std::errc() || at != text.data() + text.size() || hex(v) != text) return {};
  return v;
}

[[noreturn]] void bad_file(const std::string& path, std::string_view what) {
  ext::fail(errc::data_loss, "[safetensors] ", path, ": ", what);
}

[[noreturn]] void fail_unknown(const std::string& path, const std::string& name) {
  ext::fail(errc::not_found, "[safetensors] ", path, " has no array \"", ext::printable(name),
            "\"");
}
/// Why deft cannot read an array.
std::string unsupported_text(const std::string& name, const safetensors_entry& e) {
  return ext::str(
      "\"", ext::printable(name), "\" is ", e.unsupported,
      stored_as(e.type).type != dtype::none
          ? ext::str(", and deft's arrays have at most ", max_rank, " axes")
          : ", and deft has no such elements: convert it to F32, or to another type that it has");
}

void check_not_stopped(const std::stop_token& stop, const std::string& path) {
  if (stop.stop_requested()) ext::fail(errc::cancelled, "[safetensors] ", path, ": cancelled");
}

/// The header as an object, its own checksum compared.
json::object parse_header(const std::string& path, std::string text) {
  json::value parsed = detail::parse_json(text, ext::str("[safetensors] ", path, ": its header"));
  if (!parsed.is_object()) bad_file(path, "its header is not a JSON object");
  json::object header = std::move(parsed.get_object());
  const std::string key = ext::str("\"", header_key, "\":\"");
  if (const auto at = text.find(key); at != text.npos) {
    const auto stored = from_hex(std::string_view(text).substr(at + key.size(), 8));
    if (stored) text.replace(at + key.size(), 8, 8, '0');
    if (!stored || ext::crc32c(text) != *stored)
      bad_file(path, "the checksum of its header is wrong");
  } else if (const json::value* metadata = header.if_contains(metadata_key);
             metadata && metadata->is_object() &&
             std::ranges::any_of(metadata->get_object(), [](const auto& entry) {
               return entry.key().starts_with(array_key);
             })) {
    bad_file(path, "the checksum of its header is missing");
  }
  return header;
}

/// An array, and how a file has it.
struct stored_array {
  const detail::named_array* array;
  std::string_view type;
  ext::stored_elements elements;

  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(array->value->elements()) * elements.size;
  }
};
/// Throws invalid_argument for what a file cannot hold.
stored_array stored(const std::string& path, const detail::named_array& a,
                    const std::map<std::string, std::string>& types) {
  const auto refuse = [&](std::string_view why) {
    ext::fail(errc::invalid_argument, "[safetensors] ", path, ": cannot hold \"",
              ext::printable(a.name), "\": ", why);
  };
  if (a.name == metadata_key) refuse("the format reserves this name");
  if (!ext::is_utf8(a.name)) refuse("its name is not valid UTF-8");
  if (a.value->type() == dtype::none) refuse("it is an any_array without a dtype");
  if (name_of_type(a.value->type()).empty())
    refuse(ext::str("the format has no elements of ", a.value->type()));
  const auto wanted = types.find(std::string(a.name));
  const std::string_view type =
      wanted == types.end() ? name_of_type(a.value->type()) : std::string_view(wanted->second);
  ext::stored_elements e = stored_as(type);
  if (a.value->type() == dtype::float32 && type == "F16") e = ext::float_in_float16;
  if (a.value->type() == dtype::float32 && type == "BF16") e = ext::float_in_bfloat16;
  if (e.type != a.value->type())
    refuse(ext::str("it is to be stored as ", ext::printable(type), ", and is an array of ",
                    a.value->type(), e.type == dtype::none ? "" : ext::str(", not of ", e.type)));
  return {&a, type, e};
}

safetensors_entry parse_entry(const std::string& path, const std::string& name,
                              const json::value& v) {
  const auto bad = [&] {
    bad_file(path, ext::str("the entry of \"", ext::printable(name), "\" is not sound"));
  };
  safetensors_entry e;
  const auto number = [&](const json::value& n) {
    boost::system::error_code failed;
    const auto value = n.to_number<std::int64_t>(failed);
    if (failed || value < 0) bad();
    return value;
  };
  const json::object* o = v.if_object();
  if (!o) bad();
  const json::value* type = o->if_contains("dtype");
  const json::value* shape = o->if_contains("shape");
  const json::value* offsets = o->if_contains("data_offsets");
  if (!type || !type->is_string() || !shape || !shape->is_array() || !offsets ||
      !offsets->is_array() || offsets->get_array().size() != 2)
    bad();
  e.type = type->get_string().c_str();
  const ext::stored_elements held = stored_as(e.type);
  const std::size_t rank = shape->get_array().size();
  if (held.type == dtype::none)
    e.unsupported = ext::str("of ", ext::printable(e.type));
  else if (rank > max_rank)
    e.unsupported = ext::str("of rank ", rank);
  else
    e.element = held.type;
  if (rank <= max_rank)
    for (const auto& extent : shape->get_array()) e.shape.push_back(number(extent));
  e.begin = static_cast<std::uint64_t>(number(offsets->get_array()[0]));
  const auto end = static_cast<std::uint64_t>(number(offsets->get_array()[1]));
  if (end < e.begin) bad();
  e.bytes = end - e.begin;
  if (e.element == dtype::none) return e;
  std::uint64_t expected = held.size;
  for (auto extent : e.shape)
    if (__builtin_mul_overflow(expected, static_cast<std::uint64_t>(extent), &expected)) bad();
  if (expected != e.bytes || !ext::is_sound(e.shape)) bad();
  return e;
}

}  // namespace

safetensors_file::safetensors_file(const std::string& path, const ext::file_roots& roots,
                                   file_access access)
    : path_(path) {
  file_ = roots.open_file(path);
  const std::uint64_t size = ext::file_size(file_, path);
  std::uint64_t length = 0;
  if (size < sizeof length) bad_file(path, "it is too short for a safetensors file");
  ext::read_file(file_, path, 0, &length, sizeof length);
  if (length > longest_header)
    bad_file(path, ext::str("its header of ", length, " bytes is too long"));
  if (length > size - sizeof length) bad_file(path, "it ends within its header");
  std::string text(static_cast<std::size_t>(length), '\0');
  ext::read_file(file_, path, sizeof length, text.data(), text.size());
  const json::object header = parse_header(path, std::move(text));

  const std::uint64_t data = sizeof length + length;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;
  for (const auto& [key, v] : header) {
    if (key == metadata_key) continue;
    safetensors_entry e = parse_entry(path, key, v);
    parts.emplace_back(e.begin, e.begin + e.bytes);
    e.begin += data;
    entries_.emplace(key, std::move(e));
  }
  if (const json::value* metadata = header.if_contains(metadata_key);
      metadata && metadata->is_object())
    for (const auto& [key, v] : metadata->get_object()) {
      if (!v.is_string()) continue;
      if (!key.starts_with(own_keys)) {
        metadata_.emplace(key, v.get_string());
      } else if (key.starts_with(array_key)) {
        const auto e = entries_.find(std::string(key.substr(array_key.size())));
        if (e != entries_.end()) e->second.checksum = from_hex(v.get_string());
      }
    }

  std::ranges::sort(parts);
  std::uint64_t at = 0;
  for (const auto& [begin, end] : parts) {
    if (begin != at) bad_file(path, "its arrays overlap or leave a gap");
    at = end;
  }
  if (at != size - data)
    bad_file(path, ext::str("it has ", size, " bytes, and its header says ", data + at));
  if (access == file_access::mapped) pages_ = ext::file_mapping(file_, path);
}

any_array safetensors_file::read(const std::string& name, const std::stop_token& stop,
                                 piecewise each) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail_unknown(path_, name);
  const safetensors_entry& e = found->second;
  if (e.element == dtype::none)
    ext::fail(errc::unimplemented, "[safetensors] ", path_, ": ", unsupported_text(name, e));
  const ext::stored_elements held = stored_as(e.type);
  // Any other byte in a bool would be undefined behaviour.
  const bool in_place =
      !pages_.bytes().empty() && e.element != dtype::boolean && e.begin % held.size == 0;
  any_array value = in_place ? any_array(e.element, e.shape, pages_.view(e.begin, e.bytes))
                             : any_array(e.element, e.shape);
  char* const to = in_place ? nullptr : static_cast<char*>(value.mutable_raw());
  std::vector<std::uint32_t> checksums((e.bytes + piece_bytes - 1) / piece_bytes);
  const auto end_of = [&](std::size_t p) { return std::min(e.bytes, (p + 1) * piece_bytes); };
  if (!in_place || e.checksum)
    each(static_cast<std::int64_t>(checksums.size()), [&](std::int64_t number) {
      const auto p = static_cast<std::size_t>(number);
      for (std::uint64_t at = p * piece_bytes; at < end_of(p); at += chunk_bytes) {
        const auto bytes =
            static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes, end_of(p) - at));
        check_not_stopped(stop, path_);
        if (!in_place) ext::read_file(file_, path_, e.begin + at, to + at, bytes);
        const char* const piece = static_cast<const char*>(value.raw()) + at;
        if (e.checksum) checksums[p] = ext::crc32c({piece, bytes}, checksums[p]);
      }
    });
  if (e.checksum) {
    std::uint32_t all = 0;
    for (std::size_t p = 0; p < checksums.size(); ++p)
      all = ext::crc32c_joined(all, checksums[p], end_of(p) - p * piece_bytes);
    if (all != *e.checksum)
      bad_file(path_, ext::str("the checksum of \"", ext::printable(name), "\" is wrong"));
  }
  if (e.element == dtype::boolean)
    for (std::uint64_t i = 0; i < e.bytes; ++i) to[i] = to[i] != 0;
  return value;
}

void write_safetensors(const std::string& path, const std::map<std::string, any_array>& arrays,
                       const safetensors_format& format) {
  std::vector<detail::named_array> list;
  for (const auto& [name, value] : arrays) list.push_back({name, &value});
  detail::write_safetensors(ext::file_roots::anywhere(), path, std::move(list), {}, format);
}

void detail::write_safetensors(const ext::file_roots& roots, const std::string& path,
                               std::vector<named_array> arrays, const std::stop_token& stop,
                               const safetensors_format& format) {
  std::vector<stored_array> all;
  for (const named_array& a : arrays) all.push_back(stored(path, a, format.types));
  for (const auto& [key, value] : format.metadata)
    if (!ext::is_utf8(key) || !ext::is_utf8(value))
      ext::fail(errc::invalid_argument, "[safetensors] ", path, ": cannot hold the metadata \"",
                ext::printable(key), "\": it is not valid UTF-8");
  // Arrays of whole cache lines first; then, as the Python package does, the widest elements, so
  // that all are aligned.
  std::ranges::stable_sort(all, std::ranges::greater(), [](const stored_array& a) {
    return std::pair(a.bytes() % data_alignment == 0, a.elements.size);
  });
  const std::string unset(8, '0');
  std::vector<std::string> checksums(all.size(), unset);
  // The length does not depend on the checksums.
  const auto header = [&] {
    json::object metadata, root;
    for (const auto& [key, value] : format.metadata)
      if (!key.starts_with(own_keys)) metadata.emplace(key, value);
    metadata.emplace(header_key, unset);
    for (std::size_t i = 0; i < all.size(); ++i)
      metadata.emplace(ext::str(array_key, all[i].array->name), checksums[i]);
    root.emplace(metadata_key, std::move(metadata));
    std::uint64_t at = 0;
    for (const auto& a : all) {
      const dims& shape = a.array->value->shape();
      json::object entry;
      entry.emplace("dtype", a.type);
      entry.emplace("shape", json::array(shape.begin(), shape.end()));
      entry.emplace("data_offsets", json::array{at, at + a.bytes()});
      root.emplace(a.array->name, std::move(entry));
      at += a.bytes();
    }
    std::string text = json::serialize(root);
    const std::size_t data =
        (sizeof(std::uint64_t) + text.size() + data_alignment - 1) / data_alignment;
    text.resize(data * data_alignment - sizeof(std::uint64_t), ' ');
    return text;
  };
  const std::size_t length = header().size();
  ext::file_writer file(roots, path);
  std::uint64_t at = sizeof(std::uint64_t) + length;
  std::vector<std::uint16_t> narrow;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ext::stored_elements& e = all[i].elements;
    const auto* from = static_cast<const char*>(all[i].array->value->raw());
    std::uint32_t checksum = 0;
    for (std::uint64_t done = 0; done < all[i].bytes(); done += chunk_bytes) {
      const auto bytes =
          static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes, all[i].bytes() - done));
      const char* piece = from + done;
      if (e.narrow) {
        narrow.resize(bytes / 2);
        e.narrow(reinterpret_cast<const float*>(from) + done / 2, narrow.size(), narrow.data());
        piece = reinterpret_cast<const char*>(narrow.data());
      }
      checksum = ext::crc32c({piece, bytes}, checksum);
      check_not_stopped(stop, path);
      file.write(at, piece, bytes);
      at += bytes;
    }
    checksums[i] = hex(checksum);
  }
  std::string text = header();
  const std::string key = ext::str("\"", header_key, "\":\"");
  text.replace(text.find(key) + key.size(), unset.size(), hex(ext::crc32c(text)));
  const std::uint64_t bytes = text.size();
  file.write(0, &bytes, sizeof bytes);
  file.write(sizeof bytes, text.data(), text.size());
  file.commit();
}

}  // namespace deft
