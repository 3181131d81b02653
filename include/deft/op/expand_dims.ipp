// SPDX-License-Identifier: Apache-2.0
// deft/op/expand_dims.ipp: axes known only at run time.
#pragma once
#include <deft/op/expand_dims.hpp>

namespace deft {

namespace detail {

any_tensor expand_checked(const any_tensor& x, const dims& given, source_location w) {
  dims added;
  int rank = x.rank() + given.size();
  if (rank > max_rank || !op::normalize_axes(given, rank, added))
    refuse_call(x,
                str("[expand_dims] expects axes of a result of rank ", rank,
                    ", at most 8, each once, and got ", list_text(given)),
                w);
  return expand(x, added, w);
}

}  // namespace detail
}  // namespace deft
