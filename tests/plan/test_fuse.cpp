// SPDX-License-Identifier: Apache-2.0
#include <deft/op/gradients.hpp>
#include <deft/session/session.hpp>

#include "fusing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::device_at;
using testing::first;
using testing::flat;
using testing::fused;
using testing::names;
using testing::ops_of;
using testing::own_graph;

namespace {

std::string signature_of(const node_def& n) {
  REQUIRE(n.op == &record_of<op::fused>);
  return std::get<program_ref>(n.attributes[0])->signature;
}
/// A value of one element that is known only after all of `a`.
any_tensor argmax_of(const any_tensor& a) { return cast(argmax(a, axes{0}), dtype::float32); }
std::string signature_of(const any_tensor& t) {
  return decode<op::fused>(t.handle().node->attributes).program->signature;
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "primitive nodes are joined under the signature of the expression") {
  placeholder<float, dyn, 3> x("x");
  placeholder<float, 3> b("b");
  auto check_same = [&](const auto& written, const any_tensor& by_hand) {
    tensor_of<value_type_of<decltype(written)>, shape_type_of<decltype(written)>> whole(written);
    flat_graph f = fused(flat({by_hand}));
    const node_def& n = f.graph.nodes[f.fetches[0].node];
    CHECK(signature_of(n) == signature_of(any_tensor(whole)));
    CHECK(std::get<integers>(n.attributes[1]) ==
          decode<op::fused>(any_tensor(whole).handle().node->attributes).immediates);
    CHECK(n.name == name_of(by_hand));
    CHECK(n.outputs[0] == by_hand.handle().type());
  };
  any_tensor ax(x), ab(b);
  check_same(relu(x + b) * 2, relu(ax + ab) * 2);
  check_same(2 * x - 1, 2 * ax - 1);
  check_same(x * 2, ax * 2);
  check_same(where(x > 0, exp(x), b), where(ax > 0, exp(ax), ab));
  check_same(tanh(sigmoid(x) + exp(x)) / (x * x), tanh(sigmoid(ax) + exp(ax)) / (ax * ax));
  check_same(cast<double>(x) * 0.5 + 1, cast(ax, dtype::float64) * 0.5 + 1);
}

TEST_CASE_FIXTURE(own_graph, "a single primitive without literals stays as it is") {
  placeholder<float, 3> x("x");
  CHECK(ops_of(fused(flat({exp(any_tensor(x))})).graph) == names{"placeholder", "exp"});
}

TEST_CASE_FIXTURE(own_graph, "a small value that other nodes need is not fused") {
  placeholder<float, 3> x("x");
  any_tensor a = exp(any_tensor(x)), b = tanh(a), c = relu(b), d = argmax(a, axes{0});
  CHECK(ops_of(fused(flat({c, d})).graph) == names{"placeholder", "exp", "fused", "argmax"});
  CHECK(ops_of(fused(flat({c, b})).graph) == names{"placeholder", "fused", "relu"});
  CHECK(ops_of(fused(flat({c})).graph) == names{"placeholder", "fused"});
  any_tensor after = [&] {
    auto later = control_dependencies(b);
    return identity(c);
  }();
  CHECK(ops_of(fused(flat({after})).graph) == names{"placeholder", "fused", "relu", "identity"});
}

TEST_CASE_FIXTURE(own_graph, "a value used twice within a region is computed once") {
  placeholder<float, 3> x("x");
  any_tensor a = exp(any_tensor(x)), y = a * a + a;
  flat_graph f = fused(flat({y}));
  CHECK(signature_of(first(f.graph, "fused")) ==
        "t0=exp(i0:float):float t1=mul(t0,t0):float t2=add(t1,t0):float");
}

TEST_CASE_FIXTURE(own_graph, "expressions with names are joined, and stay pieces") {
  placeholder<float, dyn> x("x"), y("y");
  tensor<float, dyn> a = x * 2 + y;
  tensor<float, dyn> b = y + relu(a) * exp(a - 0.5f);
  tensor<float, dyn> c = tanh(b * y);
  flat_graph f = fused(flat({c}));
  CHECK(ops_of(f.graph) == names{"placeholder", "placeholder", "fused"});
  const auto o = decode<op::fused>(first(f.graph, "fused").attributes);
  CHECK(o.program->pieces == std::vector<program_piece>{{0, 2}, {2, 7}, {7, 9}});
  CHECK(o.immediates == integers{to_immediate(2.f), to_immediate(0.5f)});
  // Each piece is the expression that was written, with values of the whole program as operands.
  auto written = [](const any_tensor& t) {
    return decode<op::fused>(t.handle().node->attributes).program->signature;
  };
  const auto& p = *o.program;
  const any_tensor all[] = {a, b, c};
  for (std::size_t i = 0; i < 3; ++i) {
    const program_part alone = separate(p, p.pieces[i]);
    REQUIRE(alone.program);
    CHECK(alone.program->signature == written(all[i]));
    CHECK(alone.operands.size() == alone.program->inputs.size() + alone.program->immediates.size());
  }
  // A program without its pieces is the same program.
  program bare = p;
  bare.pieces.clear();
  bare.seal();
  CHECK(bare.signature == p.signature);
  CHECK(bare.hash == p.hash);
}

TEST_CASE_FIXTURE(own_graph,
                  "an expression that others need, or that is too long, ends the region") {
  placeholder<float, 3> x("x");
  tensor<float, 3> a = exp(x) + 1, b = tanh(a) * x, c = relu(b) - a;
  CHECK(ops_of(fused(flat({c})).graph) == names{"placeholder", "fused"});
  CHECK(ops_of(fused(flat({c, a})).graph) == names{"placeholder", "fused", "fused"});
  tensor<float, 3> t = x;
  for (int i = 0; i < 50; ++i) t = relu(t * 0.5f) + x;
  std::size_t operations = 0;
  const auto f = fused(flat({t}));
  for (const auto& n : f.graph.nodes)
    if (n.op == &record_of<op::fused>) {
      const auto o = decode<op::fused>(n.attributes);
      CHECK_NOTHROW(validate(*o.program));
      operations += o.program->code.size();
      CHECK(o.program->code.size() <= max_fused_operations);
    }
  CHECK(operations == 150);
  CHECK(f.graph.nodes.size() == 1 + 3);
}

TEST_CASE_FIXTURE(own_graph, "regions end at control dependencies, devices and other shapes") {
  placeholder<float, 3> x("x");
  any_tensor ax(x);
  auto before = no_op();
  any_tensor late = [&] {
    auto after = control_dependencies(before);
    return exp(ax);
  }();
  CHECK(ops_of(fused(flat({relu(late)})).graph) == names{"placeholder", "no_op", "exp", "relu"});
  any_tensor there = on(device("/gpu:0"), [&] { return tanh(exp(ax)); });
  flat_graph f = fused(flat({relu(-there)}));
  CHECK(ops_of(f.graph) == names{"placeholder", "fused", "fused"});
  CHECK(f.graph.nodes[1].device == device_at("/gpu:0"));
  CHECK(f.graph.nodes[2].device != f.graph.nodes[1].device);
  placeholder<float, 2, 1> column("column");
  any_tensor wide = exp(any_tensor(column)) + tanh(ax);
  CHECK(ops_of(fused(flat({wide})).graph) ==
        names{"placeholder", "exp", "placeholder", "tanh", "add"});
}

TEST_CASE_FIXTURE(own_graph, "devices without a kernel for fused nodes are left alone") {
  placeholder<float, 3> x("x");
  flat_graph f = flat({relu(exp(any_tensor(x)))});
  for (auto& n : f.graph.nodes) n.device = device_at("/job:a/replica:0/task:0/null:0");
  plan::fuse(f.graph, f.fetches,
             [](placement d, const op_def&, dtype) { return d->type != "null"; });
  CHECK(ops_of(f.graph) == names{"placeholder", "exp", "relu"});
}

TEST_CASE_FIXTURE(own_graph, "nodes are joined only where the device has a fused kernel") {
  placeholder<double, 4> x("x");
  flat_graph f = testing::on_cpu(flat({exp(any_tensor(x)) + any_tensor(x)}));
  plan::fuse(f.graph, f.fetches,
             [](placement, const op_def&, dtype t) { return t == dtype::float32; });
  CHECK(ops_of(f.graph) == names{"placeholder", "exp", "add"});
}

TEST_CASE_FIXTURE(own_graph, "a long chain is cut into programs of the largest size") {
  placeholder<float> x("x"), y("y");
  any_tensor z(x);
  for (int i = 0; i < 1000; ++i) z = i % 2 ? z * any_tensor(y) : z + 1;
  flat_graph f = fused(flat({z}));
  std::size_t operations = 0;
  for (const auto& n : f.graph.nodes)
    if (n.op == &record_of<op::fused>) {
      const auto& p = *std::get<program_ref>(n.attributes[0]);
      CHECK_NOTHROW(validate(p));
      operations += p.code.size();
    }
  CHECK(operations == 1000);
  CHECK(f.graph.nodes.size() <= 2 + 1000 / max_fused_operations + 1);
}

TEST_CASE_FIXTURE(own_graph, "named expressions have the same bits joined and separate") {
  placeholder<float, dyn, 7> x("x");
  placeholder<float, 7> row("row");
  placeholder<std::int32_t, dyn, 7> n("n");
  tensor<float, dyn, 7> a = x * 2.5f + row;
  tensor<float, dyn, 7> b = row + relu(a) * exp(a * -0.5f) - x * x;
  tensor<float, dyn, 7> c = where(b > 0.25f, tanh(b * row), a);
  tensor<std::int32_t, dyn, 7> k = cast<std::int32_t>(c * 100.f) * 3 + n;
  tensor<std::int32_t, dyn, 7> m = maximum(k, n * n) - 1;
  tensor<double, dyn, 7> wide = cast<double>(m) * 0.125 + cast<double>(c);
  session with, without({.fuse = false});
  for (std::int64_t rows : {0, 1, 3, 500, 40'000}) {
    CAPTURE(rows);
    ndarray<float, dyn, 7> xs(rows);
    ndarray<std::int32_t, dyn, 7> ns(rows);
    ndarray<float, 7> r{-1, .5f, 0, 2, .25f, -.125f, 3};
    int i = 0;
    for (auto& e : xs) e = static_cast<float>((i++ * 37) % 101 - 50) / 16;
    for (auto& e : ns) e = (i++ * 53) % 97 - 40;
    auto run = [&](session& s, const auto&... fetches) {
      return s.run(fetches..., x = xs, row = r, n = ns);
    };
    CHECK(run(with, wide) == run(without, wide));
    CHECK(run(with, wide, b) == run(without, wide, b));
  }
}

TEST_CASE_FIXTURE(own_graph, "a large value that other nodes need is a further result") {
  placeholder<float, dyn> x("x"), y("y");
  any_tensor ax(x), a = exp(ax), b = tanh(a), c = relu(b), d = argmax(a, axes{0});
  flat_graph f = fused(flat({c, d, a}));
  CHECK(ops_of(f.graph) == names{"placeholder", "fused", "argmax"});
  CHECK(signature_of(f.graph.nodes[1]) ==
        "t0=exp(i0:float):float t1=tanh(t0):float t2=relu(t1):float out t2 out t0");
  CHECK(f.graph.nodes[2].inputs[0] == edge_def{1, 1});
  CHECK(f.fetches[2] == edge_def{1, 1});
  CHECK(f.graph.nodes[1].outputs.size() == 2);
  // Not where another extent may be broadcast: y may have one element.
  any_tensor wide = relu(a + any_tensor(y));
  CHECK(ops_of(fused(flat({wide, d})).graph) ==
        names{"placeholder", "exp", "placeholder", "fused", "argmax"});
  // Nor if the region needs one of the other nodes.
  any_tensor around = a * argmax_of(a);
  CHECK(ops_of(fused(flat({around})).graph) ==
        names{"placeholder", "exp", "argmax", "cast", "mul"});
}

TEST_CASE_FIXTURE(own_graph, "a region comes before the users of its further results") {
  placeholder<float, 100, 100> x("x");
  any_tensor a = exp(any_tensor(x));
  any_tensor product = matmul(a, a);  // written before the region's last operation
  any_tensor b = tanh(a);
  flat_graph f = fused(flat({product, b}));
  CHECK(ops_of(f.graph) == names{"placeholder", "fused", "matmul"});
  CHECK(f.graph.nodes[2].inputs[0] == edge_def{1, 1});
  CHECK(f.fetches[1] == edge_def{1, 0});
  // They stay separate if the region needs such a user.
  any_tensor both = product + b;
  CHECK(ops_of(fused(flat({both})).graph) == names{"placeholder", "exp", "matmul", "fused"});
}

TEST_CASE_FIXTURE(own_graph, "reductions over all axes end a region") {
  placeholder<float, dyn, 4> x("x"), y("y");
  tensor<float, dyn, 4> d = x - y;
  any_tensor loss = mean(square(d) * 0.5f);
  flat_graph f = fused(flat({loss}));
  CHECK(ops_of(f.graph) == names{"placeholder", "placeholder", "fused"});
  CHECK(signature_of(f.graph.nodes[2]) ==
        "t0=sub(i0:float,i1:float):float t1=square(t0):float t2=mul(t1,k0:float):float "
        "t3=mean_whole(t2):float out t3_whole");
  CHECK(f.graph.nodes[2].outputs[0] == tensor_type{{}, dtype::float32});
  CHECK(ops_of(fused(flat({sum(any_tensor(x))})).graph) == names{"placeholder", "sum"});
}

TEST_CASE_FIXTURE(own_graph, "reductions over the first axes end a region") {
  placeholder<float, dyn, 4> x("x");
  flat_graph f = fused(flat({sum(exp(any_tensor(x)), axes{0})}));
  CHECK(ops_of(f.graph) == names{"placeholder", "fused"});
  CHECK(signature_of(f.graph.nodes[1]) ==
        "t0=exp(i0:float):float t1=sum_column(t0):float out t1_column rows of 1");
  CHECK(f.graph.nodes[1].outputs[0] == tensor_type{{4}, dtype::float32});
  placeholder<float, dyn, 3, 4> y("y");
  f = fused(flat({mean(exp(any_tensor(y)), axes{0}, keepdims)}));
  CHECK(f.graph.nodes[1].outputs[0] == tensor_type{{1, 3, 4}, dtype::float32});
  CHECK(program_in(f.graph.nodes[1].attributes)->row_axes == 2);
  // The gradients of a layer's activation and bias are one pass.
  placeholder<float, dyn, 4> dz("dz");
  tensor<float, dyn, 4> masked = dz * x;
  f = fused(flat({sum(masked, axis<0>), any_tensor(masked)}));
  CHECK(ops_of(f.graph) == names{"placeholder", "placeholder", "fused"});
  // An unknown number of columns, a single column, and inner axes are not fused.
  placeholder<float, dyn, dyn> open("open");
  CHECK(ops_of(fused(flat({sum(exp(any_tensor(open)), axes{0})})).graph) ==
        names{"placeholder", "exp", "sum"});
  placeholder<float, dyn, 1> one("one");
  CHECK(ops_of(fused(flat({sum(exp(any_tensor(one)), axes{0})})).graph) ==
        names{"placeholder", "exp", "sum"});
  CHECK(ops_of(fused(flat({sum(exp(any_tensor(y)), axes{1})})).graph) ==
        names{"placeholder", "exp", "sum"});
}

TEST_CASE_FIXTURE(own_graph, "reductions of one large value are one pass") {
  placeholder<float, 100, 64> x("x"), y("y");
  any_tensor a(x), b(y);
  flat_graph f = fused(flat({mean(a), mean(square(a)), max(a * b)}));
  CHECK(ops_of(f.graph) == names{"placeholder", "placeholder", "fused"});
  CHECK(f.graph.nodes[2].outputs.size() == 3);
  CHECK(ops_of(fused(flat({sum(a), max(a)})).graph) == names{"placeholder", "fused"});
  // So are reductions of rows and columns, with an elementwise result of the value.
  f = fused(flat({sum(a, axes{0}), max(a, axes{1}), relu(a) * b}));
  CHECK(ops_of(f.graph) == names{"placeholder", "placeholder", "fused"});
  // Reductions stay separate if one needs the other, if they are over all axes and over some, or if
  // the value is small.
  CHECK(ops_of(fused(flat({sum(a * mean(a)), sum(a)})).graph) ==
        names{"placeholder", "fused", "fused"});
  CHECK(ops_of(fused(flat({sum(a), sum(a, axes{0})})).graph) == names{"placeholder", "sum", "sum"});
  placeholder<float, 4, 64> small("small");
  any_tensor c(small);
  CHECK(ops_of(fused(flat({sum(c), max(c)})).graph) == names{"placeholder", "sum", "max"});
  // So do reductions without a common input.
  CHECK(ops_of(fused(flat({sum(a), sum(b)})).graph) ==
        names{"placeholder", "sum", "placeholder", "sum"});
}

TEST_CASE_FIXTURE(own_graph, "reductions over rows are used again within a region") {
  placeholder<float, dyn, 64> x("x");
  placeholder<float, 64> gain("gain");
  auto m = mean(x, axis<1>, keepdims);
  tensor<float, dyn, 64> d = x - m;
  auto v = mean(square(d), axis<1>, keepdims);
  any_tensor y = d / sqrt(v + 1e-5f) * gain;
  flat_graph f = fused(flat({y, any_tensor(m)}));
  CHECK(ops_of(f.graph) == names{"placeholder", "placeholder", "fused"});
  CHECK(signature_of(f.graph.nodes[2]) ==
        "t0=mean_row(i0:float):float t1=sub(i0:float,t0):float t2=square(t1):float "
        "t3=mean_row(t2):float t4=add(t3,k0:float):float t5=sqrt(t4):float t6=div(t1,t5):float "
        "t7=mul(t6,i1:float):float out t7 out t0_row keepdims rows of 1");
  CHECK(f.graph.nodes[2].outputs[1] == tensor_type{{dyn, 1}, dtype::float32});
  // A row value of one element joins no region of rows.
  placeholder<float, 1, 64> single("single");
  placeholder<float, 1, 1> factor("factor");
  any_tensor scaled = any_tensor(single) * exp(any_tensor(factor));
  CHECK(ops_of(fused(flat({scaled - mean(scaled, axes{1}, keepdims)})).graph) ==
        names{"placeholder", "placeholder", "exp", "fused"});
  placeholder<float, 1, 1> corner("corner");
  any_tensor moved = any_tensor(x) * exp(any_tensor(corner));
  f = fused(flat({moved - mean(moved, axes{1}, keepdims)}));
  CHECK(ops_of(f.graph) == names{"placeholder", "placeholder", "exp", "fused"});
  CHECK(decode<op::fused>(f.graph.nodes[3].attributes).program->row_axes == 1);
  // Without keepdims they can only be results.
  any_tensor dropped = sum(exp(any_tensor(x)), axes{1});
  f = fused(flat({dropped}));
  CHECK(ops_of(f.graph) == names{"placeholder", "fused"});
  CHECK(f.graph.nodes[1].outputs[0] == tensor_type{{dyn}, dtype::float32});
  // An expression of row values from outside the region stays a separate node.
  placeholder<float, dyn, 1> column("column");
  CHECK(ops_of(fused(flat({tanh(any_tensor(x)) * exp(any_tensor(column))})).graph) ==
        names{"placeholder", "placeholder", "exp", "fused"});
}

TEST_CASE_FIXTURE(own_graph, "rows that are left out of a region do not change its position") {
  placeholder<float, 4096, 64> x("x");
  placeholder<float, 4096, 1> v("v");
  any_tensor r = exp(any_tensor(v)), other = argmax(r, axes{0}), y = -(any_tensor(x) * r);
  flat_graph f = fused(flat({other, y}));
  CHECK(ops_of(f.graph) == names{"placeholder", "exp", "argmax", "placeholder", "fused"});
}

TEST_CASE_FIXTURE(own_graph, "fusing again leaves a region unchanged") {
  placeholder<float, dyn> x("x");
  any_tensor a = exp(any_tensor(x)), b = tanh(a), c = relu(b);
  flat_graph f = fused(flat({c, a}));
  const graph_def before = f.graph;
  CHECK(plan::fuse(f.graph, f.fetches).empty());
  CHECK(f.graph.nodes.size() == before.nodes.size());
  CHECK(f.graph.nodes[1].outputs.size() == 2);
}

TEST_CASE_FIXTURE(own_graph, "a region refuses the same input again") {
  placeholder<float, dyn, 4> x("x");
  any_tensor ax(x), largest = max(ax * 2);
  session s;
  auto refused = [&] {
    return testing::error_of([&] { s.run(largest, x = ndarray<float, dyn, 4>(0)); });
  };
  for (int i = 0; i < 2; ++i)
    CHECK(refused().starts_with("invalid_argument: [max] is undefined for zero"));
  ndarray<float, dyn, 4> some(3);
  for (auto& e : some) e = -1;
  CHECK(*s.run(largest, x = some).data<float>() == -2);
  for (int i = 0; i < 2; ++i)
    CHECK(refused().starts_with("invalid_argument: [max] is undefined for zero"));
}

TEST_CASE_FIXTURE(own_graph, "operands of a fold's inner steps are available in every step") {
  placeholder<std::uint8_t, dyn> n("n");
  placeholder<std::uint8_t> more("more");
  placeholder<float, dyn> x("x");
  tensor<float, dyn> y = cast<float>(n + more) * x;
  tensor<double, dyn> z = cast<double>(n + std::uint8_t{3}) * cast<double>(x);
  any_tensor sums = sum(y), wide = sum(z);
  session with, without({.fuse = false});
  ndarray<std::uint8_t, dyn> ns(5000);
  ndarray<float, dyn> xs(5000);
  int i = 0;
  for (auto& e : ns) e = static_cast<std::uint8_t>(i++ % 7);
  for (auto& e : xs) e = static_cast<float>(i++ % 5);
  auto run = [&](session& s) { return s.run(sums, wide, n = ns, more = std::uint8_t{2}, x = xs); };
  const auto [a, b] = run(with);
  const auto [c, d] = run(without);
  CHECK(*a.data<float>() == *c.data<float>());
  CHECK(*b.data<double>() == *d.data<double>());
}

TEST_CASE_FIXTURE(own_graph, "nodes that were kept separate are reported with the reason") {
  placeholder<float, 2, 3> x("x");
  placeholder<float, 3> r("r");
  any_tensor a = exp(any_tensor(x)), b = tanh(any_tensor(r)), c = a + b;
  flat_graph f = flat({c, a});
  for (auto& n : f.graph.nodes) n.device = device_at("/job:localhost/replica:0/task:0/cpu:0");
  std::vector<std::string> said;
  for (const auto& k : plan::fuse(f.graph, f.fetches))
    said.push_back(str(k.node, " and ", k.user, ": ", k.reason));
  CHECK(said == std::vector<std::string>{"tanh and add: it has another shape",
                                         "exp and add: others need its value, which is small"});
}

TEST_CASE_FIXTURE(own_graph, "results are the same with and without fusion") {
  placeholder<double, dyn, 3> x("x");
  placeholder<double, 3> b("b");
  any_tensor ax(x), ab(b), h = tanh(ax * ab + 1);
  any_tensor loss = sum(exp(h * -0.5) / (h * h + 2) + where(h > 0.5, h, ab * 3));
  auto [dx, db] = gradients(loss, ax, ab);
  any_tensor constants = exp(any_tensor(constant(2.)) * 3) - any_tensor(constant(1.));
  session with, without({.fold = false, .fuse = false}), unfolded({.fold = false});
  ndarray<double, 2, 3> xs{-1, .5, 0, 2, .25, -.125};
  ndarray<double, 3> bs{.5, -2, 1};
  auto run = [&](session& s) { return s.run(loss, dx, db, constants, x = xs, b = bs); };
  auto one = run(with), two = run(without), three = run(unfolded);
  auto same = [](const any_array& a, const any_array& c) {
    REQUIRE(a.shape() == c.shape());
    for (std::int64_t i = 0; i < a.elements(); ++i)
      CHECK(a.data<double>()[i] == c.data<double>()[i]);
  };
  std::apply(
      [&](const auto&... a) {
        std::apply([&](const auto&... c) { (same(a, c), ...); }, two);
        std::apply([&](const auto&... c) { (same(a, c), ...); }, three);
      },
      one);
}
