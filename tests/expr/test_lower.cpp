// SPDX-License-Identifier: Apache-2.0
#include <deft/expr/lower.hpp>

#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::maker;
using testing::own_graph;

namespace {

const program& program_in(const any_tensor& t) {
  return *decode<op::fused>(maker(t).attributes).program;
}
std::vector<std::string_view> ops_behind(const any_tensor& t) {
  const output o = t.handle();
  std::vector<std::string_view> names;
  for (const auto& n : flatten({&o, 1}, {}).graph.nodes) names.push_back(n.op->name);
  return names;
}
using names = std::vector<std::string_view>;

}  // namespace

TEST_CASE_FIXTURE(own_graph, "a single operation without literals becomes its primitive node") {
  placeholder<float, 3> x("x"), y("y");
  tensor<float, 3> sum = x + y;
  CHECK(maker(sum).def == &record_of<op::add>);
  CHECK(std::ranges::equal(maker(sum).inputs(), std::vector<output>{x.handle(), y.handle()}));
  tensor<std::int32_t, 3> narrow = cast<std::int32_t>(x);
  CHECK(maker(narrow).def == &record_of<op::cast>);
  CHECK(decode<op::cast>(maker(narrow).attributes).to == dtype::int32);
  tensor<float, 3> chosen = where(x > y, x, y);
  CHECK(maker(chosen).def == &record_of<op::fused>);
}

TEST_CASE_FIXTURE(own_graph,
                  "several operations become one fused node with a canonical signature") {
  placeholder<float, dyn, 3> x("x");
  placeholder<float, 3> b("b");
  tensor<float, dyn, 3> y = relu(x + b) * x - 0.5f;
  REQUIRE(maker(y).def == &record_of<op::fused>);
  CHECK(program_in(y).signature ==
        "t0=add(i0:float,i1:float):float t1=relu(t0):float t2=mul(t1,i2:float):float "
        "t3=sub(t2,k0:float):float");
  CHECK(std::ranges::equal(maker(y).inputs(),
                           std::vector<output>{x.handle(), b.handle(), x.handle()}));
  CHECK(maker(y).outputs == std::vector<tensor_type>{{dims{dyn, 3}, dtype::float32}});
  CHECK_NOTHROW(validate(program_in(y)));
  placeholder<std::int64_t, 3> i("i");
  tensor<double, 3> mixed = where(i == 2, cast<double>(i) / 2, 0.25);
  CHECK(program_in(mixed).signature ==
        "t0=equal(i0:int64,k0:int64):bool t1=cast(i1:int64):double t2=div(t1,k1:double):double "
        "t3=where(t0,t2,k2:double):double");
}

TEST_CASE_FIXTURE(own_graph, "literals are immediates, which the signature leaves out") {
  placeholder<float, 3> x("x");
  tensor<float, 3> a = x * 2 + 1, b = x * 3 + 4, c = 2 * x + 1;
  CHECK(&program_in(a) == &program_in(b));
  CHECK(decode<op::fused>(maker(a).attributes).immediates ==
        integers{to_immediate(2.f), to_immediate(1.f)});
  CHECK(program_in(a).signature == "t0=mul(i0:float,k0:float):float t1=add(t0,k1:float):float");
  CHECK(program_in(c).signature == "t0=mul(k0:float,i0:float):float t1=add(t0,k1:float):float");
  CHECK(g.size() == 4);
}

TEST_CASE_FIXTURE(own_graph, "a signature depends on the type alone: equal inputs are not merged") {
  placeholder<float, 3> x("x"), y("y");
  auto e = [](const auto& a, const auto& b) { return a * b + a; };
  tensor<float, 3> two = e(x, y), one = e(x, x);
  CHECK(&program_in(two) == &program_in(one));
  CHECK(maker(one).inputs().size() == 3);
}

TEST_CASE_FIXTURE(own_graph, "an expression held by auto keeps its operands alive") {
  auto write = [] {
    placeholder<float, 2> x("x");
    tensor<float, 2> t = x + x;
    auto scaled = t * 2;
    auto more = exp(scaled) + t;
    return more - constant({1.f, 2.f});
  };
  auto e = write();
  tensor<float, 2> y = e;
  CHECK(ops_behind(y) == names{"placeholder", "add", "constant", "fused"});
  CHECK(g.find("x"));
  y = tensor<float, 2>();
  CHECK(g.size() == 3);  // the expression still holds its operands
}

