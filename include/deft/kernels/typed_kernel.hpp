// SPDX-License-Identifier: Apache-2.0
// deft/kernels/typed_kernel.hpp: a kernel that keeps the types it was prepared for, and how one for
// other types is refused.
#pragma once
#include <deft/kernels/kernel.hpp>
#include <string_view>
#include <vector>

namespace deft::ext {

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

/// No kernel for these dtypes on `devices`, as "the CPU".
[[noreturn]] inline void no_kernel_on(std::string_view devices, const node_def& n, dtype t) {
  fail(errc::unimplemented, "[", n.op->name, "] has no kernel on ", devices, " for ", t);
}
/// What `make.template operator()<T>()` returns, T being the C++ type of `t`, which is one of
/// `Types`; for others there is no kernel.
template <dtype_set Types, class F>
kernel_ptr kernel_on(std::string_view devices, const node_def& n, dtype t, F make) {
  if (!Types.has(t)) no_kernel_on(devices, n, t);
  return visit_dtype_in<Types>(
      t, [&]<class T>() -> kernel_ptr { return make.template operator()<T>(); });
}

}  // namespace deft::ext
