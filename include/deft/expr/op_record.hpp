// SPDX-License-Identifier: Apache-2.0
// deft/expr/op_record.hpp: from an operation's header to the graph's record of it.
#pragma once
#include <array>
#include <deft/graph/op_def.hpp>
#include <type_traits>

namespace deft::ext {

/// How an elementwise operation treats dtypes.
enum class typing : std::uint8_t {
  arithmetic,  ///< numbers of one dtype, result the same
  floating,    ///< float or double, result the same
  integral,    ///< integers of one dtype, result the same
  comparison,  ///< numbers of one dtype, result bool
  equality,    ///< any one dtype but string, result bool
  matching,    ///< the same, and string, for which the processor has kernels of their own
  logical,     ///< bool
  select,      ///< bool, then any one dtype but string, which is the result's
};
constexpr bool accepts(typing rule, dtype t) {
  switch (rule) {
    case typing::arithmetic:
    case typing::comparison:
      return is_numeric(t);
    case typing::floating:
      return is_floating(t);
    case typing::integral:
      return is_numeric(t) && !is_floating(t);
    case typing::logical:
      return t == dtype::boolean;
    case typing::equality:
    case typing::select:
      return plain_dtypes.has(t);
    case typing::matching:
      return is_valid(t);
  }
  return false;
}
constexpr dtype result_of(typing rule, dtype t) {
  const bool compares =
      rule == typing::comparison || rule == typing::equality || rule == typing::matching;
  return compares ? dtype::boolean : t;
}

/// The shape and type rule of elementwise operations, which adds the type of the result to `out`.
/// Throws invalid_argument.
void infer_elementwise(std::string_view name, typing rule, std::span<const tensor_type> inputs,
                       std::vector<tensor_type>& out);

/// An attribute of an operation, for `static constexpr auto fields = field_list(field{"axes",
/// &sum::axes}, …)`.
template <class Op, class T>
struct field {
  std::string_view name;
  T Op::*member;
};
template <class Op, class T>
field(const char*, T Op::*) -> field<Op, T>;

/// Attributes in order: calls what it is given with all of them. (A std::tuple of them in every
/// operation would take a fifth of the compile time of deft/expr.hpp.)
template <class... F>
constexpr auto field_list(F... f) {
  return [=](auto&& visit) -> decltype(auto) { return visit(f...); };
}

}  // namespace deft::ext

namespace deft::detail {

template <class Op>
constexpr auto fields_of() {
  if constexpr (requires { Op::fields; })
    return Op::fields;
  else
    return field_list();
}

template <class Op>
inline constexpr auto field_names = fields_of<Op>()([](const auto&... f) {
  return std::array<std::string_view, sizeof...(f)>{f.name...};
});

template <class T>
attr_value encode_attribute(const T& v) {
  if constexpr (std::is_same_v<T, dims>)
    return integers(v.begin(), v.end());
  else if constexpr (std::integral<T> || std::is_enum_v<T>)
    return static_cast<std::int64_t>(v);
  else if constexpr (std::floating_point<T>)
    return static_cast<double>(v);
  else
    return v;
}

[[noreturn]] inline void bad_attribute(std::string_view op, std::string_view name) {
  fail(errc::invalid_argument, "[", op, "] attribute \"", name, "\" is not sound");
}

template <class T>
T decode_attribute(const attr_value& v, std::string_view op, std::string_view name) {
  using Stored =
      std::conditional_t<std::is_same_v<T, dims>, integers,
                         std::conditional_t<std::integral<T> || std::is_enum_v<T>, std::int64_t,
                                            std::conditional_t<std::floating_point<T>, double, T>>>;
  const Stored* s = std::get_if<Stored>(&v);
  if (!s) bad_attribute(op, name);
  if constexpr (std::is_same_v<T, dims>) {
    if (s->size() > max_rank) bad_attribute(op, name);
    return dims(std::span<const std::int64_t>(*s));
  } else if constexpr (std::is_same_v<T, dtype>) {
    const dtype t = dtype_of_number(*s);
    if (t == dtype::none) bad_attribute(op, name);
    return t;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (*s != 0 && *s != 1) bad_attribute(op, name);
    return *s == 1;
  } else if constexpr (std::is_same_v<T, program_ref> || std::is_same_v<T, function_ref>) {
    if (!*s) bad_attribute(op, name);
    return *s;
  } else if constexpr (std::is_same_v<T, any_array>) {
    if (!s->valid()) bad_attribute(op, name);
    return *s;
  } else if constexpr (std::is_same_v<T, tensor_types>) {
    for (const tensor_type& t : *s)
      if (!is_valid(t.type) || std::ranges::any_of(t.shape, [](auto e) { return e < dyn; }))
        bad_attribute(op, name);
    return *s;
  } else if constexpr (std::is_same_v<T, Stored>)
    return *s;
  else {
    T narrow = static_cast<T>(*s);
    if constexpr (std::integral<T>)
      if (static_cast<std::int64_t>(narrow) != *s) bad_attribute(op, name);
    return narrow;
  }
}

}  // namespace deft::detail

