// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/kernel_base.hpp: what the CPU's own kernels share: scratch memory of a
// thread, and how they are made.
#pragma once
#include <deft/kernels/spec/kernel_spec.hpp>

namespace deft::ext::cpu {

/// Memory of the calling thread, kept for its next use: at least `bytes`, aligned to 64, contents
/// undefined. One use at a time.
void* thread_scratch(std::size_t bytes);

kernel_ptr make_cast(dtype from, dtype to);
namespace {

/// The processor's kernel of a spec, for the types that it is chosen by.
template <class Spec, class... T>
class kernel_of;

/// What tables of kernels are made for.
struct this_device {
  static constexpr std::string_view name = "the CPU";
  static constexpr cast_maker cast = &make_cast;
  template <class Spec, class... T>
  using kernel = kernel_of<Spec, T...>;
};

}  // namespace
}  // namespace deft::ext::cpu
