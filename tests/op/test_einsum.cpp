// SPDX-License-Identifier: Apache-2.0
#include <deft/op/einsum.hpp>
#include <deft/session/session.hpp>
#include <map>
#include <set>
#include <string>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::error_of;
using testing::own_graph;
using testing::type_of;

namespace {

/// What the letters say, by loops over all of them. `text` has an arrow, and no blanks.
any_array by_loops(std::string_view text, const std::vector<any_array>& x) {
  std::vector<std::string> in(1);
  const std::size_t arrow = text.find("->");
  for (char c : text.substr(0, arrow)) c == ',' ? void(in.emplace_back()) : in.back().push_back(c);
  const std::string out(text.substr(arrow + 2));
  std::map<char, std::int64_t> extents, index;
  for (std::size_t i = 0; i < in.size(); ++i)
    for (std::size_t axis = 0; axis < in[i].size(); ++axis)
      extents[in[i][axis]] = x[i].shape()[static_cast<int>(axis)];
  const auto offset = [&](const std::string& letters) {
    std::int64_t at = 0;
    for (char c : letters) at = at * extents[c] + index[c];
    return at;
  };
  dims shape;
  for (char c : out) shape.push_back(extents[c]);
  any_array y(dtype::float64, shape);
  std::fill_n(y.mutable_data<double>(), y.elements(), 0.0);
  std::int64_t all = 1;
  for (const auto& [c, e] : extents) all *= e;
  for (std::int64_t i = 0; i < all; ++i) {
    std::int64_t rest = i;
    for (const auto& [c, e] : extents) index[c] = rest % e, rest /= e;
    double term = 1;
    for (std::size_t k = 0; k < in.size(); ++k) term *= x[k].data<double>()[offset(in[k])];
    y.mutable_data<double>()[offset(out)] += term;
  }
  return y;
}

/// Small integers, whose sums are exact in any order.
any_array integers_of(const dims& shape, int seed) {
  any_array a(dtype::float64, shape);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.mutable_data<double>()[i] = static_cast<double>((i * 7 + seed) % 5 - 2);
  return a;
}

/// How many nodes of each operation compute a tensor.
std::map<std::string, int> operations_behind(const any_tensor& t) {
  std::map<std::string, int> count;
  std::set<const node*> seen;
  const auto visit = [&](auto& self, const node& n) -> void {
    if (!seen.insert(&n).second) return;
    ++count[std::string(n.def->name)];
    for (const auto& i : n.inputs()) self(self, *i.node);
  };
  visit(visit, *t.handle().node);
  return count;
}

/// Compares with loops, for extents that are known and for those that only a run knows, and counts
/// products of matrices, transposes and sums.
template <class Text, class... Shape>
void check(Text text, int products, int transposes, int sums, const Shape&... shape) {
  INFO(text.view);
  const std::vector<dims> shapes{shape...};
  std::vector<any_array> values;
  for (const dims& d : shapes) values.push_back(integers_of(d, static_cast<int>(values.size())));
  const any_array expected = by_loops(text.view, values);
  for (bool known : {true, false}) {
    CAPTURE(known);
    own_graph own;
    session s;
    std::vector<any_tensor> x;
    for (const dims& d : shapes)
      x.push_back(any(dtype::float64, known ? d : dims::filled(d.n, dyn)));
    const auto of = [&](auto... i) { return einsum(text, x[static_cast<std::size_t>(i)]...); };
    any_tensor y;
    any_array got;
    if constexpr (sizeof...(Shape) == 1) {
      y = of(0);
      got = s.run(y, feed(x[0], values[0]));
    } else if constexpr (sizeof...(Shape) == 2) {
      y = of(0, 1);
      got = s.run(y, feed(x[0], values[0]), feed(x[1], values[1]));
    } else {
      y = of(0, 1, 2);
      got = s.run(y, feed(x[0], values[0]), feed(x[1], values[1]), feed(x[2], values[2]));
    }
    CHECK(to_string(got.shape()) == to_string(expected.shape()));
    CHECK(got == expected);
    auto count = operations_behind(y);
    CHECK(count["matmul"] == products);
    CHECK(count["transpose"] == transposes);
    CHECK(count["sum"] == sums);
  }
}

}  // namespace

