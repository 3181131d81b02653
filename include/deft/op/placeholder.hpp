// SPDX-License-Identifier: Apache-2.0
// deft/op/placeholder.hpp: a tensor that has no value until one is fed.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct placeholder {
  static constexpr std::string_view name = "placeholder";
  static constexpr int arity = 0;
  static constexpr op_role role = op_role::placeholder;
  static constexpr op_traits traits = op_traits::stateful;
  dtype type = dtype::none;
  dims shape;
  static constexpr auto fields =
      field_list(field{"dtype", &placeholder::type}, field{"shape", &placeholder::shape});

  tensor_type infer(std::span<const tensor_type>) const;
};
}  // namespace deft::op

namespace deft {

namespace detail {
output make_placeholder(std::string_view name, const tensor_type& t, source_location w);
/// What `= {}` would be.
struct nothing {};
}  // namespace detail

/// A tensor of T and extents `E…` whose value is fed in every run: `s.run(loss, x = images)`.
/// `dyn` extents may differ from run to run. A number is appended to a name that is taken.
template <class T, std::int64_t... E>
class placeholder : public tensor<T, E...> {
 public:
  /// In the current graph. The name scopes are put in front of `name`; an empty name stands for
  /// "placeholder". Throws invalid_argument if it is not UTF-8.
  // A template, so that 0 in a list of elements to feed is not taken for a null name.
  template <std::convertible_to<std::string_view> Name>
  explicit placeholder(const Name& name, ext::source_location w = ext::here())
      : tensor<T, E...>(detail::make_placeholder(name, {shape_t<E...>::value, dtype_of<T>}, w)) {}
  /// @cond refused
  template <class Name = detail::missing>
  explicit placeholder() {
    static_assert(detail::takes<placeholder<T, E...>, Name>,
                  "[placeholder] expects a name, as in placeholder<float, 10> x(\"x\")");
  }
  placeholder(const placeholder&) = default;
  /// @endcond

  /// A feed: the value stands for the placeholder during one run.
  using detail::feed_forms<T, E...>::operator=;
  /// @cond refused
  template <ext::expression X>
  void operator=(const X&) const {
    static_assert(
        detail::takes<placeholder, detail::got<X>>,
        "[placeholder] expects a host value to feed, and got an expression: a placeholder "
        "cannot be assigned");
  }
  void operator=(const placeholder&) {
    static_assert(
        detail::never<placeholder>,
        "[placeholder] expects a host value to feed, and got a placeholder: a placeholder "
        "cannot be assigned");
  }
  void operator=(detail::nothing) const {
    static_assert(detail::never<placeholder>,
                  "[placeholder] expects a host value to feed, and got {}");
  }
  /// @endcond
};

/// @cond refused
template <std::convertible_to<std::string_view> Name>
placeholder(const Name&) -> placeholder<detail::missing>;
/// @endcond

/// The same with a dtype and shape known only at run time.
any_tensor make_placeholder(std::string_view name, dtype type, const dims& shape,
                            ext::source_location w = ext::here());

}  // namespace deft
