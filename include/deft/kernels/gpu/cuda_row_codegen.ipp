// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda_row_codegen.ipp: regions of rows as CUDA source.
#pragma once
#include <algorithm>
#include <deft/kernels/gpu/cuda_codegen_writer.hpp>

namespace deft::ext::gpu {
namespace {

/// Of regions of rows, folded along them or along the columns. What differs at every element of a
/// row is computed in each pass that needs it.
class row_writer : source_writer {
 public:
  using source_writer::source_writer;

  std::string rows(std::span<const extent_class> operands) {
    for (const auto& c : p_.code)
      if (c.is_fold() && c.leaves != extent_class::row) return {};
    if (options_.update || !functions() || !fits(1)) return {};
    shape_ = shape_of(p_, operands.first(p_.inputs.size()));
    arguments(1);
    line("template <bool block> DEVICE void run(const args& a) {");
    line("  const int lanes = block ? 256 : static_cast<int>(a.lanes);");
    line("  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);");
    line(
        "  long long r = blockIdx.x * static_cast<long long>(blockDim.x / lanes) + "
        "threadIdx.x / lanes;");
    line("  const bool live = r < a.count;");
    line("  if (!live) r = a.count - 1;");
    line("  const long long row = r * a.n, n = live ? a.n : 0;");
    line("  unsigned fault = 0;");
    literals();
    for (std::size_t v = 0; v < inputs_; ++v)
      if (where(v) == extent_class::row || where(v) == extent_class::whole)
        line(str("  const ", type(v), " ", name(v), " = ",
                 element(v, where(v) == extent_class::row ? "r" : "0"), ";"));
    once_a_row(0);
    for (int phase = 0; phase <= last_pass(); ++phase) {
      pass(phase);
      if (phase + 1 < shape_.phases) once_a_row(phase + 1);
    }
    line("  if (live && lane == 0) {");
    for (std::size_t o = 0; o < results_.size(); ++o)
      if (where(results_[o]) != extent_class::element)
        line(str("    static_cast<", type(results_[o]), "*>(a.out[", o,
                 "])[r] = ", name(results_[o]), ";"));
    line("  }");
    line("  if (fault && live) report(a.record, a.item, fault);");
    line("}");
    line("extern \"C\" __global__ void rows(const args a) { run<false>(a); }");
    line(
        "extern \"C\" __global__ void __launch_bounds__(256) long_rows(const args a) { "
        "run<true>(a); }");
    return std::move(text_);
  }

  std::string columns(std::span<const extent_class> operands) {
    for (const auto& c : p_.code)
      if (c.is_fold() && c.leaves != extent_class::column) return {};
    if (options_.update || !functions() || !fits(1)) return {};
    shape_ = shape_of(p_, operands.first(p_.inputs.size()));
    for (auto r : results_)
      if (where(r) == extent_class::row || where(r) == extent_class::whole) return {};
    auto once = [&](std::size_t v) {
      return where(v) == extent_class::column || where(v) == extent_class::whole;
    };
    auto load = [&](std::size_t v) {
      const auto w = where(v);
      const std::string_view at = w == extent_class::element  ? "row * a.n + column"
                                  : w == extent_class::row    ? "row"
                                  : w == extent_class::column ? "column"
                                                              : "0";
      return str("const ", type(v), " ", name(v), " = ", element(v, at), ";");
    };
    auto by_name = [&](std::size_t v) { return name(v); };
    arguments(1);
    // A lane has every 256th row, and a thread K of 256 lanes.
    line("template <int K> DEVICE void run(const args& a) {");
    line("  const int deep = K == 1 ? static_cast<int>(a.lanes) : 256 / K;");
    line("  const int wide = static_cast<int>(blockDim.x) / deep;");
    line("  const int x = static_cast<int>(threadIdx.x) % wide;");
    line("  const int y = static_cast<int>(threadIdx.x) / wide;");
    line("  long long column = static_cast<long long>(blockIdx.x) * wide + x;");
    line("  const bool live = column < a.n;");
    line("  if (!live) column = a.n - 1;");
    line("  const long long rows = live ? a.count : 0;");
    line("  unsigned fault = 0;");
    literals();
    for (std::size_t v = 0; v < inputs_; ++v)
      if (once(v)) line("  " + load(v));
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (!p_.code[i].is_fold() && once(first_ + i)) line("  " + call(i, by_name));
    each_fold([&](std::size_t i, std::string_view t) {
      line(str("  ", t, " s", i, "[K];"));
      line("#pragma unroll");
      line(str("  for (auto& s : s", i, ") s = ", how(i), "::neutral<", t, ">();"));
    });
    line("  for (long long some = y; some < rows; some += K * deep) {");
    line("#pragma unroll");
    line("    for (int k = 0; k < K; ++k) {");
    line("      const long long row = some + k * deep;");
    line("      if (row >= rows) continue;");
    for (std::size_t v = 0; v < inputs_; ++v)
      if (!once(v)) line("      " + load(v));
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (!p_.code[i].is_fold() && !once(first_ + i)) line("      " + call(i, by_name));
    each_fold([&](std::size_t i, std::string_view) {
      line(str("      s", i, "[k] = ", how(i), "::combine(s", i, "[k], ", name(p_.code[i].args[0]),
               ");"));
    });
    for (std::size_t o = 0; o < results_.size(); ++o)
      if (where(results_[o]) == extent_class::element)
        line(str("      static_cast<", type(results_[o]), "*>(a.out[", o,
                 "])[row * a.n + column] = ", name(results_[o]), ";"));
    line("    }");
    line("  }");
    each_fold([&](std::size_t i, std::string_view t) {
      line("#pragma unroll");
      line("  for (int d = K / 2; d > 0; d /= 2)");
      line("#pragma unroll");
      line(str("    for (int k = 0; k < d; ++k) s", i, "[k] = ", how(i), "::combine(s", i, "[k], s",
               i, "[k + d]);"));
      line(str("  const ", t, " t", i, " = fold_block<", how(i), ">(s", i, "[0], deep, wide)",
               mean(i, "count"), ";"));
    });
    line("  if (live && y == 0) {");
    for (std::size_t o = 0; o < results_.size(); ++o)
      if (where(results_[o]) == extent_class::column)
        line(str("    static_cast<", type(results_[o]), "*>(a.out[", o,
                 "])[column] = ", name(results_[o]), ";"));
    line("  }");
    line("  if (fault && live) report(a.record, a.item, fault);");
    line("}");
    line(
        "extern \"C\" __global__ void __launch_bounds__(512) columns(const args a) { "
        "run<1>(a); }");
    line(
        str("extern \"C\" __global__ void __launch_bounds__(512) long_columns(const args a) { run<",
            column_lanes_of_thread(p_), ">(a); }"));
    return std::move(text_);
  }

