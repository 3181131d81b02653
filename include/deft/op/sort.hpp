// SPDX-License-Identifier: Apache-2.0
// deft/op/sort.hpp: sorted elements, where they were, and the largest of them.
#pragma once
#include <array>
#include <deft/op/argmax.hpp>
#include <utility>

namespace deft::op {
/// The first `count` elements of each row, along the last axis, in ascending order or descending,
/// and their indices. Equal ones keep their order. NaN is greater than any number.
struct sort {
  static constexpr std::string_view name = "sort";
  static constexpr int arity = 1;
  std::int64_t count = dyn;  ///< `dyn`: all
  bool descending = false;
  static constexpr auto fields =
      field_list(field{"count", &sort::count}, field{"descending", &sort::descending});

  /// The shape rule; false if rows have not as many elements.
  constexpr bool shape(const dims& x, dims& out) const {
    out = x;
    if (x.n < 1 || count < dyn || (x.e[x.n - 1] != dyn && x.e[x.n - 1] < count)) return false;
    if (count != dyn) out.e[x.n - 1] = count;
    return true;
  }
  /// Elements, and int64 indices.
  std::array<tensor_type, 2> infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
struct argsort;  ///< the second output; only messages use these names
struct top_k;
}  // namespace deft::op

namespace deft {

/// Options of sort and argsort.
struct sort_options {
  bool descending = false;  ///< the greatest first
};

namespace detail {
using sorted_pair = std::pair<any_tensor, any_tensor>;
sorted_pair add_sort(std::string_view name, const any_tensor& x, const dims& given,
                     const sort_options& options, source_location w);
sorted_pair add_top_k(const any_tensor& x, std::int64_t k, source_location w);
/// `dz` at the places along the last axis of `x` that indices name, and zeros elsewhere.
any_tensor unsorted(const any_tensor& dz, const any_tensor& indices, const any_tensor& x);

template <std::int64_t K, class Shape>
struct top_shape : typed_shape<top_shape<K, Shape>> {
  static constexpr bool make(dims& out) {
    const bool possible = op::sort{K}.shape(Shape::value, out);
    if (possible) out.e[out.n - 1] = K;
    return possible;
  }
};
/// With a last extent that is not known.
template <class Shape>
struct some_of_rows {
  static constexpr dims value = [] {
    dims d = Shape::value;
    if (d.n > 0) d.e[d.n - 1] = dyn;
    return d;
  }();
};
}  // namespace detail

/// The elements in ascending order, or descending, along one axis, the last without a choice:
/// `sort(x, axis<0>, {.descending = true})`. NaN is greater than any number; equal ones keep their
/// order. Throws invalid_argument for an axis out of range.
template <ext::expression X, int A = -1, class K = ext::kernels_for<X>>
auto sort(const X& x, axis_t<A> a = {}, const sort_options& options = {},
          ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    if constexpr (!detail::is_numeric_expression<X>) {
      static_assert(detail::takes<op::sort, detail::got<X>>,
                    "[sort] expects a tensor of numbers, and got bool or strings");
      return detail::refused();
    } else if constexpr (!detail::axis_in_range<ext::shape_type_of<X>, A>) {
      static_assert(detail::takes<op::sort, detail::got<X>, axis_t<A>>,
                    "[sort] expects an axis within the tensor's rank, and got another");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
          detail::add_sort("sort", any_tensor(detail::any_lower<K>(x, w)), a.value, options, w)
              .first.handle());
  } else
    return detail::add_sort("sort", any_tensor(x), a.value, options, w).first;
}
/// The same with an axis known only at run time.
/// Throws invalid_argument unless `a` holds exactly one axis, in range.
template <ext::expression X>
any_tensor sort(const X& x, const axes& a, const sort_options& options = {},
                ext::source_location w = ext::here()) {
  return detail::add_sort("sort", any_tensor(x), a.value, options, w).first;
}

/// The int64 indices along one axis by which `sort` would order the elements: arguments as for
/// `sort`; take_along(x, argsort(x), axis<-1>) is sort(x).
template <ext::expression X, int A = -1, class K = ext::kernels_for<X>>
auto argsort(const X& x, axis_t<A> a = {}, const sort_options& options = {},
             ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    if constexpr (!detail::is_numeric_expression<X>) {
      static_assert(detail::takes<op::argsort, detail::got<X>>,
                    "[argsort] expects a tensor of numbers, and got bool or strings");
      return detail::refused();
    } else if constexpr (!detail::axis_in_range<ext::shape_type_of<X>, A>) {
      static_assert(detail::takes<op::argsort, detail::got<X>, axis_t<A>>,
                    "[argsort] expects an axis within the tensor's rank, and got another");
      return detail::refused();
    } else
      return ext::tensor_of<std::int64_t, ext::shape_type_of<X>>(
          detail::add_sort("argsort", any_tensor(detail::any_lower<K>(x, w)), a.value, options, w)
              .second.handle());
  } else
    return detail::add_sort("argsort", any_tensor(x), a.value, options, w).second;
}
/// The same with an axis known only at run time.
/// Throws invalid_argument unless `a` holds exactly one axis, in range.
template <ext::expression X>
any_tensor argsort(const X& x, const axes& a, const sort_options& options = {},
                   ext::source_location w = ext::here()) {
  return detail::add_sort("argsort", any_tensor(x), a.value, options, w).second;
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::starts_with_number<Given...>) detail::refused
    sort(const X&, const Given&...) {
  static_assert(detail::takes<op::sort, detail::got<X>, detail::got<Given>...>,
                "[sort] expects an axis, and got a number: sort(x, axis<1>), or sort(x, axes{1}) "
                "where it is known only at run time");
  return {};
}
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::starts_with_number<Given...>) detail::refused
    argsort(const X&, const Given&...) {
  static_assert(detail::takes<op::argsort, detail::got<X>, detail::got<Given>...>,
                "[argsort] expects an axis, and got a number: argsort(x, axis<1>), or argsort(x, "
                "axes{1}) where it is known only at run time");
  return {};
}
/// @endcond

