// SPDX-License-Identifier: Apache-2.0
// deft/op/base/shapes.ipp: what shape rules check at run time.
#pragma once
#include <algorithm>
#include <deft/op/base/shapes.hpp>
#include <utility>

namespace deft {

void op::expect_extents(std::string_view op, const dims& shape, bool dynamic) {
  const bool sizes = std::ranges::all_of(shape, [](auto e) { return e >= 0 || e == dyn; });
  if (sizes && !ext::is_sound(shape))
    ext::fail(errc::invalid_argument, "[", op, "] an array of ", shape, " is larger than memory");
  if (!sizes || (!dynamic && !shape.is_static()))
    ext::fail(errc::invalid_argument, "[", op, "] ", shape, " is not a valid shape",
              dynamic ? "" : ": every extent must be known");
}

void detail::refuse_call(const any_tensor& x, std::string message, ext::source_location w) {
  throw error(errc::invalid_argument, std::move(message), name_of(x),
              w.known() ? w : x.handle().node->location().nearby());
}

}  // namespace deft
