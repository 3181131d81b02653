// SPDX-License-Identifier: Apache-2.0
// deft/expr/call.hpp: the one node template of elementwise expressions, and how it is made.
#pragma once
#include <deft/expr/op_record.hpp>
#include <deft/expr/sentences.hpp>
#include <deft/expr/traits.hpp>
#include <deft/expr/written.hpp>

namespace deft::ext {}  // namespace deft::ext

namespace deft::detail {
/// The shape that several shapes are broadcast to.
template <class... Shape>
struct broadcast_shape {
  static constexpr bool merge(dims& d) { return (merge(d, Shape::value) && ...); }
  static constexpr bool merge(dims& d, const dims& other) {
    dims wider;
    if (!broadcast(d, other, wider)) return false;
    d = wider;
    return true;
  }
  static constexpr dims make() {
    dims d;
    (void)merge(d);
    return d;
  }
  static constexpr bool possible = [] {
    dims d;
    return merge(d);
  }();
  static constexpr dims value = make();
};
}  // namespace deft::detail

namespace deft::ext {

/// An unnamed elementwise expression. Its type is the whole computation; the operands are shared
/// handles, so that an `auto` that outlives them never dangles. It keeps the scopes in force where
/// it was written.
template <class Op, class... Args>
class call : public detail::typed_base {
 public:
  using op_type = Op;
  using value_type = typename Op::template result<typename Args::value_type...>;
  static constexpr int operations = (Args::operations + ... + 1);
  static_assert(
      operations <= max_fused_operations,
      "an elementwise expression of more than 64 operations: name an intermediate tensor");
  using shape_type = detail::broadcast_shape<typename Args::shape_type...>;
  static constexpr dims extents() { return shape_type::value; }

  explicit call(detail::written w) : written_(std::move(w)) {}
  const detail::written& as_written() const { return written_; }

  template <class... S>
  requires detail::subscripts<S...>
  auto operator()(const S&... s) const { return subscripted(*this, s...); }

  template <class B>
  requires std::same_as<B, bool>
  explicit operator B() const {
    static_assert(
        detail::takes<B, detail::got<call>>,
        "an expression has no truth value while the graph is written: use where(c, a, b)");
  }

  template <class V>
  requires(!std::same_as<V, call>) detail::refused operator=(const V&) const {
    static_assert(detail::takes<detail::got<call>, detail::got<V>>,
                  "e = v: an unnamed expression is fed by feed(e, v), and is not assigned to: name "
                  "a tensor, as in tensor<float, 10> t = e");
    return {};
  }

  /// For `float f = x + y`, `std::exp(x + y)`, `bool e = x == y`.
  operator double() const {  // NOLINT: implicit, to say what is meant
    static_assert(detail::takes<double, detail::got<call>>,
                  "an expression has no value while the graph is written: s.run(x) yields it; "
                  "functions of tensors are deft's, as deft::exp; where(c, a, b) chooses; same(a, "
                  "b) compares handles, and name_of(x) serves as a key");
    return 0;
  }

 private:
  detail::written written_;
};

}  // namespace deft::ext

