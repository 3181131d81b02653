// SPDX-License-Identifier: Apache-2.0
// deft/device/scope.ipp: the stack of scopes of each thread.
#pragma once
#include <algorithm>
#include <deft/core/error.hpp>
#include <deft/core/log.hpp>
#include <deft/device/scope.hpp>
#include <mutex>
#include <vector>

namespace deft {

namespace ext {

void scope_ref::destroy(const scope_frame* f) noexcept {
  // In a loop, from the inside out, so that deep nesting does not recurse.
  while (f) {
    auto* frame = const_cast<scope_frame*>(f);
    f = std::exchange(frame->parent.frame_, nullptr);
    delete frame;
    if (f && f->references.fetch_sub(1, std::memory_order_acq_rel) != 1) f = nullptr;
  }
}

}  // namespace ext

namespace detail {

/// Scopes that ended on another thread, until their own thread removes them.
struct stray_scopes {
  struct stray {
    std::uint64_t thread, id;
  };
  std::mutex guard;
  std::vector<stray> list;

  static stray_scopes& instance() {
    static auto& s = *new stray_scopes;
    return s;
  }
};

constinit thread_local scope_stack* scopes_of_thread = nullptr;
const scope_ref no_scopes;
static constinit std::atomic<std::uint64_t> strays_seen{0};

class scope_stack {
 public:
  static scope_stack& of_thread() {
    // Deletes the stack when its thread ends.
    struct keeper {
      ~keeper() { delete std::exchange(scopes_of_thread, nullptr); }
    };
    if (!scopes_of_thread) {
      scopes_of_thread = new scope_stack;
      static thread_local keeper k;
      static_cast<void>(k);
    }
    return *scopes_of_thread;
  }

  std::uint64_t thread() const { return thread_; }
  std::size_t depth() const { return entries_.size(); }

  const scope_ref& top() {
    drop_strays();
    return entries_.empty() ? no_scopes : entries_.back().frame;
  }
  std::uint64_t push(scope_ref frame) {
    entries_.push_back({std::move(frame), ++last_id_});
    return last_id_;
  }
  void pop(std::size_t depth, std::uint64_t id) {
    drop_strays();
    auto holds = [&](std::size_t i) { return i < entries_.size() && entries_[i].id == id; };
    if (depth + 1 == entries_.size() && holds(depth)) return entries_.pop_back();
    // Removed strays have moved the entries above them down.
    while (depth > 0 && !holds(depth)) --depth;
    if (!holds(depth)) return;  // removed with one that ended too early, which was logged
    std::size_t within = entries_.size() - depth - 1;
    if (within)
      logging::log(logging::level::error, "a scope ended before ", within,
                   " that began within it: scopes must end in reverse order");
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(depth), entries_.end());
  }

 private:
  struct entry {
    scope_ref frame;
    std::uint64_t id;
  };

  void drop_strays() {
    if (strays_seen.load(std::memory_order_acquire) == strays_known_) return;
    auto& strays = stray_scopes::instance();
    std::lock_guard lock(strays.guard);
    strays_known_ = strays_seen.load(std::memory_order_acquire);
    std::erase_if(strays.list, [&](const stray_scopes::stray& s) {
      if (s.thread != thread_) return false;
      std::erase_if(entries_, [&](const entry& e) { return e.id == s.id; });
      return true;
    });
  }
  static std::uint64_t next_thread() {
    static std::atomic<std::uint64_t> threads{0};
    return ++threads;
  }

