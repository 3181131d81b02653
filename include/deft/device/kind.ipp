// SPDX-License-Identifier: Apache-2.0
// deft/device/kind.ipp: the kinds that are registered, and how their settings get values.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <deft/core/failure.hpp>
#include <deft/core/text.hpp>
#include <deft/device/info.hpp>
#include <deft/device/kind.hpp>
#include <limits>
#include <tuple>

namespace deft::ext {

constinit registry<registered_device_kind> registered_device_kind::all;

std::vector<const device_kind*> device_kinds() {
  std::vector<const device_kind*> kinds;
  for (const registered_device_kind& r : registered_device_kind::all) kinds.push_back(&r.kind());
  std::ranges::reverse(kinds);  // in the order in which a file registers them
  std::ranges::stable_sort(
      kinds, {}, [](const device_kind* k) { return std::tuple(!k->host, k->rank, k->type); });
  return kinds;
}

void set_kind(device_info& d) {
  const auto kinds = device_kinds();
  const auto k = std::ranges::find(kinds, std::string_view(d.name->type), &device_kind::type);
  if (k != kinds.end()) d.rank = (*k)->rank, d.host = (*k)->host;
}

device_info describe(const device_name& task, std::string_view type, int index) {
  device_name name = task;
  name.type = type;
  name.index = index;
  device_info d;
  d.name = intern(name);
  set_kind(d);
  return d;
}

device_settings::device_settings(
    std::initializer_list<std::pair<std::string_view, double>> values) {
  for (const auto& [flag, value] : values) set(flag, value);
}
void device_settings::set(std::string_view flag, double value) {
  const auto at = std::ranges::find(values_, flag, &std::pair<std::string, double>::first);
  if (at == values_.end())
    values_.emplace_back(flag, value);
  else
    at->second = value;
}
std::optional<double> device_settings::get(std::string_view flag) const {
  const auto at = std::ranges::find(values_, flag, &std::pair<std::string, double>::first);
  return at == values_.end() ? std::nullopt : std::optional(at->second);
}

namespace {

bool is_int(double v) {
  using limits = std::numeric_limits<int>;
  return v >= limits::min() && v <= limits::max() && v == std::trunc(v);
}
std::string_view expected_by(const device_setting& s) {
  return !s.expected.empty()                   ? s.expected
         : s.is == device_setting::form::truth ? "0 or 1"
         : s.is == device_setting::form::whole ? "an integer"
                                               : "a number";
}
bool is_valid_setting(const device_setting& s, double v) {
  return (s.is == device_setting::form::number || is_int(v)) &&
         (s.is != device_setting::form::truth || v == 0 || v == 1) && (!s.valid || s.valid(v));
}

/// All of `text` as a number.
template <class T>
std::optional<double> parsed(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto r = std::from_chars(text.data(), end, number);
  if (r.ec != std::errc() || r.ptr != end) return std::nullopt;
  return static_cast<double>(number);
}
/// What its variable of the environment says, if that is set.
std::optional<double> of_environment(const device_setting& s) {
  const std::string name(s.variable);
  const char* const given = name.empty() ? nullptr : std::getenv(name.c_str());
  if (!given || !*given) return std::nullopt;
  const auto v = s.is == device_setting::form::number ? parsed<double>(given) : parsed<int>(given);
  if (!v || !is_valid_setting(s, *v))
    fail(errc::invalid_argument, name, " is \"", given, "\"; expected ", expected_by(s));
  return v;
}

void check_setting(const device_setting& s, double v) {
  if (is_valid_setting(s, v)) return;
  const std::string given = is_int(v) ? str(static_cast<int>(v)) : str(v);
  fail(errc::invalid_argument, s.flag, " is ", given, "; expected ", expected_by(s));
}

void check_known(const device_settings& given) {
  std::vector<std::string> known;
  each_device_setting([&](const device_setting& s) { known.emplace_back(s.flag); });
  for (const auto& [flag, value] : given.entries()) {
    if (std::ranges::count(known, flag)) continue;
    const std::string meant = closest(flag, known);
    fail(errc::invalid_argument, "no kind of device has the setting \"", flag, "\"",
         meant == flag ? "" : str("; did you mean ", meant, "?"));
  }
}

}  // namespace

device_settings merge(const device_settings& first, const device_settings& second) {
  device_settings all = second;
  for (const auto& [flag, value] : first.entries()) all.set(flag, value);
  each_device_setting([&](const device_setting& s) {
    const auto a = first.get(s.flag), b = second.get(s.flag);
    if (s.otherwise && a && b) all.set(s.flag, std::max(*a, *b));
  });
  return all;
}

device_settings complete(const device_settings& given) {
  check_known(given);
  device_settings all;
  each_device_setting([&](const device_setting& s) {
    std::optional<double> v = given.get(s.flag);
    if (v)
      check_setting(s, *v);
    else if (v = of_environment(s); !v)
      v = s.otherwise;
    all.set(s.flag, v);
  });
  return all;
}

}  // namespace deft::ext
