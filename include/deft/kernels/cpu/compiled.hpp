// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/compiled.hpp: the kernel of an expression type, a loop over packs that evaluates
// the whole tree in registers.
#pragma once
#include <deft/kernels/compiled_row_registry.hpp>
#include <deft/kernels/cpu/pack.hpp>
#include <deft/kernels/spec/expression_eval.hpp>
#include <deft/kernels/spec/op_as_expression.hpp>
#include <deft/kernels/spec/reducers.hpp>

namespace deft::ext {
namespace cpu {

using deft::detail::inputs_in;
using deft::detail::is_call;
using deft::detail::is_leaf;
using deft::detail::leaf;
using deft::detail::literals_in;
using deft::detail::single_call;

/// The sizes of the elements that X computes with, as bits: 1, 2, 4 and 8.
template <class X>
inline constexpr int element_sizes = static_cast<int>(sizeof(typename X::value_type));
template <class Op, class... A>
inline constexpr int element_sizes<call<Op, A...>> =
    (element_sizes<A> | ... | static_cast<int>(sizeof(typename call<Op, A...>::value_type)));

/// Lanes of X's packs: a register full of its 4-byte elements, else of its 8-byte ones. Narrower
/// elements fill a part of a register, wider ones several.
template <class X>
inline constexpr int lanes_of = register_bytes / (element_sizes<X> & 4   ? 4
                                                  : element_sizes<X> & 8 ? 8
                                                  : element_sizes<X> & 2 ? 2
                                                                         : 1);

/// Packs that the inner loop evaluates at a time: fewer where one is a long computation already.
template <class X>
inline constexpr int unroll_of = 4;
template <class Op, class... A>
inline constexpr int unroll_of<call<Op, A...>> =
    std::min({Op::typing_rule == typing::floating ? 2 : 4, unroll_of<A>...});

/// Masks become values where an operation computes with them, and types of 16 bits floats.
template <class V>
auto as_value(const V& v) {
  if constexpr (is_mask<V>)
    return to_bools(v);
  else
    return num::cast<lane_type<num::element_t<V>>>(v);
}
/// What is stored as T.
template <class T, class V>
auto as_result(const V& v) {
  if constexpr (is_mask<V>)
    return to_bools(v);
  else
    return num::cast<T>(v);
}

// From here to `row_kernel::single` nothing is forced inline one by one: g++ orders its work so
// that a function is ready when its callers are flattened, but ignores calls from functions forced
// inline to others, such as the bodies of operations.

/// Op's body on packs.
template <class Op, class V, class... Rest>
auto apply(const V& v, const Rest&... rest) {
  constexpr typing rule = Op::typing_rule;
  if constexpr (rule == typing::select)
    return Op()(v, as_value(rest)...);
  else if constexpr (rule == typing::logical && (std::is_same_v<V, Rest> && ...))
    return Op()(v, rest...);
  else
    return Op()(as_value(v), as_value(rest)...);
}

/// How expressions are evaluated on packs: `at` holds the operands' addresses; `u` counts packs
/// from there.
template <int L>
struct packs {
  template <class T, int K>
  static auto load(const char* const* at, int u) {
    return as_value(cpu::load<T, L>(reinterpret_cast<const T*>(at[K]) + u * L));
  }
  template <class T, int K>
  static auto load_literal(const char* const* at, int) {
    return as_value(cpu::load<T, L>(reinterpret_cast<const T*>(at[K])));
  }
  template <class Op, class... V>
  static auto apply(const V&... v) {
    return cpu::apply<Op>(v...);
  }
};

template <class X, int L, int In, int Lit>
using evaluation = deft::detail::evaluation<X, packs<L>, In, Lit>;

/// Bytes of an element of each operand of X, inputs first.
template <class X>
struct operand_sizes {
  static constexpr int inputs = inputs_in<X>, count = inputs_in<X> + literals_in<X>;
  unsigned char of[std::size_t{count}] = {};
  constexpr operand_sizes() {
    int in = 0, lit = inputs;
    visit(static_cast<const X*>(nullptr), in, lit);
  }

