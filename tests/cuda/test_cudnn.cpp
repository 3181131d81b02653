// SPDX-License-Identifier: Apache-2.0
// Convolutions on CUDA's devices by cuDNN, against a library and a runtime that need no GPU.
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <deft/kernels/gpu/cuda/cudnn.hpp>
#include <deft/op/conv2d.hpp>

#include "../kernels/arrays.hpp"
#include "../kernels/gpu/on_gpu.hpp"
#include "../session/sessions.hpp"
#include "called_as.hpp"
#include "fake_cudnn.hpp"
#include "fake_runtime.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;
namespace cn = gpu::cuda::cudnn;

// What deft declares of the library is what its header does.
#if __has_include(<cudnn.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn.h>

namespace {
static_assert(CUDNN_MAJOR == 9);
static_assert(called_as<decltype(cudnnGetErrorString), decltype(cn::functions::status_string)>);
static_assert(called_as<decltype(cudnnCreate), decltype(cn::functions::create)>);
static_assert(called_as<decltype(cudnnDestroy), decltype(cn::functions::destroy)>);
static_assert(called_as<decltype(cudnnSetStream), decltype(cn::functions::set_stream)>);
static_assert(
    called_as<decltype(cudnnCreateTensorDescriptor), decltype(cn::functions::create_tensor)>);
static_assert(
    called_as<decltype(cudnnDestroyTensorDescriptor), decltype(cn::functions::destroy_tensor)>);
static_assert(called_as<decltype(cudnnSetTensor4dDescriptor), decltype(cn::functions::set_tensor)>);
static_assert(
    called_as<decltype(cudnnSetTensor4dDescriptorEx), decltype(cn::functions::set_strided_tensor)>);
static_assert(
    called_as<decltype(cudnnCreateFilterDescriptor), decltype(cn::functions::create_filter)>);
static_assert(
    called_as<decltype(cudnnDestroyFilterDescriptor), decltype(cn::functions::destroy_filter)>);
static_assert(called_as<decltype(cudnnSetFilter4dDescriptor), decltype(cn::functions::set_filter)>);
static_assert(called_as<decltype(cudnnCreateConvolutionDescriptor),
                        decltype(cn::functions::create_convolution)>);
static_assert(called_as<decltype(cudnnDestroyConvolutionDescriptor),
                        decltype(cn::functions::destroy_convolution)>);
static_assert(
    called_as<decltype(cudnnSetConvolution2dDescriptor), decltype(cn::functions::set_convolution)>);
static_assert(called_as<decltype(cudnnSetConvolutionMathType), decltype(cn::functions::set_math)>);
static_assert(called_as<decltype(cudnnTransformTensor), decltype(cn::functions::transform)>);
static_assert(called_as<decltype(cudnnGetConvolutionForwardAlgorithm_v7), cn::find_function>);
static_assert(called_as<decltype(cudnnGetConvolutionBackwardDataAlgorithm_v7), cn::find_function>);
static_assert(
    called_as<decltype(cudnnGetConvolutionBackwardFilterAlgorithm_v7), cn::find_function>);
static_assert(called_as<decltype(cudnnConvolutionForward), cn::run_function>);
static_assert(called_as<decltype(cudnnConvolutionBackwardData), cn::run_function>);
static_assert(called_as<decltype(cudnnConvolutionBackwardFilter), cn::run_function>);

template <class Theirs>
constexpr bool is_recommendation =
    sizeof(cn::recommendation) == sizeof(Theirs) &&
    offsetof(cn::recommendation, algorithm) == offsetof(Theirs, algo) &&
    offsetof(cn::recommendation, state) == offsetof(Theirs, status) &&
    offsetof(cn::recommendation, workspace) == offsetof(Theirs, memory) &&
    offsetof(cn::recommendation, determined) == offsetof(Theirs, determinism) &&
    offsetof(cn::recommendation, math) == offsetof(Theirs, mathType);
static_assert(is_recommendation<cudnnConvolutionFwdAlgoPerf_t>);
static_assert(is_recommendation<cudnnConvolutionBwdDataAlgoPerf_t>);
static_assert(is_recommendation<cudnnConvolutionBwdFilterAlgoPerf_t>);

static_assert(int{cn::success} == CUDNN_STATUS_SUCCESS);
static_assert(int{cn::real_32} == CUDNN_DATA_FLOAT);
static_assert(int{cn::real_64} == CUDNN_DATA_DOUBLE);
static_assert(int{cn::channels_last} == CUDNN_TENSOR_NHWC);
static_assert(int{cn::correlation} == CUDNN_CROSS_CORRELATION);
static_assert(int{cn::same_every_time} == CUDNN_DETERMINISTIC);
static_assert(int{cn::default_math} == CUDNN_DEFAULT_MATH);
static_assert(int{cn::fma_math} == CUDNN_FMA_MATH);
}  // namespace
#pragma GCC diagnostic pop
#endif

