// SPDX-License-Identifier: Apache-2.0
// deft/data/gguf.ipp: the fields of GGUF files, checked before they are used, and their tensors.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deft/core/error.hpp>
#include <deft/core/printable.hpp>
#include <deft/core/stored_elements.hpp>
#include <deft/data/gguf.hpp>
#include <optional>

namespace deft {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

enum gguf_kind : std::uint32_t {
  gguf_uint8,
  gguf_int8,
  gguf_uint16,
  gguf_int16,
  gguf_uint32,
  gguf_int32,
  gguf_float32,
  gguf_bool,
  gguf_string,
  gguf_array,
  gguf_uint64,
  gguf_int64,
  gguf_float64,
  gguf_kinds  ///< how many there are
};
struct gguf_kind_traits {
  std::string_view name;
  std::size_t bytes;  ///< at least
};
constexpr std::array<gguf_kind_traits, gguf_kinds> gguf_traits{{{"uint8", 1},
                                                                {"int8", 1},
                                                                {"uint16", 2},
                                                                {"int16", 2},
                                                                {"uint32", 4},
                                                                {"int32", 4},
                                                                {"float32", 4},
                                                                {"bool", 1},
                                                                {"string", 8},
                                                                {"array", 12},
                                                                {"uint64", 8},
                                                                {"int64", 8},
                                                                {"float64", 8}}};

template <class T>
T gguf_number(const char* at) {
  T v{};
  std::memcpy(&v, at, sizeof v);
  return v;
}
/// The text of a string, of which `at` is the length.
std::string_view gguf_text(const char* at) {
  return {at + 8, static_cast<std::size_t>(gguf_number<std::uint64_t>(at))};
}
/// What follows a sound value.
const char* gguf_end(std::uint32_t kind, const char* at) {
  if (kind == gguf_string) return gguf_text(at).data() + gguf_text(at).size();
  if (kind != gguf_array) return at + gguf_traits[kind].bytes;
  const auto of = gguf_number<std::uint32_t>(at);
  auto n = gguf_number<std::uint64_t>(at + 4);
  at += 12;
  if (of != gguf_string && of != gguf_array) return at + n * gguf_traits[of].bytes;
  while (n-- > 0) at = gguf_end(of, at);
  return at;
}

/// A type of tensors.
struct ggml_type {
  std::uint32_t number;
  std::string_view name;
  std::int64_t elements;  ///< of a block
  std::size_t bytes;
  ext::stored_elements stored = {};  ///< if deft reads it so
  std::optional<block_format> format = {};
};
constexpr ggml_type ggml_types[] = {
    {0, "F32", 1, 4, {dtype::float32, 4}},
    {1, "F16", 1, 2, ext::float_in_float16},
    {2, "Q4_0", 32, 18, {}, block_format::q4_0},
    {3, "Q4_1", 32, 20, {}, block_format::q4_1},
    {6, "Q5_0", 32, 22},
    {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34, {}, block_format::q8_0},
    {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},
    {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},
    {20, "IQ4_NL", 32, 18},
    {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1, {dtype::int8, 1}},
    {25, "I16", 1, 2},
    {26, "I32", 1, 4, {dtype::int32, 4}},
    {27, "I64", 1, 8, {dtype::int64, 8}},
    {28, "F64", 1, 8, {dtype::float64, 8}},
    {30, "BF16", 1, 2, ext::float_in_bfloat16},
};
const ggml_type* ggml_type_named(std::string_view name) {
  const auto* const found = std::ranges::find(ggml_types, name, &ggml_type::name);
  return found == std::end(ggml_types) ? nullptr : found;
}

/// The fields of a file, one after the other.
class gguf_reader {
 public:
  gguf_reader(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return bytes_.size() - at_; }
  const char* here() const { return bytes_.data() + at_; }

