// SPDX-License-Identifier: Apache-2.0
// tests/graph/edit.hpp: changing what nodes share.
#pragma once
#include <deft/core/shared_list.hpp>

namespace testing {

/// Puts another list in the place of `list`: a copy that `change` has changed.
template <class T, class F>
void edit(deft::shared_list<T>& list, F change) {
  std::vector<T> copy(list.begin(), list.end());
  change(copy);
  list = std::move(copy);
}

}  // namespace testing
