// SPDX-License-Identifier: Apache-2.0
// deft/expr/lower.hpp: from a typed expression to one fused node of the graph.
#pragma once
#include <array>
#include <deft/expr/call.hpp>

namespace deft::ext {}  // namespace deft::ext

namespace deft::detail {

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

template <class X>
constexpr token* put_tokens(token* to, const X*) {
  *to = {nullptr, dtype_of<typename X::value_type>, 0, !is_leaf<X>};
  return to + 1;
}
template <class Op, class... A>
constexpr token* put_tokens(token* to, const call<Op, A...>*) {
  ((to = put_tokens(to, static_cast<const A*>(nullptr))), ...);
  *to = {&record_of<record_type<Op>>, dtype_of<typename call<Op, A...>::value_type>, sizeof...(A)};
  return to + 1;
}
template <class X>
inline constexpr auto tokens_of = [] {
  std::array<token, inputs_in<X> + literals_in<X> + X::operations> all{};
  put_tokens(all.data(), static_cast<const X*>(nullptr));
  return all;
}();

/// The portable program of an expression type.
template <class X>
const program_ref& program_of() {
  static const auto& p = *new program_ref(make_program(tokens_of<X>));
  return p;
}

/// X without its extents, as kernels and programs are instantiated.
template <class X>
struct without_extents {
  using type = X;
};
template <class T, class Shape>
struct without_extents<leaf<T, Shape>> {
  using type = leaf<T, shape_t<dyn>>;
};
template <class Op, class... A>
struct without_extents<call<Op, A...>> {
  using type = call<Op, typename without_extents<A>::type...>;
};
template <class X>
using kernel_type = typename without_extents<X>::type;

}  // namespace deft::detail

namespace deft::ext {

/// The output that stands for `x`. An elementwise expression becomes one node: the operation itself
/// if it is a single one without literals, else a fused node with its program.
template <class Kernels, class X>
output lower(const X& x, const source_location& w) {
  if constexpr (!detail::is_call<X>) {
    return detail::operand_handle(x);
  } else if constexpr (X::operations == 1 && detail::literals_in<X> == 0) {
    return detail::lower_written(x.as_written(), nullptr, w);
  } else {
    using Y = detail::kernel_type<X>;
    Kernels::template use<Y>();
    return detail::lower_written(x.as_written(), &detail::program_of<Y>, w);
  }
}

}  // namespace deft::ext

namespace deft::detail {

template <class K, class X>
output any_lower(const X& x, const source_location& w) {
  if constexpr (!typed_expression<X>)
    return any_tensor(x).unchecked();
  else
    return lower<K>(x, w);
}

/// Adds the node of `o` on lowered inputs; compiled once for all types of operands.
template <class Op>
DEFT_NOINLINE any_tensor apply_any(const Op& o, std::span<const output> inputs, source_location w) {
  return add_node(record_of<Op>, encode(o), inputs, w);
}
/// Adds the node of a named operation on `x…`, each lowered first.
template <class K, class Op, class... X>
auto apply(const Op& o, source_location w, const X&... x) {
  if constexpr ((std::same_as<X, refused> || ...)) {
    return refused();
  } else {
    const output in[] = {any_lower<K>(x, w)...};
    return apply_any(o, in, w);
  }
}
}  // namespace deft::detail

namespace deft::ext {

/// Adds a node to `g` that has the record and the attributes of `o`, and whatever else `r` says:
/// `add_node(current_graph(), o, {.inputs = in, .location = w})`. Throws as graph::add does.
template <class Op>
node_ref add_node(graph g, const Op& o, node_request r = {}) {
  r.def = &record_of<Op>;
  r.attributes = encode(o);
  return g.add(std::move(r));
}

/// Adds a node of an operation that is not elementwise, `o` with its attributes, on `x…`, and
/// returns its first output; `tensor_of<T, Shape>(make_node(…))` if dtype and shape are known at
/// compile time. Throws what the shape rule throws.
template <class Op, expression... X, class K = kernels_for<std::tuple<X...>>>
any_tensor make_node(const Op& o, source_location w, const X&... x) {
  static_cast<void>(&detail::compile_user_op<Op, void>);
  const std::array<output, sizeof...(X)> in{detail::any_lower<K>(x, w)...};
  return detail::apply_any(o, in, w);
}

/// The same for a number of inputs that is known only at run time.
template <class Op>
any_tensor make_node_of(const Op& o, source_location w, std::span<const output> inputs) {
  static_cast<void>(&detail::compile_user_op<Op, void>);
  return detail::apply_any(o, inputs, w);
}

}  // namespace deft::ext
