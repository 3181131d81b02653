// SPDX-License-Identifier: Apache-2.0
// deft/execute/evaluation.hpp: the walk over an expression's type that evaluates it, on a
// processor's packs as on lanes of a GPU.
#pragma once
#include <deft/expr/lower.hpp>

namespace deft::detail {

/// Evaluates X, whose first input is operand number `In` and first literal number `Lit`. `Values`
/// gives operands and applies operations: `load<T, K>(at, u)`, `load_literal<T, K>(at, u)` and
/// `apply<Op>(v...)`; what `at` and `u` are is its own affair.
template <class X, class Values, int In, int Lit>
struct evaluation;

// Nothing here is forced inline: see cpu/compiled.hpp.

template <class T, class Shape, class Values, int In, int Lit>
struct evaluation<leaf<T, Shape>, Values, In, Lit> {
  template <class At>
  static DEFT_HD auto run(const At& at, int u) {
    return Values::template load<T, In>(at, u);
  }
};
template <class T, class Values, int In, int Lit>
struct evaluation<literal_leaf<T>, Values, In, Lit> {
  template <class At>
  static DEFT_HD auto run(const At& at, int u) {
    return Values::template load_literal<T, Lit>(at, u);
  }
};
template <class Op, class A, class Values, int In, int Lit>
struct evaluation<call<Op, A>, Values, In, Lit> {
  template <class At>
  static DEFT_HD auto run(const At& at, int u) {
    return Values::template apply<Op>(evaluation<A, Values, In, Lit>::run(at, u));
  }
};
template <class Op, class A, class B, class Values, int In, int Lit>
struct evaluation<call<Op, A, B>, Values, In, Lit> {
  template <class At>
  static DEFT_HD auto run(const At& at, int u) {
    constexpr int in = In + inputs_in<A>, lit = Lit + literals_in<A>;
    auto a = evaluation<A, Values, In, Lit>::run(at, u);
    return Values::template apply<Op>(a, evaluation<B, Values, in, lit>::run(at, u));
  }
};
template <class Op, class A, class B, class C, class Values, int In, int Lit>
struct evaluation<call<Op, A, B, C>, Values, In, Lit> {
  template <class At>
  static DEFT_HD auto run(const At& at, int u) {
    constexpr int in = In + inputs_in<A>, lit = Lit + literals_in<A>;
    auto a = evaluation<A, Values, In, Lit>::run(at, u);
    auto b = evaluation<B, Values, in, lit>::run(at, u);
    return Values::template apply<Op>(
        a, b, evaluation<C, Values, in + inputs_in<B>, lit + literals_in<B>>::run(at, u));
  }
};

template <class Op, class T>
auto call_alone() {
  static_assert(Op::arity >= 1 && Op::arity <= 3,
                "[operation] an elementwise operation has one to three operands");
  using L = leaf<T, shape_t<dyn>>;
  using First = leaf<std::conditional_t<Op::typing_rule == typing::select, bool, T>, shape_t<dyn>>;
  if constexpr (Op::arity == 1)
    return std::type_identity<call<Op, L>>();
  else if constexpr (Op::arity == 2)
    return std::type_identity<call<Op, L, L>>();
  else
    return std::type_identity<call<Op, First, L, L>>();
}
/// Op alone, on operands of T; a select's condition is bool.
template <class Op, class T>
using single_call = typename decltype(call_alone<Op, T>())::type;

/// The dtypes of operands that a typing rule takes, and those that an operation takes.
constexpr dtype_set types_of(typing rule) {
  dtype_set set;
  for (int t = 1; t < dtype_count; ++t)
    if (accepts(rule, static_cast<dtype>(t))) set = set | dtype_set{static_cast<dtype>(t)};
  return set;
}
template <class Op>
constexpr dtype_set operand_types() {
  if constexpr (requires { Op::typing_rule; })
    return types_of(Op::typing_rule);
  else
    return all_dtypes;  // cast
}

}  // namespace deft::detail
