// SPDX-License-Identifier: Apache-2.0
// deft/op/compute_in.hpp: products of floats that are computed in a type of 16 bits.
#pragma once
#include <deft/op/cast.hpp>

namespace deft {

namespace ext {

/// While it lives, what this thread writes is computed as compute_in says. Ends in the order of
/// scopes.
class [[nodiscard]] computing_scope {
 public:
  explicit computing_scope(dtype type);
  ~computing_scope();
  computing_scope(const computing_scope&) = delete;

 private:
  dtype before_;
};

}  // namespace ext

namespace detail {

/// The type of the innermost compute_in of this thread; none without one.
dtype computing_in_force();
/// `x` as operands are in that scope; a value of that type that was cast to float is taken as it
/// is.
any_tensor as_computed(const any_tensor& x, dtype type, source_location w);

/// `product(a, b)` of two lowered operands, in the type of compute_in where they are floats.
template <class F>
any_tensor computed(const any_tensor& a, const any_tensor& b, source_location w, F product) {
  const dtype type = computing_in_force();
  const auto is_float = [](const any_tensor& x) { return x.valid() && x.type() == dtype::float32; };
  if (type == dtype::none || !is_float(a) || !is_float(b)) return product(a, b);
  return cast(product(as_computed(a, type, w), as_computed(b, type, w)), dtype::float32, w);
}

}  // namespace detail

/// A scope in which products of float (`matmul` and what is made of it, `conv2d`) round their
/// operands and their result to T, bfloat16 or float16, and add in float. Types stay as they are
/// written; where the result of one product is the operand of another, it is not cast to float and
/// back. Their gradients are computed likewise. Variables stay float.
///
///     {
///       auto half = compute_in<bfloat16>();
///       hidden = relu(matmul(x, w1) + b1);
///     }
///
/// `compute_in<float>()` ends it for a scope inside.
template <class T>
ext::computing_scope compute_in() {
  static_assert(ext::is_half_type<T> || std::is_same_v<T, float>,
                "[compute_in] expects bfloat16 or float16, or float, which ends such a scope");
  return ext::computing_scope(ext::is_half_type<T> ? dtype_of<T> : dtype::none);
}

}  // namespace deft
