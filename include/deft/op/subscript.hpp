// SPDX-License-Identifier: Apache-2.0
// deft/op/subscript.hpp: x(i), x(range(2, 5), all): parts of tensors; as targets, of variables.
#pragma once
#include <array>
#include <deft/op/assign_slice.hpp>
#include <deft/op/broadcast_to.hpp>
#include <deft/op/variable.hpp>
#include <type_traits>
#include <vector>

namespace deft::op {
struct range;      ///< a slice; only messages use this name
struct subscript;  ///< a slice and a reshape; likewise
}  // namespace deft::op

namespace deft {

/// What `all` returns.
struct all_t {};
/// What `newaxis` returns.
struct newaxis_t {};
/// What `ellipsis` returns.
struct ellipsis_t {};
// Their names alone are subscripts, as in x(all). They name functions: compilers do not warn of a
// program's variable that hides one, as they do where it hides a variable.

/// All of an axis, as a subscript; an open end, as a bound: `x(all, range(2, all))`. In .cu files,
/// where CUDA has a function of that name, it is `deft::all`.
constexpr all_t all() { return {}; }
/// A new axis of extent 1, as a subscript: `x(all, newaxis)` of (4,3) is (4,1,3).
constexpr newaxis_t newaxis() { return {}; }
/// As many `all` as axes are left, as a subscript: `x(ellipsis, 0)` is the first along the last.
constexpr ellipsis_t ellipsis() { return {}; }

namespace detail {

/// A bound of a range: a number, an integer scalar of the graph, or none.
class range_bound {
 public:
  range_bound(all_t (*)()) {}  // NOLINT: implicit on purpose
  template <std::integral N>
  range_bound(N n) : open(false), at(n) {}  // NOLINT: implicit on purpose
  template <expression X, class K = kernels_for<X>>
  range_bound(const X& x)  // NOLINT: implicit on purpose
      : open(false), at(any_tensor(any_lower<K>(x, {}))) {
    static_assert(is_integer_expression<X> && is_scalar_expression<X>,
                  "[range] expects integers and integer scalars of the graph as bounds, and got "
                  "another tensor: use cast<std::int64_t>(x)");
  }

  bool open = true;
  size_argument at = 0;
};

/// A range whose bounds only the run of the program knows.
struct run_range {
  range_bound first, last;
  std::int64_t step;
  source_location location;
};

/// The indices from First to below Last, or from First to above Last if Step is negative; `all` as
/// a bound is open.
template <auto First, auto Last, auto Step>
struct range_t {};

/// Bounds known at compile time.
template <class... Bound>
inline constexpr bool are_known_bounds = ((std::same_as<Bound, all_t (*)()> ||
                                           (std::integral<Bound> && !std::same_as<Bound, bool>)) &&
                                          ...);

/// A place on an axis, from its front or its end.
struct axis_position {
  std::int64_t offset = 0;
  bool from_end = false;

  constexpr std::int64_t in(std::int64_t extent) const {
    return from_end ? extent + offset : offset;
  }
};
/// The elements of a range are every step-th of an interval, forwards or backwards.
struct axis_interval {
  axis_position begin, end;
  std::int64_t step = 1;

  template <class First, class Last>
  static constexpr axis_interval of(First first, Last last, std::int64_t step) {
    if (step > 0) return {position(first, 0, {}), position(last, 0, {0, true}), step};
    return {position(last, 1, {}), position(first, 1, {0, true}), step};
  }
  /// How many elements; `dyn` where only a run knows; -2 if they are not in the axis.
  constexpr std::int64_t count(std::int64_t extent) const {
    const bool known = extent != dyn;
    if (!known && begin.from_end != end.from_end) return dyn;
    const std::int64_t first = begin.in(known ? extent : 0), last = end.in(known ? extent : 0);
    if (last < first || (known && (first < 0 || last > extent))) return -2;
    return op::slice::stepped(last - first, step);
  }

