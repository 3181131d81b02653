// SPDX-License-Identifier: Apache-2.0
// deft/kernels/widened_kernel.hpp: kernels of narrow dtypes: a kernel of the computing dtypes
// between casts to and from them.
#pragma once
#include <deft/kernels/typed_kernel.hpp>

namespace deft::ext {

/// Makes a device's kernel of a cast.
using cast_maker = kernel_ptr (*)(dtype from, dtype to);

/// `made`, which computes with the computing dtype of each operand and result, for operands and
/// results as they are. Whole arrays are converted, in scratch memory.
kernel_ptr make_widened(kernel_ptr made, cast_maker cast);

/// As kernel_on, but of narrow dtypes: `make` is compiled for those alone that are computed with.
template <dtype_set Types, class F>
kernel_ptr kernel_or_widened(std::string_view devices, const node_def& n, dtype t, F make,
                             cast_maker cast) {
  if (!Types.has(t)) no_kernel_on(devices, n, t);
  constexpr dtype_set compiled = Types & computing_dtypes;
  kernel_ptr made = kernel_on<compiled>(devices, n, computing_dtype(t), std::move(make));
  return is_narrow(t) ? make_widened(std::move(made), cast) : std::move(made);
}

}  // namespace deft::ext
