// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>
#include <deft/kernels/gpu/cuda_codegen.hpp>
#include <deft/kernels/gpu/nvrtc.hpp>
#include <deft/kernels/spec/expression_eval.hpp>
#include <deft/op/catalog.hpp>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "../expressions.hpp"
#include "nvrtc.hpp"

using namespace deft;
using namespace deft::ext;
using testing::chain;
using testing::error_of;
using testing::skipped_without_nvrtc;

namespace {

/// A region of several results: every operation that takes T, and casts of T.
template <class T>
program_ref all_of() {
  program_builder b;
  const auto c = b.input(dtype::boolean), x = b.input(dtype_of<T>), y = b.input(dtype_of<T>),
             k = b.immediate(dtype_of<T>);
  using value = program_builder::value;
  value number = k, truth = c;
  op::catalog::each([&]<class Op>() {
    if constexpr (requires { Op::typing_rule; })
      if constexpr (accepts(Op::typing_rule, dtype_of<T>)) {
        constexpr dtype result = result_of(Op::typing_rule, dtype_of<T>);
        const value one[] = {x}, two[] = {number, y}, three[] = {truth, number, y};
        const std::span<const value> args = Op::arity == 1   ? std::span<const value>(one)
                                            : Op::arity == 2 ? std::span<const value>(two)
                                                             : std::span<const value>(three);
        const value v = b.apply(record_of<Op>, result, args);
        if constexpr (result == dtype::boolean) {
          const value both[] = {truth, v};
          truth = b.apply(record_of<op::logical_or>, dtype::boolean, both);
        } else {
          const value both[] = {number, v};
          number = b.apply(record_of<op::sub>, result, both);
        }
      }
  });
  b.output(truth, extent_class::element, false);
  for (const dtype t : every_plain_dtype) {
    const value v = b.apply(record_of<op::cast>, t, {&x, 1});
    b.output(v, extent_class::element, false);
  }
  return b.finish();
}

/// The max and sum of each row, and values computed from them, for any dtype of numbers.
program_ref rows_of(dtype t) {
  program_builder b;
  b.row_axes(1);
  using value = program_builder::value;
  const auto x = b.input(t), w = b.input(t);
  auto apply = [&](const op_def& op, value y, value z) {
    const value both[] = {y, z};
    return b.apply(op, t, both);
  };
  const auto most = b.fold(record_of<op::max>, t, x, extent_class::row);
  const auto less = apply(record_of<op::sub>, x, most);
  const auto total = b.fold(record_of<op::sum>, t, less, extent_class::row);
  b.output(apply(record_of<op::mul>, apply(record_of<op::sub>, less, total), w),
           extent_class::element, false);
  b.output(total, extent_class::row, false);
  return b.finish();
}

/// The squares of columns, their sums, the largest and the least, for any dtype of numbers.
program_ref columns_of(dtype t) {
  program_builder b;
  b.row_axes(1);
  const auto x = b.input(t);
  const auto square = b.apply(record_of<op::square>, t, {&x, 1});
  b.output(square, extent_class::element, false);
  for (const op_def* how : {&record_of<op::sum>, &record_of<op::max>, &record_of<op::min>})
    b.output(b.fold(*how, t, square, extent_class::column), extent_class::column, false);
  return b.finish();
}

/// The sum of the squares, the largest and the least, for any dtype of numbers.
program_ref whole_of(dtype t) {
  program_builder b;
  const auto x = b.input(t);
  const auto square = b.apply(record_of<op::square>, t, {&x, 1});
  b.output(square, extent_class::element, false);
  for (const op_def* how : {&record_of<op::sum>, &record_of<op::max>, &record_of<op::min>})
    b.output(b.fold(*how, t, square, extent_class::whole), extent_class::whole, false);
  return b.finish();
}

std::string chain_source(int levels = 1) {
  return gpu::element_source(*deft::detail::program_of<chain>(), levels,
                             std::vector<bool>(6, false), {});
}

/// The output of a command; "" if it fails.
std::string output_of(const std::string& command) {
  std::string all;
  FILE* const from = popen((command + " 2> /dev/null").c_str(), "r");
  if (!from) return all;
  std::array<char, 4096> some;
  while (const std::size_t n = fread(some.data(), 1, some.size(), from)) all.append(some.data(), n);
  return pclose(from) == 0 ? all : std::string();
}

}  // namespace

