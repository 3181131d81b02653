// SPDX-License-Identifier: Apache-2.0
// deft/op/slice.hpp: a rectangular part of a tensor.
#pragma once
#include <deft/op/extents.hpp>
#include <vector>

namespace deft::op {
struct slice {
  static constexpr std::string_view name = "slice";
  static constexpr int arity = 1;
  /// x; a tensor of the result's shape, or its extents; the first indices. The last two are as
  /// op::extents yields them.
  static constexpr int max_arity = 3;
  dims begin;  ///< of each axis, the first index taken; `dyn`: the last input says it
  /// Extents; `dyn`: up to the end, or what the second input says. Empty where that has the shape.
  dims size;
  /// Of each axis, n: of these elements every n-th, from the first on, or from the last to the
  /// first if n is negative. Empty: all.
  dims step = {};
  static constexpr auto fields = field_list(
      field{"begin", &slice::begin}, field{"size", &slice::size}, field{"step", &slice::step});

  /// How many a step of `by` takes of n elements.
  static constexpr std::int64_t stepped(std::int64_t n, std::int64_t by) {
    return n <= 0 ? n : (n - 1) / (by < 0 ? -by : by) + 1;
  }
  /// The result's extents if `all` are those before `step`.
  constexpr dims stepped(dims all) const {
    for (int i = 0; i < step.n; ++i) all.e[i] = stepped(all.e[i], step.e[i]);
    return all;
  }
  /// Whether `step` has a number for each of so many axes that is one.
  constexpr bool has_steps(int rank) const {
    for (auto s : step)
      if (s == 0 || s > max_elements || s < -max_elements) return false;
    return step.n == 0 || step.n == rank;
  }

  /// The shape rule; false if x has no such part. A first index may be `dyn`.
  constexpr bool shape(const dims& x, dims& out) const {
    if (!extents_before_steps(x, out) || !has_steps(x.n)) return false;
    out = stepped(out);
    return true;
  }
  constexpr bool extents_before_steps(const dims& x, dims& out) const {
    out = {};
    if (begin.n != x.n || size.n != x.n) return false;
    for (int i = 0; i < x.n; ++i) {
      const std::int64_t b = begin.e[i], s = size.e[i], e = x.e[i];
      if ((b < 0 && b != dyn) || (s < 0 && s != dyn)) return false;
      const std::int64_t least = b == dyn ? 0 : b;
      if (e != dyn && (least > e || (s != dyn && s > e - least))) return false;
      out.push_back(s != dyn || e == dyn || b == dyn ? s : e - b);
    }
    return true;
  }

  /// Where a part lies, before `step`.
  struct place {
    dims begin, size;
  };
  /// That of the part of a tensor of shape x, as far as it is known; `in`: the inputs after it.
  /// Throws invalid_argument, in the name of `of`, if x has no such part.
  place place_in(const dims& x, std::span<const tensor_type> in,
                 std::string_view of = slice::name) const;

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

/// The first index that `slice` takes of each axis, as a type; see at.
template <std::int64_t... First>
struct at_t {
  static constexpr dims value{First...};  ///< one index for each axis, from 0
};
/// The first index of each axis, known at compile time: `slice(x, at<0, 2>, shape<4, 3>)` is
/// columns 2 to 4 of rows 0 to 3.
template <std::int64_t... First>
inline constexpr at_t<First...> at{};

namespace detail {
template <class Shape>
struct unknown_extents {
  static constexpr dims value = dims::filled(Shape::value.n, dyn);
};
template <class From, class At, class Size>
struct sliced : typed_shape<sliced<From, At, Size>> {
  static constexpr bool make(dims& out) {
    return op::slice{At::value, Size::value}.shape(From::value, out);
  }
};
template <class From, class Size>
struct sliced_somewhere : typed_shape<sliced_somewhere<From, Size>> {
  static constexpr bool make(dims& out) {
    return op::slice{dims::filled(From::value.n, dyn), Size::value}.shape(From::value, out);
  }
};
template <class From, class At, class Size>
inline constexpr bool can_slice = sliced<From, At, Size>::possible;

template <class From, class Size>
inline constexpr bool can_slice_somewhere = sliced_somewhere<From, Size>::possible;

/// The part of `padded` that is `x` where `pad{before, after}` made it of x, which need not be
/// computed where its extents, or that nothing is behind it, say as much. `begin`: op::extents'
/// value, where only that says `before`.
any_tensor slice_of(const any_tensor& padded, const dims& before, const dims& after,
                    const any_tensor& x, const any_tensor& begin);

/// What `slice` with these steps takes `part` of: zeros elsewhere, in the shape of `like`.
any_tensor without_steps(const any_tensor& part, const dims& step, const any_tensor& like);

/// Of a part whose place, and `sizes` if there are any, are computed by the run. Those that are
/// `dyn` as numbers go up to the end.
any_tensor slice_at(const any_tensor& x, const size_list& begin, const size_list& sizes,
                    source_location w);
any_tensor slice_at(const any_tensor& x, const size_list& begin, const run_extents& size,
                    source_location w, const dims& step = {});

/// The part of x that has these elements along an axis, and all others whole.
any_tensor slice_along(const any_tensor& x, int axis, const size_argument& begin,
                       const size_argument& size, std::int64_t step, source_location w);

/// The attributes and the further inputs of a part of `x`.
struct part_arguments {
  op::slice part;
  std::vector<output> inputs;

