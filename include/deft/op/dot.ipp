// SPDX-License-Identifier: Apache-2.0
// deft/op/dot.ipp: ranks known only at run time.
#pragma once
#include <deft/op/dot.hpp>

namespace deft {

void detail::expect_vectors(std::string_view op, const any_tensor& x, const any_tensor& y,
                            source_location w) {
  if (x.rank() != 1 || y.rank() != 1)
    refuse_call(x, str("[", op, "] expects two vectors, and got ", x.shape(), " and ", y.shape()),
                w);
}

}  // namespace deft
