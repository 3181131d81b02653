// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/kernel_spec.hpp: what a kernel is on every device: its operation, its dtypes,
// and what follows from attributes and types. Devices derive kernels from it that only run it.
#pragma once
#include <deft/expr/op_record.hpp>
#include <deft/kernels/widened_kernel.hpp>
#include <tuple>

namespace deft::ext {

// How a C++ type that kernels are compiled for is chosen: by the dtype that `of` gives, which is
// one of `types`. (No default arguments: nvcc 13 writes those of class type into the host's code
// wrongly.)

/// The dtype of input I, one of the kernel's.
template <int I>
struct by_input {
  template <dtype_set OfKernel, class... Before>
  static constexpr dtype_set types = OfKernel;
  static dtype of(const node_def&, std::span<const tensor_type> in) { return in[I].type; }
};
/// The result's, one of the kernel's.
struct by_result {
  template <dtype_set OfKernel, class... Before>
  static constexpr dtype_set types = OfKernel;
  static dtype of(const node_def& n, std::span<const tensor_type>) { return n.outputs.at(0).type; }
};
/// As By, but one of `Types`.
template <class By, dtype_set Types>
struct among : By {
  template <dtype_set, class... Before>
  static constexpr dtype_set types = Types;
};

/// A kernel of Op, for `Types` as dispatch_type chooses them, compiled for each of the C++ types
/// that `By` give. Derived classes add what `ready` finds out for every device.
template <class Op, dtype_set Types, class... By>
class kernel_spec : public typed_kernel {
 public:
  using operation = Op;
  using chosen_by = std::tuple<By...>;
  static constexpr dtype_set types = Types;

  /// Sets the attributes, before all else.
  void set(const node_def& n) { op_ = decode<Op>(n.attributes); }

 protected:
  Op op_;
};

template <class... Spec>
struct kernel_list {};
template <class... A, class... B>
constexpr kernel_list<A..., B...> operator+(kernel_list<A...>, kernel_list<B...>) {
  return {};
}

/// A device's kernel of a node. Device: its `name`, as "the CPU", its kernels of `cast`, and
/// `kernel<Spec, T...>`, the class for a spec and the types T that it is chosen by.
template <class Device, class Spec, class... T>
kernel_ptr make_kernel(const node_def& n, std::span<const tensor_type> in) {
  using all = typename Spec::chosen_by;
  if constexpr (sizeof...(T) == std::tuple_size_v<all>) {
    auto made = std::make_unique<typename Device::template kernel<Spec, T...>>();
    made->set(n);
    return made;
  } else {
    using by = std::tuple_element_t<sizeof...(T), all>;
    return kernel_or_widened<by::template types<Spec::types, T...>>(
        Device::name, n, by::of(n, in),
        [&]<class U>() { return make_kernel<Device, Spec, T..., U>(n, in); }, Device::cast);
  }
}

/// A device's table of these kernels.
template <class Device, class... Spec>
kernel_table table_of(kernel_list<Spec...>) {
  static constexpr kernel_entry table[] = {
      {Spec::operation::name, Spec::types, &make_kernel<Device, Spec>}...};
  return table;
}

}  // namespace deft::ext
