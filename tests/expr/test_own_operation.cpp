// SPDX-License-Identifier: Apache-2.0
#include "own_operations.hpp"

#include <algorithm>
#include <cmath>
#include <deft/deft.hpp>
#include <functional>

#include "gpus.hpp"
#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;
using testing::make_halve;
using testing::make_leak;
using testing::make_running_sum;
using testing::make_swish;
using testing::maker;
using testing::own_graph;

namespace {

double swish_of(double x) { return x / (1 + std::exp(-x)); }
double slope_of(double x) {
  const double s = 1 / (1 + std::exp(-x));
  return s + x * s * (1 - s);
}

/// Compares the result of `write` on five numbers with `expected`, for fed and constant operands,
/// folded and fused.
template <class T, class Write>
void check_values(Write write, double (*expected)(double)) {
  const ndarray<T, 5> values{-3, -0.5, 0, 0.25, 4};
  for (bool fold : {true, false})
    for (bool fuse : {true, false})
      for (bool fed : {true, false}) {
        CAPTURE(fold);
        CAPTURE(fuse);
        CAPTURE(fed);
        own_graph own;
        session s({.fold = fold, .fuse = fuse});
        placeholder<T, 5> x("x");
        const any_array got = fed ? s.run(any_tensor(write(x)), x = values)
                                  : s.run(any_tensor(write(tensor<T, 5>(constant(values)))));
        for (int i = 0; i < 5; ++i)
          CHECK(got.data<T>()[i] ==
                doctest::Approx(expected(static_cast<double>(values(i)))).epsilon(1e-5));
      }
}
template <class Write>
void check_values(Write write, double (*expected)(double)) {
  check_values<float>(write, expected);
  check_values<double>(write, expected);
}

/// Compares the gradients of `write(x…)` with central differences.
void check_gradients(const std::function<any_tensor(const std::vector<any_tensor>&)>& write,
                     const std::vector<dims>& shapes) {
  own_graph own;
  session s;
  std::vector<any_tensor> xs;
  std::vector<any_array> values;
  for (const auto& d : shapes) {
    any_array a(dtype::float64, d);
    for (std::int64_t i = 0; i < a.elements(); ++i)
      a.mutable_data<double>()[i] = 0.4 * static_cast<double>((i + 3) * 7 % 11 - 4) - 0.1;
    values.push_back(a);
    xs.push_back(make_placeholder("x", dtype::float64, d));
  }
  const any_tensor y = write(xs), loss = sum(y * y * 0.5 + y);
  const std::vector<any_tensor> d = plan::gradients(loss, xs);
  auto fetch = [&](const any_tensor& t) {
    return shapes.size() == 1 ? std::get<0>(s.run(t, loss, feed(xs[0], values[0])))
                              : std::get<0>(s.run(t, loss, feed(xs[0], values[0]),
                                                  feed(xs[1], values[1]), feed(xs[2], values[2])));
  };
  for (std::size_t i = 0; i < xs.size(); ++i) {
    REQUIRE(d[i].valid());
    const any_array exact = fetch(d[i]);
    REQUIRE(exact.shape() == shapes[i]);
    for (std::int64_t e = 0; e < exact.elements(); ++e) {
      CAPTURE(i);
      CAPTURE(e);
      constexpr double h = 1e-5;
      const any_array before = values[i];
      auto at = [&](double step) {
        values[i] = before.clone();
        values[i].mutable_data<double>()[e] += step;
        return *fetch(loss).data<double>();
      };
      const double numeric = (at(h) - at(-h)) / (2 * h);
      values[i] = before;
      CHECK(exact.data<double>()[e] == doctest::Approx(numeric).epsilon(1e-6));
    }
  }
}

class halving final : public kernel {
 public:
  void prepare(std::span<const tensor_type> in, std::span<const tensor_type>) override {
    elements_ = in[0].shape.elements();
  }
  void run(const kernel_call& c) override {
    for (std::int64_t i = 0; i < elements_; ++i)
      static_cast<float*>(c.out[0])[i] = static_cast<const float*>(c.in[0])[i] / 2;
  }

 private:
  std::int64_t elements_ = 0;
};

}  // namespace

kernel_ptr testing::halve::make_kernel(const node_def&, std::span<const tensor_type>) {
  return std::make_unique<halving>();
}

TEST_CASE("a user's elementwise operation runs alone and in expressions") {
  SUBCASE("alone") {
    check_values([](const auto& x) { return make_swish(x); }, &swish_of);
  }
  SUBCASE("in an expression") {
    check_values([](const auto& x) { return relu(make_swish(x) + 1) * 2; },
                 [](double x) { return 2 * std::max(0.0, swish_of(x) + 1); });
  }
  SUBCASE("with a literal alone") {
    check_values([](const auto& x) { return make_leak(x, 0.5f, 1); },
                 [](double x) { return x < 0 ? x / 2 : x; });
  }
  SUBCASE("in statements that are joined when the plan is made") {
    check_values(
        [](const auto& x) {
          any_tensor a = make_swish(x);
          any_tensor b = exp(a);
          return b - make_swish(a);
        },
        [](double x) { return std::exp(swish_of(x)) - swish_of(swish_of(x)); });
  }
  SUBCASE("of tensors known at run time") {
    check_values([](const auto& x) { return make_swish(any_tensor(x)); }, &swish_of);
  }
}