  [[noreturn]] void bad(std::string_view field, std::string_view what) const {
    ext::fail(errc::data_loss, "[read_gguf] ", path_, ": at offset ", at_, ": ", field, " ", what);
  }
  void need(std::uint64_t bytes, std::string_view field) const {
    if (bytes > left()) bad(field, "goes beyond the end of the file");
  }
  template <class T>
  T number(std::string_view field) {
    need(sizeof(T), field);
    const T v = gguf_number<T>(here());
    at_ += sizeof(T);
    return v;
  }
  std::string_view text(std::string_view field) {
    const auto length = number<std::uint64_t>(field);
    need(length, field);
    const std::string_view t = bytes_.substr(at_, static_cast<std::size_t>(length));
    at_ += length;
    return t;
  }
  /// A number of things of at least `bytes` bytes each.
  std::uint64_t count(std::uint64_t bytes, std::string_view field) {
    const auto n = number<std::uint64_t>(field);
    if (n > left() / bytes) {
      at_ -= sizeof n;
      bad(field, ext::str("is ", n, ", more than the file has bytes for"));
    }
    return n;
  }
  std::uint32_t kind(std::string_view field) {
    const auto k = number<std::uint32_t>(field);
    if (k >= gguf_kinds) bad(field, ext::str("has the unknown kind ", k));
    return k;
  }
  void skip_value(std::uint32_t kind, std::string_view field, int depth = 0) {
    constexpr int most_nested = 8;
    if (kind == gguf_string) {
      text(field);
    } else if (kind != gguf_array) {
      need(gguf_traits[kind].bytes, field);
      if (kind == gguf_bool && static_cast<unsigned char>(*here()) > 1)
        bad(field, "is a bool of another value than 0 and 1");
      at_ += gguf_traits[kind].bytes;
    } else {
      if (depth == most_nested) bad(field, "has too many arrays in arrays");
      const std::uint32_t of = this->kind(field);
      for (auto n = count(gguf_traits[of].bytes, field); n > 0; --n)
        skip_value(of, field, depth + 1);
    }
  }

 private:
  const std::string& path_;
  std::string_view bytes_;
  std::uint64_t at_ = 0;
};

/// The description of a tensor, with its offset from the beginning of the elements.
gguf_entry read_entry(gguf_reader& r, const std::string& field) {
  gguf_entry e;
  const auto rank = r.number<std::uint32_t>(field);
  if (rank > max_rank) r.bad(field, ext::str("has ", rank, " axes, and at most 8 are possible"));
  dims reversed;
  for (std::uint32_t i = 0; i < rank; ++i)
    reversed.push_back(static_cast<std::int64_t>(r.number<std::uint64_t>(field)));
  e.shape = reversed;
  std::reverse(e.shape.begin(), e.shape.end());
  if (std::ranges::any_of(e.shape, [](std::int64_t n) { return n < 0; }) || !ext::is_sound(e.shape))
    r.bad(field, "has more elements than are possible");
  const auto number = r.number<std::uint32_t>(field);
  e.begin = r.number<std::uint64_t>(field);
  const auto* const type = std::ranges::find(ggml_types, number, &ggml_type::number);
  if (type == std::end(ggml_types)) {
    e.type = ext::str("type ", number);
  } else {
    e.type = type->name;
    e.element = type->format ? dtype::float32 : type->stored.type;
    const std::int64_t row = rank == 0 ? 1 : e.shape.back();
    if (row % type->elements != 0)
      r.bad(field, ext::str("has rows of ", row, " elements, and blocks of ", type->name, " have ",
                            type->elements));
    e.bytes = static_cast<std::uint64_t>(e.shape.elements() / type->elements) * type->bytes;
  }
  if (e.element == dtype::none) e.unsupported = ext::str("of ", e.type);
  return e;
}

/// Gives the tensors their places in the file.
void place_entries(std::map<std::string, gguf_entry>& entries, const gguf_reader& r,
                   std::uint64_t alignment, std::uint64_t size) {
  const std::uint64_t data = (r.at() + alignment - 1) / alignment * alignment;
  std::vector<std::pair<gguf_entry*, std::string>> order;
  for (auto& [name, e] : entries) {
    const std::string field = ext::str("tensor \"", ext::printable(name), "\"");
    if (e.begin % alignment != 0)
      r.bad(field, ext::str("begins at ", e.begin, ", which is not a multiple of ", alignment));
    if (data > size || e.begin > size - data || e.bytes > size - data - e.begin)
      r.bad(field, "goes beyond the end of the file");
    e.begin += data;
    if (e.bytes > 0) order.emplace_back(&e, field);
  }
  std::ranges::sort(order, {}, [](const auto& o) { return o.first->begin; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i - 1].first->begin + order[i - 1].first->bytes > order[i].first->begin)
      r.bad(order[i].second, ext::str("overlaps ", order[i - 1].second));
}

}  // namespace

