// SPDX-License-Identifier: Apache-2.0
#include <deft/op/gradients.hpp>
#include <deft/plan/shapes.hpp>
#include <deft/session/session.hpp>

#include "planning.hpp"

using namespace deft;
using namespace deft::ext;
using testing::find_op_in;
using testing::first;
using testing::flat;
using testing::names;
using testing::ops_of;
using testing::own_graph;

namespace {

flat_graph followed(flat_graph f) {
  f = testing::on_cpu(std::move(f));
  plan::follow_shapes(f.graph, f.fetches);
  validate(f.graph, f.fetches);
  return f;
}
std::string_view name_of_input(const graph_def& g, const node_def& n, std::size_t i) {
  return g.nodes[n.inputs.at(i).node].name.str();
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "an extent is read from the first node that has it") {
  placeholder<float, dyn, 3> x("x");
  placeholder<float, 3> b("b");
  any_tensor y = exp(any_tensor(x) * any_tensor(b));
  flat_graph f = followed(flat({any_tensor(size_of(softmax(y), axes{0}))}));
  CHECK(ops_of(f.graph) == names{"placeholder", "size_of"});
  CHECK(decode<op::size_of>(f.graph.nodes[1].attributes).axes == dims{0});
  f = followed(flat({any_tensor(size_of(sum(y, axes{1}), axes{0}))}));
  CHECK(ops_of(f.graph) == names{"placeholder", "size_of"});
  // A matrix product is the first node with its extents.
  placeholder<float, dyn, dyn> p("p");
  any_tensor of_product = matmul(any_tensor(p), any_tensor(p)), h = tanh(of_product);
  f = followed(flat({any_tensor(size_of(h, axes{1}))}));
  CHECK(name_of_input(f.graph, first(f.graph, "size_of"), 0) == name_of(of_product));
  // The number of all elements is followed through elementwise operations, also of an operand that
  // is broadcast, if another one has the extents of the result.
  f = followed(flat({any_tensor(size_of(h))}));
  CHECK(name_of_input(f.graph, first(f.graph, "size_of"), 0) == name_of(of_product));
  f = followed(flat({any_tensor(size_of(square(1.f - exp(any_tensor(x) * any_tensor(b)))))}));
  CHECK(ops_of(f.graph) == names{"placeholder", "size_of"});
  CHECK(decode<op::size_of>(f.graph.nodes[1].attributes).axes == dims{0, 1});
  any_tensor repeated = broadcast_to(any_tensor(constant(1.f)), any_tensor(x));
  f = followed(flat({any_tensor(size_of(repeated * exp(any_tensor(x))))}));
  CHECK(ops_of(f.graph) == names{"placeholder", "size_of"});
  placeholder<float, dyn, 1> column("column");
  placeholder<float, 1, dyn> row("row");
  any_tensor table = any_tensor(column) + any_tensor(row);
  f = followed(flat({any_tensor(size_of(exp(table)))}));
  CHECK(name_of_input(f.graph, first(f.graph, "size_of"), 0) == name_of(table));
  // An extent on another device is not.
  any_tensor there = [&] {
    auto on_gpu = on(device("/job:localhost/replica:0/task:0/gpu:0"));
    return any_tensor(size_of(exp(y), axes{0}));
  }();
  f = followed(flat({there}));
  CHECK(f.graph.nodes[first(f.graph, "size_of").inputs[0].node].op->name != "placeholder");
}

TEST_CASE_FIXTURE(own_graph, "a reduction keeps the axes that would be added again") {
  placeholder<float, dyn, 64> x("x");
  any_tensor a(x), m = mean(a, axes{1});
  flat_graph f = followed(flat({a - expand_dims(m, axes{1})}));
  CHECK(ops_of(f.graph) == names{"placeholder", "mean", "sub"});
  CHECK(decode<op::mean>(f.graph.nodes[1].attributes).keepdims);
  CHECK(f.graph.nodes[1].outputs[0] == tensor_type{{dyn, 1}, dtype::float32});
  CHECK(ops_of(followed(flat({expand_dims(sum(a), axes{0, 1})})).graph) ==
        names{"placeholder", "sum"});
  // It does not if others need it without the axes, or if the axes are inserted at other positions.
  CHECK(ops_of(followed(flat({a - expand_dims(m, axes{1}), m})).graph) ==
        names{"placeholder", "mean", "reshape", "sub"});
  CHECK(ops_of(followed(flat({expand_dims(m, axes{0})})).graph) ==
        names{"placeholder", "mean", "reshape"});
  // Nor if another value gives the extents.
  placeholder<float, dyn, 8, 0> empty("empty");
  placeholder<float, dyn, 1, 0> like("like");
  CHECK(
      ops_of(followed(flat({reshape(sum(any_tensor(empty), axes{1}), any_tensor(like))})).graph) ==
      names{"placeholder", "sum", "placeholder", "reshape"});
  placeholder<float, 64, 64> square("square");
  CHECK(ops_of(followed(flat({expand_dims(sum(any_tensor(square), axes{1}), axes{0})})).graph) ==
        names{"placeholder", "sum", "reshape"});
}

TEST_CASE_FIXTURE(own_graph, "operations that broadcast take a value before its broadcast_to") {
  placeholder<float, dyn, 3> x("x"), z("z");
  placeholder<float> s("s");
  any_tensor ax(x), as(s), repeated = broadcast_to(as, ax);
  CHECK(ops_of(followed(flat({exp(ax) * repeated})).graph) ==
        names{"placeholder", "exp", "placeholder", "mul"});
  // Operands that might be broadcast to each other do not determine the extents of the result.
  placeholder<float, dyn, dyn> wide("wide");
  flat_graph f = followed(flat({any_tensor(wide) * repeated}));
  CHECK(find_op_in(f.graph, "broadcast_to") > 0);
  f = followed(flat({any_tensor(z) * repeated}));
  CHECK(find_op_in(f.graph, "broadcast_to") > 0);
  // Nor does an operand that is itself broadcast.
  f = followed(flat({repeated * broadcast_to(as * 2.f, ax)}));
  CHECK(find_op_in(f.graph, "broadcast_to") > 0);
  // A value that might not fit the shape keeps its broadcast_to, which refuses it.
  placeholder<float, dyn> v("v"), narrow("narrow");
  any_tensor an(narrow);
  f = followed(flat({exp(an) * broadcast_to(any_tensor(v), an)}));
  CHECK(find_op_in(f.graph, "broadcast_to") > 0);
  // A row's reduction always fits.
  any_tensor sums = sum(ax, axes{1}, keepdims);
  f = followed(flat({exp(ax) * broadcast_to(sums, ax)}));
  CHECK(std::ranges::count(ops_of(f.graph), "broadcast_to") == 0);
  // So does a scalar where extents are known.
  placeholder<float, 2, 3> known("known");
  CHECK(ops_of(followed(flat({any_tensor(known) + broadcast_to(as, shape<2, 3>)})).graph) ==
        names{"placeholder", "placeholder", "add"});
}

TEST_CASE_FIXTURE(own_graph, "values are the same with and without followed shapes") {
  placeholder<float, dyn, 4> x("x");
  placeholder<float, 4> b("b");
  any_tensor ax(x), h = tanh(ax * any_tensor(b) + 0.5f);
  any_tensor loss = mean(square(h - 1.f)) + mean(h, axes{0}, keepdims) * 0.f;
  auto [dx, db] = gradients(loss, ax, any_tensor(b));
  session with, without({.fuse = false});
  for (std::int64_t n : {1, 2, 7}) {
    ndarray<float, dyn, 4> xs(n);
    int i = 0;
    for (auto& e : xs) e = static_cast<float>(i++ % 5) / 4 - .3f;
    const ndarray<float, 4> bs{1, -2, .5f, 0};
    CHECK(with.run(loss, dx, db, x = xs, b = bs) == without.run(loss, dx, db, x = xs, b = bs));
  }
}

TEST_CASE_FIXTURE(own_graph, "a number is repeated last") {
  placeholder<float> k("k");
  placeholder<float, 4, 3> x("x");
  const auto repeated = [](std::initializer_list<any_tensor> fetches) {
    flat_graph f = flat(fetches);
    plan::repeat_last(f.graph, f.fetches);
    validate(f.graph, f.fetches);
    return f;
  };
  const auto repeats = [](const flat_graph& f) {
    return std::ranges::count(ops_of(f.graph), "broadcast_to");
  };
  const any_tensor all = broadcast_to(any_tensor(k), dims{4, 3});
  const any_tensor twice = exp(all * 2.f), product = twice * any_tensor(x);
  const flat_graph f = repeated({product});
  CHECK(repeats(f) == 0);
  CHECK(first(f.graph, "exp").outputs[0] == tensor_type{dims{}, dtype::float32});
  // What others need as it is stays.
  CHECK(repeats(repeated({product, twice})) == 1);
  CHECK(repeats(repeated({product, any_tensor(sum(twice, axes{0}))})) == 1);
  CHECK(repeats(repeated({twice * all})) == 1);
  // So does what is computed from it.
  const flat_graph chain = repeated({twice, any_tensor(square(twice) * any_tensor(x))});
  CHECK(first(chain.graph, "square").outputs[0].shape == dims{4, 3});
  // A smaller tensor is repeated last as well, if all that repeat have its extents.
  placeholder<float, 1, 3> row("row");
  placeholder<float, 4, 1> column("column");
  const any_tensor rows = broadcast_to(any_tensor(row), dims{4, 3});
  const any_tensor columns = broadcast_to(any_tensor(column), dims{4, 3});
  const flat_graph small = repeated({rows * 2.f * all * any_tensor(x)});
  CHECK(repeats(small) == 0);
  CHECK(first(small.graph, "mul").outputs[0] == tensor_type{dims{1, 3}, dtype::float32});
  CHECK(repeats(repeated({rows * columns * any_tensor(x)})) == 2);
  // The extents of a placeholder may differ from those of the repeated number.
  placeholder<float, dyn> a("a"), b("b");
  const any_tensor like_a = broadcast_to(any_tensor(k), any_tensor(a)) * 2.f;
  CHECK(repeats(repeated({like_a * any_tensor(b)})) == 1);
  CHECK(repeats(repeated({like_a * any_tensor(a)})) == 0);
  session s;
  ndarray<float, 4, 3> ones;
  for (auto& e : ones) e = 1;
  const auto of_rows = s.run(rows * 2.f * any_tensor(x), exp(rows), row = {{1, 2, 3}}, x = ones);
  CHECK(std::get<0>(of_rows).data<float>()[10] == 4);
  CHECK(std::get<1>(of_rows).shape() == dims{4, 3});
  const auto of_number = s.run(product, k = 0.5f, x = ndarray<float, 4, 3>{});
  CHECK(of_number == ndarray<float, 4, 3>().array());
}
