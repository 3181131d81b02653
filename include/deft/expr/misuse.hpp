// SPDX-License-Identifier: Apache-2.0
// deft/expr/misuse.hpp: compile-time messages for C++ on values that a graph does not support.
#pragma once
#include <deft/expr/any_tensor.hpp>
#include <deft/expr/sentences.hpp>
#include <iosfwd>
#include <string>

namespace deft {

namespace op {
struct add;
struct less;
struct less_equal;
struct greater;
struct greater_equal;
}  // namespace op

namespace detail {
struct compound_assignment;  // `x += y` as messages name it
/// A tensor and a text, in either order.
template <class X, class Y>
concept tensor_and_text = (expression<X> && !expression<Y> && text<Y>) ||
                          (expression<Y> && !expression<X> && text<X>);
}  // namespace detail

/// @cond refused
template <ext::expression X, class Y>
detail::refused operator+=(const X&, const Y&) {
  static_assert(detail::takes<detail::compound_assignment, detail::got<X>, detail::got<Y>>,
                "[add] x += y: a tensor names a value, which does not change: name another, as in "
                "auto z = x + y; a variable is updated by s.run(w.assign_add(y))");
  return {};
}
template <ext::expression X, class Y>
detail::refused operator-=(const X&, const Y&) {
  static_assert(detail::takes<detail::compound_assignment, detail::got<X>, detail::got<Y>>,
                "[sub] x -= y: a tensor names a value, which does not change: name another, as in "
                "auto z = x - y; a variable is updated by s.run(w.assign_sub(y))");
  return {};
}
template <ext::expression X, class Y>
detail::refused operator*=(const X&, const Y&) {
  static_assert(detail::takes<detail::compound_assignment, detail::got<X>, detail::got<Y>>,
                "[mul] x *= y: a tensor names a value, which does not change: name another, as in "
                "auto z = x * y; a variable is updated by s.run(w.assign(w * y))");
  return {};
}
template <ext::expression X, class Y>
detail::refused operator/=(const X&, const Y&) {
  static_assert(detail::takes<detail::compound_assignment, detail::got<X>, detail::got<Y>>,
                "[div] x /= y: a tensor names a value, which does not change: name another, as in "
                "auto z = x / y; a variable is updated by s.run(w.assign(w / y))");
  return {};
}

template <class X, class Y>
requires detail::tensor_and_text<X, Y> detail::refused operator+(const X&, const Y&) {
  detail::refuse<detail::mistake::strings, op::add, detail::got<X>, detail::got<Y>>();
  return {};
}
template <class X, class Y>
requires detail::tensor_and_text<X, Y> detail::refused operator<(const X&, const Y&) {
  detail::refuse<detail::mistake::strings, op::less, detail::got<X>, detail::got<Y>>();
  return {};
}
template <class X, class Y>
requires detail::tensor_and_text<X, Y> detail::refused operator<=(const X&, const Y&) {
  detail::refuse<detail::mistake::strings, op::less_equal, detail::got<X>, detail::got<Y>>();
  return {};
}
template <class X, class Y>
requires detail::tensor_and_text<X, Y> detail::refused operator>(const X&, const Y&) {
  detail::refuse<detail::mistake::strings, op::greater, detail::got<X>, detail::got<Y>>();
  return {};
}
template <class X, class Y>
requires detail::tensor_and_text<X, Y> detail::refused operator>=(const X&, const Y&) {
  detail::refuse<detail::mistake::strings, op::greater_equal, detail::got<X>, detail::got<Y>>();
  return {};
}

template <class Stream, ext::expression X>
requires std::derived_from<Stream, std::ios_base> Stream& operator<<(Stream& s, const X&) {
  if constexpr (!std::same_as<X, detail::refused>)
    static_assert(detail::takes<std::ostream, detail::got<X>>,
                  "[<<] a tensor has no value while the graph is written: print s.run(x), and "
                  "x.extents() or name_of(x)");
  return s;
}

template <ext::expression X>
std::string to_string(const X&) {
  if constexpr (!std::same_as<X, detail::refused>)
    static_assert(detail::takes<std::string, detail::got<X>>,
                  "[to_string] a tensor has no value while the graph is written: "
                  "to_string(s.run(x)) prints it; see also x.extents() and name_of(x)");
  return {};
}
/// @endcond

}  // namespace deft
