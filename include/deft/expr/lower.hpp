// SPDX-License-Identifier: Apache-2.0
// deft/expr/lower.hpp: from a typed expression to one fused node of the graph.
#pragma once
#include <array>
#include <deft/expr/call.hpp>

namespace deft {

namespace detail {

template <class X>
inline constexpr int inputs_in = 0;
template <class T, class Shape>
inline constexpr int inputs_in<leaf<T, Shape>> = 1;
template <class Op, class... A>
inline constexpr int inputs_in<call<Op, A...>> = (inputs_in<A> + ...);
template <class X>
inline constexpr int literals_in = 0;
template <class T>
inline constexpr int literals_in<literal_leaf<T>> = 1;
template <class Op, class... A>
inline constexpr int literals_in<call<Op, A...>> = (literals_in<A> + ...);

/// Appends X's operations to `p` in the order in which they are computed; the value's number.
template <class X>
std::uint16_t describe(program& p, std::size_t inputs, std::size_t literals) {
  if constexpr (is_leaf<X>) {
    p.inputs.push_back(dtype_of<typename X::value_type>);
    return static_cast<std::uint16_t>(p.inputs.size() - 1);
  } else if constexpr (!is_call<X>) {
    p.immediates.push_back(dtype_of<typename X::value_type>);
    return static_cast<std::uint16_t>(inputs + p.immediates.size() - 1);
  } else {
    return [&]<class Op, class... A>(const call<Op, A...>*) {
      instruction i;
      i.op = &record_of<record_type<Op>>;
      i.type = dtype_of<typename X::value_type>;
      ((i.args[i.count++] = describe<A>(p, inputs, literals)), ...);
      p.code.push_back(i);
      return static_cast<std::uint16_t>(inputs + literals + p.code.size() - 1);
    }(static_cast<const X*>(nullptr));
  }
}

/// The portable program of an expression type.
template <class X>
const program_ref& program_of() {
  static const auto& p = *new program_ref([] {
    auto made = std::make_shared<program>();
    describe<X>(*made, inputs_in<X>, literals_in<X>);
    made->seal();
    return made;
  }());
  return p;
}

template <class X>
void gather(const X& x, const output**& inputs, std::int64_t*& immediates) {
  if constexpr (is_leaf<X>)
    *inputs++ = &x.value;
  else if constexpr (!is_call<X>)
    *immediates++ = to_immediate(x.value);
  else
    std::apply([&](const auto&... a) { (gather(a, inputs, immediates), ...); }, x.args());
}

/// Whether two scopes ask for the same device and the same control dependencies.
bool equivalent(const scope_ref& a, const scope_ref& b);

template <class X>
bool written_together(const X& x, const scope_ref& s) {
  if constexpr (!is_call<X>)
    return true;
  else
    return (x.scope() == s || equivalent(x.scope(), s)) &&
           std::apply([&](const auto&... a) { return (written_together(a, s) && ...); }, x.args());
}

/// A node per operation, each in the scopes that it was written in: parts under different devices
/// are cut at the border, and fused again within it by the plan.
template <class X>
output lower_apart(const X& x, const source_place& w, const scope_ref& s) {
  if constexpr (is_leaf<X>)
    return x.value;
  else if constexpr (!is_call<X>) {
    auto in = adopt_scope(s);
    return add_constant(any_array::scalar(x.value), w).handle();
  } else {
    using Op = typename X::op_type;
    return std::apply(
        [&](const auto&... a) {
          const output in[] = {lower_apart(a, w, x.scope())...};
          return add_node(record_of<record_type<Op>>, record_attributes<Op>(), in,
                          x.place().known() ? x.place() : w, &x.scope())
              .handle();
        },
        x.args());
  }
}

output lower_fused(const program_ref& p, std::span<const output* const> inputs,
                   std::span<const std::int64_t> immediates, const source_place& w,
                   const scope_ref& s);

}  // namespace detail

/// The output that stands for `x`. An elementwise expression becomes one node: the operation itself
/// if it is a single one without literals, else a fused node with its program.
template <class Kernels, class X>
output lower(const X& x, const source_place& w) {
  if constexpr (!detail::is_call<X>)
    return detail::operand_handle(x);
  else {
    if (!detail::written_together(x, x.scope())) return detail::lower_apart(x, w, x.scope());
    const source_place place = w.known() ? w : x.place();
    constexpr int inputs = detail::inputs_in<X>, literals = detail::literals_in<X>;
    const output* in[inputs + 1];
    std::int64_t immediates[literals + 1];
    const output** next = in;
    std::int64_t* next_immediate = immediates;
    detail::gather(x, next, next_immediate);
    if constexpr (X::operations == 1 && literals == 0) {
      using Op = typename X::op_type;
      output copies[inputs];
      for (int i = 0; i < inputs; ++i) copies[i] = *in[i];
      return detail::add_node(record_of<record_type<Op>>, record_attributes<Op>(), copies, place,
                              &x.scope())
          .handle();
    } else {
      Kernels::template use<X>();
      return detail::lower_fused(detail::program_of<X>(), {in, std::size_t(inputs)},
                                 {immediates, std::size_t(literals)}, place, x.scope());
    }
  }
}

namespace detail {

template <class K, class X>
output any_lower(const X& x, const source_place& w) {
  if constexpr (std::same_as<X, any_tensor>)
    return x.handle();
  else
    return lower<K>(x, w);
}

/// Adds the node of a named operation on `x…`, each lowered first.
template <class K, class Op, class... X>
any_tensor apply(const Op& o, source_place w, const X&... x) {
  const output in[] = {any_lower<K>(x, w)...};
  return add_node(record_of<Op>, encode(o), in, w);
}
}  // namespace detail

/// The node of an operation with an algorithm of its own: `o`, with its attributes, on `x…`. Its
/// first output; `tensor_of<T, Shape>(make_node(…))` where the compiler knows dtype and shape.
/// Throws what the shape rule throws.
template <class Op, expression... X, class K = kernels_for<std::tuple<X...>>>
any_tensor make_node(const Op& o, source_place w, const X&... x) {
  static_cast<void>(&detail::compile_own<Op, void>);
  const std::array<output, sizeof...(X)> in{detail::any_lower<K>(x, w)...};
  return detail::add_node(record_of<Op>, encode(o), in, w);
}

}  // namespace deft
