// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/source.ipp: programs as CUDA source, by calling operations' bodies on text.
#pragma once
#include <algorithm>
#include <deft/core/num_text.hpp>
#include <deft/execute/gpu/number.hpp>
#include <deft/execute/gpu/prelude.hpp>
#include <deft/execute/gpu/source.hpp>
#include <deft/op/catalog.hpp>
#include <map>
#include <unordered_map>

namespace deft::gpu {
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

std::string_view cuda_name(dtype t) {
  return visit_dtype(t, []<class T>() { return num::math<num::text>::type_name<T>(); });
}

// A lane's fault is reported by its number.
static_assert(static_cast<int>(lane_fault::div) == static_cast<int>(fault_kind::divided) &&
              static_cast<int>(lane_fault::mod) == static_cast<int>(fault_kind::remainder));

/// Whether an instruction may fail in some of its elements.
bool can_fail(const program& p, const instruction& c, std::string_view body) {
  return is_integer(p.type_of(c.args[c.count - 1])) &&
         body.find_first_of("/%") != std::string_view::npos;
}

/// Writes one program; see source.hpp.
class source_writer {
 public:
  source_writer(const program& p, source_options options)
      : p_(p),
        options_(options),
        inputs_(p.inputs.size() + (options.late ? p.immediates.size() : 0)),
        first_(p.inputs.size() + p.immediates.size()) {
    for (const auto& o : p.outputs) results_.push_back(o.value);
    if (results_.empty()) results_.push_back(static_cast<std::uint16_t>(p.values() - 1));
  }

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
    auto each_fold = [&](auto&& f) {
      for (std::size_t i = 0; i < p_.code.size(); ++i)
        if (p_.code[i].is_fold()) f(i, cuda_name(p_.code[i].type));
    };
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
    end_folds(each_fold, [&](std::size_t fold, std::size_t i, std::string_view t) {
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
    end_folds(each_fold, [](std::size_t, std::size_t, std::string_view) { return ""; });
    line("}");
    return std::move(text_);
  }

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
    auto each_fold = [&](auto&& f) {
      for (std::size_t i = 0; i < p_.code.size(); ++i)
        if (p_.code[i].is_fold()) f(i, cuda_name(p_.code[i].type));
    };
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
    // A lane has every 256th row, and a thread every 32nd lane of 256.
    line("template <int K> DEVICE void run(const args& a) {");
    line("  const int deep = K == 1 ? static_cast<int>(a.lanes) : 32;");
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
      line(str("  for (auto& s : s", i, ") s = ", how(i), "::neutral<", t, ">();"));
    });
    line("  for (long long some = y; some < rows; some += deep * K) {");
    line("#pragma unroll");
    line("    for (int k = 0; k < K; ++k) {");
    line("      const long long row = some + k * deep;");
    line("      if (row >= rows) break;");
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
        "extern \"C\" __global__ void __launch_bounds__(512) long_columns(const args a) { "
        "run<8>(a); }");
    return std::move(text_);
  }

 private:
  void line(std::string_view s) { text_.append(s) += '\n'; }
  bool fits(int levels) const {
    return argument_words(inputs_, results_.size(), literal_count(),
                          static_cast<std::size_t>(levels))
               .size <= argument_words::most;
  }
  std::size_t literal_count() const { return options_.late ? 0 : p_.immediates.size(); }

  std::string_view type(std::size_t v) const { return cuda_name(p_.type_of(v)); }
  std::string name(std::size_t v) const { return v < first_ ? str("i", v) : str("t", v - first_); }

  /// A function for each operation on operands of these types.
  bool functions() {
    text_ = prelude;
    std::map<std::string, std::size_t> known;
    for (const auto& c : p_.code) {
      if (c.is_fold()) {
        function_.push_back(0);
        fails_.push_back(false);
        continue;
      }
      const std::string body = body_of(*c.op, c.type);
      fails_.push_back(can_fail(p_, c, body));
      if (body.empty()) return false;
      std::string head, operands;
      for (int a = 0; a < c.count; ++a) {
        const char letter = "xyz"[a];
        const auto t = type(c.args[a]);
        head += str(t, ' ', letter, "_, ");
        operands += str("  const num::number<", t, "> ", letter, '(', letter, "_);\n");
      }
      const std::string rest =
          str('(', head, "unsigned& fault) {\n  typedef num::number<", type(c.args[c.count - 1]),
              "> T;\n", operands, "  return num::take(", body, ", fault);\n}");
      const auto [at, fresh] = known.emplace(str(cuda_name(c.type), rest), known.size());
      function_.push_back(at->second);
      if (fresh) line(str("DEVICE ", cuda_name(c.type), " f", at->second, rest));
    }
    return true;
  }

  void arguments(int levels) {
    line("struct args {");
    line("  long long count, n, lanes;");
    line("  fault_record* record;");
    line("  long long item;");
    line("  void* scratch;");
    if (inputs_) line(str("  const void* in[", inputs_, "];"));
    line(str("  void* out[", results_.size(), "];"));
    if (literal_count()) line(str("  long long literals[", literal_count(), "];"));
    if (levels > 1) line(str("  divider extents[", levels - 1, "];"));
    if (levels > 1) line(str("  long long steps[", levels - 1, "][", inputs_, "];"));
    line("};");
  }
  void literals() {
    for (std::size_t l = 0; l < literal_count(); ++l) {
      const std::size_t v = p_.inputs.size() + l;
      line(str("  const ", type(v), " ", name(v), " = literal<", type(v), ">(a.literals[", l,
               "]);"));
    }
  }
  /// "const float t2 = f0(i0.v[u], i1, fault);"
  template <class Operand>
  std::string call(std::size_t i, Operand&& operand) const {
    const instruction& c = p_.code[i];
    std::string arguments;
    for (int a = 0; a < c.count; ++a) arguments += operand(c.args[a]) + ", ";
    return str("const ", cuda_name(c.type), " t", i, " = f", function_[i], '(', arguments,
               "fault);");
  }

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
  template <class Each, class F>
  void end_folds(Each&& each_fold, F&& f) {
    std::size_t fold = 0;
    each_fold([&](std::size_t i, std::string_view t) {
      line(str("  const ", t, " f", i, " = fold_block<", how(i), ">(s", i, ", lanes);"));
      const std::string where = f(fold++, i, t);
      const auto o = std::ranges::find(results_, first_ + i) - results_.begin();
      line(str("  if (lane == 0", where, ") *static_cast<", t, "*>(a.out[", o, "]) = f", i,
               mean(i, "count"), ";"));
    });
  }
  std::string mean(std::size_t i, std::string_view of) const {
    const bool divided = p_.code[i].op->folds == fold_kind::mean;
    return divided ? str(" / static_cast<", cuda_name(p_.code[i].type), ">(a.", of, ")") : "";
  }

  // Of rows. What differs at every element is computed in each pass that needs it.

  extent_class where(std::size_t v) const { return shape_.where[v]; }
  bool once(std::size_t v) const {
    return where(v) == extent_class::row || where(v) == extent_class::whole;
  }
  std::string element(std::size_t v, std::string_view at) const {
    return str("static_cast<const ", type(v), "*>(a.in[", v, "])[", at, ']');
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
  const char* how(std::size_t i) const {
    return p_.code[i].op->folds == fold_kind::max ? "num::largest" : "num::sum";
  }
  void fold(std::size_t i) {
    const auto t = cuda_name(p_.code[i].type);
    line(str("  const ", t, " t", i, " = fold_row<", how(i), ", block>(s", i, ", lanes)",
             mean(i, "n"), ";"));
  }

  const program& p_;
  const source_options options_;
  const std::size_t inputs_;  ///< literals too, where they are inputs
  const std::size_t first_;   ///< value of an instruction
  std::vector<std::uint16_t> results_;
  // Of each instruction.
  std::vector<std::size_t> function_;
  std::vector<bool> fails_;
  region_shape shape_;
  std::string text_;
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
  const auto at = all.find(&op);
  return at == all.end() ? std::string() : at->second(result);
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
  return source_writer(p, options).elements(levels, broadcast);
}
std::string whole_source(const program& p, int levels, const std::vector<bool>& broadcast,
                         source_options options) {
  return source_writer(p, options).whole(levels, broadcast);
}
std::string row_source(const program& p, std::span<const extent_class> operands,
                       source_options options) {
  return source_writer(p, options).rows(operands);
}
std::string column_source(const program& p, std::span<const extent_class> operands,
                          source_options options) {
  return source_writer(p, options).columns(operands);
}

}  // namespace deft::gpu
