// SPDX-License-Identifier: Apache-2.0
// deft/op/matmul.hpp: products of matrices, either operand transposed or not.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct matmul {
  static constexpr std::string_view name = "matmul";
  static constexpr int arity = 2;
  bool transpose_a = false;
  bool transpose_b = false;
  static constexpr auto fields = field_list(field{"transpose_a", &matmul::transpose_a},
                                            field{"transpose_b", &matmul::transpose_b});

  /// The shape rule, at compile time and at run time; false if the inner extents differ.
  constexpr bool shape(const dims& a, const dims& b, dims& out) const {
    std::int64_t inner_a = a[transpose_a ? 0 : 1], inner_b = b[transpose_b ? 1 : 0];
    out = {a[transpose_a ? 1 : 0], b[transpose_b ? 0 : 1]};
    return inner_a == inner_b || inner_a == dyn || inner_b == dyn;
  }

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
struct matmul_tn;  // only messages use these names
struct matmul_nt;
}  // namespace deft::op

namespace deft {

namespace detail {
template <class A, class B>
inline constexpr bool matmul_takes = extents_of<A>.n == 2 && extents_of<B>.n == 2;
template <class A, class B>
inline constexpr bool same_value_type = std::is_same_v<value_type_of<A>, value_type_of<B>>;
/// The name in messages.
template <bool TA, bool TB>
using matmul_name =
    std::conditional_t<TA, op::matmul_tn, std::conditional_t<TB, op::matmul_nt, op::matmul>>;
template <bool TA, bool TB, class A, class B>
struct matmul_shape : typed_shape<matmul_shape<TA, TB, A, B>> {
  static constexpr bool make(dims& out) {
    return op::matmul{TA, TB}.shape(A::value, B::value, out);
  }
};
template <bool TA, bool TB, class A, class B>
inline constexpr bool inner_extents_agree = matmul_shape<TA, TB, A, B>::possible;

template <bool TA, bool TB, class K, class A, class B>
auto matmul(const A& a, const B& b, source_location w) {
  constexpr op::matmul o{TA, TB};
  if constexpr (typed_expression<A> && typed_expression<B>) {
    using SA = shape_type_of<A>;
    using SB = shape_type_of<B>;
    using name = matmul_name<TA, TB>;
    if constexpr (!same_value_type<A, B>) {
      static_assert(takes<name, got<A>, got<B>>,
                    "[matmul] expects operands of one dtype, and got two: use cast<T>(x)");
      return refused();
    } else if constexpr (has_strings<value_type_of<A>>) {
      static_assert(takes<name, got<A>, got<B>>,
                    "[matmul] is not defined for strings: == and != compare them");
      return refused();
    } else if constexpr (!matmul_takes<A, B>) {
      static_assert(takes<name, got<A>, got<B>>,
                    "[matmul] expects two matrices, and got another rank: use reshape, as in "
                    "reshape(v, shape<4, 1>)");
      return refused();
    } else if constexpr (!inner_extents_agree<TA, TB, SA, SB>) {
      static_assert(takes<name, got<A>, got<B>>,
                    "[matmul] expects equal inner extents, and got different ones");
      return refused();
    } else {
      using R = tensor_of<value_type_of<A>, matmul_shape<TA, TB, SA, SB>>;
      return R(detail::known_type(), detail::apply<K>(o, w, a, b).handle());
    }
  } else {
    return detail::apply<K>(o, w, a, b);
  }
}
}  // namespace detail

/// The matrix product (m,k) x (k,n) -> (m,n) of two matrices of one dtype. Operands that do not
/// match are a compile error where the types show it; otherwise it throws invalid_argument;
/// for `dyn` extents the run does.
template <ext::expression A, ext::expression B, class K = ext::kernels_for<A>>
auto matmul(const A& a, const B& b, ext::source_location w = ext::here()) {
  return detail::matmul<false, false, K>(a, b, w);
}
/// @cond refused
template <ext::operand A, ext::operand... B>
requires(sizeof...(B) == 0 ||
         (sizeof...(B) == 1 && (ext::scalar<A> || ... || ext::scalar<B>))) detail::refused
    matmul(const A&, const B&...) {
  static_assert(detail::takes<op::matmul, detail::got<A>, detail::got<B>...>,
                "[matmul] expects two matrices, and got one, or a number: x * 3 multiplies each "
                "element by a number");
  return {};
}
/// @endcond

namespace ext {

/// aT x b: (k,m) x (k,n) -> (m,n), without transposing in memory.
template <expression A, expression B, class K = kernels_for<A>>
auto matmul_tn(const A& a, const B& b, source_location w = here()) {
  return detail::matmul<true, false, K>(a, b, w);
}
/// a x bT: (m,k) x (n,k) -> (m,n), without transposing in memory.
template <expression A, expression B, class K = kernels_for<A>>
auto matmul_nt(const A& a, const B& b, source_location w = here()) {
  return detail::matmul<false, true, K>(a, b, w);
}

}  // namespace ext

/// The same with either operand transposed, as chosen at run time.
any_tensor matmul(const any_tensor& a, const any_tensor& b, bool transpose_a, bool transpose_b,
                  ext::source_location w = ext::here());

}  // namespace deft

template <class N>
auto deft::op::matmul::grad(const N& n, any_tensor dz) {
  auto a = n.template in<0>(), b = n.template in<1>();
  bool ta = n.attr().transpose_a, tb = n.attr().transpose_b;
  auto da = ta ? deft::matmul(b, dz, tb, true) : deft::matmul(dz, b, false, !tb);
  auto db = tb ? deft::matmul(dz, a, true, ta) : deft::matmul(a, dz, !ta, false);
  return std::tuple{da, db};
}
