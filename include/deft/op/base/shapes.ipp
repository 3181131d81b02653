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

int detail::one_axis(std::string_view of, const any_tensor& x, const dims& given,
                     ext::source_location w) {
  const int axis = given.size() == 1 ? ext::normalize_axis(given[0], x.rank()) : -1;
  if (axis < 0)
    refuse_call(x,
                ext::str("[", of, "] expects one axis of a tensor of rank ", x.rank(), ", and got ",
                         ext::list_text(given)),
                w);
  return axis;
}

void detail::expect_floating(std::string_view of, const any_tensor& x, ext::source_location w) {
  if (!ext::is_floating(x.type()))
    refuse_call(x, ext::str("[", of, "] is not defined for ", x.type()), w);
}

}  // namespace deft