  std::vector<entry> entries_;
  std::uint64_t thread_ = next_thread();
  std::uint64_t last_id_ = 0;
  std::uint64_t strays_known_ = strays_seen.load(std::memory_order_acquire);
};

const scope_ref& top_of(scope_stack& stack) { return stack.top(); }

inline scope_frame* frame_within(const scope_ref& outer) {
  auto* f = new scope_frame;
  f->parent = outer;
  if (outer) {
    f->device = outer->device;
    f->functions = outer->functions;
    f->name_prefix = outer->name_prefix;
    f->controls = outer->controls;
  }
  return f;
}

inline placement merged(placement outer, placement inner) {
  if (!outer || outer == inner) return inner;
  if (!inner) return outer;
  return intern(merge(*outer, *inner));
}

/// TensorFlow's rule, which forbids a leading '_', '-' or '>' at the root only.
inline void check_scope_name(std::string_view name, bool at_root) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
  };
  for (std::size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    bool also = c == '_' || c == '-' || c == '/' || c == '>';
    if (plain(c) || (also && !(at_root && i == 0))) continue;
    fail(errc::invalid_argument, "[name_scope] \"", name, "\" is not a valid name: '", c,
         "' at character ", i + 1,
         also ? " may not come first" : " is not a letter, digit or one of \"_.-/>\"");
  }
}

}  // namespace detail

namespace ext {

placement resolve_device(const scope_ref& scopes, const node_info& node) {
  const scope_frame* f = scopes.get();
  if (!f) return nullptr;
  if (!f->functions) return f->device;
  placement decided;
  for (; f; f = f->parent.get()) {
    if (!f->functions) return detail::merged(f->device, decided);
    if (f->function) {
      node_info n = node;
      n.device = decided;
      decided = detail::merged(intern(parse_device((*f->function)(n))), decided);
    } else {
      decided = detail::merged(f->own, decided);
    }
  }
  return decided;
}

}  // namespace ext

device_spec device(std::string_view name, ext::source_location w) {
  try {
    return device(parse_device(name));
  } catch (const error& e) {
    throw e.with_node({}, w);
  }
}
device_spec device(const device_name& name) {
  device_spec s;
  s.name_ = ext::intern(name);
  return s;
}
device_spec device(std::nullptr_t) {
  device_spec s;
  s.clears_ = true;
  return s;
}

namespace ext {

device_spec device_by(device_function f) {
  if (!f) fail(errc::invalid_argument, "[on] the device function is empty");
  device_spec s;
  s.function_ = std::make_shared<const device_function>(std::move(f));
  return s;
}

scope::scope(const device_spec& spec) {
  const scope_ref& outer = current_scope();
  if (!spec.changes()) {
    push(outer);
    return;
  }
  scope_frame* f = detail::frame_within(outer);
  scope_ref frame(f);
  if (spec.clears_) {
    f->functions = false;
    f->device = nullptr;
  } else if (spec.function_) {
    f->function = spec.function_;
    f->functions = true;
  } else {
    f->own = spec.name_;
    f->device = detail::merged(f->device, f->own);
  }
  push(std::move(frame));
}

scope::scope(push_name name) {
  const scope_ref& outer = current_scope();
  std::string prefix;
  bool absolute = name.name.ends_with('/');
  if (!name.name.empty()) {
    bool at_root = absolute || !outer || outer->name_prefix.empty();
    detail::check_scope_name(name.name, at_root);
    prefix = absolute ? std::string(name.name)
                      : str(outer ? std::string_view(outer->name_prefix) : "", name.name, "/");
  }
  scope_frame* f = detail::frame_within(outer);
  f->name_prefix = std::move(prefix);
  push(scope_ref(f));
}

scope::scope(push_controls controls) {
  scope_frame* f = detail::frame_within(current_scope());
  f->controls = std::move(controls.controls);
  push(scope_ref(f));
}

scope::scope(scope_ref captured) { push(std::move(captured)); }

void scope::push(scope_ref frame) {
  auto& stack = detail::scope_stack::of_thread();
  thread_ = stack.thread();
  depth_ = stack.depth();
  id_ = stack.push(std::move(frame));
}

scope::~scope() {
  auto* stack = detail::scopes_of_thread;
  if (stack && stack->thread() == thread_) {
    stack->pop(depth_, id_);
    return;
  }
  logging::log(
      logging::level::error,
      "a scope ended on another thread than its own: in coroutines use on(device, lambda)");
  auto& strays = detail::stray_scopes::instance();
  std::lock_guard lock(strays.guard);
  strays.list.push_back({thread_, id_});
  detail::strays_seen.fetch_add(1, std::memory_order_release);
}

}  // namespace ext

}  // namespace deft