namespace deft::detail {

/// The type of a tensor inside a call.
template <class T, class Shape>
struct leaf {
  using value_type = T;
  using shape_type = Shape;
  static constexpr int operations = 0;
};
/// The type of a scalar inside a call.
template <class T>
struct literal_leaf {
  using value_type = T;
  using shape_type = shape_t<>;
  static constexpr int operations = 0;
};

template <class X>
inline constexpr bool is_call = false;
template <class Op, class... Args>
inline constexpr bool is_call<call<Op, Args...>> = true;
template <class X>
inline constexpr bool is_leaf = false;
template <class T, class Shape>
inline constexpr bool is_leaf<leaf<T, Shape>> = true;

/// The output that stands for a named operand; under control dependencies, a new read of a
/// variable.
template <class X>
decltype(auto) operand_handle(const X& x) {
  if constexpr (requires { x.operand(); })
    return x.operand();
  else
    return x.unchecked();  // an empty one is refused by the operation
}

/// The type of an operand inside a call; literals become T.
template <class T, class X>
auto argument_type() {
  if constexpr (scalar<X>) {
    return std::type_identity<literal_leaf<T>>();
  } else if constexpr (is_call<X>)
    return std::type_identity<X>();
  else
    return std::type_identity<leaf<value_type_of<X>, shape_type_of<X>>>();
}
template <class T, class X>
using argument = typename decltype(argument_type<T, X>())::type;
/// Its value.
template <class T, class X>
decltype(auto) operand_value(const X& x) {
  if constexpr (scalar<X> && !std::is_same_v<T, X>)
    return survives<T>(x) ? written_operand(dtype_of<T>, to_immediate(static_cast<T>(x)))
                          : written_operand(dtype_of<T>, literal_of(x));
  else if constexpr (scalar<X>)
    return written_operand(dtype_of<T>, to_immediate(x));
  else if constexpr (is_call<X>)
    return (x.as_written());
  else
    return operand_handle(x);
}

template <class X>
struct literal_type {
  using type = std::conditional_t<std::is_same_v<X, bool>, bool,
                                  std::conditional_t<std::integral<X>, std::int32_t, X>>;
};

/// The dtype that literals take: that of the first tensor from operand number `First` on.
template <int First, class... X>
struct value_among;
template <int First, class X, class... Rest>
struct value_among<First, X, Rest...> {
  static auto pick() {
    if constexpr (First <= 0 && typed_expression<X>)
      return std::type_identity<value_type_of<X>>();
    else if constexpr (sizeof...(Rest) == 0)
      return typename literal_type<X>::type();
    else
      return value_among<First - 1, Rest...>::pick();
  }
};
template <class T>
T unwrap(std::type_identity<T>);
template <class T>
T unwrap(T);

template <class... X>
inline constexpr bool operands_have_values = (!std::derived_from<X, operation> && ...);
template <class T, class X>
inline constexpr bool operand_fits = true;
template <class T, scalar X>
inline constexpr bool operand_fits<T, X> = literal_fits<T, X>;

/// The mistake of dtypes that a rule does not accept.
constexpr mistake mistake_by(typing rule) {
  switch (rule) {
    case typing::floating:
      return mistake::floats;
    case typing::integral:
      return mistake::integers;
    case typing::logical:
      return mistake::bools;
    case typing::select:
      return mistake::condition;
    default:
      return mistake::numbers;
  }
}
template <class... T>
inline constexpr bool has_strings = (std::is_same_v<T, std::string> || ...);
/// The mistake of operands of those types, if any.
template <class Op, class... Args>
inline constexpr mistake mistake_of =
    !Op::template agree<typename Args::value_type...> ? mistake::dtypes
    : !Op::template accepts_types<typename Args::value_type...>
        ? (has_strings<typename Args::value_type...> ? mistake::strings
                                                     : mistake_by(Op::typing_rule))
    : broadcast_shape<typename Args::shape_type...>::possible ? mistake::none
                                                              : mistake::shapes;

/// The mistake of `X…` as operands of dtype T, if any.
template <class Op, class T, class... X>
inline constexpr mistake mistake_in = [] {
  if constexpr ((operand_fits<T, X> && ...))
    return mistake_of<Op, argument<T, X>...>;
  else
    return mistake::literal;
}();

template <class X>
any_argument any_argument_of(const X& x) {
  if constexpr (scalar<X>)
    return {{}, literal_of(x), true};
  else
    return {any_tensor(x).unchecked()};
}

template <class X>
concept known_at_run_time = expression<X> && !typed_expression<X> &&
                            !std::derived_from<X, operation> && !std::same_as<X, refused>;
/// Operands of operators whose types know dtypes and shapes, or are a mistake; others are
/// any_operands.
template <class X, class Y>
concept typed_operands = operands<X, Y> &&
    (!(known_at_run_time<X> || known_at_run_time<Y>) || std::derived_from<X, operation> ||
     std::derived_from<Y, operation> || std::same_as<X, refused> || std::same_as<Y, refused>);

/// Whether a file is one of this library, deft/FOLDER/NAME.hpp or .ipp, wherever that was found.
/// Not told by __FILE__: each file that includes this one may have found it by another path.
constexpr bool is_own_file(std::string_view file) {
  if (!file.ends_with(".hpp") && !file.ends_with(".ipp")) return false;
  constexpr std::string_view root = "deft/";
  const auto at = file.rfind(root);
  if (at == file.npos || (at > 0 && file[at - 1] != '/')) return false;
  file.remove_prefix(at + root.size());
  const std::string_view folder = file.substr(0, file.find('/'));
  for (const std::string_view own :
       {"core", "data", "device", "execute", "expr", "graph", "kernels", "observe", "op", "plan",
        "session", "train", "transport"})
    if (folder == own) return true;
  return false;
}
/// The line of an operator; unknown in the library's own files, where it would tell a user nothing.
inline source_location operator_line(const char* file = __builtin_FILE(),
                                     unsigned line = __builtin_LINE()) {
  return is_own_file(file) ? source_location() : here(file, line);
}

/// An operand of an operator that takes an any_tensor. It is made by conversion, so that it knows
/// the line: an operator has no default arguments.
class any_operand {
 public:
  template <class X>
  requires(known_at_run_time<X> || typed_expression<X> || scalar<X>)
      any_operand(const X& x, source_location w = operator_line())  // NOLINT: implicit on purpose
      : argument_(any_argument_of(x)), location_(w) {}

