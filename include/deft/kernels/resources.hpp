// SPDX-License-Identifier: Apache-2.0
// deft/kernels/resources.hpp: what lives on a task and outlives steps: variables, queues, …
#pragma once
#include <deft/core/any_array.hpp>
#include <deft/core/file.hpp>
#include <deft/device/placement.hpp>
#include <deft/graph/op_def.hpp>
#include <deft/kernels/wait_list.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace deft::ext {

/// The largest of `all`, which have sizes in bytes and descriptions, in one line; "none" if there
/// are none.
std::string largest_of(std::vector<std::pair<std::size_t, std::string>> all);

/// Named state that operations use, such as a variable or a queue. Thread-safe.
class resource {
 public:
  virtual ~resource() = default;
  /// Resets it, in place, to the state of a new one; all holders see it empty.
  virtual void clear() = 0;
  /// Whether it is in the state of a new one, so that nothing is lost with it.
  virtual bool empty() const { return false; }
  virtual std::size_t bytes() const = 0;
  /// Describes the contents, such as "float(784,10)".
  virtual std::string describe() const = 0;
  /// The device whose memory it uses; null for the host's, or none.
  virtual placement place() const { return nullptr; }
};

/// The resources of a task, by kind, container and name. Those that are empty and have no other
/// holder are forgotten from time to time.
class resource_store {
 public:
  /// `files`: where the task reads and writes files.
  explicit resource_store(file_roots files = {}) : files_(std::move(files)) {}

  const file_roots& files() const { return files_; }
  /// The resource of that key, made by `make()` if there is none.
  /// Throws invalid_argument if the resource is not an R.
  template <class R, class Make>
  std::shared_ptr<R> get(const resource_key& key, Make make) {
    std::lock_guard lock(guard_);
    auto& there = resources_[key];
    if (!there) {
      there = make();
      if (resources_.size() > forget_at_) forget_unused(there);
    }
    auto r = std::dynamic_pointer_cast<R>(there);
    if (!r) refuse(key);
    return r;
  }

  /// Clears the resources of a container in place, and removes those that have no other holder.
  void clear(const std::string& container);
  /// "name dtype(shape)" of each, sorted.
  std::vector<std::string> list() const;
  std::size_t bytes() const;
  /// The resources that use most memory of a device, as largest_of().
  std::string largest(placement device) const;

 private:
  [[noreturn]] static void refuse(const resource_key& key);
  void forget_unused(const std::shared_ptr<resource>& except);

  const file_roots files_;
  mutable std::mutex guard_;
  std::map<resource_key, std::shared_ptr<resource>> resources_;
  std::size_t forget_at_ = 1'024;  ///< how many there may be until the next time
};

/// One variable. Readers take a reference to the whole value and never see a partial update: an
/// update writes in place only if no reader holds the elements, else into new ones.
struct variable_slot final : resource {
  explicit variable_slot(std::string n, const tensor_type& t) : name(std::move(n)), type(t) {}

  void clear() override;
  bool empty() const override;
  std::size_t bytes() const override;
  std::string describe() const override;
  placement place() const override;
  /// Changes the type. The caller holds the guard.
  /// Throws invalid_argument if the variable has a value.
  void change(const tensor_type& t);

  const std::string name;
  mutable std::mutex guard;
  tensor_type type;   ///< as declared last; guarded
  any_array value;    ///< not valid until initialized; guarded
  placement device;   ///< where the value is; guarded
  wait_list waiting;  ///< for a value
  /// Between op::begin_restoring and op::end_restoring: only assignments may use it; guarded.
  bool restoring = false;
  /// Another one since each op::begin_restoring; guarded.
  std::int64_t generation = next_generation();
  bool has_value() const { return value.valid() && !restoring; }
  /// A number above 0 that no variable of any process has had.
  static std::int64_t next_generation();
};

/// Holds the guards of variables, which are in the order of their addresses, as in every run.
class locked_variables {
 public:
  explicit locked_variables(std::span<variable_slot* const> all) : all_(all) {
    for (auto* v : all_) v->guard.lock();
  }
  ~locked_variables() {
    for (auto* v : all_) v->guard.unlock();
  }
  locked_variables(const locked_variables&) = delete;
  /// Sorts them, and removes those that are there twice.
  static void sort(std::vector<variable_slot*>& all);

 private:
  std::span<variable_slot* const> all_;
};

/// The variable of that key, made if there is none. A variable without a value takes `type`.
/// Throws invalid_argument if it has a value of another dtype or shape.
std::shared_ptr<variable_slot> find_variable(resource_store& store, const resource_key& key,
                                             const tensor_type& type);

}  // namespace deft::ext
