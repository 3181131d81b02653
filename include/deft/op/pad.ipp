// SPDX-License-Identifier: Apache-2.0
// deft/op/pad.ipp: shape rule of pad, and numbers known only at run time.
#pragma once
#include <algorithm>
#include <cmath>
#include <deft/op/add.hpp>
#include <deft/op/broadcast_to.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/pad.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/sub.hpp>

namespace deft {

bool op::pad::value_fits(dtype type) const {
  if (!ext::plain_dtypes.has(type)) return false;
  return ext::visit_dtype(type, [&]<class T>() {
    if constexpr (ext::is_floating_type<T>)
      return std::isinf(static_cast<T>(value)) == std::isinf(value);
    else if constexpr (std::is_same_v<T, bool>)
      return value == 0 || value == 1;
    else  // the largest integer may round up to one beyond it
      return value == std::floor(value) && value >= static_cast<double>(ext::least_of<T>) &&
             value < static_cast<double>(ext::greatest_of<T> / 2 + 1) * 2;
  });
}

ext::tensor_type op::pad::infer(std::span<const ext::tensor_type> in) const {
  const dims& x = in[0].shape;
  if (!value_fits(in[0].type))
    ext::fail(errc::invalid_argument, "[pad] ", value, " does not fit ", in[0].type);
  if (in.size() > 1) {
    dims part, at = before;
    const bool given = before.contains(dyn);
    if (in.size() != (given ? 3 : 2) ||
        (given && !unify(before, extents_in(name, in, before.rank()), at)))
      ext::fail(errc::invalid_argument,
                "[pad] expects its last input to say how many elements are before ", x);
    if (!after.empty() || !slice{at, x}.shape(in[1].shape, part))
      ext::fail(errc::invalid_argument, "[pad] ", x, " does not fit into ", in[1].shape, " at ",
                ext::list_text(at));
    return {in[1].shape, in[0].type};
  }
  dims out;
  if (!shape(x, out))
    ext::fail(errc::invalid_argument,
              "[pad] expects numbers of elements before and after each axis of ", x, ", and got ",
              ext::list_text(before), " and ", ext::list_text(after));
  return {out, in[0].type};
}

any_tensor pad(const any_tensor& x, const dims& before, const dims& after, double value,
               ext::source_location w) {
  const dims none = dims::filled(x.rank(), 0);
  const op::pad o{before, after, value};
  if (before == none && after == none && o.value_fits(x.type())) return x;
  const ext::output in[] = {x.handle()};
  return detail::apply_any(o, in, w);
}

any_tensor pad(const any_tensor& x, const dims& before, const dims& after, pad_mode mode,
               ext::source_location w) {
  dims out;
  if (!op::pad{before, after}.shape(x.shape(), out))
    detail::refuse_call(
        x,
        ext::str("[pad] expects numbers of elements before and after each axis of ", x.shape(),
                 ", and got ", ext::list_text(before), " and ", ext::list_text(after)),
        w);
  any_tensor all = x;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t b = before[axis], a = after[axis], n = x.shape()[axis];
    if (b == 0 && a == 0) continue;
    const bool reflects = mode == pad_mode::reflect;
    if (n != dyn && std::max(a, b) > (reflects ? n - 1 : n * ext::max_elements))
      detail::refuse_call(
          x,
          ext::str("[pad] axis ", axis, " of ", x.shape(), " has too few elements for ",
                   std::max(a, b), " on one side: ", reflects ? "one more is needed" : "none"),
          w);
    const axes along{axis};
    const auto from_end = [&](std::int64_t i) {
      if (n != dyn) return detail::size_argument(n - i);
      return detail::size_argument(detail::size_along(all, &along, w) - i);
    };
    const auto added = [&](const detail::size_argument& reflected,
                           const detail::size_argument& edge, std::int64_t count) {
      if (reflects) return detail::slice_along(all, axis, reflected, count, -1, w);
      dims to = dims::filled(x.rank(), dyn);  // what it has
      to[axis] = count;
      return broadcast_to(detail::slice_along(all, axis, edge, 1, 1, w), to, w);
    };
    std::vector<any_tensor> parts;
    if (b > 0) parts.push_back(added(1, 0, b));
    parts.push_back(all);
    if (a > 0) parts.push_back(added(from_end(a + 1), from_end(1), a));
    all = concat(along, parts, w);
  }
  return all;
}

any_tensor detail::pad_to(const any_tensor& part, const dims& begin, const dims& size,
                          const any_tensor& x, const any_tensor& at) {
  dims behind;
  for (int i = 0; i < x.rank() && !size.empty() && !at.valid(); ++i) {
    const std::int64_t e = x.shape()[i];
    if (size[i] == dyn)
      behind.push_back(0);
    else if (e != dyn)
      behind.push_back(e - begin[i] - size[i]);
    else
      break;
  }
  if (!size.empty() && !at.valid() && behind.size() == x.rank())
    return pad(part, begin, behind, 0, {});
  std::vector<ext::output> in = {part.handle(), x.handle()};
  if (at.valid()) in.push_back(at.handle());
  return apply_any(op::pad{begin, {}}, in, {});
}

namespace detail {
namespace {

/// Zeros around a part along one axis.
struct padded_part {
  output part;
  int axis = -1;  ///< -1: it is something else
  op::pad around;

  explicit padded_part(const any_tensor& t) {
    const node& n = *t.handle().node;
    if (n.def != &record_of<op::pad> || n.input_count != 1 || !n.controls().empty()) return;
    around = decode<op::pad>(n.attributes);
    part = n.inputs()[0];
    int axes = 0;
    for (int i = 0; i < t.rank(); ++i)
      if (around.before[i] != 0 || around.after[i] != 0) ++axes, axis = i;
    if (axes != 1 || around.value != 0 || extent() == dyn) axis = -1;
  }
  std::int64_t begin() const { return around.before[axis]; }
  std::int64_t extent() const { return part.type().shape[axis]; }
  std::int64_t end() const { return begin() + extent(); }
};

}  // namespace

any_tensor sum_of(std::vector<any_tensor> terms) {
  std::vector<padded_part> parts;
  std::vector<any_tensor> others;
  for (const any_tensor& t : terms) {
    padded_part p(t);
    if (p.axis >= 0)
      parts.push_back(std::move(p));
    else
      others.push_back(t);
  }
  std::ranges::stable_sort(parts, {}, [](const padded_part& p) {
    return std::pair(p.axis, p.axis < 0 ? 0 : p.begin());
  });
  for (std::size_t i = 0; i < parts.size();) {
    std::vector<output> run{parts[i].part};
    std::size_t next = i + 1;
    for (; next < parts.size() && parts[next].axis == parts[i].axis &&
           parts[next].begin() == parts[next - 1].end();
         ++next)
      run.push_back(parts[next].part);
    const any_tensor joined =
        run.size() == 1 ? any_tensor(run[0]) : add_concat(parts[i].axis, run, {});
    others.push_back(pad(joined, parts[i].around.before, parts[next - 1].around.after, 0, {}));
    i = next;
  }
  any_tensor sum = others[0];
  for (std::size_t i = 1; i < others.size(); ++i) sum = sum + others[i];
  return sum;
}

}  // namespace detail
}  // namespace deft
