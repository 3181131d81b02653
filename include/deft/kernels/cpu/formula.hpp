// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/formula.hpp: the kernel of an optimizer's formula: all of its results in one
// loop over packs.
#pragma once
#include <deft/kernels/cpu/compiled.hpp>
#include <deft/kernels/spec/formula_program.hpp>

namespace deft::ext::cpu {

/// A row whose `out` is an address for each result, which may be that of an input.
template <class F, class T, int Inputs = F::inputs>
struct formula_kernel {
  static constexpr int L = register_bytes / sizeof(T);
  using P = pack<T, L>;

  static DEFT_FLATTEN void run(const row_call& c) {
    const T* at[Inputs];
    std::int64_t dense[Inputs];  // a mask of elements
    T* to[F::results];
    P in[F::operands], result[F::results];
    for (int k = 0; k < F::operands; ++k) {
      const T* from = static_cast<const T*>(c.in[k]);
      if (k < Inputs)
        at[k] = from, dense[k] = static_cast<std::int64_t>(c.mask[k]);
      else
        in[k] = load<T, L>(from);
    }
    for (int k = 0; k < F::results; ++k)
      to[k] = static_cast<T*>(static_cast<void* const*>(c.out)[k]);
    std::int64_t done = 0;
    for (; done + L <= c.n; done += L) {
      for (int k = 0; k < Inputs; ++k) in[k] = load<T, L>(at[k] + (done & dense[k]));
      compute(in, result);
      for (int k = 0; k < F::results; ++k) store(to[k] + done, result[k]);
    }
    const std::int64_t left = c.n - done;
    if (left == 0) return;
    // Padded by copies of an element: no lane raises an error of its own.
    for (int k = 0; k < Inputs; ++k) {
      const T* from = at[k] + (done & dense[k]);
      in[k] = dense[k] ? load_some<L>(from, left, *from) : broadcast<T, L>(*from);
    }
    compute(in, result);
    for (int k = 0; k < F::results; ++k)
      std::memcpy(to[k] + done, &result[k], static_cast<std::size_t>(left) * sizeof(T));
  }

 private:
  struct apply_to_packs {
    template <class Op, class... V>
    DEFT_ALWAYS_INLINE P operator()(Op, const V&... v) const {
      return cpu::apply<Op>(v...);
    }
  };
  static void compute(const P* in, P* result) {
    formula::run_in_registers<F, apply_to_packs>(in, result);
  }
};

template <class F, class T, int Inputs = F::inputs>
struct registered_formula {
  static inline const fused_registration entry{
      &program_of_formula<F, T, Inputs>,
      {&formula_kernel<F, T, Inputs>::run, formula_kernel<F, T, Inputs>::L}};
};

}  // namespace deft::ext::cpu
