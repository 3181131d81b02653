// SPDX-License-Identifier: Apache-2.0
// deft/core/feed_ref.hpp: a fed value, as it is passed from the caller to the device or into a
// message.
#pragma once
#include <deft/core/any_array.hpp>

namespace deft::ext {

/// Elements on the host. Needs no allocation, unlike an any_array that is a view.
struct feed_ref {
  const void* data = nullptr;
  dims shape;
  dtype type = dtype::none;
  /// Set if the run may keep the elements, which nothing else writes. Empty: the elements are
  /// borrowed until the run ends, and copied where they are kept longer.
  buffer keep;

  static feed_ref borrow(const any_array& a) { return {a.raw(), a.shape(), a.type(), {}}; }
  static feed_ref share(const any_array& a) { return {a.raw(), a.shape(), a.type(), a.storage()}; }
  /// Of all elements, as any_array::bytes.
  std::size_t bytes() const {
    const auto n = shape.elements();
    return type == dtype::string ? string_span(data, n).bytes()
                                 : static_cast<std::size_t>(n) * size_of_dtype(type);
  }
  /// The value without a copy: a view where it is borrowed.
  any_array array() const {
    return keep ? any_array(type, shape, keep) : any_array::view(type, shape, data);
  }
};

}  // namespace deft::ext
