// SPDX-License-Identifier: Apache-2.0
// Programs that NVRTC compiles, as CUDA's devices load and launch them: against a runtime that
// needs no GPU, with the same source compiled for the host.
#include <sys/wait.h>
#include <deft/core/log.hpp>
#include <deft/kernels/gpu/compilations.hpp>
#include <deft/kernels/gpu/cuda/stream.hpp>
#include <deft/kernels/gpu/devices.hpp>
#include <deft/kernels/gpu/nvrtc.hpp>
#include <deft/op/assign.hpp>
#include <deft/op/catalog.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>

#include <cstdlib>
#include <filesystem>

#include "../session/sessions.hpp"
#include "fake_runtime.hpp"
#include "kernels/gpu/nvrtc.hpp"
#include "kernels/gpu/on_gpu.hpp"
#include "kernels/run_kernel.hpp"
// After doctest.
#include "kernels/gpu/host_programs.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

// Nothing is there before a test has asked for it.
const int no_directory = setenv("DEFT_CACHE_DIR", "", 1);

std::size_t left_out = 0;  ///< launches of compiled kernels

using devices = std::vector<std::unique_ptr<device_runtime>>;
/// GPUs whose compiled kernels do nothing.
devices gpus(int major = 9, int minor = 0) {
  left_out = 0;
  fake::runtime() = {};
  fake::runtime().kernel = [](const std::string&, void**, cudaStream_t) { return ++left_out > 0; };
  fake::runtime().major = major;
  fake::runtime().minor = minor;
  return gpu::cuda::make_devices(parse_device("/job:localhost/replica:0/task:0"));
}
/// No code is loaded in a scope.
struct held {
  held() { fake::hold(); }
  ~held() { fake::go_on(); }
};

void wait_for_code(const host_program& p, const std::string& architecture = "sm_90") {
  gpu::compilations().ask(p.compiled->source(), architecture)->wait();
}

/// A node's kernel on a GPU, and where its operands are: the device's memory is the host's.
struct gpu_node {
  device_runtime& device;
  bool update;
  std::vector<tensor_type> in;
  node_def node;
  kernel_ptr kernel;
  std::vector<any_array> values, outputs;
  buffer scratch;
  std::unique_ptr<device_step> step = device.make_step();

  template <class Op>
  gpu_node(device_runtime& d, const Op& o, const std::vector<any_array>& inputs,
           const std::vector<tensor_type>& out)
      : device(d), update(std::is_same_v<Op, op::fused_update>), in(types_of(inputs)) {
    node.op = &record_of<Op>;
    node.attributes = encode(o);
    node.outputs = std::vector(out);
    kernel = device.make_kernel(node, in);
    kernel->prepare(in, node.outputs);
    for (const auto& v : inputs) values.push_back(v.clone());
    for (std::size_t i = 0; i < out.size(); ++i)
      outputs.push_back(update ? values[i] : any_array(out[i].type, out[i].shape));
  }
  gpu_node(device_runtime& d, const host_program& p)
      : gpu_node(d, op::fused{p.program, p.literals}, p.inputs, p.out) {}

  /// `fault`: an earlier kernel of the run meets one.
  void queue(bool fault = false) {
    std::vector<const void*> from;
    std::vector<void*> to;
    for (const auto& v : values) from.push_back(v.raw());
    for (auto& o : outputs) to.push_back(const_cast<void*>(o.raw()));
    scratch = buffer::host(kernel->scratch());
    kernel_call call{from.data(), to.data(), nullptr};
    call.scratch = scratch.data();
    step->begin();
    if (fault) {
      faulty f;
      device.launch({f, {}, 0, 0, 1}, step.get());
    }
    device.launch({*kernel, call, static_cast<std::uint32_t>(from.size()),
                   static_cast<std::uint32_t>(to.size()), 7, update},
                  step.get());
  }
  void wait() { device.record()->synchronize(); }
  void run(bool fault = false) {
    queue(fault);
    wait();
  }

 private:
  struct faulty final : deft::ext::kernel {
    void prepare(std::span<const tensor_type>, std::span<const tensor_type>) override {}
    void run(const kernel_call& c) override {
      auto& s = *static_cast<gpu::cuda::stream*>(c.stream);
      fake::push(s.native(), [report = s.faults()] { report(gpu::fault_kind::divided); });
    }
  };
};

/// "rows: 3 of 128", for each launch of loaded code.
std::vector<std::string> launched;

