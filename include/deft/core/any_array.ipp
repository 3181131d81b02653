// SPDX-License-Identifier: Apache-2.0
// deft/core/any_array.ipp: construction and comparison of host values.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/core/any_array.hpp>
#include <limits>

namespace deft {
namespace {

std::size_t bytes_of_known(dtype type, const dims& shape) {
  std::size_t bytes = ext::size_of_dtype(type);
  for (auto e : shape) {
    if (e < 0) ext::fail(errc::invalid_argument, "an array expects known extents, and got ", shape);
    if (e && bytes > std::numeric_limits<std::size_t>::max() / static_cast<std::size_t>(e))
      ext::fail(errc::resource_exhausted, "an array of ", shape, " is larger than memory");
    bytes *= static_cast<std::size_t>(e);
  }
  return bytes;
}

}  // namespace

any_array::any_array(dtype type, const dims& shape)
    : buffer_(ext::buffer::host(bytes_of_known(type, shape))), shape_(shape), type_(type) {}

any_array any_array::view(dtype type, const dims& shape, const void* data) {
  return any_array(type, shape, ext::buffer::borrow(data, bytes_of_known(type, shape)));
}

void any_array::own() { *this = clone(); }

any_array any_array::clone() const {
  if (!valid()) return {};
  any_array a(type_, shape_);
  if (bytes()) std::memcpy(a.mutable_raw(), raw(), bytes());
  return a;
}

bool operator==(const any_array& a, const any_array& b) {
  if (a.type() != b.type() || !(a.shape() == b.shape())) return false;
  if (!a.valid()) return true;
  return ext::visit_dtype(a.type(), [&]<class T>() {
    return std::equal(a.data<T>(), a.data<T>() + a.elements(), b.data<T>());
  });
}

}  // namespace deft
