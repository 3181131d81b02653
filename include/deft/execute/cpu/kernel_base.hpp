// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/kernel_base.hpp: what the CPU's own kernels share: types as prepared, scratch
// memory of a thread, alignment.
#pragma once
#include <deft/execute/kernel.hpp>
#include <deft/expr/op_record.hpp>
#include <vector>

namespace deft::cpu {

/// Keeps the types of the runs to come; `ready` works out the rest.
class typed_kernel : public kernel {
 public:
  void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) final {
    in_.assign(in.begin(), in.end());
    out_.assign(out.begin(), out.end());
    ready();
  }
  double cost() const override { return cost_; }

 protected:
  virtual void ready() {}
  const dims& in(std::size_t i) const { return in_[i].shape; }
  const dims& out(std::size_t i = 0) const { return out_[i].shape; }
  dtype type() const { return out_[0].type; }

  std::vector<tensor_type> in_, out_;
  double cost_ = 1000;
};

/// Memory of the calling thread, kept for its next use: at least `bytes`, aligned to 64, contents
/// undefined. One use at a time.
void* thread_scratch(std::size_t bytes);

/// No kernel for these dtypes.
[[noreturn]] inline void no_kernel(const node_def& n, dtype t) {
  fail(errc::unimplemented, "[", n.op->name, "] has no kernel on the CPU for ", t);
}

}  // namespace deft::cpu
