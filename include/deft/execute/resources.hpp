// SPDX-License-Identifier: Apache-2.0
// deft/execute/resources.hpp: what lives on a task and outlives steps: variables, queues, …
#pragma once
#include <deft/core/any_array.hpp>
#include <deft/device/placement.hpp>
#include <deft/graph/op_def.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace deft {

/// Something named that operations touch. Thread-safe.
class resource {
 public:
  virtual ~resource() = default;
  /// Back to the state of one that was just made, in place: whoever holds it sees it empty.
  virtual void clear() = 0;
  virtual std::size_t bytes() const = 0;
  /// What it holds: "float(784,10)".
  virtual std::string describe() const = 0;
  /// The device whose memory it takes; null: the host's, or none.
  virtual placement place() const { return nullptr; }
};

/// The resources of a task, by kind, container and name.
class resource_store {
 public:
  /// The resource of that key, made by `make()` if it is not there yet.
  /// Throws invalid_argument if what is there is no R.
  template <class R, class Make>
  std::shared_ptr<R> get(const resource_key& key, Make make) {
    std::lock_guard lock(guard_);
    auto& there = resources_[key];
    if (!there) there = make();
    auto r = std::dynamic_pointer_cast<R>(there);
    if (!r) refuse(key);
    return r;
  }

  /// Empties the resources of a container in place, and forgets those that nobody holds.
  void clear(const std::string& container);
  /// "name dtype(shape)" of each, sorted.
  std::vector<std::string> list() const;
  std::size_t bytes() const;
  /// The same text of those that take most of a device's memory, with their sizes, in one line;
  /// empty if nothing does.
  std::string largest(placement device) const;

 private:
  [[noreturn]] static void refuse(const resource_key& key);

  mutable std::mutex guard_;
  std::map<resource_key, std::shared_ptr<resource>> resources_;
};

/// One variable. Readers take a reference to the whole value, never a torn one; an update writes in
/// place if nobody else holds the elements, else into new ones.
struct variable_slot final : resource {
  explicit variable_slot(std::string n, const tensor_type& t) : name(std::move(n)), type(t) {}

  void clear() override;
  std::size_t bytes() const override;
  std::string describe() const override;
  placement place() const override;
  /// Becomes of another type, with the guard held.
  /// Throws invalid_argument if it has a value.
  void change(const tensor_type& t);

  const std::string name;
  mutable std::mutex guard;
  tensor_type type;  ///< as declared last; guarded
  any_array value;   ///< not valid until initialized; guarded
  placement device;  ///< where the value is; guarded
};

/// The variable of that key. One without a value takes the type it is asked for.
/// Throws invalid_argument if it has a value of another dtype or shape.
std::shared_ptr<variable_slot> find_variable(resource_store& store, const resource_key& key,
                                             const tensor_type& type);

}  // namespace deft
