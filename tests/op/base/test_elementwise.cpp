// SPDX-License-Identifier: Apache-2.0
#include <deft/op/base/elementwise.hpp>
#include <deft/session/session.hpp>

#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::maker;
using testing::type_of;

TEST_CASE_FIXTURE(testing::own_graph, "expressions have a dtype and extents") {
  placeholder<float, dyn, 3> x("x");
  placeholder<float, 3> b("b");
  placeholder<std::int32_t, dyn, 3> i("i");
  placeholder<bool, 3> m("m");
  auto type = [](const auto& e) {
    return to_string(tensor_type{extents_of<decltype(e)>, dtype_of<value_type_of<decltype(e)>>});
  };
  CHECK(type(x + b) == "float(?,3)");
  CHECK(type(2 * x - 0.5f) == "float(?,3)");
  CHECK(type(i / 2) == "int32(?,3)");
  CHECK(type(i % 2) == "int32(?,3)");
  CHECK(type(x > b) == "bool(?,3)");
  CHECK(type(i != 3) == "bool(?,3)");
  CHECK(type((!m && m) || m) == "bool(3)");
  CHECK(type(where(m, x, 0)) == "float(?,3)");
  CHECK(type(where(x > 0, 1.f, 0.f)) == "float(?,3)");
  CHECK(type(cast<double>(i)) == "double(?,3)");
  CHECK(type(maximum(x, 0)) == "float(?,3)");
  CHECK(type(relu(-x) + exp(x) * tanh(x) / sigmoid(x) + square(sqrt(log(x)))) == "float(?,3)");
}

TEST_CASE_FIXTURE(testing::own_graph, "an expression of several operations is one node") {
  placeholder<float, dyn, 3> x("x");
  placeholder<float, 3> b("b");
  auto before = g.size();
  tensor<float, dyn, 3> y = relu(x + b) * 2;
  CHECK(g.size() == before + 1);
  CHECK(maker(y).def->name == "fused");
  CHECK(name_of(y) == "mul");
  tensor<float, dyn, 3> z = x + b;
  CHECK(maker(z).def->name == "add");
}

TEST_CASE_FIXTURE(testing::own_graph, "equal expressions are one node") {
  placeholder<float, 3> x("x");
  tensor<float, 3> a = relu(x) * 2 + 1, b = relu(x) * 2 + 1, c = relu(x) * 2 + 3;
  CHECK(same(a, b));
  CHECK_FALSE(same(a, c));
  tensor<float, 3> d = x + x, e = x + x;
  CHECK(same(d, e));
  auto nodes = g.size();
  for (int i = 0; i < 1000; ++i) tensor<float, 3> again = relu(x) * 2 + 1;
  CHECK(g.size() == nodes);
}

TEST_CASE_FIXTURE(testing::own_graph, "any_tensor mixes with typed tensors and literals") {
  placeholder<float, dyn, 3> x("x");
  any_tensor y = any(dtype::float32, {3}), i = any(dtype::int64, {2});
  CHECK(type_of(x + y) == "float(?,3)");
  CHECK(type_of(2 * y) == "float(3)");
  CHECK(type_of(i + 1) == "int64(2)");
  CHECK(type_of(i == 0) == "bool(2)");
  CHECK(type_of(where(y > 0, y, 0)) == "float(3)");
  CHECK(type_of(cast(i, dtype::uint8)) == "uint8(2)");
  CHECK(same(cast(i, dtype::int64), i));
  std::int64_t large = (std::int64_t{1} << 60) + 1;
  any_tensor sum = i + large;
  CHECK(std::get<any_array>(maker(sum).inputs()[1].node->attributes[0]).span<std::int64_t>()[0] ==
        large);
}