TEST_CASE("sums of products by letters agree with loops") {
  SUBCASE("one operand") {
    check("ij->ij"_es, 0, 0, 0, dims{2, 3});
    check("ij->ji"_es, 0, 1, 0, dims{2, 3});
    check("ijk->j"_es, 0, 0, 1, dims{2, 3, 4});
    check("ijk->ki"_es, 0, 1, 1, dims{2, 3, 4});
    check("ij->"_es, 0, 0, 1, dims{2, 3});
    check("->"_es, 0, 0, 0, dims{});
  }
  SUBCASE("matrices, without moving an axis") {
    check("ij,jk->ik"_es, 1, 0, 0, dims{2, 3}, dims{3, 4});
    check("ji,jk->ik"_es, 1, 0, 0, dims{3, 2}, dims{3, 4});
    check("ij,kj->ik"_es, 1, 0, 0, dims{2, 3}, dims{4, 3});
    check("ji,kj->ik"_es, 1, 0, 0, dims{3, 2}, dims{4, 3});
    check("ij,jk->ki"_es, 1, 0, 0, dims{2, 3}, dims{3, 4});
    check("ij,kj->ki"_es, 1, 0, 0, dims{2, 3}, dims{4, 3});
    check("i,i->"_es, 1, 0, 0, dims{5}, dims{5});
    check("ij,j->i"_es, 1, 0, 0, dims{2, 3}, dims{3});
    check("i,ij->j"_es, 1, 0, 0, dims{2}, dims{2, 3});
    check("ij,ij->"_es, 1, 0, 0, dims{2, 3}, dims{2, 3});
    check("ij,ji->"_es, 1, 1, 0, dims{2, 3}, dims{3, 2});
    check("ijk,jkl->il"_es, 1, 0, 0, dims{2, 3, 4}, dims{3, 4, 2});
    check("ij,jkl->ikl"_es, 1, 0, 0, dims{2, 3}, dims{3, 4, 2});
    check("jkl,ij->kli"_es, 1, 1, 0, dims{3, 4, 2}, dims{2, 3});
    check("ijk,klm->ijlm"_es, 1, 0, 0, dims{2, 2, 3}, dims{3, 4, 2});
  }
  SUBCASE("batches") {
    check("bij,bjk->bik"_es, 1, 0, 0, dims{5, 2, 3}, dims{5, 3, 4});
    check("bij,bjk->bki"_es, 1, 0, 0, dims{5, 2, 3}, dims{5, 3, 4});
    check("bji,bkj->bik"_es, 1, 0, 0, dims{5, 3, 2}, dims{5, 4, 3});
    check("bij,jk->bik"_es, 1, 0, 0, dims{5, 2, 3}, dims{3, 4});
    check("jk,bij->bik"_es, 1, 0, 0, dims{3, 4}, dims{5, 2, 3});
    check("bhqd,bhkd->bhqk"_es, 1, 0, 0, dims{2, 3, 4, 5}, dims{2, 3, 2, 5});
    check("bhqk,bhkd->bhqd"_es, 1, 0, 0, dims{2, 3, 4, 5}, dims{2, 3, 5, 2});
    check("bqhd,bkhd->bhqk"_es, 1, 2, 0, dims{2, 4, 3, 5}, dims{2, 2, 3, 5});
    check("bhqk,bkhd->bqhd"_es, 1, 2, 0, dims{2, 3, 4, 5}, dims{2, 5, 3, 2});
    check("bi,bi->b"_es, 1, 0, 0, dims{3, 4}, dims{3, 4});
    check("bij,bj->bi"_es, 1, 0, 0, dims{3, 2, 4}, dims{3, 4});
    check("bxij,bjk->bxik"_es, 1, 0, 0, dims{2, 3, 2, 4}, dims{2, 4, 3});
    check("bijk,bkjl->bil"_es, 1, 1, 0, dims{2, 3, 2, 4}, dims{2, 4, 2, 3});
    check("bij,bjkl->bikl"_es, 1, 0, 0, dims{2, 3, 4}, dims{2, 4, 2, 3});
    check("ib,jb->bij"_es, 0, 2, 0, dims{2, 3}, dims{4, 3});
  }
  SUBCASE("elementwise, where no letter is summed over") {
    check("ij,ij->ij"_es, 0, 0, 0, dims{2, 3}, dims{2, 3});
    check("i,j->ij"_es, 0, 0, 0, dims{2}, dims{3});
    check("i,j->ji"_es, 0, 0, 0, dims{2}, dims{3});
    check("ij,ji->ij"_es, 0, 1, 0, dims{2, 3}, dims{3, 2});
    check(",ij->ij"_es, 0, 0, 0, dims{}, dims{2, 3});
    check("ij,->ij"_es, 0, 0, 0, dims{2, 3}, dims{});
  }
  SUBCASE("letters of one operand alone are summed first") {
    check("ij,jk->k"_es, 1, 0, 1, dims{2, 3}, dims{3, 4});
    check("ij,kl->"_es, 0, 0, 2, dims{2, 3}, dims{3, 4});
    check("aij,jkb->ik"_es, 1, 0, 2, dims{2, 2, 3}, dims{3, 4, 2});
    check("ij,kl->il"_es, 0, 0, 2, dims{2, 3}, dims{3, 4});
  }
  SUBCASE("several operands, from left to right") {
    check("ij,jk,kl->il"_es, 2, 0, 0, dims{2, 3}, dims{3, 4}, dims{4, 2});
    check("i,ij,j->"_es, 2, 0, 0, dims{2}, dims{2, 3}, dims{3});
    check("bi,bj,b->ij"_es, 1, 0, 0, dims{3, 2}, dims{3, 4}, dims{3});
    check("bhqd,bhkd,bhk->bhq"_es, 2, 0, 0, dims{2, 3, 4, 5}, dims{2, 3, 2, 5}, dims{2, 3, 2});
  }
  SUBCASE("no elements") {
    check("ij,jk->ik"_es, 1, 0, 0, dims{2, 0}, dims{0, 4});
    check("bij,bjkl->bikl"_es, 1, 0, 0, dims{2, 3, 0}, dims{2, 0, 2, 3});
    check("ij,jkl->ikl"_es, 1, 0, 0, dims{2, 3}, dims{3, 0, 2});
  }
}

