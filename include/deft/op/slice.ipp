// SPDX-License-Identifier: Apache-2.0
// deft/op/slice.ipp: shape rule of slice, and parts known only at run time.
#pragma once
#include <deft/op/size_of.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/sub.hpp>
#include <vector>

namespace deft {

ext::tensor_type op::slice::infer(std::span<const ext::tensor_type> in) const {
  const dims& x = in[0].shape;
  slice o = *this;
  std::span<const ext::tensor_type> sizes = in.subspan(1);
  if (begin.contains(dyn) && !sizes.empty()) {
    const dims given = extents_in(name, sizes, begin.rank());
    if (!unify(begin, given, o.begin))
      ext::fail(errc::invalid_argument, "[slice] expects to begin at ", ext::list_text(begin),
                ", and its last input says ", ext::list_text(given));
    sizes = sizes.first(sizes.size() - 1);
  }
  if (sizes.size() > 1) ext::fail(errc::invalid_argument, "[slice] has too many inputs");
  if (!sizes.empty()) o.size = shape_by(name, size, sizes);
  dims out;
  if ((begin.contains(dyn) && in.size() == 1) || !o.shape(x, out)) {
    for (int i = 0; i < x.rank() && o.begin.rank() == x.rank() && o.size.rank() == x.rank(); ++i)
      if (const std::int64_t b = o.begin[i], s = o.size[i];
          x[i] != dyn && (b > x[i] || (s != dyn && b >= 0 && s > x[i] - b)))
        ext::fail(errc::invalid_argument, "[slice] ", x, " has no part of size ", o.size, " at ",
                  ext::list_text(o.begin), ": along axis ", i, " it has indices from 0 to below ",
                  x[i]);
    ext::fail(errc::invalid_argument, "[slice] ", x, " has no part of size ", o.size, " at ",
              ext::list_text(o.begin));
  }
  return {sizes.empty() ? out : o.size, in[0].type};
}

any_tensor slice(const any_tensor& x, const dims& begin, const dims& size, ext::source_location w) {
  if (x.shape().is_static() && size == x.shape() && begin == dims::filled(x.rank(), 0)) return x;
  const ext::output in[] = {x.handle()};
  return detail::apply_any(op::slice{begin, size}, in, w);
}

any_tensor detail::slice_of(const any_tensor& padded, const dims& before, const dims& after,
                            const any_tensor& x, const any_tensor& begin) {
  dims size = x.shape();
  bool known = !begin.valid();
  for (int i = 0; i < x.rank(); ++i)
    known = known && (size[i] != dyn || (after.size() == x.rank() && after[i] == 0));
  if (known) return slice(padded, before, size, {});
  std::vector<ext::output> in = {padded.handle(), x.handle()};
  if (begin.valid()) in.push_back(begin.handle());
  return apply_any(op::slice{before, {}}, in, {});
}

any_tensor detail::slice_at(const any_tensor& x, const size_list& begin, const run_extents& size,
                            ext::source_location w) {
  const run_extents at("slice", "first index", begin, x.type(), w);
  if (!at.carrier.valid() && !size.carrier.valid()) return slice(x, at.known, size.known, w);
  std::vector<ext::output> in = {x.handle()};
  if (size.carrier.valid()) in.push_back(size.carrier.handle());
  if (at.carrier.valid()) in.push_back(at.carrier.handle());
  return apply_any(op::slice{at.known, size.known}, in, w);
}

any_tensor detail::slice_at(const any_tensor& x, const size_list& begin, const size_list& sizes,
                            ext::source_location w) {
  const int rank = x.rank();
  if (begin.size() != rank || sizes.size() != rank)
    refuse_call(x,
                ext::str("[slice] expects a first index and a size of each of ", rank,
                         " axes, and got ", begin.size(), " and ", sizes.size()),
                w);
  size_list given = sizes;
  bool some = false;
  for (int i = 0; i < rank; ++i) some = some || sizes[i].tensor.valid();
  for (int i = 0; i < rank; ++i) {
    if (given[i].tensor.valid() || given[i].number != dyn) continue;
    // Up to the end; next to sizes from tensors that is one, too.
    if (!some) {
      dims to_end;
      for (int k = 0; k < rank; ++k) to_end.push_back(given[k].number);
      return slice_at(x, begin, run_extents(to_end), w);
    }
    const axes along{i};
    const any_tensor whole = size_along(x, &along, w);
    given[i] = begin[i].tensor.valid() ? whole - begin[i].tensor : whole - begin[i].number;
  }
  return slice_at(x, begin, run_extents("slice", "size", given, x.type(), w), w);
}

}  // namespace deft
