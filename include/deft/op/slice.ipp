// SPDX-License-Identifier: Apache-2.0
// deft/op/slice.ipp: shape rule of slice, and parts known only at run time.
#pragma once
#include <deft/op/slice.hpp>

namespace deft {

tensor_type op::slice::infer(std::span<const tensor_type> in) const {
  const dims& x = in[0].shape;
  slice o = *this;
  if (in.size() == 2) {
    if (!size.empty())
      fail(errc::invalid_argument, "[slice] has two sizes: ", size, " and ", in[1].shape);
    o.size = in[1].shape;
  }
  dims out;
  if (!o.shape(x, out))
    fail(errc::invalid_argument, "[slice] ", x, " has no part of size ", o.size, " at ",
         list_text(begin));
  return {in.size() == 2 ? in[1].shape : out, in[0].type};
}

any_tensor slice(const any_tensor& x, const dims& begin, const dims& size, source_place w) {
  if (x.shape().is_static() && size == x.shape() && begin == dims::filled(x.rank(), 0)) return x;
  const output in[] = {x.handle()};
  return detail::apply_any(op::slice{begin, size}, in, w);
}

any_tensor detail::slice_of(const any_tensor& padded, const dims& before, const dims& after,
                            const any_tensor& x) {
  dims size = x.shape();
  bool known = true;
  for (int i = 0; i < x.rank(); ++i)
    known = known && (size[i] != dyn || (after.size() == x.rank() && after[i] == 0));
  if (known) return slice(padded, before, size, {});
  const output in[] = {padded.handle(), x.handle()};
  return apply_any(op::slice{before, {}}, in, {});
}

}  // namespace deft