namespace {

constexpr int tensor_op_math = 1;

/// Products of windows, in place of the library: what they compute is tested elsewhere.
int fallbacks = 0;
bool count_fallbacks(const std::string& name, void**, cudaStream_t) {
  if (name.find("copied_windows") == std::string::npos &&
      name.find("added_windows") == std::string::npos &&
      name.find("product_tileI") == std::string::npos)
    return false;
  ++fallbacks;
  return true;
}

/// A convolution and its gradients.
struct sample {
  dims x, filter;
  std::int64_t stride = 1;
  bool same = false;

  template <class Op>
  Op as() const {
    Op o;
    o.stride = {stride, stride};
    o.same = same;
    return o;
  }
  dims result() const {
    dims y;
    REQUIRE(as<op::conv2d>().shape(x, filter, y) == op::window_fault::none);
    return y;
  }
};

/// GPUs of the fake runtime, and what they load for cuDNN.
struct with_cudnn {
  fake::cudnn_state& library;
  std::vector<std::unique_ptr<device_runtime>> gpus;

  explicit with_cudnn(const char* file = DEFT_FAKE_CUDNN, bool allow_tf32 = false)
      : library(of_file()) {
    setenv("DEFT_CUDNN", file, 1);
    setenv("DEFT_CUBLASLT", "/nowhere", 1);
    unsetenv("DEFT_SIMULATED_GPUS");
    library = {};
    library.push = &fake::push;
    library.algorithms = {{.algorithm = 5, .workspace = 4096, .determined = cn::same_every_time}};
    fake::runtime() = {};
    fake::runtime().kernel = &count_fallbacks;
    fallbacks = 0;
    gpus = gpu::cuda::make_devices(parse_device("/job:localhost/replica:0/task:0"), allow_tf32);
  }
  ~with_cudnn() {
    gpus.clear();
    CHECK(library.faults == std::vector<std::string>());
    CHECK(library.handles == 0);
    CHECK(library.descriptors == 0);
    CHECK(fake::runtime().in_pools == 0);
    unsetenv("DEFT_CUDNN");
    unsetenv("DEFT_CUBLASLT");
  }

