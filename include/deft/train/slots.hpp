// SPDX-License-Identifier: Apache-2.0
// deft/train/slots.hpp: variables that are kept for another variable, next to it.
#pragma once
#include <deft/op/variable.hpp>
#include <optional>
#include <string_view>

namespace deft::detail {

/// While it lives, what this thread writes is placed with `v`, and in no name scope.
class placed_with {
 public:
  explicit placed_with(const any_variable& v);

 private:
  scope outside_;
  std::optional<scope> there_;
};

/// The variable "NAME/SUFFIX", where NAME is that of `v`, in the graph and on the device of `v`,
/// not trainable. The one that is there already, or else a new one with that first value.
any_variable slot_of(const any_variable& v, std::string_view suffix, const tensor_type& type,
                     const initializer& first);
/// Likewise, of the shape of `v`, filled with `value` at first.
any_variable slot_of(const any_variable& v, std::string_view suffix, dtype type, double value);

}  // namespace deft::detail