namespace deft::ext {

/// The attributes of `o` as the graph keeps them.
template <class Op>
attr_list encode(const Op& o) {
  attr_list list;
  detail::fields_of<Op>()([&](const auto&... f) {
    std::array<attr_value, sizeof...(f)> values{detail::encode_attribute(o.*(f.member))...};
    list = make_attributes(values);
  });
  return list;
}

/// The inverse of encode. Throws invalid_argument naming the attribute that is not sound.
template <class Op>
Op decode(std::span<const attr_value> list) {
  Op o;
  if (list.size() != detail::field_names<Op>.size())
    detail::bad_attribute(Op::name, "number of attributes");
  [[maybe_unused]] std::size_t i = 0;
  detail::fields_of<Op>()([&](const auto&... f) {
    ((o.*(f.member) = detail::decode_attribute<std::remove_cvref_t<decltype(o.*(f.member))>>(
          list[i++], Op::name, f.name)),
     ...);
  });
  return o;
}

}  // namespace deft::ext

namespace deft::detail {

template <class Op>
constexpr op_role role_of() {
  if constexpr (requires { Op::role; })
    return Op::role;
  else
    return op_role::compute;
}

/// `Op::infer(inputs)` gives one tensor_type, or a vector of them, or nothing.
template <class Op>
void infer_thunk(const infer_context& c, std::vector<tensor_type>& out) {
  if constexpr (requires { Op::typing_rule; }) {
    infer_elementwise(Op::name, Op::typing_rule, c.inputs, out);
  } else {
    Op o = decode<Op>(c.attributes);
    if constexpr (role_of<Op>() == op_role::update && requires { o.shape; })
      if (!c.held.empty()) o.shape = c.held[0].shape;
    using R = decltype(o.infer(c.inputs));
    if constexpr (std::is_void_v<R>)
      o.infer(c.inputs);
    else if constexpr (std::is_same_v<R, tensor_type>)
      out.push_back(o.infer(c.inputs));
    else
      for (auto& t : o.infer(c.inputs)) out.push_back(std::move(t));
  }
}

template <class Op>
constexpr int max_arity() {
  if constexpr (requires { Op::max_arity; })
    return Op::max_arity;
  else
    return Op::arity;
}
template <class Op>
constexpr op_traits traits_of() {
  if constexpr (requires { Op::traits; })
    return Op::traits;
  else
    return op_traits::none;
}
template <class Op>
constexpr fold_kind folds_of() {
  if constexpr (requires { Op::folds; })
    return Op::folds;
  else
    return fold_kind::none;
}
/// `o.resource()` of a decoded operation, or `o.resources()`.
template <class Op>
std::vector<resource_ref> resources_thunk(std::span<const attr_value> attributes) {
  const Op o = decode<Op>(attributes);
  if constexpr (requires { o.resources(); })
    return o.resources();
  else
    return {o.resource()};
}
template <class Op>
constexpr auto resources_of() {
  if constexpr (
      requires(const Op& o) { o.resource(); } || requires(const Op& o) { o.resources(); })
    return &resources_thunk<Op>;
  else
    return nullptr;
}
template <class Op>
constexpr const op_def* joins_of();
template <class Op>
constexpr const op_def* subsumes_of();
template <class Op>
constexpr int version_of() {
  if constexpr (requires { Op::version; })
    return Op::version;
  else
    return 1;
}

}  // namespace deft::detail

namespace deft::ext {

/// The operation whose record `Op` uses: itself, except for typed forms such as cast_to<T>.
template <class Op>
struct record_choice {
  using type = Op;
};
template <class Op>
requires requires { typename Op::record; }
struct record_choice<Op> {
  using type = typename Op::record;
};
template <class Op>
using record_type = typename record_choice<Op>::type;
template <class Op>
attr_list record_attributes() {
  if constexpr (requires { Op::record_attributes(); })
    return Op::record_attributes();
  else
    return {};
}

/// See op_functions.
template <class Op>
inline constinit op_functions functions_of{};

/// The graph's record of an operation; one per process.
template <class Op>
inline constexpr op_def record_of{
    .name = Op::name,
    .version = detail::version_of<Op>(),
    .min_inputs = Op::arity,
    .max_inputs = detail::max_arity<Op>(),
    .role = detail::role_of<Op>(),
    .traits = detail::traits_of<Op>(),
    .attributes = std::span<const std::string_view>(detail::field_names<Op>),
    .resources = detail::resources_of<Op>(),
    .infer = &detail::infer_thunk<Op>,
    .functions = &functions_of<Op>,
    .joins = detail::joins_of<Op>(),
    .folds = detail::folds_of<Op>(),
    .subsumes = detail::subsumes_of<Op>(),
};

}  // namespace deft::ext

namespace deft::detail {
template <class Op>
constexpr const op_def* joins_of() {
  if constexpr (requires { typename Op::joins; })
    return &record_of<typename Op::joins>;
  else
    return nullptr;
}
template <class Op>
constexpr const op_def* subsumes_of() {
  if constexpr (requires { typename Op::subsumes; })
    return &record_of<typename Op::subsumes>;
  else
    return nullptr;
}
}  // namespace deft::detail

namespace deft::ext {}  // namespace deft::ext
