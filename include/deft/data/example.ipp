// SPDX-License-Identifier: Apache-2.0
// deft/data/example.ipp: tf.Example through protozero.
#pragma once
#include <algorithm>
#include <deft/core/error.hpp>
#include <deft/core/printable.hpp>
#include <deft/data/example.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace deft {
namespace {

// Numbers of fields. Example: features. Features: a map. Its entry: key and value. Feature: one of
// three lists. A list: values.
constexpr protozero::pbf_tag_type features_field = 1, map_field = 1, key_field = 1, value_field = 2,
                                  list_field = 1;
enum class kind : protozero::pbf_tag_type { bytes = 1, floats = 2, integers = 3 };
constexpr const char* kind_names[] = {"nothing", "bytes", "floats", "integers"};

std::string_view view(const protozero::data_view& d) { return {d.data(), d.size()}; }

struct wrong_wire_type : protozero::exception {
  const char* what() const noexcept override { return "a field has the wrong wire type"; }
};
/// A field that is a message, bytes or packed numbers. Protozero only asserts that it is.
protozero::pbf_reader& delimited(protozero::pbf_reader& field) {
  if (field.wire_type() != protozero::pbf_wire_type::length_delimited) throw wrong_wire_type();
  return field;
}

/// Calls f, and throws data_loss for what protozero throws.
template <class F>
auto parsing(std::string_view what, F f) {
  try {
    return f();
  } catch (const protozero::exception& e) {
    ext::fail(errc::data_loss, "[example] ", what, " is malformed: ", e.what());
  }
}

}  // namespace

example& example::put(const std::string& name, value_list values) {
  if (!ext::is_utf8(name))
    ext::fail(errc::invalid_argument, "[example] \"", ext::printable(name),
              "\" is not a valid name of a feature: it is not UTF-8");
  features_[name] = std::move(values);
  return *this;
}
example& example::set(const std::string& name, std::string_view bytes) {
  return set(name, std::vector<std::string>{std::string(bytes)});
}
example& example::set(const std::string& name, std::vector<std::string> bytes) {
  return put(name, std::move(bytes));
}
example& example::set(const std::string& name, std::vector<float> values) {
  return put(name, std::move(values));
}
example& example::set(const std::string& name, std::vector<std::int64_t> values) {
  return put(name, std::move(values));
}

std::string example::encode() const {
  std::string bytes;
  protozero::pbf_writer message(bytes);
  protozero::pbf_writer all(message, features_field);
  for (const auto& [name, held] : features_) {
    protozero::pbf_writer entry(all, map_field);
    entry.add_string(key_field, name);
    protozero::pbf_writer feature(entry, value_field);
    const auto kind_field = static_cast<protozero::pbf_tag_type>(held.index() + 1);
    // A writer to which nothing is added leaves nothing, and the feature would be of no kind.
    if (std::visit([](const auto& values) { return values.empty(); }, held)) {
      feature.add_message(kind_field, std::string());
      continue;
    }
    protozero::pbf_writer list(feature, kind_field);
    if (const auto* b = std::get_if<std::vector<std::string>>(&held))
      for (const auto& one : *b) list.add_bytes(list_field, one);
    else if (const auto* f = std::get_if<std::vector<float>>(&held))
      list.add_packed_float(list_field, f->begin(), f->end());
    else if (const auto* i = std::get_if<std::vector<std::int64_t>>(&held))
      list.add_packed_int64(list_field, i->begin(), i->end());
  }
  return bytes;
}

void example_view::parse(std::string_view encoded) {
  features_.clear();
  parsing("the message", [&] {
    protozero::pbf_reader message(encoded.data(), encoded.size());
    while (message.next(features_field)) {
      protozero::pbf_reader all = delimited(message).get_message();
      while (all.next(map_field)) {
        protozero::pbf_reader entry = delimited(all).get_message();
        std::pair<std::string_view, std::string_view> feature;
        while (entry.next()) {
          if (entry.tag() == key_field)
            feature.first = view(delimited(entry).get_view());
          else if (entry.tag() == value_field)
            feature.second = view(delimited(entry).get_view());
          else
            entry.skip();
        }
        features_.push_back(feature);
      }
    }
  });
}

bool example_view::has(std::string_view name) const {
  return std::ranges::find(features_, name,
                           &std::pair<std::string_view, std::string_view>::first) !=
         features_.end();
}

