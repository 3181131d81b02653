// SPDX-License-Identifier: Apache-2.0
// deft/op/base/shapes.ipp: what shape rules check at run time.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft {

void op::expect_extents(std::string_view op, const dims& shape, bool dynamic) {
  if (!is_sound(shape) || (!dynamic && !shape.is_static()))
    fail(errc::invalid_argument, "[", op, "] ", shape, " is not a valid shape",
         dynamic ? "" : ": every extent must be known");
}

}  // namespace deft
