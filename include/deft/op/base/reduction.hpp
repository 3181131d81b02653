// SPDX-License-Identifier: Apache-2.0
// deft/op/base/reduction.hpp: what sum, mean, max and min share: their axes, shape rule and calls.
#pragma once
#include <deft/op/base/axes_sentences.hpp>

namespace deft::op {

/// Attributes and shape rule of a reduction.
struct reduction {
  static constexpr std::string_view name = "reduction";
  static constexpr int arity = 1;
  dims axes;  ///< counted from the front, ascending
  bool keepdims = false;
  static constexpr auto fields =
      field_list(field{"axes", &reduction::axes}, field{"keepdims", &reduction::keepdims});

  constexpr dims shape(const dims& x) const {
    dims out;
    for (int i = 0; i < x.n; ++i)
      if (!axes.contains(i))
        out.push_back(x.e[i]);
      else if (keepdims)
        out.push_back(1);
    return out;
  }

 protected:
  /// The shape rule at run time. Throws invalid_argument if the axes are not sound.
  dims shape_checked(std::string_view of, const dims& x) const;
};

}  // namespace deft::op

namespace deft::detail {

/// No axes given: all of them.
struct every_axis {};
struct drop_axes {};
template <class A>
concept axes_choice = std::integral<A> || is_axis_type<A> || std::same_as<A, axes> ||
    std::same_as<A, every_axis> || std::same_as<A, keepdims_t>;
template <class K>
concept keep_choice = std::same_as<K, drop_axes> || std::same_as<K, keepdims_t>;

template <class Shape, class Axes>
struct chosen_axes : typed_shape<chosen_axes<Shape, Axes>> {
  static constexpr bool make(dims& out) {
    if constexpr (is_axis_type<Axes>)
      return op::normalize_axes(Axes::value, Shape::value.n, out);
    else
      return out = op::all_axes_of(Shape::value.n), true;
  }
};
template <class Shape, class Axes>
inline constexpr bool axes_in_range = chosen_axes<Shape, Axes>::possible;
template <class Shape, class Axes, bool Keep>
struct reduced_shape {
  static constexpr dims value =
      op::reduction{chosen_axes<Shape, Axes>::value, Keep}.shape(Shape::value);
};

/// The axes `given` (nullptr: all) of `x`, counted from the front, ascending.
/// Throws invalid_argument in the name of the operation `name` if one is out of range or given
/// twice.
dims axes_from_front(std::string_view name, const any_tensor& x, const axes* given,
                     source_location w);

/// Adds a reduction of `x` over `given` axes (nullptr: all), which may be negative.
any_tensor add_reduction(const op_def& def, const any_tensor& x, const axes* given, bool keep,
                         source_location w);

/// `dz` broadcast over the axes of `x` that `r` reduced: the gradient of a sum.
any_tensor spread(const any_tensor& dz, const any_tensor& x, const op::reduction& r);

/// Whether numbers, text or a tensor follow where axes belong. (A single integer is for `reduce`.)
template <class... Given>
inline constexpr bool misplaced_axes = sizeof...(Given) > 1 && (number_or_text<Given> || ...);
template <class Given>
inline constexpr bool misplaced_axes<Given> = expression<Given> ||
                                              (number_or_text<Given> && !std::integral<Given>);

/// A reduction that `add(x, axes, keep, w)` writes, for axes that may be negative (nullptr: all),
/// and that yields elements of T, or of x's dtype if that is void.
template <class Op, class T, class K, class X, class A, class Keep, class Add>
auto reduce_by(Add add, const X& x, const A& a, Keep, source_location w) {
  constexpr bool keep = std::same_as<A, keepdims_t> || std::same_as<Keep, keepdims_t>;
  const auto over = [&](const any_tensor& of) {
    if constexpr (is_axis_type<A>) {
      const axes given(A::value);
      return add(of, &given, keep, w);
    } else
      return add(of, nullptr, keep, w);
  };
  if constexpr (std::same_as<X, refused>) {
    return refused();
  } else if constexpr (std::integral<A>) {
    refuse_axes<Op, got<X>, A>();
    return refused();
  } else if constexpr (std::same_as<A, axes>) {
    return add(any_tensor(x), &a, keep, w);
  } else if constexpr (typed_expression<X>) {
    using S = shape_type_of<X>;
    if constexpr (!axes_in_range<S, A>) {
      refuse_axes<Op, got<X>, A>();
      return refused();
    } else {
      if constexpr (is_call<X> && !is_narrow_type<value_type_of<X>> &&
                    folds_of<Op>() != fold_kind::none &&
                    chosen_axes<S, A>::value.contains(S::value.n - 1))
        K::template use_fold<kernel_type<X>, Op>();
      using E = std::conditional_t<std::is_void_v<T>, value_type_of<X>, T>;
      return tensor_of<E, reduced_shape<S, A, keep>>(over(any_tensor(any_lower<K>(x, w))).handle());
    }
  } else
    return over(any_tensor(x));
}

/// A reduction that is an operation.
template <class Op, class K, class X, class A, class Keep>
auto reduce(const X& x, const A& a, Keep keep, source_location w) {
  return reduce_by<Op, void, K>(
      [](const any_tensor& of, const axes* over, bool kept, source_location at) {
        return add_reduction(record_of<Op>, of, over, kept, at);
      },
      x, a, keep, w);
}

}  // namespace deft::detail
