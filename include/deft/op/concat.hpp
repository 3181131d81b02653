// SPDX-License-Identifier: Apache-2.0
// deft/op/concat.hpp: tensors one after another along an axis; and its gradient, concat_part.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <initializer_list>
#include <vector>

namespace deft::op {
struct concat {
  static constexpr std::string_view name = "concat";
  static constexpr int arity = 1;
  static constexpr int max_arity = -1;
  std::int64_t axis = 0;
  static constexpr auto fields = field_list(field{"axis", &concat::axis});

  /// Appends `next` to `sum`; false if an extent along another axis differs.
  static constexpr bool append(dims& sum, const dims& next, int axis) {
    if (sum.n != next.n || axis < 0 || axis >= sum.n) return false;
    for (int i = 0; i < sum.n; ++i) {
      std::int64_t& e = sum.e[i];
      if (i == axis) {
        if (e != dyn && next.e[i] != dyn && e > max_elements) return false;
        e = e == dyn || next.e[i] == dyn ? dyn : e + next.e[i];
      } else if (e == dyn)
        e = next.e[i];
      else if (next.e[i] != dyn && next.e[i] != e)
        return false;
    }
    return true;
  }

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};

/// The slice of the first input that tensor number `part` of x0… takes up in concat(x0…). The other
/// inputs are x0…, of which only the shapes count. Used by the gradient of concat only.
struct concat_part {
  static constexpr std::string_view name = "concat_part";
  static constexpr int arity = 2;
  static constexpr int max_arity = -1;
  std::int64_t axis = 0;
  std::int64_t part = 0;
  static constexpr auto fields =
      field_list(field{"axis", &concat_part::axis}, field{"part", &concat_part::part});

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <int Axis, class First, class... Rest>
struct concatenated : typed_shape<concatenated<Axis, First, Rest...>> {
  static constexpr int axis = normalize_axis(Axis, First::value.n);
  static constexpr bool make(dims& out) {
    out = First::value;
    return axis >= 0 && (op::concat::append(out, Rest::value, axis) && ...);
  }
};
template <int Axis, class... Shape>
inline constexpr bool can_concat = concatenated<Axis, Shape...>::possible;

template <int Axis, class Shape>
struct dyn_along {
  static constexpr dims value = [] {
    dims d = Shape::value;
    d.e[normalize_axis(Axis, d.n)] = dyn;
    return d;
  }();
};

any_tensor add_concat(std::int64_t axis, std::span<const output> parts, source_location w);
template <class V>
inline constexpr bool is_tensors = false;
template <expression X>
inline constexpr bool is_tensors<std::vector<X>> = true;
}  // namespace detail

/// The tensors joined along an axis: `concat(axis<0>, a, b)` of (2,3) and (4,3) is (6,3). Dtypes
/// and all other extents must agree; if they do not, it is a compile error where the types show it,
/// and throws invalid_argument otherwise.
template <int Axis, ext::expression X, ext::expression... Rest, class K = ext::kernels_for<X>>
auto concat(axis_t<Axis>, const X& x, const Rest&... rest) {
  const ext::output parts[] = {detail::any_lower<K>(x, {}), detail::any_lower<K>(rest, {})...};
  if constexpr (ext::typed_expression<X> && (ext::typed_expression<Rest> && ...)) {
    if constexpr (!detail::one_value_type<X, Rest...>) {
      static_assert(detail::takes<op::concat, detail::got<X>, detail::got<Rest>...>,
                    "[concat] expects operands of one dtype, and got several: use cast<T>(x)");
      return detail::refused();
    } else if constexpr (!detail::can_concat<Axis, ext::shape_type_of<X>,
                                             ext::shape_type_of<Rest>...>) {
      static_assert(detail::takes<op::concat, axis_t<Axis>, detail::got<X>, detail::got<Rest>...>,
                    "[concat] expects an axis in range, and extents that agree on the other axes");
      return detail::refused();
    } else
      return ext::tensor_of<
          ext::value_type_of<X>,
          detail::concatenated<Axis, ext::shape_type_of<X>, ext::shape_type_of<Rest>...>>(
          detail::add_concat(Axis, parts, {}).handle());
  } else
    return detail::add_concat(Axis, parts, {});
}
/// The same with an axis and a number of tensors known only at run time.
/// Throws invalid_argument if the axis is out of range, or if dtypes or other extents differ.
any_tensor concat(const axes& axis, std::span<const any_tensor> parts,
                  ext::source_location w = ext::here());
/// The same of tensors of one type, at least one: their extent along the axis becomes dyn, and an
/// any_tensor if they are such.
template <int Axis, ext::expression X>
auto concat(axis_t<Axis>, const std::vector<X>& parts, ext::source_location w = ext::here()) {
  const std::vector<any_tensor> all(parts.begin(), parts.end());
  if constexpr (!ext::typed_expression<X>) {
    return concat(axes{Axis}, all, w);
  } else if constexpr (ext::normalize_axis(Axis, ext::extents_of<X>.n) < 0) {
    static_assert(detail::takes<op::concat, axis_t<Axis>, detail::got<X>>,
                  "[concat] expects an axis in range, and extents that agree on the other axes");
    return detail::refused();
  } else
    return ext::tensor_of<ext::value_type_of<X>, detail::dyn_along<Axis, ext::shape_type_of<X>>>(
        concat(axes{Axis}, all, w).handle(), w);
}
/// @cond refused
template <int... A, class First, class... Rest>
requires(ext::operand<First> || detail::is_tensors<First> ||
         (std::same_as<First, axes> && (ext::expression<Rest> && ...))) detail::refused
    concat(const First&, const Rest&...) {
  static_assert(detail::takes<op::concat, detail::got<First>, detail::got<Rest>...>,
                "[concat] expects the axis first, and then the tensors without braces: "
                "concat(axis<0>, x, y), or concat(axis<0>, v) of a vector of tensors");
  return {};
}
template <std::size_t N, class... Rest>
detail::refused concat(const detail::listed (&)[N], const Rest&...) {
  static_assert(detail::takes<op::concat, Rest...>,
                "[concat] expects the axis first, and then the tensors without braces: "
                "concat(axis<0>, x, y), or concat(axis<0>, v) of a vector of tensors");
  return {};
}
template <int A, std::size_t N>
detail::refused concat(axis_t<A>, const detail::listed (&)[N]) {
  static_assert(detail::takes<op::concat, axis_t<A>>,
                "[concat] expects the axis first, and then the tensors without braces: "
                "concat(axis<0>, x, y), or concat(axis<0>, v) of a vector of tensors");
  return {};
}
/// @endcond

}  // namespace deft

