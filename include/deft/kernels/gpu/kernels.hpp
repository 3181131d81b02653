// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/kernels.hpp: what kernels of GPUs share, and the tables that their devices join.
#pragma once
#include <deft/kernels/gpu/stream.hpp>
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/kernels/spec/matrix_product.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {

/// A kernel whose run is queued on a stream. The elements of an output of no extent are not there.
template <class Spec>
class queued : public Spec {
 public:
  void run(const kernel_call& c) final { queue(c, *static_cast<stream*>(c.stream)); }
  virtual void queue(const kernel_call& c, stream& s) = 0;
};
using queued_kernel = queued<typed_kernel>;

kernel_ptr make_cast(dtype from, dtype to);

namespace {

/// The kernel of a spec on this system's GPUs, for the types that it is chosen by.
template <class Spec, class... T>
class kernel_of;

/// What tables of kernels are made for.
struct this_device {
  static constexpr std::string_view name = "GPUs";
  static constexpr cast_maker cast = &make_cast;
  template <class Spec, class... T>
  using kernel = kernel_of<Spec, T...>;
};

}  // namespace

/// Of an elementwise operation for operands of that dtype, the program's own among them; nullptr if
/// there is none.
kernel_ptr make_element(const op_def& op, dtype operand, dtype result);
/// Makes a kernel of an elementwise operation; nullptr if it cannot.
using element_maker = kernel_ptr (*)(const op_def& op, dtype operand, dtype result);
/// For operations that no file has compiled for this system; a device may set it.
element_maker& other_elements();
/// Of sum, mean, max or min over `axes` of its input.
kernel_ptr make_reduction(const op_def& op, const dims& axes, dtype type);

/// Queues a product of matrices at addresses of this device: numbers of four or eight bytes.
void queue_product(stream& s, dtype t, const matrix_product& p, const void* a, const void* b,
                   void* c);

/// Of an optimizer's formula; nullptr if an update's program is none of those.
kernel_ptr make_formula(const program& p, std::span<const std::int64_t> literals);
/// Whether it is one.
bool has_formula(const program& p);

/// Of a node that carries a program, an instruction at a time.
kernel_ptr make_program(const node_def& n, std::span<const tensor_type> in);

kernel_table elementwise_kernels();
/// Of operations that are not in the catalog, as far as files of this program have compiled them.
kernel_table user_kernels();
/// All of them.
std::span<const kernel_table> kernel_tables();

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
