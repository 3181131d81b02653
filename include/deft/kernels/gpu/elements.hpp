// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/elements.hpp: an expression's type as device code: each thread evaluates it for
// a few elements that follow each other.
#pragma once
#include <algorithm>
#include <array>
#include <deft/kernels/gpu/cuda_lane.hpp>
#include <deft/kernels/gpu/groups.hpp>
#include <deft/kernels/gpu/stream.hpp>
#include <deft/kernels/spec/expression_eval.hpp>

namespace deft::ext::gpu {

/// Dtypes of X's inputs, and of its literals, in order.
template <class... T>
struct type_list {};
template <class... A, class... B>
type_list<A..., B...> operator+(type_list<A...>, type_list<B...>);
template <class X>
struct operands_of;
template <class T, class Shape>
struct operands_of<deft::detail::leaf<T, Shape>> {
  using inputs = type_list<T>;
  using literals = type_list<>;
};
template <class T>
struct operands_of<deft::detail::literal_leaf<T>> {
  using inputs = type_list<>;
  using literals = type_list<T>;
};
template <class Op, class... A>
struct operands_of<call<Op, A...>> {
  using inputs = decltype((typename operands_of<A>::inputs() + ...));
  using literals = decltype((typename operands_of<A>::literals() + ...));
};

/// Where each of K operands has the element of a result's number. What arrays without outer levels
/// need comes first: a launch finds its parameters in no cache, and waits for each line of them.
template <int K>
struct places {
  int levels = 1;
  std::uint32_t broadcast = 0;             ///< a bit for each operand that has one element a row
  std::int64_t inner[K > 0 ? K : 1] = {};  ///< elements from one to the next
  divider extents[max_rank];               ///< of inner levels first
  std::int64_t outer[max_rank][K > 0 ? K : 1] = {};  ///< likewise, of the levels around the first

  places() = default;
  explicit places(const row_layout& l, std::span<const tensor_type> in) {
    const auto extent = l.extents();
    levels = l.levels();
    for (int level = 0; level < levels; ++level) {
      const std::size_t i = extent.size() - 1 - static_cast<std::size_t>(level);
      if (level + 1 < levels) extents[level] = divider(extent[i]);
      auto& steps = level == 0 ? inner : outer[level - 1];
      for (std::size_t k = 0; k < in.size(); ++k)
        steps[k] = l.steps(k)[i] / static_cast<std::int64_t>(size_of_dtype(in[k].type));
    }
    for (std::size_t k = 0; k < in.size(); ++k)
      if (inner[k] == 0) broadcast |= 1u << k;
  }

  DEFT_HD void find(std::int64_t element, std::int64_t (&at)[K]) const {
    const std::int64_t column = levels == 1 ? element : extents[0].cut(element);
    for (int k = 0; k < K; ++k) at[k] = column * inner[k];
    for (int level = 1; level < levels; ++level) {
      const std::int64_t i = level + 1 == levels ? element : extents[level].cut(element);
      for (int k = 0; k < K; ++k) at[k] += i * outer[level - 1][k];
    }
  }
};

/// Literals: an address where a run has each, or where that is null, to_immediate's bits.
template <int L>
struct literal_operands {
  const void* at[L];
  std::int64_t bits[L];
};
template <>
struct literal_operands<0> {};

/// Reads `left` elements at most, or one that is broadcast: copies take the place of what is
/// missing.
template <class T, int N>
DEFT_HD void read_group(group<T, N>& to, const T* from, bool broadcast, std::int64_t left) {
  if (broadcast) {
    const T one = *from;
    for (int u = 0; u < N; ++u) to.v[u] = one;
  } else if (left >= N) {
    to = *reinterpret_cast<const group<T, N>*>(from);
  } else {
    for (int u = 0; u < N; ++u) to.v[u] = from[u < left ? u : 0];
  }
}
template <class T, int N>
DEFT_HD void write_group(T* to, const group<T, N>& from, std::int64_t left) {
  if (left >= N)
    *reinterpret_cast<group<T, N>*>(to) = from;
  else
    for (int u = 0; u < N; ++u)  // no variable index: registers have none
      if (u < left) to[u] = from.v[u];
}

/// X's operands, and its values for N elements that follow each other.
template <class X, int N, class Inputs = typename operands_of<X>::inputs,
          class Literals = typename operands_of<X>::literals>
struct evaluated;
template <class X, int N, class... In, class... Lit>
struct evaluated<X, N, type_list<In...>, type_list<Lit...>> {
  using T = typename X::value_type;
  static constexpr int K = sizeof...(In), L = sizeof...(Lit);

