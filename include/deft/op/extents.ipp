// SPDX-License-Identifier: Apache-2.0
// deft/op/extents.ipp: shape rule of extents, and lists of what a run computes.
#pragma once
#include <algorithm>
#include <deft/op/cast.hpp>
#include <deft/op/constant.hpp>
#include <deft/op/extents.hpp>
#include <deft/op/unstack.hpp>

namespace deft {

namespace op {

tensor_type extents::infer(std::span<const tensor_type> in) const {
  expect_extents(name, shape, true);
  std::int64_t wanted = 0, given = 0;
  bool known = true;
  for (auto e : shape) wanted += e == dyn;
  for (const auto& t : in) {
    if (t.type != dtype::int64 || t.shape.rank() > 1)
      fail(errc::invalid_argument, "[extents] expects int64 scalars or vectors, and got ", t);
    known = known && t.shape.is_static();
    if (known) given += t.shape.elements();
  }
  if (shape.rank() >= max_rank)
    fail(errc::invalid_argument, "[extents] expects ", max_rank - 1, " extents at most, and got ",
         shape.rank());
  if (known && given != wanted)
    fail(errc::invalid_argument, "[extents] expects ", wanted, " integers for ", shape,
         ", and got ", given);
  dims out{0};
  for (auto e : shape) out.push_back(e);
  return {out, type};
}

dims extents::with(std::span<const std::int64_t> values) const {
  dims out{0};
  std::size_t next = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool given = shape[i] == dyn;
    if (given && next == values.size())
      fail(errc::invalid_argument, "[", of, "] expects more than ", next, " integers");
    const std::int64_t e = given ? values[next++] : shape[i];
    if (e < 0)
      fail(errc::invalid_argument, "[", of, "] the ", what, " of axis ", i, " is ", e,
           ", and must not be negative");
    out.push_back(e);
    if (!is_sound(out))
      fail(errc::invalid_argument, "[", of, "] the ", what, " of axis ", i, " is ", e,
           ", which makes more than ", max_elements, " elements");
  }
  if (next != values.size())
    fail(errc::invalid_argument, "[", of, "] expects ", next, " integers, and got ", values.size());
  return out;
}

dims extents_in(std::string_view name, std::span<const tensor_type> in, int count) {
  dims out;
  if (!in.empty())
    for (int i = 1; i < in.back().shape.rank(); ++i) out.push_back(in.back().shape[i]);
  if (in.empty() || in.back().shape.rank() != count + 1)
    fail(errc::invalid_argument, "[", name, "] expects the extents of ", count, " axes");
  return out;
}

dims shape_by(std::string_view name, const dims& declared, std::span<const tensor_type> in) {
  expect_extents(name, declared, !in.empty());
  if (in.empty()) return declared;
  if (declared.empty()) return in.back().shape;
  const dims given = extents_in(name, in, declared.rank());
  dims out;
  if (!unify(declared, given, out) || !is_sound(out))
    fail(errc::invalid_argument, "[", name, "] the shape ", declared, " was declared, and ", given,
         " was computed");
  return out;
}

}  // namespace op

namespace detail {
namespace {

/// The integers of a constant; nullptr if it is something else, or waits for others.
const std::int64_t* constant_integers(const any_tensor& x) {
  const node& n = *x.handle().node;
  if (n.def != &record_of<op::constant> || !n.controls().empty()) return nullptr;
  const auto* a = std::get_if<any_array>(&n.attributes[0]);
  return a && a->type() == dtype::int64 ? a->data<std::int64_t>() : nullptr;
}

/// The error of a call at `w`, which makes no node.
template <class... Parts>
[[noreturn]] void refuse(source_location w, const Parts&... parts) {
  throw error(errc::invalid_argument, str(parts...), {}, w);
}

any_tensor as_sizes(const any_tensor& x, int most_rank) {
  if (!is_integer(x.type()) || x.rank() > most_rank || (x.rank() == 1 && !x.shape().is_static()))
    refuse_call(x,
                str("a shape or an index that a run computes is made of integer scalars, or is an "
                    "integer vector whose extent is known, and not of ",
                    x.handle().type()),
                {});
  return x.type() == dtype::int64 ? x : cast(x, dtype::int64);
}

}  // namespace

void size_argument::take(const any_tensor& x) {
  const any_tensor n = as_sizes(x, 0);
  if (const std::int64_t* v = constant_integers(n))
    number = *v;
  else
    tensor = n;
}

size_list::size_list(std::initializer_list<size_argument> n) : all_(n) {}
void size_list::take(const any_tensor& x) {
  const any_tensor n = as_sizes(x, 1);
  if (n.rank() == 0) return all_.push_back(n);
  if (const std::int64_t* v = constant_integers(n)) {
    for (std::int64_t i = 0; i < n.shape()[0]; ++i) all_.push_back(v[i]);
    return;
  }
  for (const any_tensor& part : unstack(n, axes{0})) all_.push_back(part);
}

run_extents::run_extents(std::string_view of, std::string_view what, const size_list& n, dtype type,
                         source_location w) {
  if (n.size() > max_rank)
    refuse(w, "[", of, "] expects ", max_rank, " axes at most, and got ", n.size());
  std::vector<output> tensors;
  for (int i = 0; i < n.size(); ++i) {
    const bool given = n[i].tensor.valid();
    if (!given && n[i].number < 0)
      refuse(w, "[", of, "] the ", what, " of axis ", i, " is ", n[i].number,
             ", and must not be negative");
    known.push_back(given ? dyn : n[i].number);
    if (given) tensors.push_back(n[i].tensor.handle());
  }
  if (tensors.empty()) return;
  op::extents o;
  o.shape = known;
  o.type = type;
  o.of = of;
  o.what = what;
  carrier = apply_any(o, tensors, w);
}

run_extents declared_extents(std::string_view of, const dims& declared, const size_list& n,
                             dtype type, source_location w) {
  const auto unknown = static_cast<int>(std::count(declared.begin(), declared.end(), dyn));
  if (n.size() != unknown && n.size() != declared.rank())
    refuse(w, "[", of, "] expects the extents of ", declared, " that are known only at run time, ",
           unknown, ", or all of them, and got ", n.size());
  std::vector<size_argument> given;
  for (int i = 0, k = 0; i < declared.rank(); ++i) {
    if (n.size() != unknown)
      given.push_back(n[i]);
    else
      given.push_back(declared[i] == dyn ? n[k++] : size_argument(declared[i]));
  }
  run_extents r(of, "extent", size_list(std::move(given)), type, w);
  dims both;
  if (!op::unify(declared, r.known, both))
    refuse(w, "[", of, "] the shape ", declared, " was declared, and ", r.known, " was given");
  if (!is_sound(both)) refuse(w, "[", of, "] an array of ", both, " is larger than memory");
  r.known = both;
  return r;
}

}  // namespace detail
}  // namespace deft
