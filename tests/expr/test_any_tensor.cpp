// SPDX-License-Identifier: Apache-2.0
#include <deft/expr/any_tensor.hpp>
#include <deft/train/layers.hpp>
#include <thread>
#include <vector>

#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::maker;
using testing::own_graph;
using testing::type_of;

TEST_CASE_FIXTURE(own_graph, "any_tensor and typed tensors can be mixed") {
  placeholder<float, dyn, 3> x("x");
  any_tensor y = any(dtype::float32, {3});
  static_assert(std::is_same_v<decltype(x + y), any_tensor>);
  static_assert(std::is_same_v<decltype(exp(y)), any_tensor>);
  CHECK(type_of(x + y) == "float(?,3)");
  CHECK(type_of((x * 2 + 1) - y) == "float(?,3)");
  CHECK(type_of(matmul(x, any(dtype::float32, {3, 5}))) == "float(?,5)");
  CHECK(type_of(y > 0) == "bool(3)");
  CHECK(type_of(where(x > 0, y, 0)) == "float(?,3)");
}

TEST_CASE_FIXTURE(own_graph, "literals with an any_tensor take its dtype, or are refused") {
  any_tensor i = any(dtype::int32, {2}), u = any(dtype::uint8, {}), l = any(dtype::int64, {});
  CHECK(type_of(i + 1) == "int32(2)");
  CHECK(type_of(1 - u) == "uint8()");
  CHECK(type_of(any(dtype::float64, {}) * 2) == "double()");
  const any_tensor b = any(dtype::boolean, {2});
  CHECK(type_of(where(b, 1.f, 2)) == "float(2)");
  CHECK(type_of(where(b, 1, 2)) == "int32(2)");
  CHECK(type_of(where(b, 1., 2.)) == "double(2)");
  const std::int64_t wide = (std::int64_t{1} << 62) + 1;
  CHECK(*decode<op::constant>(maker(l + wide).inputs()[1].node->attributes)
             .value.data<std::int64_t>() == wide);
  auto says = [](auto f, std::string_view text) {
    std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with(text));
  };
  says([&] { i + 0.5f; }, "invalid_argument: a floating literal with a tensor of int32");
  says([&] { u + 256; }, "invalid_argument: the literal 256 does not fit uint8");
  says([&] { u + -1; }, "invalid_argument: the literal -1 does not fit uint8");
  says([&] { any(dtype::boolean, {}) == 2; }, "invalid_argument: the literal 2 does not fit bool");
  says([&] { i + any(dtype::int64, {}); },
       "invalid_argument: [add] the operands' dtypes differ: int32 and int64; use cast");
  says([&] { i + any(dtype::int32, {3}); },
       "invalid_argument: [add] the operands' shapes cannot be broadcast together: (2) (3)");
  says([&] { exp(i); }, "invalid_argument: [exp] is not defined for int32");
  says([&] { any_tensor() + i; },
       "failed_precondition: an empty tensor is used as operand 1, node \"add\" at "
       "test_any_tensor.cpp:");
}

TEST_CASE_FIXTURE(own_graph, "an any_tensor becomes typed only on request, and if it fits") {
  any_tensor t = any(dtype::float32, {dyn, 3});
  CHECK(same(any_tensor(tensor<float, dyn, 3>(t)), t));
  CHECK(same(any_tensor(tensor<float, 2, 3>(t)), t));
  CHECK(same(any_tensor(tensor<float, dyn, dyn>(t)), t));
  auto says = [](auto f, std::string_view text) {
    std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with(text));
    CHECK(e.find("node \"any\" at modeling.hpp:") != std::string::npos);
  };
  says([&] { (void)tensor<double, dyn, 3>(t); },
       "invalid_argument: [tensor] float(?,3) is not a tensor of double(?,3)");
  says([&] { (void)tensor<float, dyn, 4>(t); },
       "invalid_argument: [tensor] float(?,3) is not a tensor of float(?,4)");
  says([&] { (void)tensor<float, dyn>(t); },
       "invalid_argument: [tensor] float(?,3) is not a tensor of float(?)");
}

TEST_CASE_FIXTURE(own_graph, "an expression is lowered when it becomes an any_tensor") {
  placeholder<float, 2> x("x");
  any_tensor y = relu(x) * 2;
  CHECK(maker(y).def->name == "fused");
  tensor<float, 2> t = relu(x) * 2;
  CHECK(same(y, t));
  CHECK(y.type() == dtype::float32);
  CHECK(y.shape() == dims{2});
  CHECK(y.rank() == 1);
}

