// SPDX-License-Identifier: Apache-2.0
// tests/kernels/gpu/random_program.hpp: random expressions and regions, for kernels that are made
// of programs.
#pragma once
#include <deft/kernels/spec/region_extents.hpp>
#include <deft/op/catalog.hpp>

#include "host_programs.hpp"
#include "on_gpu.hpp"

namespace testing {

using namespace deft;
using namespace deft::ext;

/// An elementwise operation of the catalog.
struct element_op {
  const op_def* op;
  typing rule;
  int arity;
};
/// The operations whose results are exact, without casts.
inline const std::vector<element_op>& exact_operations() {
  static constexpr std::string_view rounded_by_libraries[] = {
      "exp",        "expm1", "log",  "log1p",    "tanh",
      "sigmoid",    "sin",   "cos",  "pow",      "erf",
      "normal_cdf", "gelu",  "silu", "softplus", "sigmoid_cross_entropy"};
  static const auto& all = *new std::vector<element_op>([] {
    std::vector<element_op> made;
    op::catalog::each([&]<class Op>() {
      if constexpr (requires { Op::typing_rule; })
        if (std::ranges::find(rounded_by_libraries, Op::name) == std::end(rounded_by_libraries))
          made.push_back({&record_of<Op>, Op::typing_rule, Op::arity});
    });
    return made;
  }());
  return all;
}

inline any_array some(dtype t, const dims& shape, std::uint64_t seed, bool zeros) {
  return visit_dtype(t, [&]<class T>() {
    auto v = values<T>(500, seed);
    if constexpr (!std::is_same_v<T, bool>)
      if (!zeros)
        for (auto&& x : v)
          if (x == T(0)) x = T(3);
    return filled<T>(shape, v);
  });
}

/// Random programs that depend on the seed alone.
class random_program {
 public:
  using value = program_builder::value;
  explicit random_program(std::uint64_t seed) : random_(seed) {}

  /// An expression, or a region of several elementwise results.
  host_program elements(bool region, bool late) {
    const int operands = 1 + below(4), instructions = 1 + below(10);
    const dims all = shape(below(4));
    for (int i = 0; i < operands; ++i) operand(i == 0 ? all : part(all), extent_class::element);
    constants();
    for (int i = 0; i < instructions; ++i) instruct();
    std::vector<tensor_type> out;
    if (region) {
      for (std::size_t v = values_.size(); v-- > 0 && out.size() < 3;)
        if (values_[v].v.what == value::kind::result)
          builder_.output(values_[v].v, extent_class::element, false),
              out.push_back({all, values_[v].type});
    } else
      out.push_back({all, values_.back().type});
    return host_program(builder_.finish(), literals_, inputs_, out, {late, false});
  }

  /// A region of rows, with folds of them.
  host_program rows(std::int64_t count, std::int64_t n) {
    const dims all = below(2) ? dims{count, n} : dims{1, count, 1, n};
    builder_.row_axes(1);
    operands_of_rows(all);
    std::vector<tensor_type> out;
    const typed whole_rows = values_[0];
    put(record_of<op::cast>, any_type(), {&whole_rows});
    for (int i = 3 + below(10); i-- > 0;)
      if (below(3) > 0 || !fold()) instruct();
    dims row = all;
    row[row.rank() - 1] = 1;
    for (std::size_t v = values_.size(); v-- > 0 && out.size() < 4;) {
      const auto& w = values_[v];
      if (w.v.what != value::kind::result || w.where > extent_class::row) continue;
      const bool is_row = w.where == extent_class::row;
      builder_.output(w.v, w.where, true);
      out.push_back({is_row ? row : all, w.type});
    }
    return host_program(builder_.finish(), literals_, inputs_, out);
  }

  /// A region with folds of its columns.
  host_program columns(std::int64_t count, std::int64_t n) {
    const dims all = below(2) ? dims{count, n} : dims{1, count, 1, n};
    builder_.row_axes(1);
    operands_of_rows(all);
    const typed elements = values_[0];
    put(record_of<op::cast>, any_type(), {&elements});
    for (int i = below(8); i-- > 0;) instruct();
    const auto out = folded_results(all, extent_class::column, dims{n});
    return host_program(builder_.finish(), literals_, inputs_, out);
  }

  /// A region whose folds cover all elements.
  host_program whole(const dims& all) {
    operand(all, extent_class::element);
    for (int i = below(3); i-- > 0;) {
      const dims own = part(all);
      operand(own, own.elements() == 1 ? extent_class::whole : extent_class::element);
    }
    constants();
    const typed elements = values_[0];
    put(record_of<op::cast>, any_type(), {&elements});
    for (int i = below(8); i-- > 0;) instruct();
    const auto out = folded_results(all, extent_class::whole, dims{});
    return host_program(builder_.finish(), literals_, inputs_, out);
  }

 private:
  static constexpr const op_def* reductions[] = {&record_of<op::sum>, &record_of<op::max>,
                                                 &record_of<op::min>, &record_of<op::mean>};
  struct typed {
    value v;
    dtype type;
    extent_class where;
  };