/// The Count largest elements along the last axis, in descending order, and their int64 indices:
/// for x of (?,10), `auto [values, indices] = top_k<3>(x)` are two tensors of (?,3). Of equal
/// elements the first ones come first; NaN is greater than any number. Throws invalid_argument if
/// there are not as many, in the run where only that knows.
template <std::int64_t Count, ext::expression X, class K = ext::kernels_for<X>>
auto top_k(const X& x, ext::source_location w = ext::here()) {
  if constexpr (!ext::typed_expression<X>) {
    return detail::add_top_k(any_tensor(x), Count, w);
  } else if constexpr (!detail::is_numeric_expression<X>) {
    static_assert(detail::takes<op::top_k, detail::got<X>>,
                  "[top_k] expects a tensor of numbers, and got bool or strings");
    return std::pair<detail::refused, detail::refused>();
  } else if constexpr (Count < 0 || !detail::top_shape<Count, ext::shape_type_of<X>>::possible) {
    static_assert(detail::takes<op::top_k, detail::got<X>, shape_t<Count>>,
                  "[top_k] expects as many elements along the last axis, and got fewer");
    return std::pair<detail::refused, detail::refused>();
  } else {
    using shape = detail::top_shape<Count, ext::shape_type_of<X>>;
    const auto of = detail::add_top_k(any_tensor(detail::any_lower<K>(x, w)), Count, w);
    return std::pair(ext::tensor_of<ext::value_type_of<X>, shape>(of.first.handle()),
                     ext::tensor_of<std::int64_t, shape>(of.second.handle()));
  }
}
/// The same of a number of elements known only at run time.
template <ext::expression X, class K = ext::kernels_for<X>>
auto top_k(const X& x, std::int64_t count, ext::source_location w = ext::here()) {
  const auto of = detail::add_top_k(any_tensor(detail::any_lower<K>(x, w)), count, w);
  if constexpr (ext::typed_expression<X>) {
    using shape = detail::some_of_rows<ext::shape_type_of<X>>;
    return std::pair(ext::tensor_of<ext::value_type_of<X>, shape>(of.first.handle()),
                     ext::tensor_of<std::int64_t, shape>(of.second.handle()));
  } else
    return of;
}

}  // namespace deft

template <class N>
auto deft::op::sort::grad(const N& n, any_tensor dz) {
  return detail::unsorted(dz, n.template out<1>(), n.template in<0>());
}