std::string gguf_value::type() const {
  std::string text(gguf_traits[item_.kind].name);
  const char* at = item_.at;
  for (std::uint32_t kind = item_.kind; kind == gguf_array; at += 12) {
    kind = gguf_number<std::uint32_t>(at);
    text += ext::str(" of ", gguf_traits[kind].name);
    if (gguf_number<std::uint64_t>(at + 4) == 0) break;
  }
  return text;
}
std::uint64_t gguf_value::size() const {
  return item_.kind == gguf_array ? gguf_number<std::uint64_t>(item_.at + 4) : 1;
}
bool gguf_value::boolean(const item& i) const {
  if (i.kind != gguf_bool) fail_kind(i, "a bool");
  return *i.at != 0;
}
gguf_value::whole_number gguf_value::integer(const item& i) const {
  const auto of = [&]<class T>(T) {
    const T v = gguf_number<T>(i.at);
    return whole_number{static_cast<T>(-1) < T{}, static_cast<std::uint64_t>(v)};
  };
  switch (i.kind) {
    case gguf_uint8:
      return of(std::uint8_t());
    case gguf_int8:
      return of(std::int8_t());
    case gguf_uint16:
      return of(std::uint16_t());
    case gguf_int16:
      return of(std::int16_t());
    case gguf_uint32:
      return of(std::uint32_t());
    case gguf_int32:
      return of(std::int32_t());
    case gguf_uint64:
      return of(std::uint64_t());
    case gguf_int64:
      return of(std::int64_t());
    default:
      fail_kind(i, "an integer");
  }
}
double gguf_value::number(const item& i) const {
  if (i.kind == gguf_float32) return static_cast<double>(gguf_number<float>(i.at));
  if (i.kind != gguf_float64) fail_kind(i, "a floating-point number");
  return gguf_number<double>(i.at);
}
std::string_view gguf_value::text(const item& i) const {
  if (i.kind != gguf_string) fail_kind(i, "a string");
  return gguf_text(i.at);
}
std::vector<gguf_value::item> gguf_value::elements(const item& i) const {
  if (i.kind != gguf_array) fail_kind(i, "an array");
  const auto of = gguf_number<std::uint32_t>(i.at);
  std::vector<item> all(static_cast<std::size_t>(gguf_number<std::uint64_t>(i.at + 4)));
  const char* at = i.at + 12;
  for (item& e : all) {
    e = {of, at};
    at = gguf_end(of, at);
  }
  return all;
}
void gguf_value::fail_kind(const item& i, std::string_view expected) const {
  ext::fail(errc::invalid_argument, "[gguf] ", name_, " is ", type(),
            i.at == item_.at ? "" : ext::str(" with an element of ", gguf_traits[i.kind].name),
            ", not ", expected);
}
void gguf_value::fail_range(whole_number n, std::size_t bytes) const {
  ext::fail(errc::out_of_range, "[gguf] ", name_, " is ",
            n.is_signed ? ext::str(static_cast<std::int64_t>(n.bits)) : ext::str(n.bits),
            ", which does not fit into an integer of ", bytes, " bytes");
}