/// Has the fake runtime run program i of a library.
void run_by(const host_programs& library, std::size_t i) {
  launched.clear();
  fake::runtime().program = [&library, i](const fake::program_launch& l) {
    launched.push_back(str(l.kernel, ": ", l.blocks, " of ", l.threads));
    const auto* words = static_cast<const std::uint64_t*>(l.argument);
    return [&library, i, kernel = l.kernel, blocks = l.blocks, threads = l.threads,
            argument = std::vector(words, words + library.argument_words(i))] {
      library.launch(i, kernel, argument.data(), blocks, threads);
    };
  };
}

using value = program_builder::value;
value apply(program_builder& b, const op_def& op, dtype t, std::initializer_list<value> args) {
  return b.apply(op, t, std::span(args.begin(), args.size()));
}
constexpr dtype f32 = dtype::float32;
template <class Op>
const op_def& op_of = record_of<Op>;

/// x * w + 3 of rows, w a row.
host_program line(const dims& shape, gpu::source_options options = {}) {
  program_builder b;
  const auto x = b.input(f32), w = b.input(f32), c = b.immediate(f32);
  apply(b, op_of<op::add>, f32, {apply(b, op_of<op::mul>, f32, {x, w}), c});
  return host_program(b.finish(), {to_immediate(3.f)},
                      {moderate<float>(shape, 1), moderate<float>(dims{shape[1]}, 2)},
                      {{shape, f32}}, options);
}
/// x minus the fold of its row, and the fold.
host_program less(const op_def& how, const dims& shape) {
  program_builder b;
  b.row_axes(1);
  const auto x = b.input(f32), fold = b.fold(how, f32, x, extent_class::row);
  b.output(apply(b, op_of<op::sub>, f32, {x, fold}), extent_class::element, false);
  b.output(fold, extent_class::row, false);
  return host_program(b.finish(), {}, {moderate<float>(shape, 3)},
                      {{shape, f32}, {dims{shape[0]}, f32}});
}
/// x * x, and the sums of its columns.
host_program columns(const dims& shape) {
  program_builder b;
  b.row_axes(1);
  const auto x = b.input(f32), square = apply(b, op_of<op::square>, f32, {x});
  b.output(square, extent_class::element, false);
  b.output(b.fold(op_of<op::sum>, f32, square, extent_class::column), extent_class::column, false);
  return host_program(b.finish(), {}, {moderate<float>(shape, 6)},
                      {{shape, f32}, {dims{shape[1]}, f32}});
}
/// The mean of squares.
host_program mean_square(const dims& shape) {
  program_builder b;
  const auto x = b.input(f32);
  b.output(b.fold(op_of<op::mean>, f32, apply(b, op_of<op::square>, f32, {x}), extent_class::whole),
           extent_class::whole, false);
  return host_program(b.finish(), {}, {moderate<float>(shape, 4)}, {{dims{}, f32}});
}
/// An operation on x and its square that no other test asks for.
host_program with_square(const op_def& op) {
  program_builder b;
  const auto x = b.input(f32);
  apply(b, op, f32, {apply(b, op_of<op::square>, f32, {x}), x});
  return host_program(b.finish(), {}, {moderate<float>(dims{10}, 5)}, {{dims{10}, f32}});
}

}  // namespace

namespace {

/// An operation that no .cu file uses.
struct bend : op::elementwise<2> {
  static constexpr std::string_view name = "test_bend";
  template <num::value V>
  DEFT_HD V operator()(V a, V b) const {
    return num::select(a < b, a * 2, b) - 1;
  }
};

}  // namespace

TEST_CASE_FIXTURE(own_graph, "an operation of the program's own runs on GPUs from its source") {
  if (skipped_without_nvrtc()) return;
  placeholder<float, 5> x("x");
  static_cast<void>(make<bend>(here(), x, x));  // this file compiles it for the processor
  const dims shape{300};
  const std::vector<any_array> inputs{moderate<float>(shape, 1), moderate<float>(shape, 2)};
  const std::vector<tensor_type> out{{shape, f32}};
  std::vector<host_program> all;
  for (bool doubled : {false, true}) {
    program_builder b;
    const auto u = b.input(f32), v = b.input(f32);
    const value bent = apply(b, op_of<bend>, f32, {u, v});
    if (doubled) apply(b, op_of<op::add>, f32, {bent, bent});
    all.emplace_back(b.finish(), integers{}, inputs, out, gpu::source_options{.update = !doubled});
  }
  const host_programs library(all);
  auto devices = gpus();
  CHECK(devices[0]->info().kernels->has("test_bend", f32));
  CHECK_FALSE(devices[0]->info().kernels->has("test_bend", dtype::int32));
  run_by(library, 0);
  gpu_node alone(*devices[0], bend(), inputs, out);
  alone.run();
  CHECK(launched == std::vector<std::string>{"groups_of_4: 1 of 256"});
  CHECK(identical(alone.outputs[0], run_all(record_of<bend>, {}, inputs)[0]));
  // Nothing is to be run of no elements.
  launched.clear();
  const std::vector<any_array> none(2, any_array(f32, dims{0}));
  gpu_node(*devices[0], bend(), none, {{dims{0}, f32}}).run();
  CHECK(launched.empty());

  gpu_node fused(*devices[0], all[1]);
  wait_for_code(all[1]);
  run_by(library, 1);
  fused.run();
  CHECK(identical(fused.outputs[0],
                  run_all(record_of<op::fused>, {all[1].program, integers{}}, inputs)[0]));
}

