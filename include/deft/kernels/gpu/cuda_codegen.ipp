// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda_codegen.ipp: programs as CUDA source, by calling operations' bodies on
// text: those without folds, and those folded as a whole.
#pragma once
#include <algorithm>
#include <deft/core/num_text.hpp>
#include <deft/kernels/gpu/cuda_codegen_writer.hpp>
#include <deft/kernels/gpu/cuda_lane.hpp>
#include <deft/op/catalog.hpp>
#include <unordered_map>

namespace deft::ext::gpu {
namespace {

using body_writer = std::string (*)(dtype result);

template <class Op>
std::string write_body([[maybe_unused]] dtype result) {
  const num::text x("x"), y("y"), z("z");
  if constexpr (std::is_same_v<Op, op::cast>)
    return visit_dtype(result, [&]<class To>() { return op::cast_to<To>()(x).s; });
  else if constexpr (Op::arity == 1)
    return Op()(x).s;
  else if constexpr (Op::arity == 2)
    return Op()(x, y).s;
  else
    return Op()(x, y, z).s;
}

// A lane's fault is reported by its number.
static_assert(static_cast<int>(lane_fault::div) == static_cast<int>(fault_kind::divided) &&
              static_cast<int>(lane_fault::mod) == static_cast<int>(fault_kind::remainder));

/// Of programs whose operands are walked by levels.
class element_writer : source_writer {
 public:
  using source_writer::source_writer;

  std::string elements(int levels, const std::vector<bool>& broadcast) {
    if (!functions() || !fits(levels)) return {};
    arguments(levels);
    line("template <int N, bool writes> DEVICE void some(const args& a, long long first) {");
    for (const auto& text : loads(levels, broadcast, true)) line("  " + text);
    literals();
    for (std::size_t o = 0; o < results_.size(); ++o)
      line(str("  group<", type(results_[o]), ", N> o", o, ";"));
    line("  unsigned fault = 0;");
    line("#pragma unroll");
    line("  for (int u = 0; u < N; ++u) {");
    auto lane = [&](std::size_t v) {
      return v < inputs_ && !broadcast[v] ? name(v) + ".v[u]" : name(v);
    };
    for (std::size_t i = 0; i < p_.code.size(); ++i) line(str("    ", call(i, lane)));
    for (std::size_t o = 0; o < results_.size(); ++o)
      line(str("    o", o, ".v[u] = ", lane(results_[o]), ";"));
    line("  }");
    line("  if (fault) report(a.record, a.item, fault);");
    line("  if constexpr (writes) {");
    for (std::size_t o = 0; o < results_.size(); ++o)
      line(str("    store(a.out[", o, "], first, o", o, ");"));
    line("  }");
    line("}");
    line("template <int N, bool writes> DEVICE void run(const args& a) {");
    line(
        "  const long long thread = blockIdx.x * static_cast<long long>(blockDim.x) + "
        "threadIdx.x;");
    line("  const long long first = thread * N;");
    if (options_.update) line("  if (has_failed(a.record)) return;");
    line("  if (first + N <= a.count) return some<N, writes>(a, first);");
    line("  if constexpr (N > 1) {");
    line("#pragma unroll 1");
    line("    for (long long e = first; e < a.count; ++e) some<1, writes>(a, e);");
    line("  }");
    line("}");
    line("extern \"C\" __global__ void groups_of_4(const args a) { run<4, true>(a); }");
    line("extern \"C\" __global__ void single(const args a) { run<1, true>(a); }");
    if (is_checked(p_, options_))
      line("extern \"C\" __global__ void check(const args a) { run<1, false>(a); }");
    return std::move(text_);
  }