gguf_file::gguf_file(const std::string& path)
    : path_(path), pages_(ext::file_roots::anywhere().open_file(path), path) {
  const std::string_view bytes = pages_.bytes();
  const ext::buffer all = pages_.view(0, bytes.size());
  gguf_reader r(path_, bytes);
  if (!bytes.starts_with("GGUF")) r.bad("it", "does not begin with GGUF");
  r.number<std::uint32_t>("its beginning");
  const auto version = r.number<std::uint32_t>("its version");
  if (version != 2 && version != 3)
    ext::fail(
        errc::unimplemented, "[read_gguf] ", path, " is ",
        version != 0 && (version & 0xffff) == 0 ? "big-endian" : ext::str("of version ", version),
        "; expected version 2 or 3, little-endian");
  const auto tensors = r.count(24, "the number of tensors");
  const auto values = r.count(13, "the number of values");

  for (std::uint64_t i = 0; i < values; ++i) {
    const std::string key(r.text(ext::str("the key of value ", i)));
    const std::string field = ext::str("\"", ext::printable(key), "\"");
    const std::uint32_t kind = r.kind(field);
    const char* const value = r.here();
    r.skip_value(kind, field);
    if (!metadata_.emplace(key, gguf_value(ext::str(path, ": ", field), all, {kind, value})).second)
      r.bad(field, "is there twice");
  }
  std::uint64_t alignment = 32;
  if (const auto given = metadata_.find("general.alignment"); given != metadata_.end()) {
    const auto& [kind, value] = given->second.item_;
    alignment = kind == gguf_uint32 ? gguf_number<std::uint32_t>(value) : 0;
    if (!std::has_single_bit(alignment)) r.bad("\"general.alignment\"", "is not a power of two");
  }
  for (std::uint64_t i = 0; i < tensors; ++i) {
    const std::string name(r.text(ext::str("the name of tensor ", i)));
    const std::string field = ext::str("tensor \"", ext::printable(name), "\"");
    if (!entries_.emplace(name, read_entry(r, field)).second) r.bad(field, "is there twice");
  }
  place_entries(entries_, r, alignment, bytes.size());
}

const gguf_entry& gguf_file::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    ext::fail(errc::not_found, "[gguf] ", path_, " has no tensor \"", ext::printable(name), "\"");
  return found->second;
}
void gguf_file::fail_key(const std::string& key) const {
  ext::fail(errc::not_found, "[gguf] ", path_, " has no value \"", ext::printable(key), "\"");
}

any_array gguf_file::read(const std::string& name) const {
  const gguf_entry& e = entry(name);
  if (e.element == dtype::none)
    ext::fail(errc::unimplemented, "[gguf] ", path_, ": \"", ext::printable(name), "\" is ",
              e.unsupported,
              "; expected F32, F64, F16, BF16, I8, I32, I64, Q8_0, Q4_0 or Q4_1: convert the file");
  const ggml_type& type = *ggml_type_named(e.type);
  if (type.format) return quantized(name).dequantized();
  const ext::stored_elements& stored = type.stored;
  const char* const from = pages_.bytes().data() + e.begin;
  if (!stored.widen && e.begin % stored.size == 0)
    return any_array(e.element, e.shape, pages_.view(e.begin, static_cast<std::size_t>(e.bytes)));
  any_array a(e.element, e.shape);
  if (stored.widen)
    stored.widen(from, static_cast<std::size_t>(a.elements()), a.mutable_data<float>());
  else if (e.bytes > 0)
    std::memcpy(a.mutable_raw(), from, static_cast<std::size_t>(e.bytes));
  return a;
}

quantized_array gguf_file::quantized(const std::string& name) const {
  const gguf_entry& e = entry(name);
  const ggml_type* const type = ggml_type_named(e.type);
  if (!type || !type->format)
    ext::fail(errc::invalid_argument, "[gguf] ", path_, ": \"", ext::printable(name), "\" is of ",
              e.type, "; expected Q8_0, Q4_0 or Q4_1: read gives the elements of other tensors");
  return {*type->format, e.shape, pages_.view(e.begin, static_cast<std::size_t>(e.bytes))};
}

}  // namespace deft