 private:
  static constexpr axis_position position(all_t (*)(), std::int64_t, axis_position open) {
    return open;
  }
  static axis_position position(const range_bound& b, std::int64_t after, axis_position open) {
    return b.open ? open : position(b.at.number, after, open);
  }
  static constexpr axis_position position(std::int64_t n, std::int64_t after, axis_position) {
    return {n + after, n < 0};
  }
};

enum class subscript_kind : std::uint8_t { index, range, all, newaxis, ellipsis };

/// What the type of a subscript says.
struct subscript_rule {
  subscript_kind kind;
  bool known = false;  ///< where in the axis: `interval`
  axis_interval interval = {};
};
template <class S>
inline constexpr subscript_rule rule_of = {subscript_kind::index};
template <std::int64_t Index>
inline constexpr subscript_rule rule_of<at_t<Index>> = {subscript_kind::index, true,
                                                        axis_interval::of(Index, Index, 1)};
template <>
inline constexpr subscript_rule rule_of<run_range> = {subscript_kind::range};
template <auto First, auto Last, auto Step>
inline constexpr subscript_rule rule_of<range_t<First, Last, Step>> = {
    subscript_kind::range, true, axis_interval::of(First, Last, Step)};
template <>
inline constexpr subscript_rule rule_of<all_t> = {subscript_kind::all};
template <>
inline constexpr subscript_rule rule_of<newaxis_t> = {subscript_kind::newaxis};
template <>
inline constexpr subscript_rule rule_of<ellipsis_t> = {subscript_kind::ellipsis};
/// `all` and `range<1, 3>` name functions.
template <class S>
inline constexpr subscript_rule rule_of<S()> = rule_of<S>;

template <>
inline constexpr bool is_subscript<all_t()> = true;
template <>
inline constexpr bool is_subscript<newaxis_t()> = true;
template <>
inline constexpr bool is_subscript<ellipsis_t()> = true;
template <>
inline constexpr bool is_subscript<run_range> = true;
template <std::int64_t Index>
inline constexpr bool is_subscript<at_t<Index>> = true;
template <auto First, auto Last, auto Step>
inline constexpr bool is_subscript<range_t<First, Last, Step>> = true;
template <auto First, auto Last, auto Step>
inline constexpr bool is_subscript<range_t<First, Last, Step>()> = true;

/// The axes that an ellipsis among `s` stands for, all that are left; negative if there are more
/// subscripts than axes, or more than one ellipsis.
template <class List>
constexpr int axes_of_ellipsis(const List& s, int rank) {
  int left = rank, ellipses = 0;
  for (const auto& i : s)
    if (i.kind == subscript_kind::ellipsis)
      ++ellipses;
    else if (i.kind != subscript_kind::newaxis)
      --left;
  return ellipses > 1 ? -1 : left;
}

/// The shape of x(s…).
template <class Shape, class... S>
struct subscripted_shape : typed_shape<subscripted_shape<Shape, S...>> {
  static constexpr std::array<subscript_rule, sizeof...(S)> rules{rule_of<S>...};
  static constexpr int left = axes_of_ellipsis(rules, Shape::value.n);

