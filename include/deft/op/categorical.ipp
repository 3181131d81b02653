// SPDX-License-Identifier: Apache-2.0
// deft/op/categorical.ipp: the largest of logits after noise.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/argmax.hpp>
#include <deft/op/cast.hpp>
#include <deft/op/categorical.hpp>
#include <deft/op/expand_dims.hpp>
#include <deft/op/log.hpp>
#include <deft/op/neg.hpp>
#include <deft/op/size_of.hpp>
#include <vector>

namespace deft {

any_tensor detail::add_categorical(const any_tensor& logits, std::int64_t n,
                                   const random_options& options, ext::source_location w) {
  if (!ext::is_floating(logits.type()) || logits.rank() < 1 || n < dyn)
    refuse_call(logits,
                ext::str("[categorical] expects floating logits along a last axis and a number of "
                         "classes, and got ",
                         logits.handle().type(), " and ", n),
                w);
  const ext::location_scope on_behalf(w);
  const bool one = n == dyn;
  std::vector<size_argument> extents;
  for (int d = 0; d < logits.rank(); ++d) {
    if (!one && d + 1 == logits.rank()) extents.push_back(n);
    if (const std::int64_t e = logits.shape()[d]; e != dyn)
      extents.push_back(e);
    else
      extents.push_back(size_of(logits, axes{d}));
  }
  // Of uniform numbers in double: also what is likely once in a billion times.
  const dims shape = dims::filled(static_cast<int>(extents.size()), dyn);
  const any_tensor u = random_any_sized(op::random_uniform(), shape, size_list(std::move(extents)),
                                        dtype::float64, options, w);
  const dtype type = ext::is_narrow(logits.type()) ? dtype::float32 : logits.type();
  const any_tensor noise = -log(cast(any_tensor(-log(u)), type));
  const any_tensor x = cast(logits, type);
  return argmax((one ? x : expand_dims(x, axis<-2>)) + noise, axes{-1});
}

}  // namespace deft
