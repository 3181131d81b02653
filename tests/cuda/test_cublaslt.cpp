// SPDX-License-Identifier: Apache-2.0
// Products of matrices on CUDA's devices by cuBLASLt, against a library and a runtime that need no
// GPU.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <deft/kernels/gpu/cuda/cublaslt.hpp>
#include <deft/kernels/gpu/cuda/stream.hpp>
#include <deft/kernels/spec/matrix_product.hpp>
#include <thread>

#include "../kernels/arrays.hpp"
#include "../kernels/gpu/on_gpu.hpp"
#include "../session/sessions.hpp"
#include "called_as.hpp"
#include "fake_cublaslt.hpp"
#include "fake_runtime.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

// What deft declares of the library is what its header does.
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace {
namespace lt = gpu::cuda::cublaslt;

static_assert(called_as<decltype(cublasLtGetStatusString), decltype(lt::functions::status_string)>);
static_assert(called_as<decltype(cublasLtCreate), decltype(lt::functions::create)>);
static_assert(called_as<decltype(cublasLtDestroy), decltype(lt::functions::destroy)>);
static_assert(
    called_as<decltype(cublasLtMatmulDescCreate), decltype(lt::functions::create_product)>);
static_assert(
    called_as<decltype(cublasLtMatmulDescDestroy), decltype(lt::functions::destroy_product)>);
static_assert(
    called_as<decltype(cublasLtMatmulDescSetAttribute), decltype(lt::functions::set_product)>);
static_assert(
    called_as<decltype(cublasLtMatrixLayoutCreate), decltype(lt::functions::create_layout)>);
static_assert(
    called_as<decltype(cublasLtMatrixLayoutDestroy), decltype(lt::functions::destroy_layout)>);
static_assert(
    called_as<decltype(cublasLtMatrixLayoutSetAttribute), decltype(lt::functions::set_layout)>);
static_assert(called_as<decltype(cublasLtMatmulPreferenceCreate),
                        decltype(lt::functions::create_preference)>);
static_assert(called_as<decltype(cublasLtMatmulPreferenceDestroy),
                        decltype(lt::functions::destroy_preference)>);
static_assert(called_as<decltype(cublasLtMatmulPreferenceSetAttribute),
                        decltype(lt::functions::set_preference)>);
static_assert(
    called_as<decltype(cublasLtMatmulAlgoGetHeuristic), decltype(lt::functions::find_algorithms)>);
static_assert(called_as<decltype(cublasLtMatmul), decltype(lt::functions::multiply)>);

static_assert(sizeof(lt::algorithm) == sizeof(cublasLtMatmulAlgo_t));
using their_heuristic = cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(lt::heuristic) == sizeof(their_heuristic));
static_assert(offsetof(lt::heuristic, found) == offsetof(their_heuristic, algo));
static_assert(offsetof(lt::heuristic, workspace) == offsetof(their_heuristic, workspaceSize));
static_assert(offsetof(lt::heuristic, state) == offsetof(their_heuristic, state));