  const any_argument& argument() const { return argument_; }
  source_location location() const { return location_; }

 private:
  any_argument argument_;
  source_location location_;
};

template <class Op, class... X>
any_tensor make_any_at(const any_operand& x, const X&... rest) {
  static_cast<void>(&compile_user_op<Op, void>);
  const any_argument arguments[] = {x.argument(), rest.argument()...};
  return add_node(record_of<Op>, Op::first_value, arguments, x.location());
}

template <class Op, class... X>
any_tensor make_any(source_location w, const X&... x) {
  static_cast<void>(&compile_user_op<Op, void>);
  const any_argument arguments[] = {any_argument_of(x)...};
  return add_node(record_of<Op>, Op::first_value, arguments, w);
}

}  // namespace deft::detail

namespace deft::ext {

/// The elementwise expression `Op(x…)`: a call, or a node at once where an operand is an
/// any_tensor.
template <class Op, operand... X>
auto make(source_location w, const X&... x) {
  if constexpr (!detail::operands_have_values<X...>) {
    detail::refuse<detail::mistake::operation, Op, detail::got<X>...>();
    return detail::refused();
  } else if constexpr ((std::same_as<X, detail::refused> || ...)) {
    return detail::refused();
  } else if constexpr (((expression<X> && !typed_expression<X>) || ...)) {
    return detail::make_any<Op>(w, x...);
  } else {
    using T = decltype(detail::unwrap(detail::value_among<Op::first_value, X...>::pick()));
    if constexpr (detail::mistake_in<Op, T, X...> != detail::mistake::none) {
      detail::refuse<detail::mistake_in<Op, T, X...>, Op, detail::got<X>...>();
      return detail::refused();
    } else if constexpr (detail::has_strings<T>) {
      // A node of its own: no kernel of an expression reads strings.
      const output made = detail::make_any<Op>(w, x...).handle();
      return tensor_of<typename Op::template result<T>,
                       detail::broadcast_shape<shape_type_of<X>...>>(made);
    } else {
      static_cast<void>(&detail::compile_user_op<Op, T>);
      return call<Op, detail::argument<T, X>...>({record_of<record_type<Op>>,
                                                  &record_attributes<Op>,
                                                  w,
                                                  {detail::operand_value<T>(x)...}});
    }
  }
}

}  // namespace deft::ext
