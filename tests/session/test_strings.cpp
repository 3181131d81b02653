// SPDX-License-Identifier: Apache-2.0
// Strings in one process: constants, feeds, fetches, variables and comparisons.
#include <array>
#include <deft/session/session.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sessions.hpp"

using namespace deft;
using testing::error_of;
using testing::outcome_of;
using testing::own_graph;

namespace {
const std::string odd("a\0\xff", 3);
using strings = ndarray<std::string, dyn>;
}  // namespace

TEST_CASE_FIXTURE(own_graph, "constants are strings, lists, vectors, arrays and rows of them") {
  session s;
  const std::vector<std::string> list{"a", odd, ""};
  const std::array<std::string_view, 2> two{"b", "c"};
  tensor<std::string> one = constant("one"), same_one = constant(std::string("one"));
  tensor<std::string, 2> braces = constant({"a", "b"});
  tensor<std::string, dyn> of_vector = constant(list);
  tensor<std::string, 2> of_array = constant(two);
  tensor<std::string, 2, 2> rows = constant({{"a", "b"}, {"c", "d"}});
  tensor<std::string, 2> of_ndarray = constant(ndarray<std::string, 2>{"x", "y"});
  any_tensor of_any = constant(any_array::scalar("any"));
  CHECK(same(one, same_one));  // constants of one value are one node
  const std::string text = s.run(one);
  CHECK(text == "one");
  CHECK(s.run(braces)(1) == "b");
  CHECK(s.run(of_vector) == strings(list));
  CHECK(s.run(of_array)(0) == "b");
  CHECK(s.run(rows)(1, 0) == "c");
  CHECK(s.run(of_ndarray)(1) == "y");
  CHECK(s.run(constant({"alone"}))(0) == "alone");
  CHECK(s.run(constant({"mixed", std::string("list")}))(1) == "list");
  CHECK(s.run(of_any).item<std::string>() == "any");
  CHECK_FALSE(same(any_tensor(constant("ab")), any_tensor(constant("abc"))));
}

TEST_CASE_FIXTURE(own_graph, "feeds are texts, lists, vectors, ndarrays and any_arrays") {
  session s;
  placeholder<std::string> one("one");
  placeholder<std::string, dyn> many("many");
  placeholder<std::string, 2, 2> rows("rows");
  any_tensor any = make_placeholder("any", dtype::string, {dyn});
  CHECK(s.run(one, one = "text") == "text");
  CHECK(s.run(one, one = std::string()) == "");
  CHECK(s.run(one, one = std::string_view(odd)) == odd);
  CHECK(s.run(one, one = {"braces"}) == "braces");
  CHECK(s.run(many, many = {"a", "b"}) == strings{"a", "b"});
  CHECK(s.run(many, many = std::vector<std::string>{"a", odd}) == strings{"a", odd});
  const std::vector<std::string> held{"c"};
  CHECK(s.run(many, many = held) == strings{"c"});
  const strings array{"d", ""};
  CHECK(s.run(many, many = array) == array);
  CHECK(s.run(many, many = strings()).size() == 0);
  CHECK(s.run(many, many = std::vector<std::string>()).size() == 0);
  CHECK(s.run(rows, rows = {{"a", "b"}, {"c", "d"}})(1, 1) == "d");
  CHECK(s.run(many, feed(many, any_array(array))) == array);
  CHECK(s.run(any, feed(any, held)).strings()[0] == "c");
  CHECK(s.run(any, feed(any, array)) == array);
  // An ndarray that is fetched shares nothing with what was fed.
  strings given{"kept"};
  const strings back = s.run(many, many = given);
  given = strings{"other"};
  CHECK(back(0) == "kept");
}

