// SPDX-License-Identifier: Apache-2.0
#include <deft/expr.hpp>

#include "sides.hpp"

namespace {
#include "ways.ipp"
}

deft::ext::output expr_side(const vector4& x, const deft::variable<float, 4>& v, int way) {
  return lower_by(x, v, way);
}
deft::ext::output expr_side_alone(const vector4& x) {
  vector4 t = sqrt(x * 2) + 1;
  return t.handle();
}