  template <class Op>
  any_array run(const Op& o, const std::vector<any_array>& in, std::size_t shift = 0) {
    prepared_on_gpu k(record_of<Op>, encode(o), types_of(in), *gpus[0]);
    return k.run(in, {.shift = shift})[0];
  }
  /// The results are the processor's, and the library's if `by_library`.
  template <class T>
  void check(const sample& e, bool by_library = true, std::size_t shift = 0) {
    INFO(str(e.x, " * ", e.filter, ", stride ", e.stride, e.same ? ", same" : ", valid"));
    const any_array x = moderate<T>(e.x, 1), filter = moderate<T>(e.filter, 2),
                    dy = moderate<T>(e.result(), 3);
    auto one = [&]<class Op>(int kind, const Op& o, const std::vector<any_array>& in,
                             std::int64_t terms) {
      INFO(Op::name);
      const int before = library.convolutions[kind], without = fallbacks;
      const any_array got = run(o, in, shift);
      CHECK(library.convolutions[kind] == before + by_library);
      CHECK((fallbacks > without) == !by_library);
      if (by_library)
        CHECK(difference(got, run_op(o, in), 8, 4 * static_cast<double>(terms)) == "");
    };
    one(0, e.as<op::conv2d>(), {x, filter}, filter.elements());
    one(1, e.as<op::conv2d_input_gradient>(), {dy, filter, x}, filter.elements());
    one(2, e.as<op::conv2d_filter_gradient>(), {dy, x, filter}, dy.elements());
  }
  /// What is logged meanwhile, from `info` on.
  template <class F>
  static std::vector<std::string> logged(F f) {
    log_lines log(logging::level::info);
    f();
    std::vector<std::string> ours;
    for (auto& line : log.take())
      if (line.find("cudnn") != std::string::npos || line.find("cuDNN") != std::string::npos)
        ours.push_back(line);
    return ours;
  }

 private:
  static fake::cudnn_state& of_file() {
    void* const loaded = dlopen(DEFT_FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(loaded);
    return *reinterpret_cast<fake::cudnn_state* (*)()>(dlsym(loaded, "fake_cudnn"))();
  }
};

const sample small{{2, 5, 5, 3}, {3, 3, 3, 4}, 1, true};

}  // namespace

TEST_CASE_TEMPLATE("cuDNN convolves images, and computes both gradients", T, float, double) {
  with_cudnn here;
  const sample all[] = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, 2, false}, {{2, 6, 5, 3}, {3, 2, 3, 4}, 1, false},
      {{2, 6, 5, 3}, {3, 3, 3, 4}, 1, true},  {{3, 7, 9, 2}, {3, 5, 2, 5}, 2, true},
      {{2, 8, 9, 4}, {3, 3, 4, 6}, 2, false}, {{1, 28, 28, 1}, {5, 5, 1, 8}, 1, true},
      {{2, 4, 4, 2}, {1, 1, 2, 3}, 3, true},  {{1, 3, 3, 1}, {5, 5, 1, 1}, 1, true}};
  for (const auto& e : all) here.check<T>(e);
  CHECK(here.library.algorithm == 5);
}

TEST_CASE("what cuDNN cannot do exactly so are products of matrices") {
  with_cudnn here;
  // One more zero after the image than before it.
  here.check<float>({{2, 8, 8, 3}, {3, 3, 3, 4}, 2, true}, false);
  here.check<float>({{2, 5, 5, 3}, {2, 2, 3, 4}, 1, true}, false);
  // Its kernels load 16 bytes at once.
  here.check<float>(small, false, 1);
  CHECK(here.library.handles == 0);
  // A product of matrices as it is.
  const int before = fallbacks;
  const any_array x = moderate<float>({2, 3, 3, 4}), filter = moderate<float>({1, 1, 4, 5});
  static_cast<void>(here.run(op::conv2d(), {x, filter}));
  CHECK(fallbacks == before + 1);
  CHECK(here.library.asked == 0);
}

TEST_CASE("without elements there is nothing to convolve") {
  with_cudnn here;
  const any_array none = moderate<float>({0, 5, 5, 3}), filter = moderate<float>({3, 3, 3, 4}),
                  dy = moderate<float>({0, 3, 3, 4});
  CHECK(here.run(op::conv2d(), {none, filter}).elements() == 0);
  CHECK(here.run(op::conv2d_input_gradient(), {dy, filter, none}).elements() == 0);
  CHECK(here.library.handles == 0);
  CHECK(fallbacks == 0);
}

