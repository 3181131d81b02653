// SPDX-License-Identifier: Apache-2.0
// deft/op/base/pooling.hpp: what max_pool and avg_pool share.
#pragma once
#include <deft/op/base/windows.hpp>

namespace deft::op {

/// Windows over each channel of images (batch, height, width, channels).
struct pooling {
  dims window{1, 1}, stride{1, 1};
  bool same = false;  ///< padding_mode::same
  static constexpr auto fields =
      field_list(field{"window", &pooling::window}, field{"stride", &pooling::stride},
                 field{"same", &pooling::same});

  constexpr window_fault shape(const dims& x, dims& out) const {
    if (window.n != 2) return window_fault::window_rank;
    if (window.contains(dyn)) return window_fault::extent;
    return window_shape(x, window, stride, same, x.n == 4 ? x.e[3] : 0, out);
  }
  /// The type of the result; throws invalid_argument in the name of `op`.
  tensor_type checked(std::string_view op, const tensor_type& x) const;
  /// The same for a gradient, which also takes the result's.
  void expect(std::string_view op, const tensor_type& x, const tensor_type& dz) const;
};

}  // namespace deft::op

namespace deft {

/// Window, stride and padding known only at run time.
struct pool_options {
  dims window;       ///< along height and width
  dims stride = {};  ///< the window's extents if empty
  padding_mode padding = padding_mode::valid;
};

namespace detail {

template <class X, class Window, class Stride, bool Same>
struct pooled : typed_shape<pooled<X, Window, Stride, Same>> {
  static constexpr op::window_fault apply(dims& out) {
    return op::pooling{Window::value, Stride::value, Same}.shape(X::value, out);
  }
  static constexpr bool make(dims& out) { return apply(out) == op::window_fault::none; }
  static constexpr op::window_fault fault = [] {
    dims d;
    return apply(d);
  }();
};

/// Whether what follows the images is neither a window, stride and padding nor options.
template <class... Given>
inline constexpr bool no_windows = sizeof...(Given) == 0 || starts_with_move<Given...> ||
                                   (number_or_text<Given> || ...);
template <int Height, int Width, class Second, class... More>
inline constexpr bool no_windows<window_t<Height, Width>, Second, More...> =
    number_or_text<Second> || (number_or_text<More> || ...) || starts_with_window<Second>;
template <int Height, int Width, padding_mode P, class Third, class... More>
inline constexpr bool no_windows<window_t<Height, Width>, padding_t<P>, Third, More...> =
    number_or_text<Third> || starts_with_move<Third>;
template <class Op>
Op pooling_of(const dims& window, const dims& stride, bool same) {
  Op o;
  static_cast<op::pooling&>(o) = {window, stride, same};
  return o;
}
template <class Op>
Op pooling_of(const pool_options& p) {
  return pooling_of<Op>(p.window, p.stride.empty() ? p.window : p.stride,
                        p.padding == padding_mode::same);
}

template <class Op, class K, class Window, class Stride, bool Same, class X>
auto pool(const X& x, source_location w) {
  constexpr bool largest = Op::name == "max_pool";
  const Op o = pooling_of<Op>(Window::value, Stride::value, Same);
  if constexpr (typed_expression<X>) {
    if constexpr (!is_floating_expression<X>) {
      if constexpr (largest)
        static_assert(takes<Op, got<X>>,
                      "[max_pool] expects float or double, and got another dtype: use "
                      "cast<float>(x)");
      else
        static_assert(takes<Op, got<X>>,
                      "[avg_pool] expects float or double, and got another dtype: use "
                      "cast<float>(x)");
      return refused();
    } else if constexpr (!is_images<X>) {
      if constexpr (largest)
        static_assert(takes<Op, got<X>>,
                      "[max_pool] expects images (batch, height, width, channels), and got another "
                      "rank: use reshape");
      else
        static_assert(takes<Op, got<X>>,
                      "[avg_pool] expects images (batch, height, width, channels), and got another "
                      "rank: use reshape");
      return refused();
    } else if constexpr (pooled<shape_type_of<X>, Window, Stride, Same>::fault ==
                         op::window_fault::stride) {
      if constexpr (largest)
        static_assert(takes<Op, Stride>,
                      "[max_pool] expects a stride of 1 or more, and got another");
      else
        static_assert(takes<Op, Stride>,
                      "[avg_pool] expects a stride of 1 or more, and got another");
      return refused();
    } else if constexpr (pooled<shape_type_of<X>, Window, Stride, Same>::fault !=
                         op::window_fault::none) {
      if constexpr (largest)
        static_assert(takes<Op, got<X>, Window>,
                      "[max_pool] expects windows that fit into the images, and got others: use "
                      "padding::same if they are larger");
      else
        static_assert(takes<Op, got<X>, Window>,
                      "[avg_pool] expects windows that fit into the images, and got others: use "
                      "padding::same if they are larger");
      return refused();
    } else
      return apply_typed<value_type_of<X>, pooled<shape_type_of<X>, Window, Stride, Same>, K>(o, w,
                                                                                              x);
  } else
    return apply<K>(o, w, x);
}

/// The gradient `To` of a pooling: of dz and x.
template <class To>
any_tensor pool_gradient(const op::pooling& o, const any_tensor& dz, const any_tensor& x) {
  const output in[] = {dz.handle(), x.handle()};
  return apply_any(pooling_of<To>(o.window, o.stride, o.same), in, {});
}

}  // namespace detail
}  // namespace deft