 private:
  template <class T, class Shape>
  constexpr void visit(const leaf<T, Shape>*, int& in, int&) {
    of[in++] = sizeof(T);
  }
  template <class T>
  constexpr void visit(const deft::detail::literal_leaf<T>*, int&, int& lit) {
    of[lit++] = sizeof(T);
  }
  template <class Op, class... A>
  constexpr void visit(const call<Op, A...>*, int& in, int& lit) {
    (visit(static_cast<const A*>(nullptr), in, lit), ...);
  }
};

/// The operands of X while a row is computed from left to right.
template <class X>
struct operand_walk {
  static constexpr int inputs = inputs_in<X>, operands = inputs + literals_in<X>;
  static constexpr operand_sizes<X> sizes{};

  /// Unrolled here: at -O2 the compiler would loop over the operands within the loop over packs.
  template <class F>
  static DEFT_ALWAYS_INLINE void each_operand(F f) {
    [&]<int... K>(std::integer_sequence<int, K...>) DEFT_INLINED {
      (f(std::integral_constant<int, K>()), ...);
    }
    (std::make_integer_sequence<int, operands>());
  }
  /// Not as a part of a vector: that would wait until the stores that wrote it have ended.
  template <class P, class From>
  static DEFT_ALWAYS_INLINE P read_alone(From* from) {
    return static_cast<P>(*static_cast<From volatile*>(from));
  }
  /// Addresses at the row's beginning, and how many bytes each goes on with `elements`.
  static DEFT_ALWAYS_INLINE void begin(const row_call& c, int elements, const char** at,
                                       std::uintptr_t* step) {
    each_operand([&](auto k) DEFT_INLINED {
      at[k] = read_alone<const char*>(&c.in[k]);
      if constexpr (k < inputs)
        step[k] = read_alone<std::uintptr_t>(&c.mask[k]) &
                  (static_cast<std::uintptr_t>(elements) * sizes.of[k]);
    });
  }
  /// Copies that nothing is written over stay in registers.
  template <int L, class Copies>
  static DEFT_ALWAYS_INLINE void keep_literals(const char** at, Copies& copies) {
    each_operand([&](auto k) DEFT_INLINED {
      if constexpr (k >= inputs) {
        std::memcpy(copies[k - inputs], at[k], L * sizes.of[k]);
        at[k] = copies[k - inputs];
      }
    });
  }
  static DEFT_ALWAYS_INLINE void advance(const char** at, const std::uintptr_t* step) {
    each_operand([&](auto k) DEFT_INLINED {
      if constexpr (k < inputs) at[k] += step[k];
    });
  }
  static DEFT_ALWAYS_INLINE void go_on(const char** at, const std::int64_t* distance) {
    each_operand([&](auto k) DEFT_INLINED {
      if constexpr (k < inputs) at[k] += distance[k];
    });
  }
};

/// What finish_row has to know of an expression.
struct row_shape {
  /// Computes pack `u` from where the operands begin.
  void (*single)(void* out, const char* const* at, int u);
  const unsigned char* sizes;  ///< bytes of an element of each operand
  int inputs, operands;
  std::size_t result_size;  ///< bytes of an element
};
/// The end of a row, from element `done` on, a pack of L lanes at a time; the last one padded by
/// copies of an element, so that its lanes go the same way as all others and raise no error of
/// their own. `Size`: bytes of an element of all operands and of the result; 0: they differ. There
/// is room in `at` for an address of each operand, and in `padded` for a pack of each and of the
/// result. Compiled once, as it would be half of what each expression takes to compile.
template <int L, int Size>
void finish_row(const row_call& c, std::int64_t done, const row_shape& s, const char** at,
                char (*padded)[std::size_t{L * (Size ? Size : 8)}]);

/// The row kernel of X.
template <class X>
struct row_kernel : operand_walk<X> {
  using T = typename X::value_type;
  using walk = operand_walk<X>;
  static constexpr int inputs = walk::inputs, operands = walk::operands;
  static constexpr const auto& sizes = walk::sizes;
  static constexpr int L = lanes_of<X>, unroll = unroll_of<X>;

