// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deft/core/num_text.hpp>
#include <deft/op/catalog.hpp>
#include <set>

#include "modeling.hpp"
#include "op/hostile.hpp"

using namespace deft;
using namespace deft::ext;
using testing::maker;

TEST_CASE("the catalog lists every operation once") {
  std::set<std::string_view> names;
  op::catalog::each([&]<class Op>() { CHECK(names.insert(Op::name).second); });
  CHECK(names.size() == op::catalog::size);
  CHECK(catalog_ops().size() == op::catalog::size);
  for (const op_def* d : catalog_ops()) CHECK(find_op(d->name) == d);
  CHECK(find_op("matmul") == &record_of<op::matmul>);
  CHECK(find_op("no such operation") == nullptr);
}

TEST_CASE("attributes can be encoded and decoded") {
  op::random_uniform o;
  o.shape = {2, 3};
  o.key = ~std::uint64_t{0};
  o.high = 0.1;
  auto back = decode<op::random_uniform>(encode(o));
  CHECK(back.key == o.key);
  CHECK(back.high == 0.1);
  CHECK(back.shape == o.shape);
  CHECK(record_of<op::random_uniform>.attributes.size() == 6);
  CHECK(record_of<op::random_uniform>.attributes[3] == "high");
}

namespace {

/// The text of Op's body for operands of these names.
template <class Op, class... Name>
void check_text(const Name&... names) {
  CAPTURE(Op::name);
  const std::string source = Op()(num::text(names)...).s;
  CAPTURE(source);
  CHECK(source.size() > 2);
  CHECK(source.back() == ')');
  CHECK(std::count(source.begin(), source.end(), '(') ==
        std::count(source.begin(), source.end(), ')'));
  for (std::string_view name : {std::string_view(names)...})
    CHECK(source.find(name) != std::string::npos);
}

}  // namespace

TEST_CASE("the body of every elementwise operation yields its source text") {
  int bodies = 0;
  op::catalog::each([&]<class Op>() {
    if constexpr (std::is_same_v<Op, op::cast>) {
      check_text<op::cast_to<float>>("first");
    } else if constexpr (requires { Op::typing_rule; }) {
      if constexpr (Op::arity == 1)
        check_text<Op>("first");
      else if constexpr (Op::arity == 2)
        check_text<Op>("first", "second");
      else
        check_text<Op>("first", "second", "third");
    } else {
      return;
    }
    ++bodies;
  });
  int elementwise = 0;
  for (const op_def* d : catalog_ops())
    if (d->is(op_traits::elementwise)) ++elementwise;
  CHECK(bodies == elementwise);
}

TEST_CASE("shape rules refuse hostile attributes and inputs") {
  const auto [passed, refused] = testing::check_hostile(op::catalog());
  CHECK(passed > 10'000);
  CHECK(refused > 10'000);
}

TEST_CASE("a fused node must fit its program") {
  testing::own_graph own;
  placeholder<float, 3> x("x");
  tensor<float, 3> y = x * 2 + 1;
  const node& n = maker(y);
  auto o = decode<op::fused>(n.attributes);
  auto check = [&](const op::fused& f, std::vector<tensor_type> in, std::string_view text) {
    std::vector<tensor_type> out;
    std::string e = testing::error_of([&] { infer_types(*n.def, {in, encode(f)}, out); });
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + std::string(text)));
  };
  tensor_type f3{{3}, dtype::float32};
  check(o, {}, "[fused] the program takes 1 inputs, not 0");
  check(o, {{{3}, dtype::int32}}, "[fused] input 0 is int32, not float");
  auto fewer = o;
  fewer.immediates.pop_back();
  check(fewer, {f3}, "[fused] the program takes 2 immediates, not 1");
  auto broken = std::make_shared<program>(*o.program);
  broken->code[0].args[0] = 99;
  check({broken, o.immediates}, {f3}, "[fused] instruction 0 uses value 99 before it is computed");
  auto empty = std::make_shared<program>();
  check({empty, {}}, {}, "[fused] a program without instructions");
}