  static constexpr bool make(dims& out) {
    int axis = 0;
    if (left < 0) return false;
    for (const subscript_rule& r : rules) {
      if (r.kind == subscript_kind::newaxis) {
        out.push_back(1);
      } else if (r.kind == subscript_kind::ellipsis) {
        for (int i = 0; i < left; ++i) out.push_back(Shape::value.e[axis++]);
      } else {
        const std::int64_t e = Shape::value.e[axis++];
        if (r.kind == subscript_kind::all)
          out.push_back(e);
        else if (r.kind == subscript_kind::range)
          out.push_back(r.known ? r.interval.count(e) : dyn);
        else if (r.known && e != dyn && (r.interval.begin.in(e) < 0 || r.interval.begin.in(e) >= e))
          return false;
        if (r.kind == subscript_kind::range && out.e[out.n - 1] < dyn) return false;
      }
    }
    while (axis < Shape::value.n) out.push_back(Shape::value.e[axis++]);
    return true;
  }
};
template <class Shape, class... S>
inline constexpr bool has_axes_for = subscripted_shape<Shape, S...>::left >= 0;
template <class Shape, class... S>
inline constexpr bool can_subscript = subscripted_shape<Shape, S...>::possible;
/// Whether all that are tensors are integer scalars.
template <class... S>
inline constexpr bool are_scalars = ([] {
  if constexpr (expression<S>)
    return is_integer_expression<S> && is_scalar_expression<S>;
  else
    return true;
}() && ...);

/// A subscript as a value. An index is `range.first`.
struct subscript_value {
  subscript_kind kind;
  run_range range{all, all, 1, {}};
};
template <class K, class S>
subscript_value value_of_subscript(const S& s) {
  if constexpr (expression<S>)
    return {subscript_kind::index, {any_tensor(any_lower<K>(s, {})), all, 1, {}}};
  else if constexpr (std::integral<S>)
    return {subscript_kind::index, {s, all, 1, {}}};
  else if constexpr (std::same_as<S, run_range>)
    return {subscript_kind::range, s};
  else
    return {rule_of<S>.kind};
}
template <class K, std::int64_t Index>
subscript_value value_of_subscript(at_t<Index>) {
  return {subscript_kind::index, {Index, all, 1, {}}};
}
template <class K, auto First, auto Last, auto Step>
subscript_value value_of_subscript(range_t<First, Last, Step>) {
  return {subscript_kind::range, {First, Last, Step, {}}};
}
template <class K, class S>
subscript_value value_of_subscript(S (*)()) {
  return value_of_subscript<K>(S());
}

/// Where a part lies, and the shape that it has.
struct part_place {
  std::vector<size_argument> begin, size;  ///< of each axis; `dyn` as a size: up to the end
  dims step;                               ///< of each axis; empty: all are 1
  dims layout;  ///< of each axis of the part: the axis of the tensor that it is, or -1: a new one
  bool whole = true;
  source_location location;  ///< of a range among them, if there is one
};
/// Throws invalid_argument if `x` has no such part, as far as that is known.
part_place place_of(const any_tensor& x, std::span<const subscript_value> s);
any_tensor part_at(const any_tensor& x, const part_place& p);
/// Adds an update of that part of a variable.
output update_part(const op_def& def, const output& variable, const part_place& p,
                   const any_tensor& value, source_location w);

template <class K, class... S>
part_place place_of_all(const any_tensor& x, const S&... s) {
  const subscript_value all[] = {value_of_subscript<K>(s)...};
  return place_of(x, all);
}

/// Whether the types of x and of its subscripts fit; says what does not.
template <class X, class... S>
constexpr bool check_subscripts() {
  if constexpr (!are_scalars<S...>) {
    static_assert(takes<op::subscript, got<X>, got<S>...>,
                  "[subscript] expects integers, integer scalars, ranges and all, and got another "
                  "tensor: gather(x, i) takes the rows of several indices");
    return false;
  } else if constexpr (typed_expression<X>) {
    if constexpr (!has_axes_for<shape_type_of<X>, S...>)
      static_assert(takes<op::subscript, got<X>, got<S>...>,
                    "[subscript] expects one subscript of each axis at most, and one ellipsis, and "
                    "got more");
    else if constexpr (!can_subscript<shape_type_of<X>, S...>)
      static_assert(takes<op::subscript, got<X>, got<S>...>,
                    "[subscript] expects indices and ranges within the tensor's extents, and got "
                    "others");
    return can_subscript<shape_type_of<X>, S...>;
  } else
    return true;
}

/// x(s…).
template <class X, class... S, class K = kernels_for<X>>
auto subscripted(const X& x, const S&... s) {
  if constexpr (!check_subscripts<X, S...>()) {
    return refused();
  } else {
    const any_tensor whole(any_lower<K>(x, {}));
    const any_tensor part = part_at(whole, place_of_all<K>(whole, s...));
    if constexpr (typed_expression<X>)
      return tensor_of<value_type_of<X>, subscripted_shape<shape_type_of<X>, S...>>(part.handle());
    else
      return part;
  }
}

/// Whether a value can be broadcast to a part of shape `Part`, as far as types say.
template <class Part, class X>
inline constexpr bool part_shape_fits = [] {
  if constexpr (typed_expression<X> || is_ndarray<X>)
    return may_broadcast_to<shape_type_of<X>, Part>;
  else if constexpr (element_range<const X>)
    return Part::value.n >= 1;
  else
    return true;
}();
/// A C++ scalar as a constant in the graph of the variable `like`. Throws invalid_argument that
/// names it if its dtype cannot represent the literal.
any_tensor scalar_for(const output& like, const literal& v, source_location w);
template <class K, class X>
any_tensor part_value(const X& x, const output& variable, source_location w) {
  if constexpr (scalar<X>)
    return scalar_for(variable, literal_of(x), w);
  else
    return any_tensor(any_update_value<K>(x, variable, w));
}

}  // namespace detail

namespace ext {

/// A part of a variable: in an expression its value, and a target of updates, which change that
/// part alone, in place. `Whole` is the variable's tensor, `Shape` that of the part.
template <class Whole, class Shape>
class variable_part : public detail::typed_base {
 public:
  using value_type = typename Whole::value_type;
  using shape_type = Shape;
  static constexpr dims extents() { return Shape::value; }

