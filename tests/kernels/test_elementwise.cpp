// SPDX-License-Identifier: Apache-2.0
#include <deft/core/num_lane.hpp>
#include <deft/kernels/cpu/device.hpp>
#include <deft/op/catalog.hpp>

#include "arrays.hpp"
#include "run_kernel.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

/// The results of an operation's body, one lane at a time, for broadcast operands.
template <class Op, class R, class... T>
any_array by_scalars(const dims& out, const any_array (&in)[sizeof...(T)]) {
  any_array result(dtype_of<R>, out);
  std::vector<broadcast_index> index;
  for (const auto& a : in) index.emplace_back(a.shape(), out);
  for (std::int64_t i = 0; i < result.elements(); ++i) {
    result.mutable_data<R>()[i] = [&]<std::size_t... K>(std::index_sequence<K...>) {
      return static_cast<R>(
          Op()(num::lane<lane_type<T>>(
                   in[K].template data<T>()[index[K].offset[static_cast<std::size_t>(i)]])...)
              .v);
    }
    (std::index_sequence_for<T...>());
  }
  return result;
}

/// A fused node of a single operation. It has no compiled kernel, so its program runs.
prepared portable(const op_def& op, const attr_list& attributes, const std::vector<any_array>& in) {
  auto p = std::make_shared<program>();
  instruction i;
  i.op = &op;
  std::vector<tensor_type> outputs;
  infer_types(op, {types_of(in), attributes}, outputs);
  i.type = outputs[0].type;
  for (const auto& a : in) {
    i.args[i.count++] = static_cast<std::uint16_t>(p->inputs.size());
    p->inputs.push_back(a.type());
  }
  p->code.push_back(i);
  p->seal();
  return prepared(record_of<op::fused>, {program_ref(p), integers()}, types_of(in));
}

/// Divisors must not be zero.
template <class Op, class T>
void make_legal(std::vector<any_array>& in) {
  if constexpr (divides_integers<Op, T>)
    for (std::int64_t i = 0; i < in[1].elements(); ++i)
      if (T& v = in[1].mutable_data<T>()[i]; v == 0) v = 3;
}

/// Units in the last place by which packs and libm on one lane may differ. Operations that are not
/// named here and take floating operands compute only with such functions.
template <class Op>
constexpr double rounding = [] {
  if (Op::name == "exp" || Op::name == "log") return 3;
  if (Op::name == "tanh") return 8;
  // Where the label is no probability, its two terms may cancel.
  if (Op::name == "sigmoid_cross_entropy") return 2000;
  if (Op::name == "sqrt" || Op::typing_rule != typing::floating) return 0;
  return 8;
}();

template <class Op, class R, class... T>
void check_operation(const op_def& def, const attr_list& attributes = {}) {
  using V = std::tuple_element_t<sizeof...(T) - 1, std::tuple<T...>>;
  struct shapes {
    dims s[3];
  };
  std::vector<shapes> cases = {{{{1}, {1}, {1}}},          {{{}, {}, {}}},
                               {{{7}, {7}, {7}}},          {{{64}, {64}, {64}}},
                               {{{1000}, {1000}, {1000}}}, {{{0}, {0}, {0}}}};
  if constexpr (sizeof...(T) > 1)
    cases.insert(cases.end(), {{{{5, 33}, {33}, {}}},
                               {{{5, 1}, {33}, {5, 33}}},
                               {{{}, {129}, {1}}},
                               {{{2, 3, 4, 5}, {3, 1, 5}, {2, 1, 1, 1}}},
                               {{{3, 1, 70}, {3, 4, 1}, {70}}}});
  for (const auto& c : cases) {
    std::uint64_t seed = 1;
    int k = 0;
    std::vector<any_array> in;
    (in.push_back(filled<T>(c.s[k++], values<T>(1500, seed++))), ...);
    make_legal<Op, V>(in);
    prepared own(def, attributes, types_of(in));
    any_array compiled = own.run(in)[0];
    any_array scalars = [&]<std::size_t... K>(std::index_sequence<K...>) {
      const any_array args[] = {in[K]...};
      return by_scalars<Op, R, T...>(compiled.shape(), args);
    }
    (std::index_sequence_for<T...>());
    CHECK(difference(compiled, scalars, rounding<Op>) == "");
    CHECK(identical(compiled, portable(def, attributes, in).run(in)[0]));
  }
}

