// SPDX-License-Identifier: Apache-2.0
// deft/op/transpose.ipp: shape rule of transpose.
#pragma once
#include <deft/op/transpose.hpp>

namespace deft {

ext::tensor_type op::transpose::infer(std::span<const ext::tensor_type> in) const {
  dims out;
  if (!shape(in[0].shape, out))
    ext::fail(errc::invalid_argument, "[transpose] expects a permutation of ", in[0].shape.rank(),
              " axes, and got ", ext::list_text(perm));
  return {out, in[0].type};
}

}  // namespace deft