  variable_part(output variable, detail::part_place p)
      : variable_(std::move(variable)), place_(std::move(p)) {}
  /// The output that represents it inside an expression.
  output operand() const {
    return detail::part_at(any_tensor(detail::read_variable(variable_)), place_).handle();
  }

  /// Sets the part to `value`, an expression, a host array or a C++ scalar, of the variable's
  /// dtype, which is broadcast to it. Like other updates it runs on the variable's device, and
  /// yields the variable's new value as `assign(…).value()`. Throws invalid_argument, in the run
  /// for what only that knows, if the variable has no such part or the value does not fit; nothing
  /// is changed then.
  template <operand_of_update X, class K = kernels_for<std::tuple<X, Whole>>>
  assigned<Whole> assign(const X& value, source_location w = here()) const {
    return update<op::assign_slice, K>(value, w);
  }
  /// Adds `value` to it; for variables of numbers.
  template <operand_of_update X, class K = kernels_for<std::tuple<X, Whole>>>
  assigned<Whole> assign_add(const X& value, source_location w = here()) const {
    return update<op::assign_add_slice, K>(value, w);
  }
  /// Subtracts `value` from it; for variables of numbers.
  template <operand_of_update X, class K = kernels_for<std::tuple<X, Whole>>>
  assigned<Whole> assign_sub(const X& value, source_location w = here()) const {
    return update<op::assign_sub_slice, K>(value, w);
  }

 private:
  template <class Op, class K, class X>
  assigned<Whole> update(const X& value, source_location w) const {
    using part = tensor_of<value_type, Shape>;
    if constexpr (!detail::update_dtype_fits<value_type, X>) {
      static_assert(
          detail::takes<Op, part, detail::got<X>>,
          "[assign] expects a value of the variable's dtype, and got another: use cast<T>(x)");
      return assigned<Whole>({});
    } else if constexpr (!detail::part_shape_fits<Shape, X>) {
      static_assert(detail::takes<Op, part, detail::got<X>>,
                    "[assign] expects a value that can be broadcast to the part of the variable, "
                    "and got another");
      return assigned<Whole>({});
    } else if constexpr (std::is_same_v<Op, op::assign_slice> || is_numeric(dtype_of<value_type>))
      return assigned<Whole>(detail::update_part(record_of<Op>, variable_, place_,
                                                 detail::part_value<K>(value, variable_, w), w));
    else {
      static_assert(detail::takes<Op, part, detail::got<X>>,
                    "[assign_add] expects a variable of numbers, and got bool or strings");
      return assigned<Whole>({});
    }
  }

  output variable_;
  detail::part_place place_;
};

/// The same of an any_variable: operations take it as an any_tensor.
class any_variable_part : public detail::expression_base {
 public:
  any_variable_part(output variable, detail::part_place p)
      : variable_(std::move(variable)), place_(std::move(p)) {}
  /// The output that represents it inside an expression.
  output operand() const {
    return detail::part_at(any_tensor(detail::read_variable(variable_)), place_).handle();
  }
  operator any_tensor() const { return any_tensor(operand()); }  // NOLINT: implicit on purpose

