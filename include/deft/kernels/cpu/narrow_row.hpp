// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/narrow_row.hpp: rows of narrow types: blocks of the operands are converted, the
// row of their computing types is run, and its results are converted back.
#pragma once
#include <deft/kernels/cpu/compiled.hpp>
#include <deft/op/cast.hpp>

namespace deft::ext::cpu {

/// The cast of a row.
template <class From, class To>
inline constexpr compiled_row cast_row = row_of<call<op::cast_to<To>, leaf<From, shape_t<dyn>>>>;

/// An operand or a result of a row.
struct narrow_operand {
  void (*convert)(const row_call&) = nullptr;  ///< null where it is not narrow
  std::int64_t size = 0, wide_size = 0;        ///< of an element, and of what it is converted to
};
/// A row and the conversions around it.
struct narrow_call {
  compiled_row row;
  narrow_operand in[3];
  std::size_t inputs;
  narrow_operand out;
};
void run_narrow(const row_call& c, const narrow_call& how);

template <class T>
constexpr narrow_operand widened_operand() {
  using C = computing_type<T>;
  if constexpr (is_narrow_type<T>)
    return {cast_row<T, C>.run, sizeof(T), sizeof(C)};
  else
    return {nullptr, sizeof(T), sizeof(T)};
}
template <class From, class To>
constexpr narrow_operand narrowed_result() {
  if constexpr (std::is_same_v<From, To>)
    return {nullptr, sizeof(To), sizeof(To)};
  else
    return {cast_row<From, To>.run, sizeof(To), sizeof(From)};
}

/// Op on operands of the computing types.
template <class Op>
struct computing_op : std::type_identity<Op> {};
template <class To>
struct computing_op<op::cast_to<To>> : std::type_identity<op::cast_to<computing_type<To>>> {};

template <class X>
struct narrow_row;
template <class Op, class... T>
struct narrow_row<call<Op, leaf<T, shape_t<dyn>>...>> {
  using wide = call<typename computing_op<Op>::type, leaf<computing_type<T>, shape_t<dyn>>...>;
  using result = typename call<Op, leaf<T, shape_t<dyn>>...>::value_type;

  static void run(const row_call& c) {
    static constexpr narrow_call how{row_of<wide>,
                                     {widened_operand<T>()...},
                                     sizeof...(T),
                                     narrowed_result<typename wide::value_type, result>()};
    run_narrow(c, how);
  }
};
/// The row of X, an operation alone, some of whose operands, or whose result, are narrow.
template <class X>
inline constexpr compiled_row narrow_row_of{&narrow_row<X>::run,
                                            row_of<typename narrow_row<X>::wide>.span};

}  // namespace deft::ext::cpu
