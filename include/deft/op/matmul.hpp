// SPDX-License-Identifier: Apache-2.0
// deft/op/matmul.hpp: products of matrices, of vectors and of batches of them, either operand
// transposed or not.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <tuple>

namespace deft::op {
struct matmul {
  static constexpr std::string_view name = "matmul";
  static constexpr int arity = 2;
  bool transpose_a = false;
  bool transpose_b = false;
  static constexpr auto fields = field_list(field{"transpose_a", &matmul::transpose_a},
                                            field{"transpose_b", &matmul::transpose_b});

  enum class fault { none, rank, inner, leading };
  /// The shape rule, at compile time and at run time: the last two axes are the matrices', those
  /// before them are broadcast.
  constexpr fault shape(const dims& a, const dims& b, dims& out) const {
    if (a.n < 2 || b.n < 2) return fault::rank;
    const std::int64_t inner_a = a.e[a.n - (transpose_a ? 2 : 1)],
                       inner_b = b.e[b.n - (transpose_b ? 1 : 2)];
    if (inner_a != inner_b && inner_a != dyn && inner_b != dyn) return fault::inner;
    if (!broadcast(leading(a), leading(b), out)) return fault::leading;
    out.push_back(a.e[a.n - (transpose_a ? 1 : 2)]);
    out.push_back(b.e[b.n - (transpose_b ? 2 : 1)]);
    return fault::none;
  }
  /// The same of a call, where a vector is a row in front and a column behind, and its axis of
  /// extent 1 is not in the result.
  constexpr fault shape_of_call(const dims& a, const dims& b, dims& out) const {
    if (transpose_a || transpose_b) return shape(a, b, out);
    const fault f = shape(as_row(a), as_column(b), out);
    if (f != fault::none) return f;
    if (a.n == 1) out = without_axis(out, out.n - 2);
    if (b.n == 1) out = without_axis(out, out.n - 1);
    return f;
  }
  static constexpr dims as_row(const dims& a) { return a.n == 1 ? dims{1, a.e[0]} : a; }
  static constexpr dims as_column(const dims& b) { return b.n == 1 ? dims{b.e[0], 1} : b; }
  /// The axes in front of a matrix.
  static constexpr dims leading(dims d) {
    for (int i = 0; i < 2; ++i) d.e[--d.n] = 0;
    return d;
  }
  /// The last leading axis on which the extents differ and none is 1, counted from the back.
  static constexpr int disagreeing_axis(const dims& a, const dims& b) {
    int i = 3;
    for (; i <= a.n && i <= b.n; ++i) {
      const std::int64_t x = a.e[a.n - i], y = b.e[b.n - i];
      if (x != y && x != 1 && y != 1 && x != dyn && y != dyn) break;
    }
    return -i;
  }