  /// As those of a variable_part. They also throw invalid_argument for a value of another dtype,
  /// and where it is added to or subtracted from a variable of bool.
  /// @{
  template <operand_of_update X, class K = kernels_for<std::tuple<X>>>
  assigned<any_tensor> assign(const X& value, source_location w = here()) const {
    return update<K>(record_of<op::assign_slice>, value, w);
  }
  template <operand_of_update X, class K = kernels_for<std::tuple<X>>>
  assigned<any_tensor> assign_add(const X& value, source_location w = here()) const {
    return update<K>(record_of<op::assign_add_slice>, value, w);
  }
  template <operand_of_update X, class K = kernels_for<std::tuple<X>>>
  assigned<any_tensor> assign_sub(const X& value, source_location w = here()) const {
    return update<K>(record_of<op::assign_sub_slice>, value, w);
  }
  /// @}

 private:
  template <class K, class X>
  assigned<any_tensor> update(const op_def& def, const X& value, source_location w) const {
    return assigned<any_tensor>(
        detail::update_part(def, variable_, place_, detail::part_value<K>(value, variable_, w), w));
  }

  output variable_;
  detail::part_place place_;
};

}  // namespace ext

namespace detail {
/// v(s…).
template <class T, std::int64_t... E, class... S>
auto part_of_variable(const variable<T, E...>& v, const S&... s) {
  using whole = tensor<T, E...>;
  using shape = typename whole::shape_type;
  if constexpr (!plain_element<T>) {
    static_assert(takes<op::subscript, got<whole>, got<S>...>,
                  "[subscript] expects elements other than strings, which have no size");
    return refused();
  } else if constexpr (!check_subscripts<whole, S...>()) {
    return refused();
  } else {
    using part = tensor_of<T, subscripted_shape<shape, S...>>;
    return variable_part<whole, typename part::shape_type>(
        v.handle(), place_of_all<kernels_for<whole>>(any_tensor(v.operand()), s...));
  }
}
template <std::same_as<any_variable> V, class... S, class K = kernels_for<V>>
auto part_of_variable(const V& v, const S&... s) {
  if constexpr (!check_subscripts<V, S...>())
    return refused();
  else
    return any_variable_part(v.handle(), place_of_all<K>(any_tensor(v.operand()), s...));
}
}  // namespace detail

/// A range of indices as a subscript, as Python's `first:last:step`: from `first` to below `last`,
/// or with a negative step down to above it. Bounds are numbers, of which negative ones count from
/// the end of the axis, `all`, for an open end, or int32 or int64 scalars of the graph, which count
/// from the front. `x(range(2, all))` is all from index 2 on, `x(range(all, all, -1))` is x in
/// reverse order. A bound outside the axis, or a range that ends before it begins, is not shortened
/// as in Python: the subscript throws invalid_argument, in the run for what only that knows. Throws
/// invalid_argument if the step is 0.
detail::run_range range(const detail::range_bound& first, const detail::range_bound& last,
                        std::int64_t step = 1, ext::source_location w = ext::here());
/// The same known at compile time, so that the extent of the result is, too: for x of (?,10),
/// `x(all, range<2, 5>)` is (?,3).
/// @{
template <auto First, auto Last>
constexpr auto range() {
  static_assert(detail::are_known_bounds<decltype(First), decltype(Last)>,
                "[range] expects integers and all as bounds, and got others");
  return detail::range_t<First, Last, 1>();
}
template <auto First, auto Last, auto Step>
constexpr auto range() {
  static_assert(detail::are_known_bounds<decltype(First), decltype(Last)>,
                "[range] expects integers and all as bounds, and got others");
  static_assert(Step != 0, "[range] expects a step other than 0");
  return detail::range_t<First, Last, Step>();
}
/// @}
/// @cond refused
template <class... Given>
requires(sizeof...(Given) < 2 || (std::floating_point<Given> || ...)) detail::run_range
    range(const Given&...) {
  static_assert(detail::takes<op::range, Given...>,
                "[range] expects two integers as bounds: range(2, all) is from index 2 on; arange "
                "is the tensor of numbers");
  return {all, all, 1, {}};
}
/// @endcond

}  // namespace deft
