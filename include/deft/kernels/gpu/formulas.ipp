// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/formulas.ipp: optimizers' formulas: a variable and its slots in one launch.
#pragma once
#include <array>
#include <deft/kernels/gpu/compiled.hpp>
#include <deft/kernels/spec/formula_program.hpp>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// How a formula computes with lanes.
struct lane_call {
  template <class Op, class... V>
  DEFT_HD auto operator()(Op o, const V&... v) const {
    return o(v...);
  }
};

/// F on elements of T, `Inputs` of its operands in arrays, the others literals. N: elements of a
/// thread.
template <class F, class T, int Inputs, int N>
struct formula_elements {
  static constexpr int L = F::operands - Inputs;

  std::int64_t count;
  const T* in[Inputs];
  T literals[L > 0 ? L : 1];
  T* out[F::results];
  places<Inputs> where;

  DEFT_HD void operator()(std::int64_t number) const {
    const std::int64_t first = number * N, left = count - first;
    std::int64_t at[Inputs];
    where.find(first, at);
    group<T, N> from[Inputs], made[F::results];
    for (int k = 0; k < Inputs; ++k)
      read_group(from[k], in[k] + at[k], (where.broadcast >> k & 1) != 0, left);
    for (int u = 0; u < N; ++u) {
      num::lane<T> operands[F::operands], results[F::results];
      for (int k = 0; k < Inputs; ++k) operands[k] = from[k].v[u];
      for (int l = 0; l < L; ++l) operands[Inputs + l] = literals[l];
      formula::run_in_registers<F, lane_call>(operands, results);
      for (int k = 0; k < F::results; ++k) made[k].v[u] = results[k].v;
    }
    for (int k = 0; k < F::results; ++k) write_group(out[k] + first, made[k], left);
  }
};

template <class F, class T, int Inputs>
class formula_kernel final : public queued_kernel {
 public:
  explicit formula_kernel(std::span<const std::int64_t> literals) {
    for (std::size_t l = 0; l < literals.size(); ++l) literals_[l] = from_immediate<T>(literals[l]);
  }

  void queue(const kernel_call& c, stream& s) override {
    if (layout_.elements() == 0) return;
    has_groups(4, layout_, c, in_, out_) ? queue_groups<4>(c, s) : queue_groups<1>(c, s);
  }

 private:
  static constexpr int L = F::operands - Inputs;

  void ready() override {
    layout_ = row_layout(in_, out_[0]);
    if (layout_.elements() > 0) places_ = places<Inputs>(layout_, in_);
  }
  template <int N>
  void queue_groups(const kernel_call& c, stream& s) const {
    formula_elements<F, T, Inputs, N> f;
    f.where = places_;
    for (int k = 0; k < Inputs; ++k) f.in[k] = s.in<T>(c.in[k]);
    std::copy(std::begin(literals_), std::end(literals_), f.literals);
    for (int k = 0; k < F::results; ++k) f.out[k] = s.out<T>(c.out[k]);
    f.count = layout_.elements();
    s.launch((f.count + N - 1) / N, f);
  }

  T literals_[L > 0 ? L : 1] = {};
  row_layout layout_;
  places<Inputs> places_;
};

struct formula_entry {
  const program_ref& (*signature)();
  kernel_ptr (*make)(const program& p, std::span<const std::int64_t> literals);
};

template <class F, class T, int Inputs = F::inputs>
constexpr formula_entry formula_of{
    &program_of_formula<F, T, Inputs>,
    [](const program&, std::span<const std::int64_t> literals) -> kernel_ptr {
      return std::make_unique<formula_kernel<F, T, Inputs>>(literals);
    }};

/// One variable, and nothing else: an expression of the variable, the gradient and the rate.
template <class T, class Rate>
using descent = call<op::sub, deft::detail::leaf<T, shape_t<dyn>>,
                     call<op::mul, deft::detail::leaf<T, shape_t<dyn>>, Rate>>;
template <class X>
constexpr formula_entry expression_of{
    &deft::detail::program_of<X>,
    [](const program& p, std::span<const std::int64_t> literals) -> kernel_ptr {
      std::vector<std::uint16_t> operands(p.inputs.size() + p.immediates.size());
      std::iota(operands.begin(), operands.end(), std::uint16_t{0});
      return std::make_unique<element_kernel<X>>(registered_request{p, operands, literals});
    }};

template <class T, class... C>
std::array<formula_entry, 2 + sizeof...(C)> entries_on(formula::compiled_list<C...>) {
  return {expression_of<descent<T, deft::detail::literal_leaf<T>>>,
          expression_of<descent<T, deft::detail::leaf<T, shape_t<dyn>>>>,
          formula_of<typename C::formula, T, C::inputs>...};
}

const formula_entry* find_formula(const program& p) {
  static const auto& all = *new auto([] {
    std::unordered_map<std::string_view, formula_entry> made;
    for (const auto& e : entries_on<float>(formula::all()))
      made.emplace(e.signature()->signature, e);
    for (const auto& e : entries_on<double>(formula::all()))
      made.emplace(e.signature()->signature, e);
    return made;
  }());
  const auto at = all.find(p.is_region() ? canonical(p).signature : p.signature);
  if (at == all.end()) return nullptr;
  const program& known = *at->second.signature();
  return known.inputs == p.inputs && known.immediates == p.immediates ? &at->second : nullptr;
}

}  // namespace

bool has_formula(const program& p) { return find_formula(p) != nullptr; }
kernel_ptr make_formula(const program& p, std::span<const std::int64_t> literals) {
  const formula_entry* known = find_formula(p);
  return known ? known->make(p, literals) : nullptr;
}

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
