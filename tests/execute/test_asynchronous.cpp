// SPDX-License-Identifier: Apache-2.0
// What asynchronous devices (delayed_device.hpp) compute, copy and allocate.
#include <deft/op/gradients.hpp>
#include <deft/session/session.hpp>

#include "classifier.hpp"
#include "delayed_device.hpp"

using namespace deft;
using namespace deft::ext;
using testing::losses_on;
using testing::simulated_gpus;
using testing::with_slow_devices;

TEST_CASE_FIXTURE(with_slow_devices, "a model on a slow device has the processor's bits") {
  const auto expected = losses_on("/cpu:0", "/cpu:0");
  REQUIRE(expected.size() == 12);
  for (int longest : {0, 50, 200}) {
    CAPTURE(longest);
    simulated_gpus().longest_us = longest;
    CHECK(losses_on("/slow:0", "/slow:0") == expected);
    CHECK(losses_on("/slow:0", "/slow:1") == expected);
  }
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "a random operation on a slow device draws the processor's numbers") {
  auto draw = [](const char* where) {
    graph g;
    auto in_graph = as_default(g);
    set_seed(11);
    placeholder<float> scale("scale");
    auto [noise, scaled] = on(device(where), [&] {
      auto n = random_uniform(shape<100>);
      return std::pair(n, tensor<float, 100>(random_normal(shape<100>) * scale));
    });
    session s;
    std::vector<ndarray<float, 100>> drawn;
    for (int i = 0; i < 6; ++i) {
      auto [a, b] = s.run(noise, scaled, scale = 2.f);
      drawn.push_back(a), drawn.push_back(b);
    }
    return drawn;
  };
  const auto expected = draw("/cpu:0");
  for (std::size_t i = 2; i < expected.size(); ++i) CHECK(expected[i] != expected[i - 2]);
  for (int longest : {0, 100}) {
    simulated_gpus().longest_us = longest;
    CHECK(draw("/slow:0") == expected);
  }
}

namespace {

/// Reverses the elements, through scratch memory.
struct reverse_op {
  static constexpr std::string_view name = "test_reverse";
  static constexpr int arity = 1;
  tensor_type infer(std::span<const tensor_type> in) const { return in[0]; }
};
struct reverse_kernel final : kernel {
  void prepare(std::span<const tensor_type> in, std::span<const tensor_type>) override {
    n = in[0].shape.elements();
  }
  void run(const kernel_call& c) override {
    const auto* in = static_cast<const float*>(c.in[0]);
    auto *out = static_cast<float*>(c.out[0]), *between = static_cast<float*>(c.scratch);
    auto apart = [&](const float* p) { return between + n <= p || p + n <= between; };
    if (!apart(in) || !apart(out)) fail(errc::internal, "[test_reverse] scratch is a value's");
    std::copy(in, in + n, between);
    std::reverse_copy(between, between + n, out);
  }
  std::size_t scratch() const override { return static_cast<std::size_t>(n) * sizeof(float); }
  std::int64_t n = 0;
};
const bool registered = [] {
  static constexpr kernel_entry table[] = {
      {reverse_op::name, all_dtypes,
       [](const node_def&, std::span<const tensor_type>) -> kernel_ptr {
         return std::make_unique<reverse_kernel>();
       }},
  };
  register_op(record_of<reverse_op>);
  register_cpu_kernels(table);
  return true;
}();
any_tensor reversed(const any_tensor& x) {
  const output in[] = {x.handle()};
  return detail::add_node(record_of<reverse_op>, {}, in, here());
}

}  // namespace

TEST_CASE_FIXTURE(with_slow_devices, "a kernel has separate scratch memory on its device") {
  placeholder<float, dyn> x("x");
  auto on_device = [&](const char* where) {
    return on(device(where), [&] { return reversed(reversed(reversed(any_tensor(x)) * 2) + 1); });
  };
  const any_tensor one = on_device("/slow:0"), other = on_device("/slow:1");
  const any_tensor host = on_device("/cpu:0");
  session s;
  for (int longest : {0, 50})
    for (int i = 0; i < 12; ++i) {
      simulated_gpus().longest_us = longest;
      ndarray<float, dyn> v(5 + 1000 * (i % 4));
      for (std::int64_t k = 0; k < v.size(); ++k) v(k) = static_cast<float>(k + i);
      auto [a, b, c] = s.run(one, other, host, x = v);
      for (std::int64_t k = 0; k < v.size(); ++k) {
        REQUIRE(c.data<float>()[k] == 2 * v(v.size() - 1 - k) + 1);
        REQUIRE(a.data<float>()[k] == c.data<float>()[k]);
        REQUIRE(b.data<float>()[k] == c.data<float>()[k]);
      }
    }
  for (int i = 0; i < 5; ++i) {
    simulated_gpus().reset_counts();
    static_cast<void>(s.run(one, x = ndarray<float, dyn>(1000)));
    if (i > 2) CHECK(simulated_gpus().allocations == 0);
  }
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "a step waits once, allocates nothing, and copies only transfers") {
  placeholder<float, 4, 8> x("x");
  placeholder<float> rate("rate"), scale("scale");
  auto w = on(device("/slow:0"), [] { return variable<float, 8, 3>("w", truncated_normal(0.5f)); });
  auto [loss, step] = on(device("/slow:0"), [&] {
    auto l = sum(square(matmul(x, w) * scale));
    auto [dw] = gradients(l, w);
    return std::pair(l, w.assign_sub(dw * rate));
  });
  session s;
  s.run(initialize_all());
  auto prepared = s.prepare(loss, step, feeds(x, rate, scale));
  ndarray<float, 4, 8> batch;
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 8; ++k) batch(i, k) = static_cast<float>(i + k) / 8;
  float last = 0;
  for (int i = 0; i < 2; ++i) last = prepared(batch, 0.001f, 1.f);
  for (int i = 0; i < 5; ++i) {
    simulated_gpus().reset_counts();
    const float l = prepared(batch, 0.001f, 1.f);
    CHECK(l < last);
    last = l;
    CHECK(simulated_gpus().blocked == 0);
    CHECK(simulated_gpus().allocations == 0);
    CHECK(simulated_gpus().copies_in == 2);  // the batch, and both scalars in one block
    CHECK(simulated_gpus().copies_out == 1);
  }
}

TEST_CASE_FIXTURE(with_slow_devices, "a variable assigned from a feed stays on the device") {
  placeholder<float, 100> x("x");
  auto w = on(device("/slow:0"), [] { return variable<float, 100>("w", zeros()); });
  auto set = w.assign(x);
  session s;
  ndarray<float, 100> v;
  for (int i = 0; i < 3; ++i) {
    v(5) = static_cast<float>(i);
    simulated_gpus().reset_counts();
    s.run(set, x = v);
    CHECK(simulated_gpus().copies_in == 1);
    CHECK(simulated_gpus().copies_out == 0);
    v(5) = -1;
    CHECK(s.run(w)(5) == static_cast<float>(i));
  }
}