TEST_CASE_FIXTURE(testing::own_graph, "operands that do not match are refused in one sentence") {
  any_tensor a = any(dtype::float32, {4, 3}), b = any(dtype::float32, {5}),
             i = any(dtype::int32, {3}), m = any(dtype::boolean, {3});
  auto check = [](auto f, std::string_view text) {
    std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + std::string(text)));
  };
  check([&] { a + b; }, "[add] the operands' shapes cannot be broadcast together: (4,3) (5)");
  check([&] { a + i; }, "[add] the operands' dtypes differ: float and int32; use cast");
  check([&] { m + m; }, "[add] is not defined for bool");
  check([&] { exp(i); }, "[exp] is not defined for int32");
  check([&] { !i; }, "[logical_not] is not defined for int32");
  check([&] { where(i, a, a); }, "[where] the condition is int32, not bool");
  check([&] { i + 0.5; }, "a floating literal with a tensor of int32");
  check([&] { i + (std::int64_t{1} << 40); }, "the literal 1099511627776 does not fit int32");
}

TEST_CASE_FIXTURE(testing::own_graph, "a literal must be representable in the tensor's dtype") {
  // An operator does not know its line, but that of its operand.
  const unsigned line = __LINE__ + 1;
  placeholder<std::uint8_t, 2> x("x");
  auto refused = [&](const char* what, unsigned at = 0) {
    return str("invalid_argument: the literal ", what,
               ", node \"add\" near test_elementwise.cpp:", at ? at : line);
  };
  CHECK(testing::error_of([&] { x + 300; }) == refused("300 does not fit uint8"));
  CHECK(testing::error_of([&] { x + -1; }) == refused("-1 does not fit uint8"));
  CHECK(testing::error_of([&] { x + 255; }).empty());
  // Floating literals may be rounded but not overflow; integer literals must be exact.
  const unsigned next = __LINE__ + 1;
  placeholder<float, 2> f("f");
  any_tensor a(f);
  auto refused_here = [](const char* what, unsigned at) {  // operators on an any_tensor know it
    return str("invalid_argument: the literal ", what,
               ", node \"add\" at test_elementwise.cpp:", at);
  };
  const std::string large = refused("1e+300 does not fit float", next);
  CHECK(testing::error_of([&] { f + 1e300; }) == large);
  unsigned at = __LINE__ + 1;
  const std::string of_any = testing::error_of([&] { a + 1e300; });
  CHECK(of_any == refused_here("1e+300 does not fit float", at));
  const std::string odd = refused("16777217 does not fit float exactly", next);
  CHECK(testing::error_of([&] { f + 16777217; }) == odd);
  at = __LINE__ + 1;
  const std::string odd_of_any = testing::error_of([&] { a + 16777217; });
  CHECK(odd_of_any == refused_here("16777217 does not fit float exactly", at));
  CHECK(testing::error_of([&] { f* f + 16777217; }) == odd);
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(testing::error_of([&] { f + 0.1, f + 1e-300, f + inf, f* std::nan(""); }).empty());
  CHECK(testing::error_of([&] { a + 0.1, a + inf, a + std::nan(""); }).empty());
  placeholder<std::int64_t> n("n");
  CHECK(testing::error_of([&] { n + ~std::uint64_t{0}; }) ==
        refused("18446744073709551615 does not fit int64", __LINE__ - 2));
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "shapes that do not fit are those of an operation of the expression") {
  placeholder<float, dyn> a("a"), b("b");
  placeholder<float> scale("scale");
  session s;
  const auto said = [&](const auto& y) {
    return testing::error_of([&] { s.run(y, a = {1, 2, 3}, b = {1, 2}, scale = 2.f); });
  };
  CHECK(said(exp((a - b) * scale + 1.f))
            .starts_with("invalid_argument: [sub] the operands' shapes cannot be broadcast "
                         "together: (3) (2)"));
  CHECK(said(exp(a * 2.f + scale) / (b + scale))
            .starts_with("invalid_argument: [div] the operands' shapes cannot be broadcast "
                         "together: (3) (2)"));
}
