// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/elementwise_table.hpp: every elementwise operation of the catalog alone, for
// every dtype that it takes: what devices compile of each. Of narrow dtypes they compile casts.
#pragma once
#include <deft/core/hash.hpp>
#include <deft/kernels/kernel.hpp>
#include <deft/kernels/spec/op_as_expression.hpp>
#include <deft/op/assign.hpp>
#include <deft/op/catalog.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>
#include <unordered_map>

namespace deft::detail {

constexpr std::uint64_t call_key(std::string_view op, dtype operand, dtype result) {
  return mix(hash_text(op),
             static_cast<std::uint64_t>(operand) * 16 + static_cast<std::uint64_t>(result));
}

/// Whether a cast is compiled. Others of narrow types go by way of the computing types: a narrow
/// type has those from and to its own, and those from floating types, which saturate.
template <class From, class To>
inline constexpr bool is_compiled_cast =
    is_narrow_type<To> ? std::is_same_v<From, computing_type<To>> || is_floating_type<From>
                       : !is_narrow_type<From> || std::is_same_v<To, computing_type<From>>;

/// What is compiled of each, by the operation's name, its last operand's dtype and its result's.
template <class Compiled>
class catalog_calls {
 public:
  /// make<X>() gives it for the call X; make.narrow<X>(), if it has that, for a call of narrow
  /// types which is not compiled.
  template <class Make>
  explicit catalog_calls(Make make) {
    op::catalog::each([&]<class Op>() { add<Op>(make); });
  }
  /// Null if there is none.
  const Compiled* find(std::string_view op, dtype operand, dtype result) const {
    auto at = all_.find(call_key(op, operand, result));
    return at == all_.end() ? nullptr : &at->second;
  }

 private:
  template <class X, bool IsCompiled, class Make>
  void add_call(std::string_view op, dtype operand, Make& make) {
    const std::uint64_t key = call_key(op, operand, dtype_of<typename X::value_type>);
    if constexpr (IsCompiled)
      all_.emplace(key, make.template operator()<X>());
    else if constexpr (requires { make.template narrow<X>(); })
      all_.emplace(key, make.template narrow<X>());
  }
  template <class Op, class Make>
  void add(Make& make) {
    if constexpr (std::is_same_v<Op, op::cast>) {
      each_dtype([&]<class From>() {
        each_dtype([&]<class To>() {
          add_call<call<op::cast_to<To>, leaf<From, shape_t<dyn>>>, is_compiled_cast<From, To>>(
              Op::name, dtype_of<From>, make);
        });
      });
    } else if constexpr (requires { Op::typing_rule; }) {
      each_dtype([&]<class T>() {
        if constexpr (accepts(Op::typing_rule, dtype_of<T>))
          add_call<single_call<Op, T>, !is_narrow_type<T>>(Op::name, dtype_of<T>, make);
      });
    }
  }

  std::unordered_map<std::uint64_t, Compiled> all_;
};

/// A device's table of them, of fused ones, and of updates: of `assign_add`, and fused.
inline std::vector<kernel_entry> elementwise_entries(kernel_factory alone, kernel_factory fused,
                                                     kernel_factory update,
                                                     kernel_factory fused_update) {
  std::vector<kernel_entry> made{
      {op::fused::name, plain_dtypes, fused},
      {op::fused_update::name, plain_dtypes, fused_update},
      {op::assign_add::name, numeric_dtypes, update},
      {op::assign_sub::name, numeric_dtypes, update},
  };
  op::catalog::each([&]<class Op>() {
    if (record_of<Op>.is(op_traits::elementwise))
      made.push_back({Op::name, operand_types<Op>(), alone});
  });
  return made;
}

}  // namespace deft::detail
