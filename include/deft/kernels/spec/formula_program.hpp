// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/formula_program.hpp: the program that a plan makes of a formula
// (op/formulas.hpp).
#pragma once
#include <array>
#include <deft/expr/op_record.hpp>
#include <deft/graph/program.hpp>

namespace deft::ext {

/// What a plan writes for F on elements of T. `Inputs`: operands that are inputs, where a literal
/// may be a tensor.
template <class F, class T, int Inputs = F::inputs>
const program_ref& program_of_formula() {
  using value = program_builder::value;
  static const program_ref& made = *new program_ref([] {
    program_builder b;
    value in[F::operands], result[F::results];
    for (int k = 0; k < F::operands; ++k)
      in[k] = k < Inputs ? b.input(dtype_of<T>) : b.immediate(dtype_of<T>);
    F::run(
        [&]<class Op>(Op, auto... v) {
          return b.apply(record_of<Op>, dtype_of<T>, std::array<value, sizeof...(v)>{v...});
        },
        in, result);
    for (const value& r : result) b.output(r, extent_class::element, false);
    return std::make_shared<const program>(canonical(*b.finish()));
  }());
  return made;
}

}  // namespace deft::ext
