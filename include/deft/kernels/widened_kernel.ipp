// SPDX-License-Identifier: Apache-2.0
// deft/kernels/widened_kernel.ipp: conversions around a kernel.
#pragma once
#include <deft/kernels/widened_kernel.hpp>

namespace deft::ext {
namespace {

class widened_kernel final : public kernel {
 public:
  widened_kernel(kernel_ptr made, cast_maker cast) : made_(std::move(made)), cast_(cast) {}

  void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) override {
    scratch_ = 0, cost_ = 0;
    const std::vector<tensor_type> wide_in = widen(in, in_, true),
                                   wide_out = widen(out, out_, false);
    made_->prepare(wide_in, wide_out);
    cost_ += made_->cost();
  }
  void run(const kernel_call& c) override {
    const void* in[most];
    void* out[most];
    for (std::size_t i = 0; i < in_.size(); ++i) {
      in[i] = c.in[i];
      if (!in_[i].cast) continue;
      void* const wide = address_of(c, in_[i]);
      convert(c, in_[i], c.in[i], wide);
      in[i] = wide;
    }
    for (std::size_t o = 0; o < out_.size(); ++o)
      out[o] = out_[o].cast && c.out[o] ? address_of(c, out_[o]) : c.out[o];
    kernel_call own = c;
    own.in = in, own.out = out;
    own.scratch = static_cast<char*>(c.scratch) + scratch_;
    made_->run(own);
    for (std::size_t o = 0; o < out_.size(); ++o)
      if (out_[o].cast && c.out[o]) convert(c, out_[o], out[o], c.out[o]);
  }

  std::size_t scratch() const override { return scratch_ + made_->scratch(); }
  bool optional_output(int o) const override { return made_->optional_output(o); }
  double cost() const override { return cost_; }

 private:
  static constexpr std::size_t most = 8;  ///< operands of a kernel that is made for a dtype

  struct operand {
    kernel_ptr cast;  ///< null where the operand is not narrow
    std::size_t at = 0;
  };

  std::vector<tensor_type> widen(std::span<const tensor_type> types, std::vector<operand>& to,
                                 bool inputs) {
    if (types.size() > most) fail(errc::internal, "a kernel of ", types.size(), " narrow operands");
    to.clear();
    to.resize(types.size());
    std::vector<tensor_type> wide(types.begin(), types.end());
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!is_narrow(types[i].type)) continue;
      wide[i].type = computing_dtype(types[i].type);
      const tensor_type &from = inputs ? types[i] : wide[i], &into = inputs ? wide[i] : types[i];
      to[i].cast = cast_(from.type, into.type);
      to[i].cast->prepare({&from, 1}, {&into, 1});
      cost_ += to[i].cast->cost();
      to[i].at = scratch_;
      const auto bytes =
          static_cast<std::size_t>(wide[i].shape.elements()) * size_of_dtype(wide[i].type);
      scratch_ += (bytes + alignment - 1) / alignment * alignment;
    }
    return wide;
  }
  static void* address_of(const kernel_call& c, const operand& o) {
    return static_cast<char*>(c.scratch) + o.at;
  }
  static void convert(const kernel_call& c, const operand& o, const void* from, void* to) {
    kernel_call own = c;
    own.in = &from, own.out = &to, own.scratch = nullptr;
    o.cast->run(own);
  }

  static constexpr std::size_t alignment = 256;
  const kernel_ptr made_;
  const cast_maker cast_;
  std::vector<operand> in_, out_;
  std::size_t scratch_ = 0;  ///< bytes of the converted operands
  double cost_ = 0;
};

}  // namespace

kernel_ptr make_widened(kernel_ptr made, cast_maker cast) {
  return std::make_unique<widened_kernel>(std::move(made), cast);
}

}  // namespace deft::ext