TEST_CASE("of cuDNN's algorithms the first is taken that is exact, repeatable and small") {
  auto chosen = [](bool allow_tf32, dtype type) {
    with_cudnn here(DEFT_FAKE_CUDNN, allow_tf32);
    const int yes = cn::same_every_time;
    here.library.algorithms = {
        {.algorithm = 0, .state = 3000, .determined = yes},
        {.algorithm = 1, .workspace = 64, .determined = 0},
        {.algorithm = 2, .workspace = std::size_t{64} << 20, .determined = yes},
        {.algorithm = 3, .workspace = 64, .determined = yes, .math = tensor_op_math},
        {.algorithm = 4, .workspace = 1 << 20, .determined = yes, .math = cn::fma_math}};
    visit_dtype(type, [&]<class T>() { here.check<T>(small); });
    return std::pair(here.library.algorithm, here.library.math);
  };
  CHECK(chosen(false, dtype::float32) == std::pair(4, int{cn::fma_math}));
  CHECK(chosen(true, dtype::float32) == std::pair(3, tensor_op_math));
  CHECK(chosen(false, dtype::float64) == std::pair(3, tensor_op_math));
}

TEST_CASE("an algorithm is looked for once for each kind of convolution") {
  with_cudnn here;
  for (int i = 0; i < 3; ++i) here.check<float>(small);
  CHECK(here.library.asked == 3);
  here.check<double>(small);
  CHECK(here.library.asked == 6);
  CHECK(here.library.handles == 1);
}

TEST_CASE("without cuDNN convolutions are products of matrices, and the log says so once") {
  const std::string instead = "; convolutions are products of matrices";
  std::vector<std::string> said;
  std::string expected;
  SUBCASE("no file") {
    with_cudnn here("/nowhere/libcudnn.so");
    said = here.logged([&] { here.check<float>(small, false); });
    expected = "GPU 0: libcudnn cannot be loaded: /nowhere/libcudnn.so: ";
  }
  SUBCASE("another library") {
    with_cudnn here("libm.so.6");
    said = here.logged([&] { here.check<float>(small, false); });
    expected = "GPU 0: libcudnn has no cudnnGetErrorString" + instead;
  }
  SUBCASE("one that does not work") {
    with_cudnn here;
    here.library.no_handle = 1;
    said = here.logged([&] { here.check<float>(small, false); });
    expected = "GPU 0: cuDNN cannot be used: it failed" + instead;
  }
  CAPTURE(join(said, "\n"));
  REQUIRE(said.size() == 1);
  CHECK(said[0].starts_with(expected));
  CHECK(said[0].ends_with(instead));
}

TEST_CASE("what cuDNN refuses are products of matrices, and one line says so") {
  with_cudnn here;
  std::string why = "it failed";
  SUBCASE("no algorithm will do") {
    here.library.algorithms = {{.algorithm = 1, .workspace = 64}};
    why = "it has no algorithm that gives the same bits every time in 64 MB";
  }
  SUBCASE("it knows none") { here.library.no_algorithm = 3000; }
  SUBCASE("the convolution fails") { here.library.no_convolution = 5000; }
  const auto said = here.logged([&] {
    here.check<float>(small, false);
    here.check<float>(small, false);
  });
  CHECK(here.library.asked == 3);
  CHECK(said == std::vector{str("GPU 0: cuDNN refuses a convolution of float, images (2,5,5,3), "
                                "filter (3,3,3,4): ",
                                why, "; what it refuses are products of matrices")});
}

TEST_CASE("cuDNN is not loaded while a graph is captured, and works there once it is") {
  with_cudnn here;
  fake::runtime().capturing = true;
  here.check<float>(small, false);
  CHECK(here.library.handles == 0);
  fake::runtime().capturing = false;
  here.check<float>(small);
  fake::runtime().capturing = true;
  const std::size_t before = fake::runtime().in_pools;
  here.check<float>(small);
  CHECK(fake::runtime().in_pools == before);
}

TEST_CASE("without memory for cuDNN convolutions are products of matrices from then on") {
  with_cudnn here;
  fake::runtime().free = 32 << 20;
  const auto said = here.logged([&] {
    here.check<float>(small, false);
    fake::runtime().free = 1 << 30;
    here.check<float>(small, false);
  });
  REQUIRE(said.size() == 1);
  CHECK(said[0].starts_with("GPU 0: there is no memory for cuDNN: "));
}
