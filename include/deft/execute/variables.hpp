// SPDX-License-Identifier: Apache-2.0
// deft/execute/variables.hpp: the variables that live on a task.
#pragma once
#include <deft/core/any_array.hpp>
#include <deft/device/name.hpp>
#include <deft/graph/op_def.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace deft {

/// One variable. Readers take a reference to the whole value, never a torn one; an update writes in
/// place if nobody else holds the elements, else into new ones.
struct variable_slot {
  std::string name;
  tensor_type type;  ///< as declared
  std::mutex guard;
  any_array value;                      ///< not valid until initialized; guarded
  const device_name* device = nullptr;  ///< where the value is; guarded
};

/// By container and name. Outlives the sessions that use it.
class variable_store {
 public:
  /// The variable of that name, made if it is not there yet.
  /// Throws invalid_argument if it is there with another dtype or shape.
  std::shared_ptr<variable_slot> get(const std::string& container, const std::string& name,
                                     const tensor_type& type);
  /// Forgets the variables of a container; plans that hold them keep theirs.
  void clear(const std::string& container);
  /// "name dtype(shape)" of each, sorted.
  std::vector<std::string> list() const;
  std::size_t bytes() const;

 private:
  mutable std::mutex guard_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<variable_slot>> slots_;
};

}  // namespace deft