TEST_CASE_FIXTURE(own_graph,
                  "alone it is a primitive node, in an expression it is part of the fused node") {
  placeholder<float, 4> x("x");
  tensor<float, 4> alone = make_swish(x), inside = make_swish(x) * 2;
  CHECK(maker(alone).def == &record_of<testing::swish>);
  REQUIRE(maker(inside).def == &record_of<op::fused>);
  CHECK(find_fused(*decode<op::fused>(maker(inside).attributes).program) != nullptr);
}

TEST_CASE("the process finds it by its name, which is unique") {
  CHECK(find_op("test_swish") == &record_of<testing::swish>);
  CHECK(is_known(record_of<testing::running_sum>));
  const auto all = known_ops();
  CHECK(std::ranges::count(all, &record_of<testing::swish>) == 1);
  CHECK(all.size() > catalog_ops().size());
  static constexpr op_def other = record_of<testing::swish>;
  CHECK_FALSE(is_known(other));
  CHECK(error_of([] { register_op(other); }) ==
        "already_exists: two operations of this program are named \"test_swish\"");
}

TEST_CASE_FIXTURE(own_graph, "operands are broadcast, literals take their dtype") {
  session s;
  placeholder<int, 2, 2> a("a");
  placeholder<int, 2> b("b");
  ndarray<int, 2, 2> v =
      s.run(make_leak(a, b, 3), a = ndarray<int, 2, 2>{1, -1, -2, 2}, b = ndarray<int, 2>{10, 100});
  CHECK(v == ndarray<int, 2, 2>{1, -300, -60, 2});
  any_tensor any(a);
  any_array w = s.run(make_leak(any, 10, 3), a = ndarray<int, 2, 2>{1, -1, -2, 2});
  CHECK(w.data<int>()[2] == -60);
}

TEST_CASE_FIXTURE(own_graph, "a dtype that its rule does not accept is refused with a message") {
  CHECK(error_of([] {
          make_swish(testing::any(dtype::int32, {3}));
        }).starts_with("invalid_argument: [test_swish] is not defined for int32"));
}

TEST_CASE("its gradient agrees with central differences") {
  using tensors = std::vector<any_tensor>;
  SUBCASE("one operand") {
    check_gradients([](const tensors& x) { return make_swish(x[0]); }, {{2, 3}});
  }
  SUBCASE("inside a fused node") {
    check_gradients(
        [](const tensors& x) {
          tensor<double, 5> t(x[0]);
          return any_tensor(make_swish(tanh(t) * 2) + t);
        },
        {{5}});
  }
  SUBCASE("three operands, broadcast") {
    check_gradients([](const tensors& x) { return make_leak(x[0], x[1], x[2]); },
                    {{2, 3}, {3}, {2, 1}});
  }
  SUBCASE("an operation that is not elementwise") {
    check_gradients([](const tensors& x) { return make_running_sum(x[0] * x[0]); }, {{2, 3}});
  }
  SUBCASE("a gradient's gradient") {
    check_gradients(
        [](const tensors& x) {
          return std::get<0>(gradients(make_swish(x[0]) + make_running_sum(x[0] * x[0]), x[0]));
        },
        {{2, 3}});
  }
}
TEST_CASE("its gradient has the expected values") {
  check_values([](const auto& x) { return std::get<0>(gradients(make_swish(x), x)); }, &slope_of);
}

TEST_CASE_FIXTURE(own_graph,
                  "an operation that is not elementwise has attributes and a shape rule") {
  session s;
  placeholder<float, 2, 3> x("x");
  const ndarray<float, 2, 3> v{1, 2, 3, 10, 20, 30};
  tensor<float, 2, 3> forward = make_running_sum(x);
  CHECK(s.run(forward, x = v) == ndarray<float, 2, 3>{1, 3, 6, 10, 30, 60});
  CHECK(s.run(make_running_sum(x * 2, true) + 1, x = v) ==
        ndarray<float, 2, 3>{13, 11, 7, 121, 101, 61});
  // Equal nodes are merged, others are not.
  CHECK(same(forward, make_running_sum(x)));
  CHECK_FALSE(same(forward, make_running_sum(x, true)));
  // Known at run time, of another dtype, and folded.
  any_array folded = s.run(make_running_sum(any_tensor(constant({1, 2, 3}))));
  CHECK(folded.type() == dtype::int32);
  CHECK(folded.data<int>()[2] == 6);
  CHECK(error_of([] {
          make_running_sum(testing::any(dtype::float32, {}));
        }).starts_with("invalid_argument: [test_running_sum] expects a last axis"));
  CHECK(error_of([&] {
          s.run(make_running_sum(any_tensor(constant({true, false}))));
        })
            .starts_with(
                "unimplemented: [test_running_sum] has no kernel for bool in this program: its "
                "kernel_types lack bool"));
}

