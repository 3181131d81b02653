// SPDX-License-Identifier: Apache-2.0
#include <deft/deft.hpp>

#include "sides.hpp"

namespace {
#include "ways.ipp"
}

deft::ext::output deft_side(const vector4& x, const deft::variable<float, 4>& v, int way) {
  return lower_by(x, v, way);
}
