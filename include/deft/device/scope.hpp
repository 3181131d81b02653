// SPDX-License-Identifier: Apache-2.0
// deft/device/scope.hpp: devices, names and controls that surround an expression as written.
#pragma once
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deft/core/dtype.hpp>
#include <deft/core/place.hpp>
#include <deft/device/placement.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace deft {

enum class op_role : std::uint8_t;  // its values are in graph/op_def.hpp

/// What a device function sees of a node.
struct node_info {
  std::string_view op;       ///< "matmul", "variable", …
  std::string_view name;     ///< with its name scopes
  dtype type = dtype::none;  ///< of its first input; a variable's own
  op_role role = {};         ///< op_role::variable where it makes one, compute for most others
  placement device = {};     ///< what inner scopes have decided; nullptr: nothing yet
};

/// Says where a node goes: a device name, or "" where it does not mind.
using device_function = std::function<std::string(const node_info&)>;

struct scope_frame;

/// A counted reference to what surrounds an expression; null where no scope does.
class scope_ref {
 public:
  scope_ref() = default;
  /// Takes over one reference.
  explicit scope_ref(const scope_frame* f) : frame_(f) {}
  inline scope_ref(const scope_ref& o);
  scope_ref(scope_ref&& o) noexcept : frame_(std::exchange(o.frame_, nullptr)) {}
  scope_ref& operator=(scope_ref o) noexcept {
    std::swap(frame_, o.frame_);
    return *this;
  }
  inline ~scope_ref();

  const scope_frame* get() const { return frame_; }
  const scope_frame* operator->() const { return frame_; }
  const scope_frame& operator*() const { return *frame_; }
  explicit operator bool() const { return frame_ != nullptr; }
  /// The same frame, not an equal one.
  friend bool operator==(const scope_ref& a, const scope_ref& b) { return a.frame_ == b.frame_; }

 private:
  static void destroy(const scope_frame* f) noexcept;
  const scope_frame* frame_ = nullptr;
};

/// One scope with all that is around it, immutable. It outlives its block where an expression that
/// was written there is still held.
struct scope_frame {
  mutable std::atomic<std::uint32_t> references{1};
  scope_ref parent;
  placement own;     ///< what this scope itself asks for; interned
  placement device;  ///< all plain device scopes merged, from the outermost in
  std::shared_ptr<const device_function> function;  ///< if this scope is a device function
  bool functions = false;   ///< this scope, or one around it that counts, is a device function
  std::string name_prefix;  ///< "layer1/", all name scopes joined
  std::shared_ptr<const void> controls;  ///< control dependencies, kept by graph/
};

inline scope_ref::scope_ref(const scope_ref& o) : frame_(o.frame_) {
  if (frame_) frame_->references.fetch_add(1, std::memory_order_relaxed);
}
inline scope_ref::~scope_ref() {
  if (frame_ && frame_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(frame_);
}

namespace detail {
class scope_stack;
extern constinit thread_local scope_stack* scopes_of_thread;  // null: none was ever begun here
extern const scope_ref no_scopes;
const scope_ref& top_of(scope_stack& stack);
}  // namespace detail

/// The scopes in force on this thread. Copy it to keep it: the reference holds until the next scope
/// begins or ends. New threads start without.
inline const scope_ref& current_scope() {
  return detail::scopes_of_thread ? detail::top_of(*detail::scopes_of_thread) : detail::no_scopes;
}

/// Where the scopes want a node: interned, nullptr if anywhere. Scopes speak from the innermost to
/// the outermost; each fills in what those within it left open. Without device functions nothing is
/// allocated.
/// Throws invalid_argument if a device function answers with a malformed name.
placement resolve_device(const scope_ref& scopes, const node_info& node);

/// What `on` takes; made by `device`.
class device_spec {
 public:
  /// Whether it says anything at all; `device("")` does not.
  bool changes() const { return clears_ || function_ || name_; }

 private:
  friend class scope;
  friend device_spec device(std::string_view, source_place);
  friend device_spec device(const device_name&);
  friend device_spec device(std::nullptr_t);
  friend device_spec device_by(device_function f);

  placement name_;
  std::shared_ptr<const device_function> function_;
  bool clears_ = false;
};

/// A device by name, or by any part of it: `device("/job:ps/task:0")`. "" changes nothing.
/// Throws invalid_argument if it is malformed.
device_spec device(std::string_view name, source_place w = here());
device_spec device(const device_name& name);
/// Clears what the scopes around ask for, device functions included.
device_spec device(std::nullptr_t);
device_spec device_by(device_function f);
/// A function that is asked for every node written within:
/// `device([](const node_info& n) { return n.op == "matmul" ? "/gpu:0" : "/cpu:0"; })`.
template <class F>
requires(std::is_invocable_r_v<std::string, F&, const node_info&>) device_spec device(F f) {
  return device_by(device_function(std::move(f)));
}

/// A name scope, as `scope` takes it.
struct push_name {
  std::string_view name;
};
/// Control dependencies, as `scope` takes them: all that are in force within, those from around
/// included; nullptr clears them.
struct push_controls {
  std::shared_ptr<const void> controls;
};

/// Surrounds what is written while it lives, on this thread. Neither copied nor moved; scopes end
/// in reverse order on their own thread. A scope that does not is logged as an error: one that ends
/// too early takes those within it along, one that ends on a foreign thread is dropped by its own
/// thread as soon as that looks.
class [[nodiscard]] scope {
 public:
  explicit scope(const device_spec& spec);
  explicit scope(push_name name);
  explicit scope(push_controls controls);
  /// Makes `captured` current in place of what is.
  explicit scope(scope_ref captured);
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
  ~scope();

  /// Always true: `if (auto gpu = on(device("/gpu:1"))) …`.
  explicit operator bool() const { return true; }

 private:
  void push(scope_ref frame);

  std::uint64_t thread_ = 0, id_ = 0;
  std::size_t depth_ = 0;
};

/// Places what is written while the returned scope lives.
inline scope on(const device_spec& spec) { return scope(spec); }

/// Places what `f` writes, and returns what it returns.
template <std::invocable F>
decltype(auto) on(const device_spec& spec, F&& f) {
  scope s(spec);
  return std::forward<F>(f)();
}

/// Puts `name` and '/' in front of the names of what is written while the returned scope lives;
/// nested ones are joined. As in TensorFlow, "" leaves all name scopes, and a name that ends with
/// '/' is taken as it is, whatever is around it.
/// Throws invalid_argument for characters other than letters, digits and "_.-/>", and for a first
/// one that is no letter, digit or '.' where no name scope is around.
inline scope name_scope(std::string_view name) { return scope(push_name{name}); }

/// Makes a captured scope current for a block: for expressions that are lowered later than written.
inline scope adopt_scope(scope_ref captured) { return scope(std::move(captured)); }

}  // namespace deft