TEST_CASE("a program runs an instruction at a time until its code is loaded, then as one kernel") {
  if (skipped_without_nvrtc()) return;
  using names = std::vector<std::string>;
  std::vector<host_program> all;
  std::vector<names> expected;
  auto add = [&](host_program p, names launches) {
    all.push_back(std::move(p)), expected.push_back(std::move(launches));
  };
  add(line({300, 8}), {"groups_of_4: 3 of 256"});
  add(line({33, 7}, {.late = true}), {"single: 1 of 256"});
  add(less(op_of<op::sum>, {41, 33}), {"rows: 11 of 128"});
  add(less(op_of<op::mean>, {3, 2500}), {"long_rows: 3 of 256"});
  add(columns({41, 33}), {"columns: 3 of 512"});
  add(mean_square({130, 257}), {"parts: 9 of 256", "folds: 1 of 256"});
  const host_programs library(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const host_program& p = all[i];
    CAPTURE(p.program->signature);
    auto devices = gpus();
    const std::uint64_t version = devices[0]->code_version();
    run_by(library, i);
    std::unique_ptr<gpu_node> node;
    {
      held now;
      node = std::make_unique<gpu_node>(*devices[0], p);
      node->queue();
    }
    node->wait();
    CHECK(launched.empty());
    const std::size_t before = left_out;
    CHECK(before >= p.program->code.size());
    wait_for_code(p);
    CHECK(devices[0]->code_version() > version);
    node->run();
    CHECK(left_out == before);
    CHECK(launched == expected[i]);
    const auto right = run_on_gpu(record_of<op::fused>, {p.program, p.literals}, p.inputs);
    for (std::size_t o = 0; o < right.size(); ++o)
      CHECK(other_bits(node->outputs[o], right[o]) == "");
  }
}

TEST_CASE("code is loaded once a GPU, kept while it lasts, and needs no temporaries") {
  if (skipped_without_nvrtc()) return;
  std::vector<host_program> all;
  all.push_back(with_square(op_of<op::maximum>));
  const host_programs library(all);
  auto devices = gpus();
  run_by(library, 0);
  std::unique_ptr<gpu_node> first;
  {
    held now;
    first = std::make_unique<gpu_node>(*devices[0], all[0]);
    CHECK(first->kernel->scratch() > 0);
    CHECK(fake::runtime().loaded == 0);
  }
  wait_for_code(all[0]);
  CHECK(first->kernel->scratch() == 0);
  first.reset();
  for (int i = 0; i < 3; ++i) gpu_node(*devices[0], all[0]).run();
  CHECK(fake::runtime().loaded == 1);
  gpu_node other(*devices[1], all[0]);
  CHECK(other.kernel->scratch() == 0);
  other.run();
  CHECK(fake::runtime().loaded == 2);
  CHECK(launched == std::vector<std::string>(4, "groups_of_4: 1 of 256"));
  CHECK(left_out == 0);
  CHECK(fake::runtime().unloaded == 0);
  devices[0].reset();
  CHECK(fake::runtime().unloaded == 1);
}

TEST_CASE("a GPU that is newer than NVRTC loads PTX") {
  if (skipped_without_nvrtc()) return;
  std::vector<host_program> all;
  all.push_back(with_square(op_of<op::div>));
  const host_programs library(all);
  auto devices = gpus(99);
  run_by(library, 0);
  gpu_node node(*devices[0], all[0]);
  wait_for_code(all[0], "sm_990");
  node.run();
  CHECK(launched.size() == 1);
}