TEST_CASE_FIXTURE(own_graph, "an expression under several devices is split between them") {
  placeholder<float, 3> x("x");
  auto inner = on(device("/gpu:0"), [&] { return exp(x * 2) + x; });
  tensor<float, 3> y = relu(inner) - 1;
  const node& last = maker(y);
  CHECK(last.def == &record_of<op::sub>);
  CHECK(last.device() == nullptr);
  const node& middle = *last.inputs()[0].node;
  CHECK(middle.def == &record_of<op::relu>);
  CHECK(middle.device() == nullptr);
  const node& border = *middle.inputs()[0].node;
  CHECK(border.def == &record_of<op::add>);
  REQUIRE(border.device());
  CHECK(to_string(*border.device()) == "/gpu:0");
  for (const auto& i : border.inputs())
    if (i.node != x.handle().node) CHECK(i.node->device() == border.device());
}

TEST_CASE_FIXTURE(own_graph, "scopes that ask for the same device do not split an expression") {
  placeholder<float, 3> x("x");
  auto e = on(device("/gpu:0"), [&] { return exp(x * 2); });
  tensor<float, 3> y = on(device("/GPU:0"), [&] { return relu(e); });
  CHECK(maker(y).def == &record_of<op::fused>);
  CHECK(to_string(*maker(y).device()) == "/gpu:0");
}

TEST_CASE_FIXTURE(own_graph, "scopes are those in force where the expression was written") {
  placeholder<float, 3> x("x");
  auto before = no_op();
  auto write = [&] {
    auto there = on(device("/cpu:1"));
    auto named = name_scope("written");
    auto after = control_dependencies(before);
    return relu(x) * 2;
  };
  auto e = write();
  auto elsewhere = on(device("/gpu:3"));
  auto other = name_scope("lowered");
  tensor<float, 3> y = e;
  CHECK(to_string(*maker(y).device()) == "/cpu:1");
  CHECK(name_of(y) == "written/mul");
  REQUIRE(maker(y).controls().size() == 1);
  CHECK(maker(y).controls()[0] == before.handle());
}

TEST_CASE_FIXTURE(own_graph, "different control dependencies split an expression") {
  placeholder<float, 3> x("x");
  auto first = no_op();
  auto e = exp(x * 2);
  tensor<float, 3> y = [&] {
    auto after = control_dependencies(first);
    return tensor<float, 3>(relu(e));
  }();
  CHECK(maker(y).def == &record_of<op::relu>);
  CHECK(maker(y).controls().size() == 1);
  CHECK(maker(y).inputs()[0].node->controls().empty());
}

TEST_CASE_FIXTURE(own_graph, "operations that are not elementwise end an expression") {
  placeholder<float, dyn, 4> x("x");
  placeholder<float, 4, 4> w("w");
  auto h = relu(matmul(relu(x * 2), w) + 1);
  static_assert(detail::is_call<decltype(h)>);
  static_assert(decltype(h)::operations == 2);
  CHECK(ops_behind(h) == names{"placeholder", "fused", "placeholder", "matmul", "fused"});
}

TEST_CASE_FIXTURE(own_graph, "an expression of 64 operations is one node") {
  placeholder<float> x("x");
  auto twice = [](const auto& e) { return e + e; };
  auto e = -twice(twice(twice(twice(twice(twice(x))))));
  static_assert(decltype(e)::operations == max_fused_operations);
  tensor<float> y = e;
  CHECK(maker(y).def == &record_of<op::fused>);
  CHECK(program_in(y).code.size() == decltype(e)::operations);
}

TEST_CASE_FIXTURE(own_graph, "a node made by operators has the source location of what names it") {
  placeholder<float, 2> x("x");
  unsigned line = __LINE__ + 1;
  any_tensor y = any_tensor(x) + any_tensor(x);  // whose operators know where they stand
  CHECK_FALSE(maker(y).location().approximate);
  CHECK(static_cast<unsigned>(maker(y).location().line) == line);
  line = __LINE__ + 1;
  tensor<float, 2> z = x + x + x;
  CHECK_FALSE(maker(z).location().approximate);
  CHECK(static_cast<unsigned>(maker(z).location().line) == line);
}

TEST_CASE_FIXTURE(own_graph, "an expression assigned to a tensor has the line of the assignment") {
  placeholder<float, 3> x("x");
  tensor<float, 3> y;
  const unsigned line = __LINE__ + 1;
  y = x * 2 + 1;
  CHECK(std::string_view(maker(y).location().file).ends_with("test_lower.cpp"));
  CHECK(static_cast<unsigned>(maker(y).location().line) == line);
  CHECK_FALSE(maker(y).location().approximate);
  y = y * y;
  CHECK(static_cast<unsigned>(maker(y).location().line) == line + 4);
  any_tensor a;
  a = x * x;
  CHECK(static_cast<unsigned>(maker(a).location().line) == line + 7);
}
