// SPDX-License-Identifier: Apache-2.0
// deft/op/move_axis.ipp: axes known only at run time, also of swap_axes.
#pragma once
#include <deft/op/move_axis.hpp>
#include <deft/op/swap_axes.hpp>

namespace deft::detail {

any_tensor move_checked(const any_tensor& x, const dims& from, const dims& to, source_location w) {
  dims perm;
  if (!moved_axes(from, to, x.rank(), perm))
    refuse_call(x,
                str("[move_axis] expects as many axes as places of a tensor of rank ", x.rank(),
                    ", each once, and got ", list_text(from), " and ", list_text(to)),
                w);
  return transpose(x, axes(perm), w);
}

any_tensor swap_checked(const any_tensor& x, const dims& two, source_location w) {
  dims perm;
  if (!swapped_axes(two, x.rank(), perm))
    refuse_call(x,
                str("[swap_axes] expects two axes of a tensor of rank ", x.rank(), ", and got ",
                    list_text(two)),
                w);
  return transpose(x, axes(perm), w);
}

}  // namespace deft::detail