TEST_CASE_FIXTURE(own_graph, "the result of einsum has the extents of its letters") {
  placeholder<double, dyn, 3, 4> a("a");
  placeholder<double, 2, 4, dyn> b("b");
  placeholder<std::int32_t, 4, 3> c("c");
  static_assert(
      std::is_same_v<decltype(einsum("bij,bjk->bik"_es, a, b)), tensor<double, 2, 3, dyn>>);
  static_assert(std::is_same_v<decltype(einsum("bij->jb"_es, a)), tensor<double, 4, dyn>>);
  // Without an arrow: letters that occur once, in alphabetical order.
  static_assert(std::is_same_v<decltype(einsum("ji,jk"_es, c, c)), tensor<std::int32_t, 3, 3>>);
  static_assert(std::is_same_v<decltype(einsum("ba"_es, c)), tensor<std::int32_t, 3, 4>>);
  static_assert(std::is_same_v<decltype(einsum("aB"_es, c)), tensor<std::int32_t, 3, 4>>);
  static_assert(std::is_same_v<decltype(einsum("i j, i j"_es, c, c)), tensor<std::int32_t>>);
  CHECK(same(any_tensor(einsum("ji, jk -> ik"_es, c, c)), einsum("ji,jk"_es, c, any_tensor(c))));
  session s;
  const tensor<std::int32_t, 3, 3> d = einsum("ji,jk"_es, c, c + 1);
  CHECK(s.run(d, c = {{1, 2, 3}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}}) ==
        ndarray<std::int32_t, 3, 3>{{4, 5, 6}, {7, 10, 11}, {9, 12, 16}});
}

TEST_CASE_FIXTURE(own_graph, "operands that are not what the letters say are refused") {
  const auto refused = [](auto text, const dims& a, const dims& b) {
    const std::string all =
        error_of([&] { einsum(text, any(dtype::float32, a), any(dtype::float32, b)); });
    return all.substr(0, all.find(", node"));
  };
  const std::string at = "invalid_argument: [einsum] ";
  CHECK(refused("ij,jk->ik"_es, {2, 3}, {4, 5}) ==
        at + "\"ij,jk->ik\" the extents of j differ: (2,3) x (4,5)");
  CHECK(refused("ij,jk"_es, {2, 3}, {3}) ==
        at + "\"ij,jk\" has 2 letters for operand 2, which is (3)");
  CHECK(error_of([&] {
          einsum("i,i"_es, any(dtype::float32, {2}), any(dtype::float64, {2}));
        }).starts_with(at + "the operands' dtypes differ: float and double; use cast"));
  CHECK(error_of([&] {
          einsum("i,i"_es, any(dtype::float32, {2}), any_tensor());
        }).starts_with("failed_precondition: an empty tensor is used as operand 2"));
  placeholder<float, dyn, 3> x("x");
  placeholder<float, dyn, 5> y("y");
  session s;
  CHECK(error_of([&] {
          s.run(einsum("ij,ik->jk"_es, x, y), feed(x, any_array(dtype::float32, {2, 3})),
                feed(y, any_array(dtype::float32, {4, 5})));
        }).starts_with("invalid_argument: [matmul] inner extents differ: (2,3)T x (4,5)"));
}

TEST_CASE_FIXTURE(own_graph, "einsum is where it was written") {
  const tensor<float, 2, 3> a(zeros(shape<2, 3>));
  const any_tensor b = any(dtype::float32, {3, 4}), c = any(dtype::float32, {4, 2});
  const unsigned before = __LINE__;
  const any_tensor one = einsum("ij->ji"_es, a), two = einsum("ij,jk->ik"_es, a, b);
  const any_tensor three = einsum("ij,jk,kl->il"_es, a, b, c);
  CHECK(one.handle().node->location().line == before + 1);
  CHECK(two.handle().node->location().line == before + 1);
  CHECK(three.handle().node->location().line == before + 2);
}
