// SPDX-License-Identifier: Apache-2.0
// deft/op/reshape.ipp: shape rule of reshape, and shapes known only at run time.
#pragma once
#include <algorithm>
#include <deft/op/reshape.hpp>

namespace deft {

ext::tensor_type op::reshape::infer(std::span<const ext::tensor_type> in) const {
  const dims& x = in[0].shape;
  if (in.size() == 2) {
    dims out = to.empty() ? in[1].shape : to;
    for (auto& e : out)
      if (e < dyn) e = -2 - e < in[1].shape.rank() ? in[1].shape[-2 - e] : e;
    if (!ext::is_sound(out) || to.contains(dyn))
      ext::fail(errc::invalid_argument, "[reshape] ", to, " is not a valid shape by ", in[1].shape);
    if (x.is_static() && out.is_static() && x.elements() != out.elements())
      ext::fail(errc::invalid_argument, "[reshape] ", x, " does not have as many elements as ",
                out);
    return {out, in[0].type};
  }
  dims out;
  switch (shape(x, out)) {
    case fault::none:
      break;
    case fault::several:
      ext::fail(errc::invalid_argument, "[reshape] one extent at most can be inferred: ", to);
    case fault::extent:
      ext::fail(errc::invalid_argument, "[reshape] ", to, " is not a valid shape for ", x);
    case fault::elements:
      ext::fail(errc::invalid_argument, "[reshape] ", x, " does not have as many elements as ", to);
  }
  return {out, in[0].type};
}

any_tensor reshape(const any_tensor& x, const dims& to, ext::source_location w) {
  if (std::ranges::any_of(to, [](std::int64_t e) { return e < dyn; }))
    detail::refuse_call(x, ext::str("[reshape] ", to, " is not a valid shape for ", x.shape()), w);
  return detail::add_reshape(x, to, w);
}

namespace detail {

any_tensor add_reshape(const any_tensor& x, const dims& to, source_location w) {
  if (to.is_static() && x.shape() == to) return x;
  const output in[] = {x.handle()};
  return apply_any(op::reshape{to}, in, w);
}

any_tensor expand(const any_tensor& x, const dims& added, source_location w) {
  dims to = x.shape();
  if (!to.is_static())
    for (int i = 0; i < to.n; ++i)
      if (to[i] == dyn) to[i] = op::reshape::extent_of(i);
  return add_reshape(x, op::with_axes(to, added), w);
}

any_tensor merge_axes(const any_tensor& x, int first, int count, source_location w) {
  if (count == 1) return x;
  dims to;
  for (int i = 0; i < first; ++i) to.push_back(op::reshape::extent_of(i));
  to.push_back(count == 0 ? 1 : dyn);
  for (int i = first + count; i < x.rank(); ++i) to.push_back(op::reshape::extent_of(i));
  return add_reshape(x, to, w);
}

any_tensor reshape_like(const any_tensor& x, const any_tensor& like, source_location w) {
  const dims& to = like.shape();
  if (same(x, like)) return x;
  int unknown = 0;
  for (auto e : to) unknown += e == dyn;
  if (unknown == 0 || (unknown == 1 && !to.contains(0))) return reshape(x, to, w);
  const output in[] = {x.handle(), like.handle()};
  return apply_any(op::reshape{}, in, w);
}

any_tensor reshape_rows(const any_tensor& x, const any_tensor& like, std::int64_t last,
                        source_location w) {
  dims to = like.shape();
  to[to.n - 1] = last;
  if (std::ranges::count(to, dyn) <= 1) return reshape(x, to, w);
  for (int i = 0; i < to.n; ++i)
    if (to[i] == dyn) to[i] = op::reshape::extent_of(i);
  const output in[] = {x.handle(), like.handle()};
  return apply_any(op::reshape{to}, in, w);
}

}  // namespace detail
}  // namespace deft