std::string_view example_view::feature(std::string_view name) const {
  // Of several of one name the last one, as protocol buffers have it.
  for (std::size_t i = features_.size(); i-- > 0;)
    if (features_[i].first == name) return features_[i].second;
  ext::fail(errc::not_found, "[example] it has no feature \"", name, "\"; it has ",
            ext::join(features_, ", ", [](const auto& f) { return ext::printable(f.first); }));
}

namespace {

/// Calls take(reader of a list's field) for each field of the list that the feature has.
template <class Take>
void each_list(std::string_view name, std::string_view feature, kind expected, Take take) {
  parsing(ext::str("feature \"", name, "\""), [&] {
    protozero::pbf_reader f(feature.data(), feature.size());
    while (f.next()) {
      if (f.tag() != static_cast<protozero::pbf_tag_type>(expected))
        ext::fail(errc::invalid_argument, "[example] feature \"", name, "\" has ",
                  f.tag() <= 3 ? kind_names[f.tag()] : "values of an unknown kind", ", not ",
                  kind_names[static_cast<int>(expected)]);
      protozero::pbf_reader list = delimited(f).get_message();
      while (list.next(list_field)) take(list);
    }
  });
}
void each_float(std::string_view name, std::string_view feature, auto put) {
  each_list(name, feature, kind::floats, [&](protozero::pbf_reader& list) {
    if (list.wire_type() == protozero::pbf_wire_type::fixed32) return put(list.get_float());
    for (const float v : delimited(list).get_packed_float()) put(v);
  });
}
void each_integer(std::string_view name, std::string_view feature, auto put) {
  each_list(name, feature, kind::integers, [&](protozero::pbf_reader& list) {
    if (list.wire_type() == protozero::pbf_wire_type::varint) return put(list.get_int64());
    for (const std::int64_t v : delimited(list).get_packed_int64()) put(v);
  });
}

/// Stores values in order, and checks at the end that there were as many as expected.
template <class T>
class exactly {
 public:
  exactly(std::string_view name, std::span<T> to) : name_(name), to_(to) {}
  void operator()(T v) {
    if (count_ < to_.size()) to_[count_] = v;
    ++count_;
  }
  void expect_all() const {
    if (count_ != to_.size())
      ext::fail(errc::invalid_argument, "[example] feature \"", name_, "\" has ", count_,
                " values, not ", to_.size());
  }

 private:
  std::string_view name_;
  std::span<T> to_;
  std::size_t count_ = 0;
};

}  // namespace

std::vector<std::string_view> example_view::bytes(std::string_view name) const {
  std::vector<std::string_view> all;
  each_list(name, feature(name), kind::bytes,
            [&](protozero::pbf_reader& list) { all.push_back(view(delimited(list).get_view())); });
  return all;
}
std::vector<float> example_view::floats(std::string_view name) const {
  std::vector<float> all;
  each_float(name, feature(name), [&](float v) { all.push_back(v); });
  return all;
}
std::vector<std::int64_t> example_view::integers(std::string_view name) const {
  std::vector<std::int64_t> all;
  each_integer(name, feature(name), [&](std::int64_t v) { all.push_back(v); });
  return all;
}

std::string_view example_view::one_bytes(std::string_view name) const {
  std::string_view one;
  exactly<std::string_view> put(name, {&one, 1});
  each_list(name, feature(name), kind::bytes,
            [&](protozero::pbf_reader& list) { put(view(delimited(list).get_view())); });
  put.expect_all();
  return one;
}
std::int64_t example_view::one_integer(std::string_view name) const {
  std::int64_t one = 0;
  read(name, std::span(&one, 1));
  return one;
}
float example_view::one_float(std::string_view name) const {
  float one = 0;
  read(name, std::span(&one, 1));
  return one;
}
void example_view::read(std::string_view name, std::span<float> to) const {
  exactly<float> put(name, to);
  each_float(name, feature(name), [&](float v) { put(v); });
  put.expect_all();
}
void example_view::read(std::string_view name, std::span<std::int64_t> to) const {
  exactly<std::int64_t> put(name, to);
  each_integer(name, feature(name), [&](std::int64_t v) { put(v); });
  put.expect_all();
}

}  // namespace deft
