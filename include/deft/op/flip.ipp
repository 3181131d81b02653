// SPDX-License-Identifier: Apache-2.0
// deft/op/flip.ipp: axes known only at run time.
#pragma once
#include <deft/op/flip.hpp>

namespace deft::detail {

any_tensor flip_checked(const any_tensor& x, const axes* given, source_location w) {
  const dims along = axes_from_front("flip", x, given, w);
  if (along.empty()) return x;
  op::slice o{dims::filled(x.rank(), 0), dims::filled(x.rank(), dyn), dims::filled(x.rank(), 1)};
  for (auto a : along) o.step[static_cast<int>(a)] = -1;
  const output in[] = {x.handle()};
  return apply_any(o, in, w);
}

}  // namespace deft::detail