template <class Op, class T>
void check_with() {
  INFO(Op::name << " of " << to_string(dtype_of<T>));
  using R = typename Op::template result<T, T, T>;
  if constexpr (Op::arity == 1)
    check_operation<Op, R, T>(record_of<Op>);
  else if constexpr (Op::arity == 2)
    check_operation<Op, R, T, T>(record_of<Op>);
  else if constexpr (Op::typing_rule == typing::select)
    check_operation<Op, T, bool, T, T>(record_of<Op>);
  else
    check_operation<Op, R, T, T, T>(record_of<Op>);
}

}  // namespace

TEST_CASE("every elementwise operation gives the same by kernel, program and scalar body") {
  op::catalog::each([]<class Op>() {
    if constexpr (requires { Op::typing_rule; })
      each_dtype([]<class T>() {
        if constexpr (accepts(Op::typing_rule, dtype_of<T>)) check_with<Op, T>();
      });
  });
}

TEST_CASE_TEMPLATE("sigmoid is accurate to a few units unless it is denormal", T, float, double) {
  // Above, exp(x) underflows; the reference is of higher precision.
  const int low = std::is_same_v<T, float> ? -87 : -708;
  any_array x(dtype_of<T>, {40'001});
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.mutable_data<T>()[i] = static_cast<T>(low + (88. - low) * static_cast<double>(i) / 40'000);
  any_array y = run_op(op::sigmoid(), {x});
  double worst = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const T got = y.data<T>()[i];
    const auto right = 1 / (1 + std::exp(-static_cast<long double>(x.data<T>()[i])));
    worst = std::max(worst, static_cast<double>(std::abs(got - right) / right /
                                                std::numeric_limits<T>::epsilon()));
  }
  CHECK(worst < 3);
}

TEST_CASE("cast gives the same by kernel, program and scalar rule, from and to every dtype") {
  each_dtype([]<class From>() {
    each_dtype([]<class To>() {
      INFO(to_string(dtype_of<From>) << " to " << to_string(dtype_of<To>));
      check_operation<op::cast_to<To>, To, From>(record_of<op::cast>,
                                                 encode(op::cast{dtype_of<To>}));
    });
  });
}

TEST_CASE("an integer division by zero is an error in any element") {
  for (std::int64_t at : {0, 3, 16, 40, 63, 64, 998}) {
    any_array a = moderate<std::int32_t>({999}), b = filled<std::int32_t>({999}, {7});
    b.mutable_data<std::int32_t>()[at] = 0;
    CHECK(error_of([&] {
            run_op(op::div(), {a, b});
          }) == "invalid_argument: [div] integer division by zero");
    CHECK(error_of([&] {
            portable(record_of<op::div>, {}, {a, b}).run({a, b});
          }) == "invalid_argument: [div] integer division by zero");
    CHECK(error_of([&] {
            run_op(op::mod(), {a, b});
          }) == "invalid_argument: [mod] integer division by zero");
  }
}

TEST_CASE("the smallest integer divided by -1 wraps") {
  const auto low = std::numeric_limits<std::int64_t>::min();
  any_array r =
      run_op(op::div(), {filled<std::int64_t>({9}, {low}), filled<std::int64_t>({9}, {-1})});
  CHECK(identical(r, filled<std::int64_t>({9}, {low})));
}

TEST_CASE("a value's result does not depend on its index") {
  any_array one = array_of<float>({}, {0.7f});
  for (std::int64_t n : {2, 7, 16, 33, 1000}) {
    any_array many = filled<float>({n}, {0.7f});
    any_array expected = filled<float>({n}, {run_op(op::tanh(), {one}).data<float>()[0]});
    CHECK(identical(run_op(op::tanh(), {many}), expected));
  }
}

TEST_CASE("updates add to a variable's elements or subtract from them, in place or not") {
  any_array v = moderate<double>({130}, 1), d = moderate<double>({130}, 2);
  for (const op_def* def : {&record_of<op::assign_add>, &record_of<op::assign_sub>}) {
    node_def n;
    n.op = def;
    n.outputs = {{v.shape(), v.type()}};
    auto types = types_of({v, d});
    auto k = find_cpu_kernel(def->name)->make(n, types);
    k->prepare(types, n.outputs);
    any_array state = v.clone();
    const void* in[] = {state.raw(), d.raw()};
    void* out[] = {state.mutable_raw()};
    const step_context step;
    k->run({in, out, &step});
    CHECK(identical(state, def == &record_of<op::assign_add> ? run_op(op::add(), {v, d})
                                                             : run_op(op::sub(), {v, d})));
  }
}

TEST_CASE("bytes of a bool tensor mean true unless they are 0") {
  any_array c(dtype::boolean, {3});
  std::memcpy(c.mutable_raw(), "\x02\x00\xff", 3);
  any_array r = run_op(op::cast{dtype::int32}, {c});
  CHECK(identical(r, array_of<std::int32_t>({3}, {1, 0, 1})));
}
