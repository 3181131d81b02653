// SPDX-License-Identifier: Apache-2.0
// deft/core/num_text.hpp: bodies as source text: called with the names of its operands, a body
// returns its result as a CUDA C++ expression.
#pragma once
#include <deft/core/num.hpp>
#include <string>
#include <string_view>

namespace deft::ext::num {

/// An expression in the operators and functions of num.hpp. `T` in it is the type of the operands.
/// The code that includes the text defines it, with operators that round and wrap as those of
/// num::lane.
struct text : operators<text, text> {
  using mask_type = text;
  std::string s;

  /// An operand of that name.
  explicit text(std::string name) : s(std::move(name)) {}
  /// A constant.
  template <class C>
  requires std::is_arithmetic_v<C> text(C c) {
    if constexpr (std::is_floating_point_v<C>)
      s = constant(c);
    else
      s = constant(static_cast<std::int64_t>(c));
  }

 private:
  // In digits that give the same number.
  static std::string constant(std::int64_t c);
  static std::string constant(float c);
  static std::string constant(double c);
};

template <>
struct math<text> {
  static text add(const text& a, const text& b) { return infix(a, " + ", b); }
  static text sub(const text& a, const text& b) { return infix(a, " - ", b); }
  static text mul(const text& a, const text& b) { return infix(a, " * ", b); }
  static text div(const text& a, const text& b) { return infix(a, " / ", b); }
  static text mod(const text& a, const text& b) { return infix(a, " % ", b); }
  static text neg(const text& a) { return text("(-" + a.s + ")"); }
  static text exp(const text& a) { return function("exp", a.s); }
  static text expm1(const text& a) { return function("expm1", a.s); }
  static text log(const text& a) { return function("log", a.s); }
  static text log1p(const text& a) { return function("log1p", a.s); }
  static text tanh(const text& a) { return function("tanh", a.s); }
  static text erf(const text& a) { return function("erf", a.s); }
  static text erfcx(const text& a) { return function("erfcx", a.s); }
  static text sin(const text& a) { return function("sin", a.s); }
  static text cos(const text& a) { return function("cos", a.s); }
  static text sqrt(const text& a) { return function("sqrt", a.s); }
  static text pow(const text& a, const text& b) { return function("pow", a.s + ", " + b.s); }
  static text floor(const text& a) { return function("floor", a.s); }
  static text abs(const text& a) { return function("abs", a.s); }
  static text maximum(const text& a, const text& b) {
    return function("maximum", a.s + ", " + b.s);
  }
  static text minimum(const text& a, const text& b) {
    return function("minimum", a.s + ", " + b.s);
  }
  static text less(const text& a, const text& b) { return infix(a, " < ", b); }
  static text less_equal(const text& a, const text& b) { return infix(a, " <= ", b); }
  static text equal(const text& a, const text& b) { return infix(a, " == ", b); }
  static text logical_and(const text& a, const text& b) { return infix(a, " && ", b); }
  static text logical_or(const text& a, const text& b) { return infix(a, " || ", b); }
  static text logical_not(const text& a) { return text("(!" + a.s + ")"); }
  static text select(const text& c, const text& a, const text& b) {
    return function("select", c.s + ", " + a.s + ", " + b.s);
  }
  template <element To>
  static text cast(const text& a) {
    return function("cast<" + std::string(type_name<To>()) + ">", a.s);
  }

  /// As CUDA C++ spells it, without headers.
  template <element T>
  static constexpr std::string_view type_name() {
    return element_type<T>::names.cuda;
  }

 private:
  static text infix(const text& a, const char* op, const text& b) {
    return text("(" + a.s + op + b.s + ")");
  }
  static text function(const std::string& name, const std::string& arguments) {
    return text("num::" + name + "(" + arguments + ")");
  }
};

}  // namespace deft::ext::num