  /// The shape of the result. Throws invalid_argument if there is none.
  dims shape_checked(const dims& a, const dims& b) const;
  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
struct matmul_tn;  // only messages use these names
struct matmul_nt;
}  // namespace deft::op

namespace deft {

namespace detail {
/// The name in messages.
template <bool TA, bool TB>
using matmul_name =
    std::conditional_t<TA, op::matmul_tn, std::conditional_t<TB, op::matmul_nt, op::matmul>>;
template <bool TA, bool TB, class A, class B>
struct matmul_shape : typed_shape<matmul_shape<TA, TB, A, B>> {
  static constexpr op::matmul::fault apply(dims& out) {
    return op::matmul{TA, TB}.shape_of_call(A::value, B::value, out);
  }
  static constexpr bool make(dims& out) { return apply(out) == op::matmul::fault::none; }
  static constexpr op::matmul::fault fault = [] {
    dims d;
    return apply(d);
  }();
};

/// Adds a product, of vectors, too, if nothing is transposed.
any_tensor multiply(const op::matmul& o, const any_tensor& a, const any_tensor& b,
                    source_location w);
/// Those by both operands of a product, from that by its result.
std::tuple<any_tensor, any_tensor> product_gradients(const op::matmul& o, const any_tensor& a,
                                                     const any_tensor& b, const any_tensor& dz);

template <bool TA, bool TB, class K, class A, class B>
auto matmul(const A& a, const B& b, source_location w) {
  constexpr op::matmul o{TA, TB};
  if constexpr (typed_expression<A> && typed_expression<B>) {
    using SA = shape_type_of<A>;
    using SB = shape_type_of<B>;
    using name = matmul_name<TA, TB>;
    if constexpr (!one_value_type<A, B>) {
      static_assert(takes<name, got<A>, got<B>>,
                    "[matmul] expects operands of one dtype, and got two: use cast<T>(x)");
      return refused();
    } else if constexpr (has_strings<value_type_of<A>>) {
      static_assert(takes<name, got<A>, got<B>>,
                    "[matmul] is not defined for strings: == and != compare them");
      return refused();
    } else {
      using S = matmul_shape<TA, TB, SA, SB>;
      using fault = op::matmul::fault;
      if constexpr (S::fault == fault::rank && (TA || TB)) {
        static_assert(takes<name, got<A>, got<B>>,
                      "[matmul] expects matrices where one is transposed, or batches of them, and "
                      "got another rank: expand_dims(v, axis<1>) makes a matrix of a vector");
        return refused();
      } else if constexpr (S::fault == fault::rank) {
        static_assert(takes<name, got<A>, got<B>>,
                      "[matmul] expects vectors, matrices or batches of them, and got a scalar: "
                      "x * y multiplies each element by a number");
        return refused();
      } else if constexpr (S::fault == fault::inner) {
        static_assert(takes<name, got<A>, got<B>>,
                      "[matmul] expects equal inner extents, and got different ones");
        return refused();
      } else if constexpr (S::fault == fault::leading) {
        static_assert(takes<name, got<A>, got<B>, axis_t<o.disagreeing_axis(SA::value, SB::value)>>,
                      "[matmul] expects leading extents that are equal or 1, and got others: "
                      "axis_t says on which axis, counted from the back");
        return refused();
      } else {
        using R = tensor_of<value_type_of<A>, S>;
        return R(known_type(),
                 multiply(o, any_tensor(any_lower<K>(a, w)), any_tensor(any_lower<K>(b, w)), w)
                     .handle());
      }
    }
  } else if constexpr (std::same_as<A, refused> || std::same_as<B, refused>) {
    return refused();
  } else {
    return multiply(o, any_tensor(any_lower<K>(a, w)), any_tensor(any_lower<K>(b, w)), w);
  }
}
}  // namespace detail

/// The matrix product (m,k) x (k,n) -> (m,n) of operands of one dtype. Axes in front of the last
/// two are of a batch, and broadcast: (8,1,m,k) x (12,k,n) -> (8,12,m,n). A vector is a row in
/// front, (k) x (…,k,n) -> (…,n), and a column behind, (…,m,k) x (k) -> (…,m); two yield a scalar.
///
/// Where one matrix on the right is for many on the left, their rows are one matrix: (b,m,k) x
/// (k,n) is (b m,k) x (k,n). Other products of a batch have the bits that they have alone on the
/// CPU, except where an operand is transposed; on GPUs the library may choose another algorithm.
///
/// Operands that do not match are a compile error where the types show it; otherwise it throws
/// invalid_argument; for `dyn` extents the run does.
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
                "[matmul] expects two operands, and got one, or a number: x * 3 multiplies each "
                "element by a number");
  return {};
}
/// @endcond

namespace ext {

/// aT x b: (…,k,m) x (…,k,n) -> (…,m,n), without transposing in memory.
template <expression A, expression B, class K = kernels_for<A>>
auto matmul_tn(const A& a, const B& b, source_location w = here()) {
  return detail::matmul<true, false, K>(a, b, w);
}
/// a x bT: (…,m,k) x (…,n,k) -> (…,m,n), without transposing in memory.
template <expression A, expression B, class K = kernels_for<A>>
auto matmul_nt(const A& a, const B& b, source_location w = here()) {
  return detail::matmul<false, true, K>(a, b, w);
}

}  // namespace ext

/// The same with the last two axes of either operand transposed, as chosen at run time. Vectors are
/// taken where none is.
any_tensor matmul(const any_tensor& a, const any_tensor& b, bool transpose_a, bool transpose_b,
                  ext::source_location w = ext::here());

}  // namespace deft

template <class N>
auto deft::op::matmul::grad(const N& n, any_tensor dz) {
  return detail::product_gradients(n.attr(), n.template in<0>(), n.template in<1>(), dz);
}
