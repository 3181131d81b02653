// SPDX-License-Identifier: Apache-2.0
#include <deft/graph/function.hpp>
#include <deft/op/catalog.hpp>

#include "graph/edit.hpp"
#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of, testing::own_graph;

namespace {

const tensor_type vector_type{dims{dyn}, dtype::float32};

std::size_t count(const function_def& f, std::string_view op) {
  return static_cast<std::size_t>(
      std::ranges::count(f.body.nodes, op, [](const node_def& n) { return n.op->name; }));
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "a body has parameters, and then what it has captured and needs") {
  placeholder<float, dyn> used("used"), unused("unused");
  function_body body("f");
  const any_tensor x(body.parameter(vector_type)), y(body.parameter(vector_type));
  const any_tensor idle = any_tensor(unused) + x;
  const output result = (x * any_tensor(used) + any_tensor(used)).handle();
  const auto w = body.finish({&result, 1});
  CHECK(current_graph() == g);
  CHECK(w.function->name == "f");
  // y is declared; of the captured values only that which a result needs.
  CHECK(w.function->parameters == std::vector(3, vector_type));
  REQUIRE(w.captured.size() == 1);
  CHECK(w.captured[0] == any_tensor(used).handle());
  CHECK(count(*w.function, "feed") == 2);
  CHECK(w.function->values() == 1);
  validate(*w.function);
  CHECK(result_types("test", *w.function, w.function->parameters) == std::vector(1, vector_type));
}

TEST_CASE_FIXTURE(own_graph, "a function knows what its nodes do") {
  variable<float> a("a", 0.f), b("b", 0.f);
  function_body body("f");
  const any_tensor x(body.parameter({dims{}, dtype::float32}));
  a.assign(b + 1.f);
  const output result = (x + a).handle();
  const auto w = body.finish({&result, 1});
  REQUIRE(w.function->resources.size() == 2);
  CHECK(w.function->resources[0].ref.key.name == "a");
  CHECK(w.function->resources[0].updated);
  CHECK(w.function->resources[1].ref.key.name == "b");
  CHECK_FALSE(w.function->resources[1].updated);
  CHECK(is_one_of(w.function->traits, op_traits::effect));
  CHECK(w.captured.empty());
  // The value, and the assignment, which is run in any case; the read waits for it.
  REQUIRE(w.function->results.size() == 2);
  CHECK(w.function->results[1].port == run_only);
  const node_def& read = *std::ranges::find(w.function->body.nodes, "read_variable",
                                            [](const node_def& n) { return n.op->name; });
  CHECK(read.controls == std::vector{w.function->results[1].node});
}

TEST_CASE_FIXTURE(own_graph, "functions that were written alike are equal") {
  placeholder<float, dyn> c("c");
  const auto written = [&](float by) {
    function_body body("f");
    const any_tensor x(body.parameter(vector_type));
    const output result = (x * by + any_tensor(c)).handle();
    return attr_value(body.finish({&result, 1}).function);
  };
  const attr_value a = written(2.f), b = written(2.f), other = written(3.f);
  CHECK(same_attributes({&a, 1}, {&b, 1}));
  CHECK(hash_attributes({&a, 1}) == hash_attributes({&b, 1}));
  CHECK_FALSE(same_attributes({&a, 1}, {&other, 1}));
}

TEST_CASE_FIXTURE(own_graph, "a function that is not sound is refused") {
  function_body body("f");
  const output x = body.parameter(vector_type), result = (any_tensor(x) * 2.f).handle();
  const function_ref f = body.finish({&result, 1}).function;
  const auto fails = [&](auto change) {
    function_def made = *f;
    change(made);
    return error_of([&] { validate(made); });
  };
  CHECK(fails([](function_def&) {}).empty());
  CHECK(fails([](function_def& d) { d.parameters.clear(); }).find("has no parameter 0") !=
        std::string::npos);
  CHECK(fails([](function_def& d) {
          d.parameters[0].type = dtype::int32;
        }).find("has no parameter 0 of float") != std::string::npos);
  CHECK(fails([](function_def& d) { d.results[0].node = 9; }).find("does not exist") !=
        std::string::npos);
  CHECK(fails([](function_def& d) {
          d.results.insert(d.results.begin(), {0, run_only});
        }).find("values after its operations") != std::string::npos);
  CHECK(error_of([&] { result_types("test", *f, {}); }) ==
        "invalid_argument: [test] \"f\" takes 1 arguments, not 0");
  const tensor_type wrong{dims{2, 2}, dtype::float32};
  CHECK(error_of([&] {
          result_types("test", *f, {&wrong, 1});
        }) == "invalid_argument: [test] argument 1 of \"f\" is float(2,2); it takes float(?)");
}

TEST_CASE_FIXTURE(own_graph, "a body that is given up leaves nothing behind") {
  placeholder<float, dyn> c("c");
  const std::size_t before = g.size();
  {
    function_body body("f");
    const any_tensor x = any_tensor(body.parameter(vector_type)) + any_tensor(c);
  }
  CHECK(current_graph() == g);
  CHECK(g.size() == before);
}

TEST_CASE_FIXTURE(own_graph, "parameters come before what is captured") {
  placeholder<float, dyn> c("c");
  function_body body("f");
  const any_tensor x = any_tensor(c) + any_tensor(body.parameter(vector_type));
  CHECK(error_of([&] { body.parameter(vector_type); }).find("after the body has captured") !=
        std::string::npos);
}
