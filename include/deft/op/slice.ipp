// SPDX-License-Identifier: Apache-2.0
// deft/op/slice.ipp: shape rule of slice, and parts known only at run time.
#pragma once
#include <cstdlib>
#include <deft/op/pad.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/sub.hpp>
#include <vector>

namespace deft {

op::slice::place op::slice::place_in(const dims& x, std::span<const ext::tensor_type> in,
                                     std::string_view of) const {
  slice o = *this;
  const bool somewhere = begin.contains(dyn) && in.empty();
  if (begin.contains(dyn) && !in.empty()) {
    const dims given = extents_in(of, in, begin.rank());
    if (!unify(begin, given, o.begin))
      ext::fail(errc::invalid_argument, "[", of, "] expects to begin at ", ext::list_text(begin),
                ", and its last input says ", ext::list_text(given));
    in = in.first(in.size() - 1);
  }
  if (in.size() > 1) ext::fail(errc::invalid_argument, "[", of, "] has too many inputs");
  if (!in.empty()) o.size = shape_by(of, size, in);
  if (!has_steps(x.rank()))
    ext::fail(errc::invalid_argument, "[", of, "] expects a step of each axis of ", x,
              ", none of them 0, and got ", ext::list_text(step));
  dims out;
  if (somewhere || !o.extents_before_steps(x, out)) {
    for (int i = 0; i < x.rank() && o.begin.rank() == x.rank() && o.size.rank() == x.rank(); ++i)
      if (const std::int64_t b = o.begin[i], s = o.size[i];
          x[i] != dyn && (b > x[i] || (s != dyn && b >= 0 && s > x[i] - b)))
        ext::fail(errc::invalid_argument, "[", of, "] ", x, " has no part of size ", o.size, " at ",
                  ext::list_text(o.begin), ": along axis ", i, " it has indices from 0 to below ",
                  x[i]);
    ext::fail(errc::invalid_argument, "[", of, "] ", x, " has no part of size ", o.size, " at ",
              ext::list_text(o.begin));
  }
  return {o.begin, in.empty() ? out : o.size};
}

ext::tensor_type op::slice::infer(std::span<const ext::tensor_type> in) const {
  return {stepped(place_in(in[0].shape, in.subspan(1)).size), in[0].type};
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

namespace detail {

part_arguments::part_arguments(const any_tensor& x, const size_list& begin, const run_extents& size,
                               source_location w) {
  const run_extents at("slice", "first index", begin, x.type(), w);
  part.begin = at.known;
  part.size = size.known;
  if (size.carrier.valid()) inputs.push_back(size.carrier.handle());
  if (at.carrier.valid()) inputs.push_back(at.carrier.handle());
}

run_extents part_sizes(const any_tensor& x, const size_list& begin, const size_list& sizes,
                       source_location w) {
  const int rank = x.rank();
  if (begin.size() != rank || sizes.size() != rank)
    refuse_call(x,
                str("[slice] expects a first index and a size of each of ", rank, " axes, and got ",
                    begin.size(), " and ", sizes.size()),
                w);
  dims numbers;
  bool known = true;
  for (int i = 0; i < rank; ++i) {
    known = known && !sizes[i].tensor.valid();
    numbers.push_back(sizes[i].number);
  }
  if (known && numbers.contains(dyn)) return numbers;
  // Next to sizes from tensors, one that goes up to the end is one, too.
  size_list given = sizes;
  for (int i = 0; i < rank; ++i) {
    if (given[i].tensor.valid() || given[i].number != dyn) continue;
    const axes along{i};
    const any_tensor whole = size_along(x, &along, w);
    given[i] = begin[i].tensor.valid() ? whole - begin[i].tensor : whole - begin[i].number;
  }
  return run_extents("slice", "size", given, x.type(), w);
}

any_tensor slice_at(const any_tensor& x, const size_list& begin, const run_extents& size,
                    source_location w, const dims& step) {
  part_arguments a(x, begin, size, w);
  if (a.inputs.empty() && step.empty()) return slice(x, a.part.begin, a.part.size, w);
  a.part.step = step;
  a.inputs.insert(a.inputs.begin(), x.handle());
  return apply_any(a.part, a.inputs, w);
}

any_tensor slice_at(const any_tensor& x, const size_list& begin, const size_list& sizes,
                    source_location w) {
  return slice_at(x, begin, part_sizes(x, begin, sizes, w), w);
}

any_tensor slice_along(const any_tensor& x, int axis, const size_argument& begin,
                       const size_argument& size, std::int64_t step, source_location w) {
  const auto rank = static_cast<std::size_t>(x.rank()), at = static_cast<std::size_t>(axis);
  std::vector<size_argument> first(rank, 0), sizes(rank, dyn);
  first[at] = begin, sizes[at] = size;
  dims steps;
  if (step != 1) steps = dims::filled(x.rank(), 1), steps[axis] = step;
  const size_list from(std::move(first)), of(std::move(sizes));
  return slice_at(x, from, part_sizes(x, from, of, w), w, steps);
}

any_tensor without_steps(const any_tensor& part, const dims& step, const any_tensor& like) {
  const dims none = dims::filled(step.rank(), 0);
  dims turned = none;
  any_tensor x = part;
  for (int i = 0; i < step.rank(); ++i) {
    turned[i] = step[i] < 0 ? -1 : 1;
    const std::int64_t zeros = std::abs(step[i]) - 1;
    if (zeros == 0 || x.shape()[i] == 0) continue;
    dims behind = dims::filled(step.rank() + 1, 0), to = x.shape();
    behind[i + 1] = zeros;
    for (int k = 0; k < to.rank(); ++k)
      if (to[k] == dyn) to[k] = op::reshape::extent_of(k < i ? k : k + 1);
    to[i] = x.shape()[i] == dyn ? dyn : x.shape()[i] * (zeros + 1);
    x = pad(expand(x, {i + 1}), dims::filled(step.rank() + 1, 0), behind, 0, {});
    x = add_reshape(x, to, {});
  }
  x = slice_of(x, none, {}, like, {});
  if (!turned.contains(-1)) return x;
  const output in[] = {x.handle()};
  return apply_any(op::slice{none, dims::filled(step.rank(), dyn), turned}, in, {});
}

}  // namespace detail
}  // namespace deft