 private:
  extent_class where(std::size_t v) const { return shape_.where[v]; }
  bool once(std::size_t v) const {
    return where(v) == extent_class::row || where(v) == extent_class::whole;
  }
  /// What is the same in a row, and is known once the folds before `phase` are.
  void once_a_row(int phase) {
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (const std::size_t v = first_ + i;
          !p_.code[i].is_fold() && once(v) && shape_.phase[v] == phase)
        line(str("  ", call(i, [&](std::size_t a) { return name(a); })));
  }
  bool is_folded_in(std::size_t i, int phase) const {
    return p_.code[i].is_fold() && shape_.phase[p_.code[i].args[0]] == phase;
  }
  /// Values that differ at every element and must be computed: results, and what may fail.
  std::vector<std::size_t> wanted() const {
    std::vector<std::size_t> all;
    for (auto r : results_)
      if (where(r) == extent_class::element) all.push_back(r);
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (fails_[i] && !once(first_ + i)) all.push_back(first_ + i);
    return all;
  }
  /// The last pass that reads elements: it writes all that differ. What is written may take the
  /// place of what was read.
  int last_pass() const {
    int last = -1;
    for (const auto& c : p_.code)
      if (c.is_fold()) last = std::max<int>(last, shape_.phase[c.args[0]]);
    for (auto v : wanted()) last = std::max<int>(last, shape_.phase[v]);
    return last;
  }
  void pass(int phase) {
    const bool last = phase == last_pass();
    std::vector<bool> needed(p_.values());
    auto need = [&](std::size_t v) { needed[v] = true; };
    bool any = false;
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (is_folded_in(i, phase)) need(p_.code[i].args[0]), any = true;
    if (last)
      for (auto v : wanted()) need(v), any = true;
    if (!any) return;
    for (std::size_t i = p_.code.size(); i-- > 0;)
      if (const std::size_t v = first_ + i; needed[v] && !once(v))
        for (int a = 0; a < p_.code[i].count; ++a) need(p_.code[i].args[a]);
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (is_folded_in(i, phase))
        line(str("  ", cuda_name(p_.code[i].type), " s", i, " = ", how(i), "::neutral<",
                 cuda_name(p_.code[i].type), ">();"));
    line("  for (long long c = lane; c < n; c += lanes) {");
    for (std::size_t v = 0; v < inputs_; ++v)
      if (needed[v] && !once(v))
        line(str("    const ", type(v), " ", name(v), " = ",
                 element(v, where(v) == extent_class::column ? "c" : "row + c"), ";"));
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (const std::size_t v = first_ + i; needed[v] && !once(v))
        line(str("    ", call(i, [&](std::size_t a) { return name(a); })));
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (is_folded_in(i, phase))
        line(
            str("    s", i, " = ", how(i), "::combine(s", i, ", ", name(p_.code[i].args[0]), ");"));
    for (std::size_t o = 0; o < results_.size(); ++o)
      if (last && where(results_[o]) == extent_class::element)
        line(str("    static_cast<", type(results_[o]), "*>(a.out[", o,
                 "])[row + c] = ", name(results_[o]), ";"));
    line("  }");
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (is_folded_in(i, phase)) fold(i);
  }
  void fold(std::size_t i) {
    const auto t = cuda_name(p_.code[i].type);
    line(str("  const ", t, " t", i, " = fold_row<", how(i), ", block>(s", i, ", lanes)",
             mean(i, "n"), ";"));
  }

  region_shape shape_;
};

}  // namespace

int column_lanes_of_thread(const program& p) {
  const auto folds = std::ranges::count_if(p.code, &instruction::is_fold);
  const auto fold = std::ranges::find_if(p.code, &instruction::is_fold);
  // Compilers keep more bytes in memory, smaller ones too.
  return folds == 1 && size_of_dtype(fold->type) == 4 ? 16 : 8;
}
std::string row_source(const program& p, std::span<const extent_class> operands,
                       source_options options) {
  return row_writer(p, options).rows(operands);
}
std::string column_source(const program& p, std::span<const extent_class> operands,
                          source_options options) {
  return row_writer(p, options).columns(operands);
}

}  // namespace deft::ext::gpu