TEST_CASE_FIXTURE(own_graph, "feeds that do not fit are refused by name") {
  session s;
  placeholder<std::string, 2> two("two");
  any_tensor any = make_placeholder("any", dtype::float32, {});
  CHECK(error_of([&] {
          s.run(two, two = std::vector<std::string>{"a"});
        }).find("[feed] string(1) is fed where string(2) is expected") != std::string::npos);
  CHECK(error_of([&] {
          s.run(any, feed(any, "text"));
        }).find("[feed] string() is fed where float() is expected") != std::string::npos);
  CHECK(error_of([&] { s.run(two); }).find("none was fed") != std::string::npos);
  any_tensor text = make_placeholder("text", dtype::string, {});
  CHECK(error_of([&] { s.run(text, feed(text, 1)); }).find("a literal is fed where string") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "strings are compared element by element, with broadcasting") {
  session s;
  placeholder<std::string, dyn> a("a");
  placeholder<std::string> b("b");
  tensor<bool, dyn> equal = a == b;
  tensor<bool, dyn> unequal = b != a;
  CHECK(s.run(equal, a = {"x", "y", "x"}, b = "x") == ndarray<bool, dyn>{true, false, true});
  CHECK(s.run(unequal, a = {"x", "y", ""}, b = "") == ndarray<bool, dyn>{true, true, false});
  CHECK(s.run(equal, a = strings(), b = "x").size() == 0);
  placeholder<std::string, 2, 1> column("column");
  CHECK(s.run(column == a, column = {{"x"}, {"y"}}, a = {"x", "y", "z"}) ==
        ndarray<bool, 2, dyn>{{true, false, false}, {false, true, false}});
  // Of constants it is folded; within an expression it is a node of its own.
  tensor<bool, 2> folded = constant({"a", odd}) == constant({"b", odd});
  CHECK(s.run(folded) == ndarray<bool, 2>{false, true});
  tensor<bool, dyn> both = (a == b) && !(a != constant("x"));
  CHECK(s.run(both, a = {"x", "y"}, b = "y") == ndarray<bool, dyn>{false, false});
  CHECK(s.run(both, a = {"x", "y"}, b = "x") == ndarray<bool, dyn>{true, false});
  tensor<float, dyn> chosen = where(a == b, 1.f, 2.f) + 1.f;
  CHECK(s.run(chosen, a = {"x", "y"}, b = "y") == ndarray<float, dyn>{3, 2});
  any_tensor any(a);
  CHECK(s.run(any == b, a = {"x"}, b = "x").item<bool>());
  tensor<bool, dyn> with_text = a == "x";
  CHECK(s.run(with_text, a = {"x", "y"}) == ndarray<bool, dyn>{true, false});
  CHECK(s.run(std::string_view(odd) != a, a = {"x", odd}) == ndarray<bool, dyn>{true, false});
  CHECK(s.run("x" == any, a = {"x"}).data<bool>()[0]);
  CHECK(error_of([&] { any_tensor(constant(1.f)) == "x"; }).find("[equal]") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "what forwards its input takes strings") {
  session s;
  placeholder<std::string, dyn> a("a");
  const strings given{"a", "b", "c", "d"};
  CHECK(s.run(identity(a), a = given) == given);
  CHECK(s.run(reshape(a, shape<2, 2>), a = given)(1, 0) == "c");
  CHECK(s.run(expand_dims(a, axis<0>), a = given).extents() == dims{1, 4});
  CHECK(s.run(reshape(constant({"a", "b"}), shape<2, 1>))(1, 0) == "b");
  CHECK(s.run(size_of(a), a = given) == 4);
}

TEST_CASE_FIXTURE(own_graph, "variables hold strings") {
  session s;
  variable<std::string> one("one", "first");
  variable<std::string, 2> two("two", {"a", "b"});
  variable<std::string, 3> filled("filled", "same");
  variable<std::string, dyn> any_length("any_length", std::vector<std::string>{"x"});
  s.run(initialize_all());
  CHECK(s.run(one) == "first");
  CHECK(s.run(two)(1) == "b");
  CHECK(s.run(filled) == ndarray<std::string, 3>{"same", "same", "same"});
  s.run(one.assign("second, which is longer"), two.assign({"c", odd}));
  CHECK(s.run(one) == "second, which is longer");
  CHECK(s.run(two)(1) == odd);
  placeholder<std::string, dyn> value("value");
  CHECK(s.run(any_length.assign(value).value(), value = {"p", "q"}).size() == 2);
  strings given{"kept"};
  s.run(any_length.assign(value), value = given);
  given = strings{"other"};
  CHECK(s.run(any_length)(0) == "kept");
  s.run(filled.assign("all"));
  CHECK(s.run(filled)(2) == "all");
  CHECK(s.run(one == constant("second, which is longer")));
  CHECK(error_of([&] {
          any_variable(one).assign_add(constant("x"));
        }).find("[assign_add] is not defined for string") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "prepared steps take and yield strings") {
  session s;
  placeholder<std::string> one("one");
  placeholder<std::string, dyn> many("many");
  auto step = s.prepare(many == one, one, feeds(one, many));
  for (const std::string text : {"a", "b"}) {
    auto [equal, back] = step(text, std::vector<std::string>{"a", "b"});
    CHECK(equal(0) == (text == "a"));
    CHECK(back == text);
  }
  CHECK(std::get<1>(step("literal", strings{"a"})) == "literal");
  CHECK(std::get<0>(step(one = "b", many = strings{"a", "b"}))(1));
  CHECK(std::get<0>(step("b", {"a", "b", "b"})).size() == 3);
  CHECK(std::get<0>(step("b", {"b"}))(0));
  placeholder<std::string, dyn, dyn> rows("rows");
  auto of_rows = s.prepare(rows, feeds(rows));
  CHECK(of_rows({{"a", "b"}, {"c", "d"}})(1, 0) == "c");
}

TEST_CASE_FIXTURE(own_graph, "what is not defined for strings says so") {
  session s;
  any_tensor a(constant({"a", "b"}));
  const auto refusal = [](auto f) { return error_of(f); };
  CHECK(refusal([&] { a + a; }).find("[add] is not defined for string") != std::string::npos);
  CHECK(refusal([&] { exp(a); }).find("[exp] is not defined for string") != std::string::npos);
  CHECK(refusal([&] { a < a; }).find("[less] is not defined for string") != std::string::npos);
  CHECK(refusal([&] { cast<float>(a); }).find("[cast] is not defined for string") !=
        std::string::npos);
  CHECK(refusal([&] {
          cast(any_tensor(constant(1.f)), dtype::string);
        }).find("[cast] is not defined for string") != std::string::npos);
  CHECK(refusal([&] {
          where(constant({true, false}), a, a);
        }).find("[where] is not defined for string") != std::string::npos);
  CHECK(refusal([&] { a + 1; }).find("the literal 1 where strings are expected") !=
        std::string::npos);
  CHECK(refusal([&] { s.run(concat(axis<0>, a, a)); }).find("[concat] has no kernel for strings") !=
        std::string::npos);
  CHECK(refusal([&] {
          s.run(transpose(any_tensor(constant({{"a"}}))));
        }).find("[transpose] has no kernel for strings") != std::string::npos);
  CHECK(refusal([&] { sum(a); }).find("[sum]") != std::string::npos);
  placeholder<std::string> x("x");
  CHECK(refusal([&] {
          gradients(any_tensor(x), any_tensor(x));
        }).find("[gradients] the loss is string; expected a floating dtype") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "strings are on the processor, whatever devices there are") {
  placeholder<std::string, dyn> x("x");
  tensor<bool, dyn> equal = x == constant("a");
  {
    session s({.simulated_gpus = 1});
    CHECK(s.run(equal, x = {"a", "b"}) == ndarray<bool, dyn>{true, false});
    CHECK(s.device_of(equal).ends_with("/cpu:0"));
    // What is made of the result may be on a GPU.
    CHECK(s.run(where(equal, 1.f, 2.f), x = {"a", "b"})(1) == 2);
  }
  tensor<std::string, dyn> there;
  tensor<bool, dyn> compared;
  std::optional<variable<std::string>> v;
  const tensor<std::string> b = constant("b");
  if (auto gpu = on(device("/gpu:0"))) {
    there = identity(x);
    compared = x == b;
    v.emplace("v", "text");
  }
  {
    session s({.simulated_gpus = 1});
    CHECK(error_of([&] {
            s.run(compared, x = {"a"});
          }).find("[equal] cannot be placed on \"/gpu:0\"") != std::string::npos);
    CHECK(error_of([&] {
            s.run(there, x = {"a"});
          }).find("[identity] cannot be placed on \"/gpu:0\"") != std::string::npos);
  }
  session soft({.allow_soft_placement = true, .simulated_gpus = 1});
  soft.run(initialize_all());
  CHECK(soft.run(there, x = {"a"})(0) == "a");
  CHECK(soft.run(compared, x = {"b"})(0));
  CHECK(soft.run(*v) == "text");
  CHECK(soft.device_of(*v).ends_with("/cpu:0"));
}
