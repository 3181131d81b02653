// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/elementwise_table.hpp: every elementwise operation of the catalog alone, for
// every dtype that it takes: what devices compile of each.
#pragma once
#include <deft/core/hash.hpp>
#include <deft/kernels/spec/op_as_expression.hpp>
#include <deft/op/catalog.hpp>
#include <unordered_map>

namespace deft::detail {

constexpr std::uint64_t call_key(std::string_view op, dtype operand, dtype result) {
  return mix(hash_text(op),
             static_cast<std::uint64_t>(operand) * 16 + static_cast<std::uint64_t>(result));
}

/// What is compiled of each, by the operation's name, its last operand's dtype and its result's.
template <class Compiled>
class catalog_calls {
 public:
  /// make<X>() gives it for the call X.
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
  template <class X, class Make>
  void add_call(std::string_view op, dtype operand, Make& make) {
    all_.emplace(call_key(op, operand, dtype_of<typename X::value_type>),
                 make.template operator()<X>());
  }
  template <class Op, class Make>
  void add(Make& make) {
    if constexpr (std::is_same_v<Op, op::cast>) {
      each_dtype([&]<class From>() {
        each_dtype([&]<class To>() {
          add_call<call<op::cast_to<To>, leaf<From, shape_t<dyn>>>>(Op::name, dtype_of<From>, make);
        });
      });
    } else if constexpr (requires { Op::typing_rule; }) {
      each_dtype([&]<class T>() {
        if constexpr (accepts(Op::typing_rule, dtype_of<T>))
          add_call<single_call<Op, T>>(Op::name, dtype_of<T>, make);
      });
    }
  }

  std::unordered_map<std::uint64_t, Compiled> all_;
};

}  // namespace deft::detail
