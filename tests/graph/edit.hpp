// SPDX-License-Identifier: Apache-2.0
// tests/graph/edit.hpp: editing lists that nodes share.
#pragma once
#include <deft/core/shared_list.hpp>

namespace testing {

/// Replaces `list` by a copy that `change` has modified.
template <class T, class F>
void edit(deft::ext::shared_list<T>& list, F change) {
  std::vector<T> copy(list.begin(), list.end());
  change(copy);
  list = std::move(copy);
}

}  // namespace testing
