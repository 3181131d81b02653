// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/compiled.hpp: the kernels of an expression type: one that evaluates it for every
// element, and one that folds what it gives.
#pragma once
#include <algorithm>
#include <deft/kernels/gpu/elements.hpp>
#include <deft/kernels/gpu/empty_fold.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/gpu/registered.hpp>
#include <deft/kernels/spec/op_as_expression.hpp>
#include <deft/kernels/spec/reducers.hpp>
#include <deft/kernels/spec/region_extents.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {

/// Where a node has the operands of X.
template <class X>
class operand_places {
 public:
  using functor = evaluated<X, 1>;
  static constexpr int K = functor::K, L = functor::L;

  /// The node is X, which has no literals.
  operand_places() : whole_inputs_(K) {
    for (int k = 0; k < K; ++k) inputs_[k] = static_cast<std::uint16_t>(k);
  }
  explicit operand_places(const registered_request& r) : whole_inputs_(r.whole.inputs.size()) {
    std::copy_n(r.operands.begin(), K, inputs_);
    for (int l = 0; l < L; ++l) {
      literals_[l] = r.operands[static_cast<std::size_t>(K + l)];
      if (const auto at = literals_[l] - whole_inputs_; at < r.literals.size())
        bits_[l] = r.literals[at];
    }
  }

  std::vector<tensor_type> types(std::span<const tensor_type> in) const {
    std::vector<tensor_type> own;
    for (auto k : inputs_) own.push_back(in[k]);
    return own;
  }
  /// `in`: types of all operands of the node.
  template <class F>
  void set(F& f, std::span<const tensor_type> in, const kernel_call& c, const stream& s) const {
    for (int k = 0; k < K; ++k) f.in[k] = s.in<void>(c.in[inputs_[k]]);
    if constexpr (L > 0)
      for (int l = 0; l < L; ++l) {
        const bool is_input = in.size() > whole_inputs_;
        f.literals.at[l] = is_input ? s.in<void>(c.in[literals_[l]]) : nullptr;
        f.literals.bits[l] = bits_[l];
      }
    f.report = s.faults();
  }

 private:
  std::size_t whole_inputs_;
  std::uint16_t inputs_[K], literals_[L > 0 ? L : 1] = {};
  std::int64_t bits_[L > 0 ? L : 1] = {};
};

/// X over whole arrays, with 16-byte accesses where addresses and rows allow.
template <class X>
class element_kernel final : public queued_kernel {
 public:
  element_kernel() = default;
  explicit element_kernel(const registered_request& r) : operands_(r) {}

  void queue(const kernel_call& c, stream& s) override {
    if (layout_.elements() == 0) return;
    const bool groups = has_groups(4, layout_, c, std::span(in_).first(K), out_);
    groups ? queue_groups<4>(c, s) : queue_groups<1>(c, s);
  }

 private:
  static constexpr std::size_t K = operand_places<X>::K;

  void ready() override {
    const auto in = std::span(in_).first(K);
    layout_ = row_layout(in, out_[0]);
    if (layout_.elements() > 0) places_ = places<K>(layout_, in);
  }

  template <int N>
  void queue_groups(const kernel_call& c, stream& s) const {
    elements<X, N> f;
    f.of.where = places_;
    operands_.set(f.of, in_, c, s);
    f.out = s.out<typename X::value_type>(c.out[0]);
    f.count = layout_.elements();
    s.launch((f.count + N - 1) / N, f);
  }

  operand_places<X> operands_;
  row_layout layout_;
  places<K> places_;
};

/// X folded where it is computed. The order is that of a fold of X's values.
template <class X, class How>
struct folded_elements : evaluated<X, 1> {
  using T = typename X::value_type;
  using state = T;

  T* to;
  T count;  ///< what a fold is divided by
  bool divided;
  std::int64_t n;

  DEFT_HD T start() const { return How::template neutral<T>(); }
  DEFT_HD T add(T s, std::int64_t r, std::int64_t c) const {
    return How::combine(s, this->values(r * n + c, 1).v[0]);
  }
  DEFT_HD T join(T a, T b) const { return How::combine(a, b); }
  DEFT_HD void end(std::int64_t r, T s) const { to[r] = divided ? s / count : s; }
};

/// The kernel of a region whose result is the fold of X, for each row or over all.
template <class X, class How>
class fold_kernel final : public queued_kernel {
 public:
  explicit fold_kernel(const registered_request& r)
      : region_(r.whole), operands_(r), mean_(r.whole.code.back().op->folds == fold_kind::mean) {}

  std::size_t scratch() const override { return row_room(functor(), rows_, n_); }
  void queue(const kernel_call& c, stream& s) override {
    if (rows_ == 0) return;
    T* const to = s.out<T>(c.out[0]);
    if (n_ == 0) return s.launch(rows_, of_nothing<T, How>(to, mean_));
    functor f;
    f.where = places_;
    operands_.set(f, in_, c, s);
    f.to = to, f.count = static_cast<T>(n_), f.divided = mean_, f.n = n_;
    s.over_rows(f, rows_, n_, c.scratch);
  }

 private:
  using T = typename X::value_type;
  using functor = folded_elements<X, How>;

  void ready() override {
    const dims extents = region_extents(region_, std::span(in_).first(region_.inputs.size()));
    const int outer = region_.row_axes > 0 ? extents.rank() - region_.row_axes : 0;
    rows_ = n_ = 1;
    for (int d = 0; d < extents.rank(); ++d) (d < outer ? rows_ : n_) *= extents[d];
    const auto in = operands_.types(in_);
    const row_layout layout(in, {extents, dtype_of<T>});
    if (layout.elements() > 0) places_ = places<functor::K>(layout, in);
  }

  const program region_;
  operand_places<X> operands_;
  const bool mean_;
  places<functor::K> places_;
  std::int64_t rows_ = 0, n_ = 0;
};

/// Bytes of a kernel's parameters on all GPUs, without what a launch adds to a functor's.
inline constexpr std::size_t most_parameters = 4096 - 64;

template <class X>
struct registered {
  static kernel_ptr make(const registered_request& r) {
    return std::make_unique<element_kernel<X>>(r);
  }
  static const registered_kernel entry;
};
template <class X>
const registered_kernel registered<X>::entry{kernels_of::DEFT_GPU_SYSTEM,
                                             &deft::detail::program_of<X>, &make};

template <class X, class How>
struct registered_fold {
  static kernel_ptr make(const registered_request& r) {
    return std::make_unique<fold_kernel<X, How>>(r);
  }
  static const registered_kernel entry;
};
template <class X, class How>
const registered_kernel registered_fold<X, How>::entry{
    kernels_of::DEFT_GPU_SYSTEM, &deft::detail::program_of<X>, &make, How::kind};

/// An operation of the program's own on operands of T, alone.
template <class Op, class T>
struct registered_operation {
  using X = deft::detail::single_call<Op, T>;
  static const registered_kernel entry;
};
template <class Op, class T>
const registered_kernel registered_operation<Op, T>::entry{
    kernels_of::DEFT_GPU_SYSTEM, &deft::detail::program_of<X>, &registered<X>::make,
    fold_kind::none, &record_of<Op>};

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