TEST_CASE_FIXTURE(own_graph, "a plain tensor rebinds, and empty handles are reported") {
  placeholder<float, 2> x("x");
  const unsigned declared = __LINE__ - 1;
  tensor<float, 2> t;
  CHECK_FALSE(t.valid());
  CHECK(testing::error_of([&] { (void)t.handle(); }) ==
        "failed_precondition: an empty tensor is used: it was declared, but never assigned");
  CHECK(testing::error_of([&] { any_tensor() + 1; }) ==
        str("failed_precondition: an empty tensor is used as operand 1, node \"add\" at "
            "test_any_tensor.cpp:",
            __LINE__ - 3));
  tensor<float, 2> none;
  CHECK(testing::error_of([&] { none + 1; }) ==
        str("failed_precondition: an empty tensor is used as operand 1, node \"add\" near "
            "test_any_tensor.cpp:",
            __LINE__ - 4));
  const std::vector<tensor<float, 2>> others(2);
  CHECK(testing::error_of([&] { others[0] * x; }).find("node \"mul\" near test_any_tensor.cpp:") !=
        std::string::npos);
  CHECK(testing::error_of([&] { (void)operation().handle(); }) ==
        "failed_precondition: an empty operation is used: it was declared, but never assigned");
  CHECK(testing::error_of([&] { x + t; }) ==
        str("failed_precondition: an empty tensor is used as operand 2, node \"add\" near "
            "test_any_tensor.cpp:",
            declared));
  tensor<float, 2, 2> matrix;
  CHECK(testing::error_of([&] { matmul(matrix, matrix); }) ==
        str("failed_precondition: an empty tensor is used as operand 1, node \"matmul\" at "
            "test_any_tensor.cpp:",
            __LINE__ - 3));
  t = x + x;
  tensor<float, 2> first = t;
  t = t * 2;
  CHECK_FALSE(same(first, t));
  CHECK(maker(t).inputs()[0] == first.handle());
  using rebound = decltype(t = x + x);
  static_assert(!expression<rebound> && !std::is_same_v<rebound, feed_value>);
}

TEST_CASE_FIXTURE(own_graph, "a tensor made from an output is checked immediately") {
  const any_tensor x = constant({1.f, 2.f});
  CHECK(tensor<float, 2>(x.handle()).handle() == x.handle());
  CHECK(tensor<float, dyn>(x.handle()).handle() == x.handle());
  CHECK(testing::error_of([&] {
          tensor<double, 2>(x.handle());
        }).starts_with("invalid_argument: [tensor] float(2) is not a tensor of double(2)"));
  CHECK_FALSE(tensor<float>(output()).valid());
}

TEST_CASE_FIXTURE(own_graph, "operators on any_tensors know the line where they stand") {
  any_tensor x = any(dtype::float32, {2});
  placeholder<float, 2> typed("typed");
  const unsigned line = __LINE__ + 1;
  const any_tensor made[] = {x + x,
                             x - 1,
                             2 * x,
                             x / typed,
                             typed * x,
                             -x,

                             x == x,
                             x != 1,
                             x<x, x <= 1, x>
                                 typed,
                             1 >= x,
                             !(x > 0),
                             (x > 0) && (x < 1),
                             (x > 0) || (x < 1)};
  const unsigned last = __LINE__ - 1;
  for (const any_tensor& t : made) {
    const source_location w = maker(t).location();
    CAPTURE(name_of(t));
    CHECK(w.line >= line);
    CHECK(w.line <= last);
    CHECK_FALSE(w.approximate);
  }
  // Those of the library's own files are near what they are made of.
  any_variable w("w", {2, 3}, zeros());
  any_tensor matrix = any(dtype::float32, {4, 2}), bias = any(dtype::float32, {3});
  CHECK(to_string(maker(dense(matrix, w, bias)).location()) != "layers_dense.hpp:37");
  const std::string e = testing::error_of([&] { x + any(dtype::float32, {3}); });
  CHECK(e.ends_with(str(" at test_any_tensor.cpp:", __LINE__ - 1)));
}

TEST_CASE("a file is the library's own however its path is spelled") {
  using deft::detail::is_own_file;
  for (const char* own : {"deft/op/add.hpp", "include/deft/op/add.hpp", "../deft/expr/call.hpp",
                          "/usr/include/deft/op/base/shapes.ipp", "deft/kernels/cpu/pack.hpp",
                          "/home/deft/tests/../include/deft/train/layers_dense.hpp"}) {
    CAPTURE(own);
    CHECK(is_own_file(own));
  }
  for (const char* other :
       {"model.cpp", "deft/tests/op/test_add.cpp", "/home/deft/model.hpp", "deft/op/add.cpp",
        "mydeft/op/add.hpp", "/home/deft/tests/training.hpp", "op/add.hpp"}) {
    CAPTURE(other);
    CHECK_FALSE(is_own_file(other));
  }
}

TEST_CASE("messages tell where an empty tensor was declared, however many lines declare some") {
  const auto place = [](unsigned line) { return source_location{"many.cpp", line, false}; };
  std::vector<output> declared;
  for (unsigned line = 1; line <= 3000; ++line)
    declared.push_back(deft::detail::declared_empty(place(line)));
  for (unsigned line = 1; line <= 3000; ++line) {
    const output& o = declared[line - 1];
    CHECK_FALSE(o.node);
    REQUIRE(deft::detail::location_of_empty(o) == place(line));
    REQUIRE(deft::detail::declared_empty(place(line)).port == o.port);
  }
  // Another thread, which has declared none yet, sees the same.
  std::uint32_t port = 0;
  std::thread([&] { port = deft::detail::declared_empty(place(7)).port; }).join();
  CHECK(port == declared[6].port);
  CHECK(deft::detail::declared_empty(place(7).nearby()).port != port);
}
