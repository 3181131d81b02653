// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/expression_eval.hpp: evaluates an expression by its type, on packs of the CPU
// and on the lanes of a GPU.
#pragma once
#include <deft/expr/lower.hpp>

namespace deft::detail {

/// Evaluates X, whose first input is operand number `In` and first literal number `Lit`. `Values`
/// gives operands and applies operations: `load<T, K>(at, u)`, `load_literal<T, K>(at, u)` and
/// `apply<Op>(v...)`; the types and meaning of `at` and `u` are up to `Values`.
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

}  // namespace deft::detail
