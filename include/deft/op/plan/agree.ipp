// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/agree.ipp: shape rule of agree.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <deft/op/plan/agree.hpp>

namespace deft {

ext::tensor_type op::agree::infer(std::span<const ext::tensor_type> in) const {
  ext::tensor_type all = in[0];
  for (const auto& t : in.subspan(1))
    if (t.type != all.type || !unify(all.shape, t.shape, all.shape))
      ext::fail(errc::invalid_argument,
                "[all_reduce] expects tensors of one dtype and shape, and got ",
                ext::join(in, " ", [](const ext::tensor_type& i) { return to_string(i); }));
  return all;
}

}  // namespace deft
