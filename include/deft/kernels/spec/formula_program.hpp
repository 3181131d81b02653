// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/formula_program.hpp: the program that a plan makes of a formula.
#pragma once
#include <array>
#include <deft/expr/op_record.hpp>
#include <deft/graph/program.hpp>
#include <deft/kernels/spec/formulas.hpp>

namespace deft::ext {
namespace formula {

/// A value of a program that is being written.
struct written_value {
  program_builder* to;
  dtype type;
  program_builder::value value;
};
struct write_instruction {
  template <class Op, class... V>
  written_value operator()(Op, const written_value& first, const V&... more) const {
    const std::array<program_builder::value, 1 + sizeof...(V)> args{first.value, more.value...};
    return {first.to, first.type, first.to->apply(record_of<Op>, first.type, args)};
  }
};

}  // namespace formula

/// What a plan writes for F on elements of T. `Inputs`: operands that are inputs, where a literal
/// may be a tensor.
template <class F, class T, int Inputs = F::inputs>
const program_ref& program_of_formula() {
  static const program_ref& made = *new program_ref([] {
    constexpr dtype type = dtype_of<T>;
    program_builder b;
    formula::written_value in[F::operands], out[F::results];
    for (int k = 0; k < F::operands; ++k)
      in[k] = {&b, type, k < Inputs ? b.input(type) : b.immediate(type)};
    formula::run_in_registers<F, formula::write_instruction>(in, out);
    for (const auto& w : out) b.output(w.value, extent_class::element, false);
    return std::make_shared<const program>(canonical(*b.finish()));
  }());
  return made;
}

}  // namespace deft::ext