  int below(int n) { return static_cast<int>(random_.below(static_cast<std::uint32_t>(n))); }
  dtype any_type() {
    const dtype t = every_plain_dtype[static_cast<std::size_t>(
        below(static_cast<int>(every_plain_dtype.size())))];
    // Nothing folds narrow types.
    return is_narrow(t) && below(3) > 0 ? computing_dtype(t) : t;
  }
  dims shape(int rank) {
    constexpr std::int64_t extents[] = {1, 2, 3, 4, 7, 8, 12};
    dims s;
    for (int d = 0; d < rank; ++d) s.push_back(extents[below(7)]);
    return s;
  }
  dims part(const dims& all) {
    dims s;
    for (int d = below(all.rank() + 1); d < all.rank(); ++d)
      s.push_back(below(3) == 0 ? 1 : all[d]);
    return below(2) ? all : s;
  }
  void operand(const dims& s, extent_class where) {
    const dtype t = any_type();
    inputs_.push_back(some(t, s, random_.word(), zeros_));
    values_.push_back({builder_.input(t), t, where});
  }
  void constants() {
    for (int i = below(3); i-- > 0;) {
      const dtype t = any_type();
      values_.push_back({builder_.immediate(t), t, extent_class::whole});
      literals_.push_back(visit_dtype(t, [&]<class T>() { return to_immediate(T(below(9))); }));
    }
  }
  /// Adds operands of a region of rows.
  void operands_of_rows(const dims& all) {
    operand(all, extent_class::element);
    for (int i = below(4); i-- > 0;) {
      const auto where = static_cast<extent_class>(below(4));
      dims own = all;
      if (where != extent_class::element && where != extent_class::column) own[own.rank() - 1] = 1;
      if (where == extent_class::column || where == extent_class::whole)
        for (int d = 0; d + 1 < own.rank(); ++d) own[d] = 1;
      operand(own, class_of(own, all, all.rank() - 1));
    }
    constants();
  }
  /// Results: the latest values of elements, plain or folded.
  std::vector<tensor_type> folded_results(const dims& all, extent_class leaves, const dims& left) {
    std::vector<tensor_type> out;
    for (std::size_t v = values_.size(), folds = 0; v-- > 0 && out.size() < 4;) {
      const auto w = values_[v];
      if (w.v.what != value::kind::result || w.where != extent_class::element) continue;
      if (can_be_folded(w.type) && (folds == 0 || below(2))) {
        const int kind = below(is_floating(w.type) ? 4 : 3);
        builder_.output(builder_.fold(*reductions[kind], w.type, w.v, leaves), leaves, false);
        out.push_back({left, w.type}), ++folds;
      } else {
        builder_.output(w.v, extent_class::element, false);
        out.push_back({all, w.type});
      }
    }
    return out;
  }
  const typed& pick() {
    // Chooses the latest values more often, so that programs are deep.
    const auto n = static_cast<int>(values_.size());
    return values_[static_cast<std::size_t>(std::max(below(n), below(n)))];
  }
  const typed* pick(dtype t) {
    for (int i = 0; i < 20; ++i)
      if (const typed& v = pick(); v.type == t) return &v;
    return nullptr;
  }
  void put(const op_def& op, dtype type, std::initializer_list<const typed*> args) {
    std::vector<value> all;
    auto where = extent_class::whole;
    for (auto* a : args) all.push_back(a->v), where = join(where, a->where);
    if (where == extent_class::column) where = extent_class::element;
    values_.push_back({builder_.apply(op, type, all), type, where});
  }
  void cast() {
    const typed from = pick();
    put(record_of<op::cast>, any_type(), {&from});
  }
  void instruct() {
    if (below(4) == 0) return cast();
    const typed x = pick();
    for (int tries = 0; tries < 20; ++tries) {
      const element_op& o =
          exact_operations()[random_.below(static_cast<std::uint32_t>(exact_operations().size()))];
      const dtype result = result_of(o.rule, x.type);
      if (!accepts(o.rule, x.type)) continue;
      const typed* y = o.arity > 1 ? pick(x.type) : &x;
      const typed* c = o.arity > 2 ? pick(dtype::boolean) : &x;
      if (!y || !c) continue;
      if (o.arity == 1)
        put(*o.op, result, {&x});
      else if (o.arity == 2)
        put(*o.op, result, {&x, y});
      else
        put(*o.op, result, {c, &x, y});
      return;
    }
    cast();
  }
  /// In a region.
  static bool can_be_folded(dtype t) { return is_numeric(t) && !is_narrow(t); }
  bool fold() {
    const typed of = pick();
    if (of.where != extent_class::element || !can_be_folded(of.type)) return false;
    const int kind = below(is_floating(of.type) ? 4 : 3);
    values_.push_back({builder_.fold(*reductions[kind], of.type, of.v, extent_class::row), of.type,
                       extent_class::row});
    return true;
  }

  philox_stream random_;
  const bool zeros_ = random_.below(3) == 0;
  program_builder builder_;
  std::vector<typed> values_;
  std::vector<any_array> inputs_;
  integers literals_;
};

}  // namespace testing