  const void* in[K];
  literal_operands<L> literals;
  fault_report report;
  places<K> where;

  /// From element `first` on, of which there are `left`: copies of it take the place of what is
  /// missing.
  DEFT_HD group<T, N> values(std::int64_t first, std::int64_t left) const {
    return values(first, left, std::make_integer_sequence<int, K>(),
                  std::make_integer_sequence<int, L>());
  }

 private:
  template <int Nth, class U>
  struct slot {
    group<U, N> elements;
  };
  template <int Nth, class U>
  struct literal_slot {
    U value;
  };
  template <class Numbers, class LiteralNumbers>
  struct slots;
  template <int... Nth, int... J>
  struct slots<std::integer_sequence<int, Nth...>, std::integer_sequence<int, J...>>
      : slot<Nth, In>..., literal_slot<J, Lit>... {};

  template <int Nth, class U>
  static DEFT_HD slot<Nth, U>& pick(slot<Nth, U>& s) {
    return s;
  }
  template <int J, class U>
  static DEFT_HD literal_slot<J, U>& pick_literal(literal_slot<J, U>& s) {
    return s;
  }

  /// How an expression's type reads what was loaded: element `u` of each operand.
  struct loaded {
    template <class U, int Nth>
    static DEFT_HD number<lane_type<U>> load(const slot<Nth, U>& s, int u) {
      return s.elements.v[u];
    }
    template <class U, int J>
    static DEFT_HD number<lane_type<U>> load_literal(const literal_slot<J, U>& s, int) {
      return s.value;
    }
    template <class Op, class... V>
    static DEFT_HD auto apply(const V&... v) {
      return Op()(num::cast<lane_type<num::element_t<V>>>(v)...);
    }
  };

  template <int Nth, class U>
  DEFT_HD void load(slot<Nth, U>& s, std::int64_t at, std::int64_t left) const {
    read_group(s.elements, static_cast<const U*>(in[Nth]) + at, (where.broadcast >> Nth & 1) != 0,
               left);
  }
  template <int J, class U>
  DEFT_HD void load_literal(literal_slot<J, U>& s) const {
    const void* const at = literals.at[J];
    s.value = at ? *static_cast<const U*>(at) : from_immediate<U>(literals.bits[J]);
  }

  template <int... Nth, int... J>
  DEFT_HD group<T, N> values(std::int64_t first, std::int64_t left,
                             std::integer_sequence<int, Nth...> inputs,
                             std::integer_sequence<int, J...> numbers) const {
    std::int64_t at[K];
    where.find(first, at);
    slots<decltype(inputs), decltype(numbers)> r;
    (load(pick<Nth>(r), at[Nth], left), ...);
    (load_literal(pick_literal<J>(r)), ...);
    group<T, N> result;
    lane_fault fault = lane_fault::none;
    for (int u = 0; u < N; ++u) {
      const auto y = deft::detail::evaluation<X, loaded, 0, 0>::run(r, u);
      result.v[u] = static_cast<T>(y.v);
      if (y.fault != lane_fault::none) fault = y.fault;
    }
    if (fault != lane_fault::none)
      report(fault == lane_fault::div ? fault_kind::divided : fault_kind::remainder);
    return result;
  }
};

/// X on the elements of arrays. N: elements of a thread.
template <class X, int N>
struct elements {
  using T = typename X::value_type;

  T* out;
  std::int64_t count;
  evaluated<X, N> of;

  DEFT_HD void operator()(std::int64_t number) const {
    const std::int64_t first = number * N, left = count - first;
    write_group(out + first, of.values(first, left), left);
  }
};

}  // namespace deft::ext::gpu
