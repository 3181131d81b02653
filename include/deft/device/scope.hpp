// SPDX-License-Identifier: Apache-2.0
// deft/device/scope.hpp: scopes of devices, names and control dependencies.
#pragma once
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deft/core/dtype.hpp>
#include <deft/core/location.hpp>
#include <deft/device/placement.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace deft {

enum class op_role : std::uint8_t;  // its values are in graph/op_def.hpp

/// What a device function is told about a node.
struct node_info {
  std::string_view op;         ///< "matmul", "variable", …
  std::string_view name;       ///< with its name scopes
  dtype type = dtype::none;    ///< of its first input; for a variable its own
  op_role role = {};           ///< op_role::variable for a variable, compute for most others
  ext::placement device = {};  ///< as set by inner scopes; nullptr: not set
};

/// Returns the device name for a node, or "" to leave it to outer scopes.
using device_function = std::function<std::string(const node_info&)>;

namespace ext {

struct scope_frame;
/// The nodes of control dependencies; graph/ has nodes, and defines it.
struct control_list;

/// A counted reference to the scopes in which an expression is written; null if there are none.
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
  /// Whether both refer to the same frame, not just equal ones.
  friend bool operator==(const scope_ref& a, const scope_ref& b) { return a.frame_ == b.frame_; }

 private:
  static void destroy(const scope_frame* f) noexcept;
  const scope_frame* frame_ = nullptr;
};

/// A scope, with the combined effect of the scopes around it; immutable. It outlives its block as
/// long as an expression written there exists.
struct scope_frame {
  mutable std::atomic<std::uint32_t> references{1};
  scope_ref parent;
  placement own;     ///< what this scope itself sets
  placement device;  ///< all plain device scopes merged, from the outermost in
  std::shared_ptr<const device_function> function;  ///< if this scope is a device function
  bool functions = false;   ///< this scope or one around it has a device function
  std::string name_prefix;  ///< "layer1/", all name scopes joined
  std::shared_ptr<const control_list> controls;  ///< null: there are none
};

inline scope_ref::scope_ref(const scope_ref& o) : frame_(o.frame_) {
  if (frame_) frame_->references.fetch_add(1, std::memory_order_relaxed);
}
inline scope_ref::~scope_ref() {
  if (frame_ && frame_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(frame_);
}

}  // namespace ext

class device_spec;

namespace detail {
class scope_stack;
extern constinit thread_local scope_stack* scopes_of_thread;  // null: the thread has had no scope
extern const scope_ref no_scopes;
const scope_ref& top_of(scope_stack& stack);
}  // namespace detail

namespace ext {

/// The current scopes of this thread. The reference is valid until the next scope begins or ends;
/// copy it to keep it. New threads start without scopes.
inline const scope_ref& current_scope() {
  return detail::scopes_of_thread ? detail::top_of(*detail::scopes_of_thread) : detail::no_scopes;
}

/// The device that the scopes set for a node; nullptr if none. From the innermost scope to the
/// outermost, each fills in the parts that are not set yet. Allocates nothing without device
/// functions.
/// Throws invalid_argument if a device function returns a malformed name.
placement resolve_device(const scope_ref& scopes, const node_info& node);

class scope;

/// A device function; `device(f)` makes one of any callable.
device_spec device_by(device_function f);

}  // namespace ext

/// The argument of `on`; made by `device`.
class device_spec {
 public:
  /// Whether it has any effect; `device("")` has none.
  bool changes() const { return clears_ || function_ || name_; }

 private:
  friend class ext::scope;
  friend device_spec device(std::string_view, ext::source_location);
  friend device_spec device(const device_name&);
  friend device_spec device(std::nullptr_t);
  friend device_spec ext::device_by(device_function f);

  ext::placement name_;
  std::shared_ptr<const device_function> function_;
  bool clears_ = false;
};

/// A device by its name or parts of it, for `on`: `device("/job:ps/task:0")`. "" changes nothing.
/// Throws invalid_argument if it is malformed.
device_spec device(std::string_view name, ext::source_location w = ext::here());
/// The same by a name that is not text, such as `device(self.cluster().chief())`. The empty name
/// changes nothing.
device_spec device(const device_name& name);
/// Clears the devices of the scopes around it, device functions included.
device_spec device(std::nullptr_t);
/// @cond refused
/// A number names no device. (0 would be taken for nullptr.)
template <class Number>
requires std::is_arithmetic_v<Number> device_spec device(Number) {
  static_assert(
      detail::takes<device_spec, Number>,
      "[device] expects a name, as in device(\"/gpu:0\"), and got a number; nullptr clears "
      "the devices of outer scopes");
  return {};
}
/// @endcond

/// A function that is called for every node written within the scope:
/// `device([](const node_info& n) { return n.op == "matmul" ? "/gpu:0" : "/cpu:0"; })`.
template <class F>
requires(std::is_invocable_r_v<std::string, F&, const node_info&>) device_spec device(F f) {
  return ext::device_by(device_function(std::move(f)));
}

namespace ext {

/// A name scope, as an argument of `scope`.
struct push_name {
  std::string_view name;
};
/// Control dependencies, as an argument of `scope`: all that apply within it, including those of
/// outer scopes; nullptr clears them.
struct push_controls {
  std::shared_ptr<const control_list> controls;
};

/// Applies to the expressions that this thread writes while the object lives. It can be neither
/// copied nor moved. Scopes must end in reverse order, on the thread on which they began;
/// violations are logged as errors. A scope that ends too early ends those within it too; one that
/// ends on another thread is removed by its own thread when that next uses its scopes.
class [[nodiscard]] scope {
 public:
  explicit scope(const device_spec& spec);
  explicit scope(push_name name);
  explicit scope(push_controls controls);
  /// Replaces the current scopes by `captured`.
  explicit scope(scope_ref captured);
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
  ~scope();

  /// Always true, for `if (auto gpu = on(device("/gpu:1"))) …`.
  explicit operator bool() const { return true; }

 private:
  void push(scope_ref frame);

  std::uint64_t thread_ = 0, id_ = 0;
  std::size_t depth_ = 0;
};

}  // namespace ext

/// Places what this thread writes while the returned scope lives on the device of `spec`.
inline ext::scope on(const device_spec& spec) { return ext::scope(spec); }

/// Calls `f` in such a scope, and returns its result.
template <std::invocable F>
decltype(auto) on(const device_spec& spec, F&& f) {
  ext::scope s(spec);
  return std::forward<F>(f)();
}

/// Prefixes the names of nodes written while the returned scope lives with `name` and '/'; nested
/// scopes are joined. As in TensorFlow, "" leaves all name scopes, and a name that ends with '/'
/// replaces them.
/// Throws invalid_argument for characters other than letters, digits and "_.-/>", and, outside of
/// other name scopes, for a first character other than a letter, digit or '.'.
inline ext::scope name_scope(std::string_view name) { return ext::scope(ext::push_name{name}); }

namespace ext {

/// Makes a captured scope current while the returned scope lives, to lower an expression later than
/// it was written.
inline scope adopt_scope(scope_ref captured) { return scope(std::move(captured)); }

}  // namespace ext

}  // namespace deft