#include <deft/op/broadcast_to.hpp>
#include <deft/op/slice.hpp>
template <class N>
auto deft::op::concat::grad(const N& n, any_tensor dz) {
  const auto axis = static_cast<int>(n.attr().axis);
  std::vector<output> in;  // only if an extent is known only at run time
  std::vector<any_tensor> parts;
  dims begin, size;
  for (int i = 0; i < dz.rank(); ++i) begin.push_back(0), size.push_back(dyn);
  for (std::size_t i = 0; i < n.inputs(); ++i) {
    size[axis] = n.in(i).shape()[axis];
    if (begin[axis] != dyn && size[axis] != dyn) {
      parts.push_back(deft::slice(dz, begin, size, {}));
    } else {
      if (in.empty()) {
        in.push_back(dz.handle());
        for (std::size_t k = 0; k < n.inputs(); ++k) in.push_back(n.in(k).handle());
      }
      parts.push_back(
          detail::apply_any(concat_part{n.attr().axis, static_cast<std::int64_t>(i)}, in, {}));
    }
    begin[axis] = begin[axis] == dyn || size[axis] == dyn ? dyn : begin[axis] + size[axis];
  }
  return parts;
}
template <class N>
auto deft::op::concat_part::grad(const N& n, any_tensor dz) {
  std::vector<output> parts;
  for (std::size_t i = 1; i < n.inputs(); ++i)
    parts.push_back(
        i == static_cast<std::size_t>(n.attr().part) + 1
            ? dz.handle()
            : deft::broadcast_to(detail::literal_like(0, dz.type(), {}), n.in(i)).handle());
  std::vector<any_tensor> all(n.inputs());
  all[0] = detail::add_concat(n.attr().axis, parts, {});
  return all;
}