TEST_CASE_FIXTURE(own_graph, "an operation may provide a kernel class") {
  session s;
  placeholder<float, dyn> x("x");
  CHECK(s.run(make_halve(x), x = {2.f, 5.f}) == ndarray<float, dyn>{1.f, 2.5f});
}

namespace {
/// Throws an exception other than deft::error if its first element is negative.
struct picky {
  static constexpr std::string_view name = "test_picky";
  static constexpr int arity = 1;
  static constexpr dtype_set kernel_types = floating_dtypes;
  static constexpr auto fields = field_list();
  tensor_type infer(std::span<const tensor_type> in) const { return in[0]; }
  template <class T>
  void compute(const kernel_arguments& a) const {
    if (a.in<T>(0)[0] < 0) throw std::runtime_error("not deft's");
    std::ranges::copy(a.in<T>(0), a.out<T>().begin());
  }
};
}  // namespace

TEST_CASE_FIXTURE(own_graph, "any exception that it throws fails the step, with the node's name") {
  placeholder<float, 96, 96> x("x");
  auto chain = [&](any_tensor t) {
    for (int i = 0; i < 24; ++i) t = matmul(t, any_tensor(x)) * 0.01f;
    return t;
  };
  any_tensor alone = make_node(picky{}, {}, any_tensor(x));
  any_tensor both = chain(alone) + chain(any_tensor(x) * 2.f);  // in two lanes
  ndarray<float, 96, 96> good, bad;
  std::ranges::fill(good, 0.01f);
  std::ranges::fill(bad, -1.f);
  session s({.intra_op_threads = 2});
  for (const any_tensor& fetch : {alone, both})
    for (int i = 0; i < 3; ++i) {
      const std::string e = error_of([&] { s.run(fetch, x = bad); });
      CHECK(e.starts_with("internal: not deft's, node \"test_picky"));
      CHECK(any_array(s.run(fetch, x = good)).elements() == 96 * 96);
    }
}

TEST_CASE_FIXTURE(own_graph, "placement finds its kernels by operation and dtype") {
  session s;
  for (const auto& d : list_devices(s)) {
    REQUIRE(d.kernels);
    if (d.name->type == "gpu") {
      CHECK(d.kernels->has("test_swish", dtype::float32) == testing::on_cuda());
      continue;
    }
    CHECK(d.kernels->has("test_swish", dtype::float32));
    CHECK(d.kernels->has("test_swish", dtype::float64));
    CHECK_FALSE(d.kernels->has("test_swish", dtype::int32));
    CHECK(d.kernels->types_of("test_running_sum") == numeric_dtypes);
  }
  session two({.cpu_devices = 2});
  placeholder<float, 3> x("x");
  tensor<float, 3> y;
  if (auto there = on(device("/cpu:1"))) y = make_swish(x);
  CHECK(two.device_of(y) == "/job:localhost/replica:0/task:0/cpu:1");
  CHECK(two.run(y, x = {0.f, 0.f, 0.f})(1) == 0);
  if (auto on_gpu = on(device("/gpu:0"))) y = make_swish(x);
  // NVRTC compiles its body for CUDA's GPUs.
  if (testing::on_cuda())
    CHECK(two.run(y, x = {0.f, 0.f, 0.f})(1) == 0);
  else
    CHECK(error_of([&] {
            two.run(y, x = {0.f, 0.f, 0.f});
          }).starts_with("invalid_argument: [test_swish] cannot be placed on \"/gpu:0\""));
}

TEST_CASE_FIXTURE(own_graph, "the tasks of a cluster can run it") {
  local_cluster c{{"worker", 2}};
  placeholder<float, 3> x("x");
  const ndarray<float, 3> v{-1, 0, 2};
  any_tensor alone, fused, statements, sums, slope;
  if (auto there = on(device("/job:worker/task:1"))) {
    alone = make_swish(x);
    fused = make_swish(x) * 2 + x;
    any_tensor a = make_swish(x), b = a + 1;
    statements = make_swish(b) * b;
    sums = make_running_sum(x, true);
    slope = std::get<0>(gradients(sum(make_swish(any_tensor(x))), any_tensor(x)));
  }
  for (bool fuse : {true, false}) {
    session s(c.target("worker", 0), {.fuse = fuse});
    auto [p, q, r, t, u] = s.run(alone, fused, statements, sums, slope, x = v);
    for (int i = 0; i < 3; ++i) {
      const double e = v(i), b = swish_of(e) + 1;
      CHECK(p.data<float>()[i] == doctest::Approx(swish_of(e)));
      CHECK(q.data<float>()[i] == doctest::Approx(swish_of(e) * 2 + e));
      CHECK(r.data<float>()[i] == doctest::Approx(swish_of(b) * b));
      CHECK(u.data<float>()[i] == doctest::Approx(slope_of(e)));
    }
    CHECK(t.data<float>()[0] == 1);
    CHECK(s.device_of(sums) == "/job:worker/replica:0/task:1/cpu:0");
  }
}