static_assert(int{lt::success} == CUBLAS_STATUS_SUCCESS);
static_assert(int{lt::not_supported} == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(int{lt::as_it_is} == CUBLAS_OP_N);
static_assert(int{lt::transposed} == CUBLAS_OP_T);
static_assert(int{lt::real_32} == CUDA_R_32F);
static_assert(int{lt::real_64} == CUDA_R_64F);
static_assert(int{lt::compute_32} == CUBLAS_COMPUTE_32F);
static_assert(int{lt::compute_64} == CUBLAS_COMPUTE_64F);
static_assert(int{lt::compute_32_fast_tf32} == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(int{lt::transpose_a} == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(int{lt::transpose_b} == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(int{lt::batch_count} == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(int{lt::batch_offset} == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(int{lt::most_workspace} == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(int{lt::alignment_of_a} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(int{lt::alignment_of_b} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(int{lt::alignment_of_c} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(int{lt::alignment_of_d} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
}  // namespace
#endif

namespace {

/// The arguments of deft's own kernel, as far as they are needed here.
struct tile_arguments {
  matrix_product what;
  const void *a, *b;
  void* c;
};
template <class T>
void multiply(const tile_arguments& t) {
  const auto *a = static_cast<const T*>(t.a), *b = static_cast<const T*>(t.b);
  auto* c = static_cast<T*>(t.c);
  for (std::int64_t number = 0; number < t.what.count;
       ++number, a += t.what.a_apart, b += t.what.b_apart)
    for (std::int64_t i = 0; i < t.what.m; ++i)
      for (std::int64_t j = 0; j < t.what.n; ++j) {
        T sum = 0;
        for (std::int64_t k = 0; k < t.what.k; ++k)
          sum = static_cast<T>(sum + a[i * t.what.a_row() + k * t.what.a_col()] *
                                         b[k * t.what.b_row() + j * t.what.b_col()]);
        *c++ = sum;
      }
}
int tiles = 0;
bool run_tiles(const std::string& name, void** arguments, cudaStream_t on) {
  void (*run)(const tile_arguments&) =
      name.find("product_tileIfE") != name.npos   ? &multiply<float>
      : name.find("product_tileIdE") != name.npos ? &multiply<double>
      : name.find("product_tileIiE") != name.npos ? &multiply<std::int32_t>
                                                  : nullptr;
  if (!run) return false;
  tile_arguments t;
  std::memcpy(&t, arguments[2], sizeof t);
  ++tiles;
  fake::push(on, [=] { run(t); });
  return true;
}

/// GPUs of the fake runtime, and what they load for cuBLASLt.
struct with_library {
  fake::cublaslt_state& library;
  std::vector<std::unique_ptr<device_runtime>> gpus;

  explicit with_library(const char* file = DEFT_FAKE_CUBLASLT, bool allow_tf32 = false)
      : library(of_file()) {
    setenv("DEFT_CUBLASLT", file, 1);
    unsetenv("DEFT_SIMULATED_GPUS");
    library = {};
    library.push = &fake::push;
    fake::runtime() = {};
    fake::runtime().kernel = &run_tiles;
    tiles = 0;
    gpus = gpu::cuda::make_devices(parse_device("/job:localhost/replica:0/task:0"), allow_tf32);
  }
  ~with_library() {
    gpus.clear();
    CHECK(library.faults == std::vector<std::string>());
    CHECK(library.handles == 0);
    CHECK(library.descriptors == 0);
    CHECK(fake::runtime().in_pools == 0);
    unsetenv("DEFT_CUBLASLT");
  }

  any_array multiply(const op::matmul& o, const any_array& a, const any_array& b,
                     std::size_t shift = 0) {
    prepared_on_gpu k(record_of<op::matmul>, encode(o), types_of({a, b}), *gpus[0]);
    return k.run({a, b}, {.shift = shift})[0];
  }
  /// Of a product that deft's own kernel gets; what was logged.
  std::string multiply_by_tiles() {
    log_lines log;
    const any_array a = moderate<float>({3, 5}, 1), b = moderate<float>({5, 7}, 2);
    for (int i = 1; i <= 3; ++i) {
      CHECK(difference(multiply({}, a, b), run_op(op::matmul(), {a, b}), 8, 5) == "");
      CHECK(tiles == i);
    }
    std::string all;
    for (const auto& line : log.take()) all += line + "\n";
    return all;
  }

 private:
  static fake::cublaslt_state& of_file() {
    void* const loaded = dlopen(DEFT_FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(loaded);
    return *reinterpret_cast<fake::cublaslt_state* (*)()>(dlsym(loaded, "fake_cublaslt"))();
  }
};

}  // namespace

TEST_CASE_TEMPLATE("cuBLASLt multiplies matrices, in every form and size", T, float, double) {
  with_library here;
  const std::int64_t sizes[][3] = {{1, 1, 1},  {1, 5, 1},   {1, 100, 70},  {70, 100, 1},
                                   {3, 4, 5},  {8, 8, 8},   {9, 17, 10},   {5, 3, 13},
                                   {13, 2, 5}, {67, 5, 31}, {65, 40, 67},  {0, 3, 4},
                                   {4, 3, 0},  {0, 0, 0},   {128, 64, 256}};
  int products = 0;
  for (const auto& [m, k, n] : sizes)
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        INFO(str("(", m, ",", k, ") x (", k, ",", n, ")", ta ? " ta" : "", tb ? " tb" : ""));
        const any_array a = moderate<T>(ta ? dims{k, m} : dims{m, k}, 1),
                        b = moderate<T>(tb ? dims{n, k} : dims{k, n}, 2);
        const any_array expected = run_op(op::matmul{ta, tb}, {a, b});
        for (std::size_t shift : {0, 1}) {
          const any_array c = here.multiply({ta, tb}, a, b, shift);
          CHECK(difference(c, expected, 8, static_cast<double>(k)) == "");
          if (m && n) ++products;
          CHECK(here.library.products == products);
        }
      }
  CHECK(here.library.compute ==
        (sizeof(T) == 8 ? gpu::cuda::cublaslt::compute_64 : gpu::cuda::cublaslt::compute_32));
  CHECK(here.library.offered == 64 << 20);
  CHECK(tiles == 0);
}

TEST_CASE_TEMPLATE("cuBLASLt multiplies batches, and takes an operand of all as it is", T, float,
                   double) {
  with_library here;
  struct batch {
    dims a, b;  ///< axes in front
    int products, of_transposed;
  };
  const batch batches[] = {{{5}, {5}, 1, 1},       {{5}, {}, 1, 1},          {{}, {5}, 1, 1},
                           {{2, 3}, {2, 3}, 1, 1}, {{2, 1}, {3}, 2, 2},      {{0}, {0}, 0, 0},
                           {{1, 5}, {5, 1}, 1, 5}, {{2, 1, 2}, {3, 1}, 2, 6}};
  int products = 0;
  for (const batch& given : batches)
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        dims of_a = given.a, of_b = given.b;
        for (auto e : ta ? dims{4, 3} : dims{3, 4}) of_a.push_back(e);
        for (auto e : tb ? dims{5, 4} : dims{4, 5}) of_b.push_back(e);
        INFO(str(of_a, " x ", of_b, ta ? " ta" : "", tb ? " tb" : ""));
        const any_array a = moderate<T>(of_a, 1), b = moderate<T>(of_b, 2);
        const any_array expected = run_op(op::matmul{ta, tb}, {a, b});
        for (std::size_t shift : {0, 1})
          CHECK(difference(here.multiply({ta, tb}, a, b, shift), expected, 8, 4) == "");
        products += 2 * (ta ? given.of_transposed : given.products);
        CHECK(here.library.products == products);
      }
  CHECK(tiles == 0);
}

TEST_CASE("an algorithm is looked for once for each kind of product") {
  with_library here;
  const any_array a = moderate<float>({6, 6}, 1), b = moderate<float>({6, 6}, 2);
  for (int i = 0; i < 3; ++i) {
    here.multiply({}, a, b);
    here.multiply({true, false}, a, b);
    here.multiply({}, a, b, 1);
  }
  CHECK(here.library.asked == 3);
  here.multiply({}, moderate<double>({6, 6}), moderate<double>({6, 6}));
  here.multiply({}, moderate<float>({6, 6}), moderate<float>({6, 5}));
  CHECK(here.library.asked == 5);
  CHECK(here.library.products == 11);
  CHECK(here.library.handles == 1);
}

TEST_CASE("what cuBLASLt keeps of products has a bound") {
  with_library here;
  const any_array a = moderate<float>({5000, 1});
  int most = 0;
  prepared_on_gpu k(record_of<op::matmul>, encode(op::matmul()),
                    types_of({a, moderate<float>({1, 1})}), *here.gpus[0]);
  for (std::int64_t m = 1; m <= 5000; ++m) {
    const any_array some = moderate<float>({m, 1}), one = moderate<float>({1, 1});
    k.node.outputs = {{{m, 1}, dtype::float32}};
    k.kernel->prepare(types_of({some, one}), k.node.outputs);
    k.run({some, one});
    most = std::max(most, here.library.descriptors);
  }
  CHECK(most == 4 * 4096);
  CHECK(here.library.products == 5000);
}

TEST_CASE("sums of nothing, and of integers, are deft's own kernel's") {
  with_library here;
  log_lines log;
  const any_array none = here.multiply({}, moderate<float>({4, 0}), moderate<float>({0, 3}));
  CHECK(identical(none, filled<float>({4, 3}, std::vector<float>(12, 0.0f))));
  const any_array a = filled<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(identical(here.multiply({false, true}, a, a),
                  filled<std::int32_t>({2, 2}, {14, 32, 32, 77})));
  CHECK(tiles == 2);
  CHECK(here.library.asked == 0);
  CHECK(here.library.handles == 0);
  CHECK(log.take().empty());
}

TEST_CASE("without cuBLASLt deft's own kernel multiplies, and the log says so once") {
  const std::string slow = "; products of matrices take deft's own kernel, which is slow\n";
  SUBCASE("no file") {
    with_library here("/nowhere/libcublasLt.so");
    const std::string said = here.multiply_by_tiles();
    CAPTURE(said);
    CHECK(said.starts_with("GPU 0: libcublasLt cannot be loaded: /nowhere/libcublasLt.so: "));
    CHECK(said.find(slow) == said.size() - slow.size());
    CHECK(said.find('\n') == said.size() - 1);
  }
  SUBCASE("another library") {
    with_library here("libm.so.6");
    CHECK(here.multiply_by_tiles() == "GPU 0: libcublasLt has no cublasLtGetStatusString" + slow);
  }
  SUBCASE("one that does not work") {
    with_library here;
    here.library.no_handle = 1;
    CHECK(here.multiply_by_tiles() == "GPU 0: cuBLASLt cannot be used: it failed" + slow);
  }
}

TEST_CASE("what cuBLASLt refuses deft's own kernel multiplies, and one line says so") {
  with_library here;
  std::string why = "it is not supported";
  SUBCASE("no algorithm is found") { here.library.none_found = true; }
  SUBCASE("the heuristic refuses") { here.library.no_algorithm = 15; }
  SUBCASE("the product fails") {
    here.library.no_product = 13;
    why = "it failed";
  }
  CHECK(here.multiply_by_tiles() ==
        "GPU 0: cuBLASLt refuses a product of float, (3,5) x (5,7): " + why +
            "; what it refuses takes deft's own kernel, which is slow\n");
  CHECK(here.library.asked == 1);
  // Others are not concerned, and others that it refuses are not spoken of.
  log_lines log;
  const any_array a = moderate<double>({2, 2}, 1);
  here.multiply({}, a, a);
  CHECK(tiles == 4);
  here.library.none_found = false;
  here.library.no_algorithm = here.library.no_product = 0;
  CHECK(difference(here.multiply({true, false}, a, a), run_op(op::matmul{true, false}, {a, a}), 8,
                   2) == "");
  CHECK(here.library.products == 1);
  CHECK(log.take().empty());
}

TEST_CASE("nothing is loaded while a graph is captured, and what is loaded works there") {
  with_library here;
  const any_array a = moderate<float>({4, 4}, 1);
  const any_array expected = run_op(op::matmul(), {a, a});
  fake::runtime().capturing = true;
  CHECK(difference(here.multiply({}, a, a), expected, 8, 4) == "");
  CHECK(tiles == 1);
  CHECK(here.library.handles == 0);
  fake::runtime().capturing = false;
  for (bool captured : {false, true}) {
    fake::runtime().capturing = captured;
    const std::size_t before = fake::runtime().in_pools;
    CHECK(difference(here.multiply({}, a, a), expected, 8, 4) == "");
    CHECK((fake::runtime().in_pools == before) == captured);
  }
  CHECK(here.library.products == 2);
}

TEST_CASE("without memory for the workspace a product fails, and the next one may not") {
  with_library here;
  const any_array a = moderate<float>({4, 4}, 1);
  fake::runtime().free = 1 << 20;
  CHECK(error_of([&] { here.multiply({}, a, a); })
            .starts_with("resource_exhausted: /job:localhost/replica:0/task:0/gpu:0 cannot "
                         "allocate 67108864 bytes"));
  fake::runtime().free = 1 << 30;
  CHECK(difference(here.multiply({}, a, a), run_op(op::matmul(), {a, a}), 8, 4) == "");
  CHECK(here.library.handles == 1);
}

TEST_CASE("products of several threads share one workspace, one after the other") {
  with_library here;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const auto seed = static_cast<std::uint64_t>(t);
      const any_array a = moderate<float>({3 + t, 40}, seed), b = moderate<float>({40, 9}, seed);
      const any_array expected = run_op(op::matmul(), {a, b});
      prepared_on_gpu k(record_of<op::matmul>, encode(op::matmul()), types_of({a, b}),
                        *here.gpus[0]);
      for (int i = 0; i < 100; ++i)
        if (difference(k.run({a, b})[0], expected, 8, 40) != "") ++wrong;
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(here.library.products == 300);
}

TEST_CASE("no library is asked for a product that an update makes") {
  struct counting final : gpu::cuda::product_library {
    int asked = 0;
    bool multiply(CUstream_st*, dtype, const matrix_product&, const void*, const void*,
                  void*) override {
      return ++asked;
    }
  } library;
  const std::uint32_t failed = 0;
  const auto type = dtype::float32;
  CHECK(!gpu::cuda::stream(nullptr, {}, &failed, {&library})
             .multiply(type, {}, nullptr, nullptr, {}));
  CHECK(library.asked == 0);
  CHECK(
      gpu::cuda::stream(nullptr, {}, nullptr, {&library}).multiply(type, {}, nullptr, nullptr, {}));
  CHECK(library.asked == 1);
}

TEST_CASE("products take TF32 where that is allowed, and only those of float") {
  namespace lt = gpu::cuda::cublaslt;
  with_library here;
  here.gpus.clear();
  auto compute_in = [&](session s, dtype type) {
    any_tensor x = make_placeholder("x", type, {3, 3}), y = matmul(x, x);
    const any_array v(type, {3, 3});
    static_cast<void>(s.run(y, feed(x, v)));
    return here.library.compute;
  };
  own_graph g;
  auto compute = [&](session_options o, dtype type) {
    return compute_in(session(std::move(o)), type);
  };
  CHECK(compute({}, dtype::float32) == lt::compute_32);
  CHECK(compute({.allow_tf32 = true}, dtype::float32) == lt::compute_32_fast_tf32);
  CHECK(compute({.allow_tf32 = true}, dtype::float64) == lt::compute_64);
  setenv("DEFT_ALLOW_TF32", "1", 1);
  CHECK(compute({}, dtype::float32) == lt::compute_32_fast_tf32);
  CHECK(compute({.allow_tf32 = false}, dtype::float32) == lt::compute_32);
  setenv("DEFT_ALLOW_TF32", "yes", 1);
  CHECK(error_of([] { session s; }) ==
        "invalid_argument: DEFT_ALLOW_TF32 is \"yes\"; expected 0 or 1");
  unsetenv("DEFT_ALLOW_TF32");
  const char* const words[] = {"program", "--allow_tf32"};
  for (int given : {1, 2}) {
    task self(given, words);
    CHECK(compute_in(session(self), dtype::float32) ==
          (given == 2 ? lt::compute_32_fast_tf32 : lt::compute_32));
  }
  for (bool allowed : {false, true}) {
    server peer = server::local({.allow_tf32 = allowed});
    CHECK(compute_in(session(peer.target()), dtype::float32) ==
          (allowed ? lt::compute_32_fast_tf32 : lt::compute_32));
  }
  CHECK(here.library.products == 9);
}