  part_arguments(const any_tensor& x, const size_list& begin, const run_extents& size,
                 source_location w);
};
/// The sizes of such a part; those that are `dyn` as numbers go up to the end.
run_extents part_sizes(const any_tensor& x, const size_list& begin, const size_list& sizes,
                       source_location w);
}  // namespace detail

/// The part of x that begins at the index `begin` and has the extents `size`, where `dyn` means up
/// to the end of the axis. Throws invalid_argument unless x has such a part.
any_tensor slice(const any_tensor& x, const dims& begin, const dims& size,
                 ext::source_location w = ext::here());

/// The same, known at compile time: for x of (?,10), `slice(x, at<0, 2>, shape<dyn, 3>)` is the
/// columns 2, 3 and 4.
template <ext::expression X, std::int64_t... First, std::int64_t... E,
          class K = ext::kernels_for<X>>
auto slice(const X& x, at_t<First...> begin, shape_t<E...> size,
           ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using From = ext::shape_type_of<X>;
    if constexpr (!detail::can_slice<From, at_t<First...>, shape_t<E...>>) {
      static_assert(detail::takes<op::slice, detail::got<X>, at_t<First...>, shape_t<E...>>,
                    "[slice] expects a first index and a size of each axis within the tensor's "
                    "extents, and got others");
      return detail::refused();
    } else
      return detail::apply_typed<ext::value_type_of<X>,
                                 detail::sliced<From, at_t<First...>, shape_t<E...>>, K>(
          op::slice{begin.value, size.value}, w, x);
  } else
    return slice(any_tensor(x), begin.value, size.value, w);
}

/// The part of x that begins where a run computes: `slice(x, {i, 0}, shape<4, 10>)` for int32 or
/// int64 scalars of the graph and numbers, or with an integer vector. `dyn` means up to the end of
/// the axis. Throws invalid_argument, in the run for what only that knows, unless x has such a
/// part.
template <ext::expression X, std::int64_t... E, class K = ext::kernels_for<X>>
auto slice(const X& x, const detail::size_list& begin, shape_t<E...> size,
           ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using From = ext::shape_type_of<X>;
    if constexpr (!detail::can_slice_somewhere<From, shape_t<E...>>) {
      static_assert(detail::takes<op::slice, detail::got<X>, shape_t<E...>>,
                    "[slice] expects a size of each axis within the tensor's extents, and got "
                    "others");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, detail::sliced_somewhere<From, shape_t<E...>>>(
          detail::slice_at(any_tensor(x), begin, detail::run_extents(size.value), w).handle());
  } else
    return detail::slice_at(any_tensor(x), begin, detail::run_extents(size.value), w);
}
/// Likewise, with sizes that a run computes, and that give the extents that are `dyn`, or all:
/// `slice(x, {i, 0}, shape<dyn, 10>, {n})`.
template <ext::expression X, std::int64_t... E, class K = ext::kernels_for<X>>
auto slice(const X& x, const detail::size_list& begin, shape_t<E...> size,
           const detail::size_list& n, ext::source_location w = ext::here()) {
  const any_tensor all(x);
  const auto e = detail::declared_extents("slice", size.value, n, all.type(), w);
  if constexpr (ext::typed_expression<X>) {
    using From = ext::shape_type_of<X>;
    if constexpr (!detail::can_slice_somewhere<From, shape_t<E...>>) {
      static_assert(detail::takes<op::slice, detail::got<X>, shape_t<E...>>,
                    "[slice] expects a size of each axis within the tensor's extents, and got "
                    "others");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, shape_t<E...>>(
          detail::slice_at(all, begin, e, w).handle());
  } else
    return detail::slice_at(all, begin, e, w);
}
/// Likewise, of any sizes: the extents of the result are known only at run time.
template <ext::expression X, class K = ext::kernels_for<X>>
auto slice(const X& x, const detail::size_list& begin, const detail::size_list& sizes,
           ext::source_location w = ext::here()) {
  const any_tensor part = detail::slice_at(any_tensor(x), begin, sizes, w);
  if constexpr (ext::typed_expression<X>) {
    using some = detail::unknown_extents<ext::shape_type_of<X>>;
    return ext::tensor_of<ext::value_type_of<X>, some>(part.handle());
  } else
    return part;
}
/// @cond refused
template <ext::expression X, class... Given>
requires(sizeof...(Given) < 2 || detail::starts_with_number<Given...> ||
         (detail::is_axis_type<Given> || ...)) detail::refused slice(const X&, const Given&...) {
  static_assert(
      detail::takes<op::slice, detail::got<X>, detail::got<Given>...>,
      "[slice] expects the first index and the size of each axis: slice(x, at<0, 2>, shape<dyn, "
      "3>), or slice(x, {i, 0}, {n, 3}) where they are known only at run time");
  return {};
}
/// @endcond

}  // namespace deft

#include <deft/op/pad.hpp>
template <class N>
auto deft::op::slice::grad(const N& n, any_tensor dz) {
  auto o = n.attr();
  if (!o.step.empty()) {
    // Zeros between the elements, as many as the part has before its steps.
    std::vector<output> in;
    for (std::size_t i = 0; i < n.inputs(); ++i) in.push_back(n.in(i).handle());
    dz = detail::without_steps(dz, o.step, detail::apply_any(slice{o.begin, o.size, {}}, in, {}));
  }
  const any_tensor begin = o.begin.contains(dyn) ? n.in(n.inputs() - 1) : any_tensor();
  // Where an input says the size, its `dyn` extents do not mean up to the end.
  const bool sized = n.inputs() > (begin.valid() ? 2 : 1);
  return detail::pad_to(dz, o.begin, sized ? dims() : o.size, n.template in<0>(), begin);
}
