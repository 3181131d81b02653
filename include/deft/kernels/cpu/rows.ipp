// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/rows.ipp: rows of every elementwise operation of the catalog for every dtype
// that it takes, of the pairs that portable programs are made of most, and of optimizers' formulas.
#pragma once
#include <array>
#include <deft/kernels/cpu/compiled.hpp>
#include <deft/kernels/cpu/formula.hpp>
#include <deft/kernels/cpu/narrow_row.hpp>
#include <deft/kernels/cpu/rows.hpp>
#include <deft/kernels/cpu/user_op.hpp>
#include <deft/kernels/spec/elementwise_table.hpp>
#include <deft/op/add.hpp>
#include <deft/op/catalog.hpp>
#include <deft/op/div.hpp>
#include <deft/op/exp.hpp>
#include <deft/op/maximum.hpp>
#include <deft/op/minimum.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/neg.hpp>
#include <deft/op/sigmoid.hpp>
#include <deft/op/square.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/tanh.hpp>
#include <string>
#include <unordered_map>

namespace deft::ext::cpu {
namespace row_table {
namespace {

template <class T>
using operand_leaf = leaf<T, shape_t<dyn>>;
template <class Op, class A, class B>
using pair_call = call<Op, A, B>;

using table = std::unordered_map<std::uint64_t, compiled_row>;

std::uint64_t key(std::string_view first, std::string_view second, int position, dtype type) {
  return mix(mix(hash_text(first), hash_text(second)),
             static_cast<std::uint64_t>(type) * 16 + static_cast<std::uint64_t>(position));
}

struct made_row {
  template <class X>
  compiled_row operator()() const {
    return row_of<X>;
  }
  template <class X>
  compiled_row narrow() const {
    return narrow_row_of<X>;
  }
};

const auto& operations() {
  static const auto& made = *new deft::detail::catalog_calls<compiled_row>(made_row());
  return made;
}

// Pairs.

template <class First, class T>
struct inner {
  using L = operand_leaf<T>;
  using type = call<First, L, L>;
};
template <class First, class T>
requires(First::arity == 1) struct inner<First, T> {
  using type = call<First, operand_leaf<T>>;
};

/// Calls put(position, the pair's type) for each place where Second takes First.
template <class First, class Second, class T, class F>
void each_pair(F put) {
  using Inner = typename inner<First, T>::type;
  using L = operand_leaf<T>;
  if constexpr (Second::arity == 1)
    put(0, std::type_identity<call<Second, Inner>>());
  else {
    put(0, std::type_identity<call<Second, Inner, L>>());
    put(1, std::type_identity<call<Second, L, Inner>>());
  }
}
template <class First, class Second, class T>
void add_pair(table& t) {
  each_pair<First, Second, T>([&]<class X>(int position, std::type_identity<X>) {
    t.emplace(key(First::name, Second::name, position, dtype_of<T>), row_of<X>);
  });
}
template <class T, class Seconds, class... First>
void add_pairs(table& t, op::op_list<First...>) {
  Seconds::each([&]<class Second>() { (add_pair<First, Second, T>(t), ...); });
}

const table& pairs() {
  using binary = op::op_list<op::add, op::sub, op::mul>;
  using bounds = op::op_list<op::maximum, op::minimum>;
  using unary = op::op_list<op::neg, op::square, op::relu, op::exp, op::tanh, op::sigmoid>;
  static auto& made = *new table([] {
    table t;
    auto of = [&]<class T>() {
      add_pairs<T, binary>(t, binary());
      add_pairs<T, bounds>(t, binary());
      add_pairs<T, unary>(t, binary());
      add_pairs<T, binary>(t, unary());
      add_pairs<T, binary>(t, bounds());
    };
    of.template operator()<float>();
    of.template operator()<double>();
    return t;
  }());
  return made;
}

template <class First, class Second, class T>
void add_pair_sum(table& t) {
  each_pair<First, Second, T>([&]<class X>(int position, std::type_identity<X>) {
    t.emplace(key(First::name, Second::name, position, dtype_of<T>), fold_of<X, plus>);
    // x * x is its square.
    if constexpr (std::is_same_v<Second, op::square>)
      t.emplace(key(First::name, op::mul::name, both_positions, dtype_of<T>), fold_of<X, plus>);
  });
}

const table& sums() {
  using summed = op::op_list<op::add, op::sub, op::mul, op::square, op::exp>;
  static auto& made = *new table([] {
    table t;
    auto of = [&]<class T>() {
      summed::each([&]<class Op>() {
        t.emplace(deft::detail::call_key(Op::name, dtype_of<T>, dtype_of<T>),
                  fold_of<single_call<Op, T>, plus>);
      });
      op::op_list<op::add, op::sub, op::mul>::each([&]<class First>() {
        add_pair_sum<First, op::square, T>(t);
        add_pair_sum<First, op::mul, T>(t);
      });
    };
    of.template operator()<float>();
    of.template operator()<double>();
    return t;
  }());
  return made;
}

compiled_row look_up(const table& t, std::uint64_t k) {
  auto at = t.find(k);
  return at == t.end() ? compiled_row() : at->second;
}

}  // namespace
}  // namespace row_table

compiled_row find_row(const op_def& op, dtype operand, dtype result) {
  const compiled_row* row = row_table::operations().find(op.name, operand, result);
  return row ? *row : find_user_row(op, operand, result);
}

compiled_row find_pair(const op_def& first, const op_def& second, int position, dtype type) {
  return row_table::look_up(row_table::pairs(),
                            row_table::key(first.name, second.name, position, type));
}

compiled_row find_row_fold(const op_def& op, dtype type, fold_kind fold) {
  if (fold != fold_kind::sum && fold != fold_kind::mean) return {};
  return row_table::look_up(row_table::sums(), deft::detail::call_key(op.name, type, type));
}

compiled_row find_pair_fold(const op_def& first, const op_def& second, int position, dtype type,
                            fold_kind fold) {
  if (fold != fold_kind::sum && fold != fold_kind::mean) return {};
  return row_table::look_up(row_table::sums(),
                            row_table::key(first.name, second.name, position, type));
}

namespace {

/// (x - mean) * inverse * gain + shift, as batch and layer normalization end.
template <class T, class Each>
using normalized =
    call<op::add,
         call<op::mul, call<op::mul, call<op::sub, row_table::operand_leaf<T>, Each>, Each>,
              row_table::operand_leaf<T>>,
         row_table::operand_leaf<T>>;

/// Where mean and inverse are the same for the whole row, they stay in registers.
template <class T>
void normalize_row(const row_call& c) {
  if (c.mask[1] || c.mask[2]) return row_kernel<normalized<T, row_table::operand_leaf<T>>>::run(c);
  const void* const in[] = {c.in[0], c.in[3], c.in[4], c.in[1], c.in[2]};
  const std::uintptr_t mask[] = {c.mask[0], c.mask[3], c.mask[4], 0, 0};
  row_kernel<normalized<T, deft::detail::literal_leaf<T>>>::run({in, mask, c.out, c.n});
}

template <class T>
const fused_registration normalizing{
    &deft::detail::program_of<normalized<T, row_table::operand_leaf<T>>>,
    {&normalize_row<T>, row_of<normalized<T, row_table::operand_leaf<T>>>.span}};
[[maybe_unused, gnu::used]] const fused_registration* const expressions[] = {&normalizing<float>,
                                                                             &normalizing<double>};

template <class... C>
constexpr auto entries_of(formula::compiled_list<C...>) {
  return std::array{&registered_formula<typename C::formula, float, C::inputs>::entry...,
                    &registered_formula<typename C::formula, double, C::inputs>::entry...};
}
[[maybe_unused, gnu::used]] constexpr auto formulas = entries_of(formula::all());

}  // namespace

double row_cost(const op_def& op, dtype type) {
  // A floating function is some twenty instructions, division of integers goes lane by lane.
  const double size = static_cast<double>(size_of_dtype(type));
  // An operation of the program's own counts as such a function.
  double cost = 0.05 * size;
  op::catalog::each([&]<class Op>() {
    if constexpr (requires { Op::typing_rule; })
      if (Op::typing_rule == typing::floating) return;
    if (Op::name == op.name) cost = 0.008 * size;
  });
  if (op.name == op::div::name || op.name == op::mod::name)
    cost = is_floating(type) ? 0.03 * size : 1;
  return cost;
}

}  // namespace deft::ext::cpu
