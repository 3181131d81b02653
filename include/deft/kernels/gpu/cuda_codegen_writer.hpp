// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda_codegen_writer.hpp: what the sources of all programs have in common.
#pragma once
#include <algorithm>
#include <deft/core/num_text.hpp>
#include <deft/kernels/gpu/cuda_codegen.hpp>
#include <deft/kernels/gpu/prelude.hpp>
#include <map>

namespace deft::ext::gpu {

inline std::string_view cuda_name(dtype t) {
  return visit_dtype(t, []<class T>() { return num::math<num::text>::type_name<T>(); });
}

/// What is computed with.
inline std::string_view cuda_lane_name(dtype t) {
  return cuda_name(is_half(t) ? dtype::float32 : t);
}

/// Whether an instruction may fail in some of its elements.
inline bool can_fail(const program& p, const instruction& c, std::string_view body) {
  return is_integer(p.type_of(c.args[c.count - 1])) &&
         body.find_first_of("/%") != std::string_view::npos;
}

/// Writes the source of one program.
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

 protected:
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
        const dtype t = p_.type_of(c.args[a]);
        head += str(cuda_name(t), ' ', letter, "_, ");
        operands +=
            str("  const num::number<", cuda_lane_name(t), "> ", letter, '(', letter, "_);\n");
      }
      const std::string rest = str('(', head, "unsigned& fault) {\n  typedef num::number<",
                                   cuda_lane_name(p_.type_of(c.args[c.count - 1])), "> T;\n",
                                   operands, "  return num::take(", body, ", fault);\n}");
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

  /// Calls f(instruction, type) for each fold.
  template <class F>
  void each_fold(F&& f) const {
    for (std::size_t i = 0; i < p_.code.size(); ++i)
      if (p_.code[i].is_fold()) f(i, cuda_name(p_.code[i].type));
  }
  std::string mean(std::size_t i, std::string_view of) const {
    const bool divided = p_.code[i].op->folds == fold_kind::mean;
    return divided ? str(" / static_cast<", cuda_name(p_.code[i].type), ">(a.", of, ")") : "";
  }

  std::string element(std::size_t v, std::string_view at) const {
    return str("static_cast<const ", type(v), "*>(a.in[", v, "])[", at, ']');
  }
  const char* how(std::size_t i) const {
    switch (p_.code[i].op->folds) {
      case fold_kind::max:
        return "num::largest";
      case fold_kind::min:
        return "num::smallest";
      default:
        return "num::sum";
    }
  }

  const program& p_;
  const source_options options_;
  const std::size_t inputs_;  ///< literals too, where they are inputs
  const std::size_t first_;   ///< value of an instruction
  std::vector<std::uint16_t> results_;
  // Of each instruction.
  std::vector<std::size_t> function_;
  std::vector<bool> fails_;
  std::string text_;
};

}  // namespace deft::ext::gpu
