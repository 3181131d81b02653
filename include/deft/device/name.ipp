// SPDX-License-Identifier: Apache-2.0
// deft/device/name.ipp: parsing, printing, merging and interning of device names.
#pragma once
#include <charconv>
#include <deft/core/error.hpp>
#include <deft/core/hash.hpp>
#include <deft/core/thread.hpp>
#include <deft/device/name.hpp>
#include <deft/device/placement.hpp>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace deft {
namespace detail {

/// Parses a device name from left to right. It has its own character classes, as those of <cctype>
/// depend on the locale.
class device_parser {
 public:
  explicit device_parser(std::string_view text) : text_(text) {}

  device_name parse() {
    while (at_ < text_.size()) {
      if (!consume('/')) {
        if (at_ == 0) bad("expected '/' in front of it");
        bad(str("unexpected ", here(), " after a part"));
      }
      part();
    }
    return std::move(result_);
  }

 private:
  static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
  static bool digit(char c) { return c >= '0' && c <= '9'; }
  static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

  void part() {
    std::size_t start = at_;
    const std::string_view written = word("a part's name");
    std::string key;
    for (char c : written) key += lower(c);
    if (key == "job") {
      once(job_seen_, key, start);
      colon(key);
      if (!consume('*')) result_.job = word("a job's name or '*'");
    } else if (key == "replica") {
      once(replica_seen_, key, start);
      colon(key);
      result_.replica = number(key);
    } else if (key == "task") {
      once(task_seen_, key, start);
      colon(key);
      result_.task = number(key);
    } else if (key == "device") {
      once(type_seen_, "device", start);
      colon(key);
      if (!consume('*')) type(word("a device type or '*'"));
      if (consume(':')) result_.index = number("device");
    } else {
      once(type_seen_, "device", start);
      type(key);
      if (!consume(':')) return;
      if (at_ < text_.size() && letter(text_[at_]) && key != "cpu" && key != "gpu") {
        at_ = start;
        const std::string meant = closest(key, {"job", "replica", "task", "cpu", "gpu", "device"});
        bad(str("unknown part \"", written, "\": expected job, replica, task, cpu, gpu or device",
                meant == key ? "" : str("; did you mean ", meant, "?")));
      }
      result_.index = number(key);
    }
  }

  void once(bool& seen, std::string_view key, std::size_t start) {
    at_ = seen ? start : at_;
    if (seen) bad(str("a second ", key));
    seen = true;
  }
  void type(std::string_view t) {
    for (char c : t) result_.type += lower(c);
  }
  bool consume(char c) {
    bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there;
    return there;
  }
  void colon(std::string_view key) {
    if (!consume(':')) bad(str("expected ':' after \"", key, "\", got ", here()));
  }
  std::string_view word(std::string_view what) {
    std::size_t start = at_;
    if (at_ == text_.size() || !letter(text_[at_])) bad(str("expected ", what, ", got ", here()));
    while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]) || text_[at_] == '_'))
      ++at_;
    return text_.substr(start, at_ - start);
  }
  std::optional<int> number(std::string_view key) {
    if (consume('*')) return {};
    if (at_ == text_.size() || !digit(text_[at_]))
      bad(str("expected a number or '*' after \"", key, ":\", got ", here()));
    int value = 0;
    auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (r.ec != std::errc()) bad(str("the number after \"", key, ":\" is too large"));
    at_ = static_cast<std::size_t>(r.ptr - text_.data());
    return value;
  }
  std::string here() const {
    return at_ == text_.size() ? std::string("its end") : str("'", text_[at_], "'");
  }
  [[noreturn]] void bad(const std::string& what) const {
    fail(errc::invalid_argument, "malformed device name \"", text_, "\": ", what, " (at character ",
         at_ + 1, ")");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  device_name result_;
  bool job_seen_ = false, replica_seen_ = false, task_seen_ = false, type_seen_ = false;
};

}  // namespace detail

device_name parse_device(std::string_view text) { return detail::device_parser(text).parse(); }

std::string to_string(const device_name& d) {
  std::string s;
  if (!d.job.empty()) s += ext::str("/job:", d.job);
  if (d.replica) s += ext::str("/replica:", *d.replica);
  if (d.task) s += ext::str("/task:", *d.task);
  if (d.type.empty() && !d.index) return s;
  s += d.type.empty() ? "/device:*" : "/" + d.type;
  s += d.index ? ext::str(":", *d.index) : ":*";
  return s;
}

namespace ext {

device_name merge(const device_name& outer, const device_name& inner) {
  device_name d = inner;
  bool other_type = !inner.type.empty() && !outer.type.empty() && inner.type != outer.type;
  if (d.job.empty()) d.job = outer.job;
  if (!d.replica) d.replica = outer.replica;
  if (!d.task) d.task = outer.task;
  if (d.type.empty()) d.type = outer.type;
  if (!d.index && !other_type) d.index = outer.index;
  return d;
}

bool matches(const device_name& pattern, const device_name& full) {
  return (pattern.job.empty() || pattern.job == full.job) &&
         (!pattern.replica || pattern.replica == full.replica) &&
         (!pattern.task || pattern.task == full.task) &&
         (pattern.type.empty() || pattern.type == full.type) &&
         (!pattern.index || pattern.index == full.index);
}

device_name host_of(const device_name& d) {
  device_name host = d.task_name();
  host.type = host_type;
  host.index = 0;
  return host;
}

std::uint64_t hash_of(const device_name& d) {
  auto number = [](const std::optional<int>& n) {
    return n ? static_cast<std::uint64_t>(*n) : ~std::uint64_t{0};
  };
  std::uint64_t h = mix(hash_text(d.job), hash_text(d.type));
  h = mix(h, number(d.replica));
  h = mix(h, number(d.task));
  return mix(h, number(d.index));
}

namespace {
/// Each name has a user while the lock is free: the last one is counted down, and the name removed,
/// with the lock held by one thread only.
struct name_table {
  std::shared_mutex guard;
  std::unordered_map<device_name, std::atomic<std::uint32_t>> names;

  /// Never destroyed, as placements of static duration may be dropped later.
  static name_table& instance() {
    static auto& table = *new name_table;
    return table;
  }
};
}  // namespace

placement intern(const device_name& d) {
  if (d.empty()) return nullptr;
  auto& [guard, names] = name_table::instance();
  const auto used = [](detail::interned_name& n) {
    n.second.fetch_add(1, std::memory_order_relaxed);
    return placement(n);
  };
  {
    std::shared_lock lock(guard);
    if (auto found = names.find(d); found != names.end()) return used(*found);
  }
  std::lock_guard lock(guard);
  return used(*names.try_emplace(d, 0).first);
}

}  // namespace ext

std::size_t detail::interned_names() {
  auto& [guard, names] = name_table::instance();
  std::shared_lock lock(guard);
  return names.size();
}
void detail::drop_interned(interned_name& n) noexcept {
  if (ext::is_forked()) return;  // another thread may have had the lock
  auto& [guard, names] = name_table::instance();
  std::lock_guard lock(guard);
  if (n.second.fetch_sub(1, std::memory_order_acq_rel) == 1) names.erase(names.find(n.first));
}

}  // namespace deft
