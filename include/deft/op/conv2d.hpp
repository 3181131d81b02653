// SPDX-License-Identifier: Apache-2.0
// deft/op/conv2d.hpp: convolution of images with filters; and its gradients.
#pragma once
#include <deft/op/base/windows.hpp>
#include <deft/op/compute_in.hpp>

namespace deft::op {

/// What the operation and its gradients have in common.
struct convolution {
  dims stride{1, 1};
  bool same = false;  ///< padding_mode::same
  static constexpr auto fields =
      field_list(field{"stride", &convolution::stride}, field{"same", &convolution::same});

  /// The shape rule: x (batch, height, width, channels), filter (height, width, channels, outputs).
  constexpr window_fault shape(const dims& x, const dims& filter, dims& out) const {
    if (x.n != 4) return window_fault::rank;
    if (filter.n != 4) return window_fault::window_rank;
    if (x.e[3] != filter.e[2] && x.e[3] != dyn && filter.e[2] != dyn) return window_fault::channels;
    return window_shape(x, {filter.e[0], filter.e[1]}, stride, same, filter.e[3], out);
  }
  /// The type of the result; throws invalid_argument in the name of `op`.
  tensor_type checked(std::string_view op, const tensor_type& x, const tensor_type& filter) const;
  /// The same for a gradient, which also takes the result's.
  void expect(std::string_view op, const tensor_type& x, const tensor_type& filter,
              const tensor_type& dz) const;
};

struct conv2d : convolution {
  static constexpr std::string_view name = "conv2d";
  static constexpr int arity = 2;  ///< x, filter

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};

/// The gradient of conv2d by x. Of the third input only the shape is used.
struct conv2d_input_gradient : convolution {
  static constexpr std::string_view name = "conv2d_input_gradient";
  static constexpr int arity = 3;  ///< dz, filter, x

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};

/// The gradient of conv2d by the filter. Of the third input only the shape is used.
struct conv2d_filter_gradient : convolution {
  static constexpr std::string_view name = "conv2d_filter_gradient";
  static constexpr int arity = 3;  ///< dz, x, filter

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

/// Stride and padding known only at run time.
struct conv2d_options {
  dims stride{1, 1};                           ///< along height and width
  padding_mode padding = padding_mode::valid;  ///< whether zeros are added around the images
};

namespace detail {
template <class X, class F>
inline constexpr bool convolves_floats = is_floating_expression<X>&& is_floating_expression<F>;
template <class X, class F>
inline constexpr bool convolves_one_dtype = std::is_same_v<value_type_of<X>, value_type_of<F>>;
template <class X, class F>
inline constexpr bool convolves_images = is_images<X>&& is_images<F>;
template <class X, class F, class Stride, bool Same>
struct convolved : typed_shape<convolved<X, F, Stride, Same>> {
  static constexpr op::window_fault apply(dims& out) {
    return op::convolution{Stride::value, Same}.shape(X::value, F::value, out);
  }
  static constexpr bool make(dims& out) { return apply(out) == op::window_fault::none; }
  static constexpr op::window_fault fault = [] {
    dims d;
    return apply(d);
  }();
};
}  // namespace detail

/// The convolution (in fact the correlation) of images x (batch, height, width, channels) with
/// filters (height, width, channels, outputs), both float or double:
namespace detail {
template <class K, class X, class F>
auto convolve(const op::conv2d& o, const X& x, const F& filter, source_location w) {
  if constexpr (std::same_as<X, refused> || std::same_as<F, refused>)
    return refused();
  else
    return computed(any_tensor(any_lower<K>(x, w)), any_tensor(any_lower<K>(filter, w)), w,
                    [&](const any_tensor& a, const any_tensor& b) {
                      const output in[] = {a.unchecked(), b.unchecked()};
                      return apply_any(o, in, w);
                    });
}
}  // namespace detail

/// y(b,i,j,k) = sum of x(b, i*stride+r, j*stride+s, c) * filter(r,s,c,k) over r, s and c.
/// `conv2d(x, w, padding::same)`, `conv2d(x, w, stride<2>, padding::valid)`; without padding the
/// filter must fit into the image. Padding is divided as by TensorFlow: with an odd number of
/// zeros, the last row or column has one more. Throws invalid_argument where the shapes do not
/// match; for `dyn` extents the run does.
template <ext::expression X, ext::expression F, int Height, int Width,
          padding_mode P = padding_mode::valid, class K = ext::kernels_for<X>>
auto conv2d(const X& x, const F& filter, stride_t<Height, Width>, padding_t<P> = {},
            ext::source_location w = ext::here()) {
  using stride = stride_t<Height, Width>;
  op::conv2d o;
  o.stride = stride::value;
  o.same = padding_t<P>::same;
  if constexpr (ext::typed_expression<X> && ext::typed_expression<F>) {
    using detail::got;
    using detail::takes;
    if constexpr (!detail::convolves_floats<X, F>) {
      static_assert(takes<op::conv2d, got<X>, got<F>>,
                    "[conv2d] expects float or double, and got another dtype: use cast<float>(x)");
      return detail::refused();
    } else if constexpr (!detail::convolves_one_dtype<X, F>) {
      static_assert(takes<op::conv2d, got<X>, got<F>>,
                    "[conv2d] expects operands of one dtype, and got two: use cast<T>(x)");
      return detail::refused();
    } else if constexpr (!detail::convolves_images<X, F>) {
      static_assert(takes<op::conv2d, got<X>, got<F>>,
                    "[conv2d] expects images (batch, height, width, channels) and filters (height, "
                    "width, channels, outputs), and got another rank: use reshape");
      return detail::refused();
    } else {
      using shape = detail::convolved<ext::shape_type_of<X>, ext::shape_type_of<F>, stride,
                                      P == padding::same>;
      if constexpr (shape::fault == op::window_fault::channels) {
        static_assert(takes<op::conv2d, got<X>, got<F>>,
                      "[conv2d] expects filters of as many channels as the images have, and got "
                      "another number");
        return detail::refused();
      } else if constexpr (shape::fault == op::window_fault::stride) {
        static_assert(takes<op::conv2d, stride>,
                      "[conv2d] expects a stride of 1 or more, and got another");
        return detail::refused();
      } else if constexpr (shape::fault != op::window_fault::none) {
        static_assert(takes<op::conv2d, got<X>, got<F>, stride>,
                      "[conv2d] expects filters that fit into the images, and got larger ones: use "
                      "padding::same");
        return detail::refused();
      } else
        return ext::tensor_of<ext::value_type_of<X>, shape>(
            detail::convolve<K>(o, x, filter, w).handle());
    }
  } else
    return detail::convolve<K>(o, x, filter, w);
}
/// The same with a stride of 1.
template <ext::expression X, ext::expression F, padding_mode P = padding_mode::valid,
          class K = ext::kernels_for<X>>
auto conv2d(const X& x, const F& filter, padding_t<P> p = {},
            ext::source_location w = ext::here()) {
  return conv2d<X, F, 1, 1, P, K>(x, filter, stride<1>, p, w);
}
/// The same with stride and padding known only at run time:
/// `conv2d(x, w, {.stride = {2, 2}, .padding = padding::same})`.
template <ext::expression X, ext::expression F, class K = ext::kernels_for<X>>
any_tensor conv2d(const X& x, const F& filter, const conv2d_options& options,
                  ext::source_location w = ext::here()) {
  op::conv2d o;
  o.stride = options.stride;
  o.same = options.padding == padding_mode::same;
  return detail::convolve<K>(o, x, filter, w);
}

/// @cond refused
template <ext::expression X, ext::expression F, class... Given>
requires(detail::number_or_text<Given> || ...) detail::refused
    conv2d(const X&, const F&, const Given&...) {
  static_assert(detail::takes<op::conv2d, detail::got<X>, detail::got<F>, Given...>,
                "[conv2d] expects stride and padding as in conv2d(x, w, stride<2>, padding::same), "
                "and got a number or text");
  return {};
}
/// @endcond

}  // namespace deft

namespace deft::detail {
/// A node of `To`, with the attributes of `o`.
template <class To>
any_tensor convolve(const op::convolution& o, const any_tensor& a, const any_tensor& b,
                    const any_tensor& like) {
  const output in[] = {a.handle(), b.handle(), like.handle()};
  To to;
  static_cast<op::convolution&>(to) = o;
  return apply_any(to, in, {});
}
inline conv2d_options options_of(const op::convolution& o) {
  return {o.stride, o.same ? padding_mode::same : padding_mode::valid};
}
}  // namespace deft::detail

template <class N>
auto deft::op::conv2d::grad(const N& n, any_tensor dz) {
  const any_tensor x = n.template in<0>(), filter = n.template in<1>();
  return std::tuple{detail::convolve<conv2d_input_gradient>(n.attr(), dz, filter, x),
                    detail::convolve<conv2d_filter_gradient>(n.attr(), dz, x, filter)};
}
template <class N>
auto deft::op::conv2d_input_gradient::grad(const N& n, any_tensor dx) {
  const any_tensor dz = n.template in<0>(), filter = n.template in<1>();
  return std::tuple{deft::conv2d(dx, filter, detail::options_of(n.attr())),
                    detail::convolve<conv2d_filter_gradient>(n.attr(), dz, dx, filter),
                    any_tensor()};
}
template <class N>
auto deft::op::conv2d_filter_gradient::grad(const N& n, any_tensor df) {
  const any_tensor dz = n.template in<0>(), x = n.template in<1>();
  return std::tuple{deft::conv2d(x, df, detail::options_of(n.attr())),
                    detail::convolve<conv2d_input_gradient>(n.attr(), dz, df, x), any_tensor()};
}