TEST_CASE(
    "a compiled update changes its variables in place, and nothing in a run that has failed") {
  if (skipped_without_nvrtc()) return;
  // Momentum: m = 0.9 m + g, v -= m.
  program_builder b;
  const auto v = b.input(f32), m = b.input(f32), g = b.input(f32), k = b.immediate(f32);
  const auto more = apply(b, op_of<op::add>, f32, {apply(b, op_of<op::mul>, f32, {m, k}), g});
  b.output(apply(b, op_of<op::sub>, f32, {v, more}), extent_class::element, false);
  b.output(more, extent_class::element, false);
  const dims shape{50, 6};
  const std::vector<any_array> inputs{moderate<float>(shape, 1), moderate<float>(shape, 2),
                                      moderate<float>(dims{6}, 3)};
  const std::vector<tensor_type> out(2, {shape, f32});
  std::vector<host_program> all;
  all.emplace_back(b.finish(), integers{to_immediate(0.9f)}, inputs, out,
                   gpu::source_options{.update = true});
  const host_program& p = all[0];
  const host_programs library(all);
  auto devices = gpus();
  run_by(library, 0);
  const op::fused_update update{{"", ""}, {"v", "m"}, shape, {}, p.program, p.literals};
  gpu_node node(*devices[0], update, inputs, out);
  wait_for_code(p);
  std::uint32_t item = 0;
  node.run(true);
  CHECK(node.step->failure(item) != nullptr);
  CHECK(item == 1);
  for (std::size_t o = 0; o < 2; ++o) CHECK(other_bits(node.outputs[o], inputs[o]) == "");
  node.run();
  CHECK(node.step->failure(item) == nullptr);
  CHECK(launched == std::vector<std::string>(2, "single: 2 of 256"));
  const auto right = run_all(record_of<op::fused>, {p.program, p.literals}, inputs);
  for (std::size_t o = 0; o < 2; ++o) CHECK(other_bits(node.outputs[o], right[o]) == "");
}

TEST_CASE("a compiled program reports what only device code sees") {
  if (skipped_without_nvrtc()) return;
  program_builder b;
  const auto x = b.input(dtype::int32), y = b.input(dtype::int32);
  apply(b, op_of<op::mod>, dtype::int32, {apply(b, op_of<op::add>, dtype::int32, {x, x}), y});
  std::vector<host_program> all;
  const std::vector<any_array> inputs{array_of<std::int32_t>({3}, {1, 2, 3}),
                                      array_of<std::int32_t>({3}, {1, 0, 3})};
  all.emplace_back(b.finish(), integers{}, inputs,
                   std::vector<tensor_type>{{dims{3}, dtype::int32}});
  const host_programs library(all);
  auto devices = gpus();
  run_by(library, 0);
  gpu_node node(*devices[0], all[0]);
  wait_for_code(all[0]);
  node.run();
  std::uint32_t item = 0;
  const auto e = node.step->failure(item);
  REQUIRE(e);
  CHECK(e->message() == "[mod] integer division by zero");
  CHECK(item == 7);
  CHECK(launched.size() == 1);
}

TEST_CASE("what cannot be compiled or loaded goes on an instruction at a time, and is said once") {
  if (skipped_without_nvrtc()) return;
  struct {
    const op_def& op;
    int minor;
    cudaError_t loading;
    std::string says;
  } const cases[] = {
      {op_of<op::minimum>, 5, cudaSuccess,
       "a program runs an instruction at a time on GPUs: "
       "[nvrtc] NVRTC_ERROR_INVALID_OPTION for sm_95"},
      {op_of<op::sub>, 0, cudaErrorInvalidKernelImage,
       "a program runs an instruction at a time on GPU 0: the GPU's runtime failed to load a "
       "program: "},
  };
  for (const auto& c : cases) {
    CAPTURE(c.says);
    log_lines logged(logging::level::warning);
    const host_program p = with_square(c.op);
    auto devices = gpus(9, c.minor);
    fake::runtime().loading = c.loading;
    for (int i = 0; i < 2; ++i) {
      gpu_node node(*devices[0], p);
      wait_for_code(p, str("sm_9", c.minor));
      node.run();
      node.run();
      std::uint32_t item = 0;
      CHECK(node.step->failure(item) == nullptr);
    }
    CHECK(left_out == 4 * p.program->code.size());
    const auto lines = logged.take();
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].starts_with(c.says));
  }
}

TEST_CASE("(a process of its own)" * doctest::skip()) {
  static auto devices = gpus();
  const host_program p = with_square(op_of<op::add>);
  static gpu_node node(*devices[0], p);
  node.queue();
  if (std::getenv("DEFT_TEST_WAIT")) wait_for_code(p);
  std::exit(3);
}
TEST_CASE("a process may end while a GPU's program is compiled, and once it is loaded") {
  if (skipped_without_nvrtc()) return;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  for (const char* how : {"", "DEFT_TEST_WAIT=1 "}) {
    CAPTURE(how);
    const int status = std::system(
        str(how, self, " --no-skip --test-case='(a process of its own)' > /dev/null").c_str());
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 3);
  }
}