TEST_CASE("NVRTC compiles every operation for every dtype") {
  if (skipped_without_nvrtc()) return;
  for (const dtype t : every_plain_dtype) {
    const program_ref p = visit_dtype(t, []<class T>() { return all_of<T>(); });
    CAPTURE(p->signature);
    const std::string source =
        gpu::element_source(*p, 2, {false, false, true}, {.late = false, .update = false});
    REQUIRE(source != "");
    CHECK(error_of([&] { gpu::compile(source, "compute_90"); }) == "");
    const std::string update =
        gpu::element_source(*p, 2, {false, false, true}, {.late = false, .update = true});
    CHECK((update.find(" check(") != std::string::npos) == is_integer(t));
    CHECK(error_of([&] { gpu::compile(update, "compute_90"); }) == "");
  }
}

TEST_CASE("NVRTC compiles regions with folds for every dtype of numbers") {
  if (skipped_without_nvrtc()) return;
  for (const dtype type : every_plain_dtype) {
    if (!is_numeric(type) || is_half(type)) continue;  // plans fold what halves are cast to
    const program_ref p = rows_of(type);
    CAPTURE(p->signature);
    const extent_class classes[] = {extent_class::element, extent_class::column};
    const std::string rows = gpu::row_source(*p, classes, {});
    const std::string whole = gpu::whole_source(*whole_of(type), 2, {false}, {});
    const std::string columns =
        gpu::column_source(*columns_of(type), std::span(classes).first(1), {});
    for (const auto& source : {rows, columns, whole}) {
      REQUIRE(source != "");
      std::string code;
      CHECK(error_of([&] { code = gpu::compile(source, "compute_80"); }) == "");
      CHECK(code.find(".local") == std::string::npos);
    }
  }
}

TEST_CASE("a chain of six operations uses 16-byte accesses and registers only") {
  if (skipped_without_nvrtc()) return;
  for (const char* architecture : {"compute_80", "compute_90"}) {
    const std::string ptx = gpu::compile(chain_source(), architecture);
    CHECK(ptx.find(".visible .entry groups_of_4") != std::string::npos);
    CHECK(ptx.find(".visible .entry single") != std::string::npos);
    CHECK(ptx.find("ld.global.v4") != std::string::npos);
    CHECK(ptx.find("st.global.v4") != std::string::npos);
    CHECK(ptx.find(".local") == std::string::npos);
    CHECK(ptx.find("fma.rn") == std::string::npos);
  }
  std::string folder = (std::filesystem::temp_directory_path() / "deft_XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()));
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const std::string cubin = gpu::compile(chain_source(), architecture);
    CHECK(
        cubin.starts_with("\x7f"
                          "ELF"));
    std::ofstream(folder + "/code", std::ios::binary) << cubin;
    const std::string sass =
        output_of("PATH=$PATH:/usr/local/cuda/bin nvdisasm -c " + folder + "/code");
    if (sass.empty()) {
      MESSAGE("not looked at: machine code, without nvdisasm");
      break;
    }
    auto count = [&](std::string_view what) {
      int n = 0;
      for (std::size_t at = 0; (at = sass.find(what, at)) != std::string::npos; ++at) ++n;
      return n;
    };
    CHECK(count("LDG.E.128") == 6);
    CHECK(count("STG.E.128") == 1);
    CHECK(count("LDL") == 0);
    CHECK(count("STL") == 0);
    CHECK(count("FFMA") == 0);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a GPU that is newer than NVRTC gets PTX") {
  if (skipped_without_nvrtc()) return;
  CHECK(gpu::compile(chain_source(), "sm_990").find(".visible .entry groups_of_4") !=
        std::string::npos);
}

TEST_CASE("source that NVRTC refuses is an error with its log") {
  if (skipped_without_nvrtc()) return;
  const std::string source =
      error_of([] { gpu::compile("extern \"C\" __global__ void f() { nothing(); }", "sm_90"); });
  CHECK(source.starts_with("internal: [nvrtc] NVRTC_ERROR_COMPILATION for sm_90: program.cu(1)"));
  CHECK(source.find("nothing") != std::string::npos);
  CHECK(error_of([] { gpu::compile(chain_source(), "sm_1"); }).starts_with("internal: [nvrtc] "));
}
