// SPDX-License-Identifier: Apache-2.0
// What a .cu file has compiled, as CUDA's devices find it: against a runtime that needs no GPU.
#include <cmath>
#include <deft/kernels/gpu/devices.hpp>
#include <deft/kernels/gpu/registered.hpp>
#include <deft/op/catalog.hpp>

#include "../kernels/run_kernel.hpp"
#include "fake_runtime.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

using F = deft::detail::leaf<float, shape_t<dyn>>;
using K = deft::detail::literal_leaf<float>;
// Of train.ipp: the hidden layer, and what its loss is the mean of.
using hidden = call<op::relu, call<op::add, call<op::mul, F, K>, F>>;
using squared_error = call<op::square, call<op::sub, call<op::sub, call<op::sigmoid, F>, K>, F>>;

std::vector<std::string> names;  ///< of kernels that were started

/// Names of the kernels that a fused node launches on a GPU.
std::vector<std::string> launched(const program_ref& p, const integers& literals,
                                  const std::vector<tensor_type>& in) {
  names.clear();
  fake::runtime() = {};
  const auto gpus = gpu::cuda::make_devices(parse_device("/job:localhost/replica:0/task:0"));
  device_runtime& d = *gpus[0];
  const node_def n = ::testing::node_of(record_of<op::fused>, {p, literals}, in);
  const kernel_ptr k = d.make_kernel(n, in);
  k->prepare(in, n.outputs);
  const buffer room(d.space().allocate(1 << 20));
  const std::vector<const void*> from(in.size(), room.data());
  const std::vector<void*> to{room.data()};
  kernel_call c{from.data(), to.data(), nullptr};
  c.scratch = room.data();
  const auto step = d.make_step();
  step->begin();
  fake::runtime().kernel = [](const std::string& name, void**, cudaStream_t) {
    names.push_back(name);
    return true;
  };
  d.launch({*k, c}, step.get());
  synchronize(d);
  fake::runtime().kernel = nullptr;
  return names;
}
/// The mean of all that `p` gives.
program_ref mean_of(const program& p) {
  program_builder b;
  std::vector<program_builder::value> values;
  for (auto t : p.inputs) values.push_back(b.input(t));
  for (auto t : p.immediates) values.push_back(b.immediate(t));
  for (const auto& c : p.code) {
    std::vector<program_builder::value> args;
    for (int a = 0; a < c.count; ++a) args.push_back(values[c.args[a]]);
    values.push_back(b.apply(*c.op, c.type, args));
  }
  const auto folded =
      b.fold(record_of<op::mean>, dtype::float32, values.back(), extent_class::whole);
  b.output(folded, extent_class::whole, false);
  return b.finish();
}
bool has(const std::string& name, std::string_view part) { return name.find(part) != name.npos; }

}  // namespace

TEST_CASE("an expression of a .cu file is one kernel, and so is its fold") {
  const tensor_type rows{{8, 8}, dtype::float32}, bias{{8}, dtype::float32};
  const auto once = launched(deft::detail::program_of<hidden>(), {to_immediate(2.f)}, {rows, bias});
  REQUIRE(once.size() == 1);
  CHECK(has(once[0], "8for_each"));
  CHECK(has(once[0], "8elements"));
  CHECK(has(once[0], "4relu"));
  const auto folded = launched(mean_of(*deft::detail::program_of<squared_error>()),
                               {to_immediate(0.5f)}, {bias, bias});
  REQUIRE(folded.size() == 1);
  CHECK(has(folded[0], "15folded_elements"));
  CHECK(has(folded[0], "6square"));
  // Another one, which was not compiled, takes several.
  const auto other = deft::detail::program_of<call<op::neg, hidden>>();
  CHECK(launched(other, {to_immediate(2.f)}, {rows, bias}).size() > 1);
}

TEST_CASE("an operation of a .cu file has kernels on GPUs and on the processor") {
  fake::runtime() = {};
  const auto gpus = gpu::cuda::make_devices(parse_device("/job:localhost/replica:0/task:0"));
  const kernel_set& kernels = *gpus[0]->info().kernels;
  CHECK(kernels.has("test_swish", dtype::float32));
  CHECK_FALSE(kernels.has("test_swish", dtype::float64));
  const op_def* swish = find_op("test_swish");
  REQUIRE(swish);
  CHECK(gpu::make_registered(gpu::kernels_of::cuda, *swish, dtype::float32, dtype::float32));
  CHECK_FALSE(
      gpu::make_registered(gpu::kernels_of::simulated, *swish, dtype::float32, dtype::float32));
  any_array x(dtype::float32, {5});
  for (int i = 0; i < 5; ++i) x.mutable_data<float>()[i] = static_cast<float>(i) - 2.f;
  ::testing::prepared alone(*swish, {}, {{{5}, dtype::float32}});
  const any_array y = alone.run({x})[0];
  for (int i = 0; i < 5; ++i) {
    const double v = i - 2.;
    CHECK(y.data<float>()[i] == doctest::Approx(v / (1 + std::exp(-v))));
  }
}
