// SPDX-License-Identifier: Apache-2.0
// deft/expr/kernel_arguments.hpp: the arguments of the kernel function of a program's own
// operation.
#pragma once
#include <deft/graph/op_def.hpp>
#include <span>

namespace deft::ext {

/// The values of one run: elements in row-major order, with their dtypes and shapes, which the
/// shape rule has checked.
class kernel_arguments {
 public:
  kernel_arguments(std::string_view op, std::span<const tensor_type> in_types,
                   std::span<const tensor_type> out_types, const void* const* in, void* const* out)
      : op_(op), in_types_(in_types), out_types_(out_types), in_(in), out_(out) {}

  std::size_t inputs() const { return in_types_.size(); }
  const tensor_type& in_type(std::size_t i) const { return in_types_[i]; }
  const tensor_type& out_type(std::size_t o = 0) const { return out_types_[o]; }

  /// The elements of an input. Throws internal if the dtype is not that of T.
  template <plain_element T>
  std::span<const T> in(std::size_t i) const {
    return {static_cast<const T*>(in_[i]), count<T>(in_types_[i])};
  }
  /// Where those of an output go.
  template <plain_element T>
  std::span<T> out(std::size_t o = 0) const {
    return {static_cast<T*>(out_[o]), count<T>(out_types_[o])};
  }

 private:
  template <class T>
  std::size_t count(const tensor_type& t) const {
    if (t.type != dtype_of<T>)
      fail(errc::internal, "[", op_, "] its kernel takes ", t, " for elements of ", dtype_of<T>);
    return static_cast<std::size_t>(t.shape.elements());
  }

  std::string_view op_;
  std::span<const tensor_type> in_types_, out_types_;
  const void* const* in_;
  void* const* out_;
};

}  // namespace deft::ext