  std::string whole(int levels, const std::vector<bool>& broadcast) {
    for (const auto& c : p_.code)
      if (c.is_fold() && c.leaves != extent_class::whole) return {};
    if (options_.update || !functions() || !fits(levels)) return {};
    arguments(levels);
    auto start = [&](std::size_t i, std::string_view t) {
      line(str("  ", t, " s", i, " = ", how(i), "::neutral<", t, ">();"));
    };
    line("extern \"C\" __global__ void __launch_bounds__(256) parts(const args a) {");
    line("  const int lanes = static_cast<int>(a.lanes), lane = static_cast<int>(threadIdx.x);");
    line("  const long long begin = blockIdx.x * a.n;");
    line("  const long long end = begin + a.n < a.count ? begin + a.n : a.count;");
    line("  unsigned fault = 0;");
    literals();
    each_fold(start);
    line("  for (long long first = begin + lane; lane < lanes && first < end; first += lanes) {");
    for (const auto& text : loads(levels, broadcast, false)) line("    " + text);
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (!p_.code[i].is_fold()) line(str("    ", call(i, [&](std::size_t v) { return name(v); })));
    each_fold([&](std::size_t i, std::string_view) {
      line(str("    s", i, " = ", how(i), "::combine(s", i, ", ", name(p_.code[i].args[0]), ");"));
    });
    for (std::size_t o = 0; o < results_.size(); ++o)
      if (!p_.made_by(results_[o])->is_fold())
        line(str("    static_cast<", type(results_[o]), "*>(a.out[", o,
                 "])[first] = ", name(results_[o]), ";"));
    line("  }");
    line("  if (fault) report(a.record, a.item, fault);");
    end_folds([&](std::size_t fold, std::size_t i, std::string_view t) {
      line(str("  if (lane == 0 && gridDim.x > 1) *part_of<", t, ">(a.scratch, ", fold,
               ", gridDim.x, blockIdx.x) = f", i, ";"));
      return " && gridDim.x == 1";
    });
    line("}");
    line("extern \"C\" __global__ void __launch_bounds__(256) folds(const args a) {");
    line("  const int lanes = static_cast<int>(a.lanes), lane = static_cast<int>(threadIdx.x);");
    each_fold(start);
    line("  for (long long p = lane; lane < lanes && p < a.n; p += lanes) {");
    std::size_t fold = 0;
    each_fold([&](std::size_t i, std::string_view t) {
      line(str("    s", i, " = ", how(i), "::combine(s", i, ", *part_of<", t, ">(a.scratch, ",
               fold++, ", a.n, p));"));
    });
    line("  }");
    end_folds([](std::size_t, std::size_t, std::string_view) { return ""; });
    line("}");
    return std::move(text_);
  }

 private:
  /// The operands' elements that belong to number `first`: groups of N, or single ones.
  std::vector<std::string> loads(int levels, const std::vector<bool>& broadcast,
                                 bool groups) const {
    std::vector<std::string> text{"long long rest = first;"};
    for (int l = 0; l < levels; ++l)
      text.push_back(str("const long long c", l, " = ",
                         l + 1 < levels ? str("a.extents[", l, "].cut(rest)") : "rest", ";"));
    for (std::size_t v = 0; v < inputs_; ++v) {
      std::string at = broadcast[v] ? "0" : "c0";
      for (int l = 1; l < levels; ++l) at += str(" + c", l, " * a.steps[", l - 1, "][", v, "]");
      text.push_back(broadcast[v] || !groups
                         ? str("const ", type(v), " ", name(v), " = ", element(v, at), ";")
                         : str("const group<", type(v), ", N> ", name(v), " = load<", type(v),
                               ", N>(a.in[", v, "], ", at, ");"));
    }
    return text;
  }
  /// The folds of a block's lanes, and the results where `f` says so.
  template <class F>
  void end_folds(F&& f) {
    std::size_t fold = 0;
    each_fold([&](std::size_t i, std::string_view t) {
      line(str("  const ", t, " f", i, " = fold_block<", how(i), ">(s", i, ", lanes);"));
      const std::string where = f(fold++, i, t);
      const auto o = std::ranges::find(results_, first_ + i) - results_.begin();
      line(str("  if (lane == 0", where, ") *static_cast<", t, "*>(a.out[", o, "]) = f", i,
               mean(i, "count"), ";"));
    });
  }
};

}  // namespace

std::string body_of(const op_def& op, dtype result) {
  static const auto& all = *new std::unordered_map<const op_def*, body_writer>([] {
    std::unordered_map<const op_def*, body_writer> made;
    op::catalog::each([&]<class Op>() {
      if constexpr (record_of<Op>.is(op_traits::elementwise))
        made.emplace(&record_of<Op>, &write_body<Op>);
    });
    return made;
  }());
  if (const auto at = all.find(&op); at != all.end()) return at->second(result);
  return op.functions && op.functions->source ? op.functions->source() : std::string();
}

bool is_checked(const program& p, source_options options) {
  return options.update && std::ranges::any_of(p.code, [&](const instruction& c) {
           return can_fail(p, c, body_of(*c.op, c.type));
         });
}
std::string element_source(const program& p, int levels, const std::vector<bool>& broadcast,
                           source_options options) {
  for (const auto& c : p.code)
    if (c.is_fold()) return {};
  return element_writer(p, options).elements(levels, broadcast);
}
std::string whole_source(const program& p, int levels, const std::vector<bool>& broadcast,
                         source_options options) {
  return element_writer(p, options).whole(levels, broadcast);
}

}  // namespace deft::ext::gpu