  static DEFT_FLATTEN void run(const row_call& c) {
    const char* at[std::size_t{operands}];
    std::uintptr_t step[std::size_t{inputs}];  // bytes for one time round the loop
    alignas(64) char literals[std::size_t{operands - inputs + 1}][std::size_t{L * 8}];
    walk::begin(c, unroll * L, at, step);
    walk::template keep_literals<L>(at, literals);
    T* out = static_cast<T*>(c.out);
    std::int64_t left = c.n;
    for (; left >= unroll * L; left -= unroll * L, out += unroll * L) {
      one(out, at, 0);
      one(out + L, at, 1);
      if constexpr (unroll == 4) {
        one(out + 2 * L, at, 2);
        one(out + 3 * L, at, 3);
      }
      walk::advance(at, step);
    }
    if (left > 0) finish(c, c.n - left);
  }

 private:
  static void one(T* out, const char* const* at, int u) {
    store(out, as_result<T>(evaluation<X, L, 0, inputs>::run(at, u)));
  }
  static DEFT_FLATTEN void single(void* out, const char* const* at, int u) {
    one(static_cast<T*>(out), at, u);
  }
  static void finish(const row_call& c, std::int64_t done) {
    const char* at[std::size_t{operands}];
    constexpr int size = element_sizes<X> == sizeof(T) ? int{sizeof(T)} : 0;
    alignas(64) char padded[std::size_t{operands + 1}][std::size_t{L * (size ? size : 8)}];
    finish_row<L, size>(c, done, {&single, sizes.of, inputs, operands, sizeof(T)}, at, padded);
  }
};

/// The row kernel of X and what it asks of its operands.
template <class X>
inline constexpr compiled_row row_of{&row_kernel<X>::run, unroll_of<X>* lanes_of<X>};

/// X folded by F where it is computed: into the lanes of row_reduction.hpp, in its order.
template <class X, class F>
struct fold_kernel {
  using T = typename X::value_type;
  using walk = operand_walk<X>;
  static constexpr int L = lanes_of<X>, W = fold_lanes<T>, packs = W / L;

  static DEFT_FLATTEN void run(const row_call& call) {
    const auto& c = static_cast<const fold_call&>(call);
    const char* at[std::size_t{walk::operands}];
    std::uintptr_t step[std::size_t{walk::inputs}];
    alignas(64) char literals[std::size_t{walk::operands - walk::inputs + 1}][std::size_t{L * 8}];
    walk::begin(c, W, at, step);
    walk::template keep_literals<L>(at, literals);
    T* out = static_cast<T*>(c.out);
    for (std::int64_t row = 0;; out += W) {
      pack<T, L> sum[std::size_t{packs}];
      each_pack([&](auto u) DEFT_INLINED { sum[u] = load<T, L>(out + u * L); });
      for (std::int64_t left = c.n; left > 0; left -= W) {
        each_pack([&](auto u) DEFT_INLINED {
          sum[u] = F::combine(sum[u], as_value(evaluation<X, L, 0, walk::inputs>::run(at, u)));
        });
        walk::advance(at, step);
      }
      each_pack([&](auto u) DEFT_INLINED { store(out + u * L, sum[u]); });
      if (++row == c.rows) return;
      walk::go_on(at, c.to_next);
    }
  }

 private:
  template <class G>
  static DEFT_ALWAYS_INLINE void each_pack(G g) {
    [&]<int... U>(std::integer_sequence<int, U...>) DEFT_INLINED {
      (g(std::integral_constant<int, U>()), ...);
    }
    (std::make_integer_sequence<int, packs>());
  }
};
template <class X, class F>
inline constexpr compiled_row fold_of{&fold_kernel<X, F>::run, fold_kernel<X, F>::W};

}  // namespace cpu
}  // namespace deft::ext
