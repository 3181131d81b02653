// SPDX-License-Identifier: Apache-2.0
// deft/core/any_array.ipp: construction and comparison of host values.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/core/any_array.hpp>
#include <limits>

namespace deft {
namespace {

/// Of strings, the offsets.
std::size_t bytes_of_known(dtype type, const dims& shape) {
  const bool strings = type == dtype::string;
  std::size_t bytes = strings ? sizeof(std::int64_t) : ext::size_of_dtype(type);
  for (auto e : shape) {
    if (e < 0) ext::fail(errc::invalid_argument, "an array expects known extents, and got ", shape);
    if (e && bytes > std::numeric_limits<std::size_t>::max() / static_cast<std::size_t>(e))
      ext::fail(errc::resource_exhausted, "an array of ", shape, " is larger than memory");
    bytes *= static_cast<std::size_t>(e);
  }
  return bytes + (strings ? sizeof(std::int64_t) : 0);
}

}  // namespace

bool ext::string_span::is_sound(const void* layout, std::int64_t n, std::size_t bytes) {
  if (n < 0 || bytes / sizeof(std::int64_t) <= static_cast<std::size_t>(n)) return false;
  const auto* offsets = static_cast<const std::int64_t*>(layout);
  if (offsets[0] != 0 || !std::is_sorted(offsets, offsets + n + 1)) return false;
  return static_cast<std::size_t>(offsets[n]) == bytes - offset_bytes(n);
}

any_array::any_array(dtype type, const dims& shape)
    : buffer_(ext::buffer::host(bytes_of_known(type, shape))), shape_(shape), type_(type) {
  if (type == dtype::string) std::memset(buffer_.data(), 0, bytes_of_known(type, shape));
}

any_array::any_array(const dims& shape, std::span<const std::string_view> texts)
    : shape_(shape), type_(dtype::string) {
  const std::size_t first = bytes_of_known(dtype::string, shape);
  if (static_cast<std::size_t>(shape.elements()) != texts.size())
    ext::fail(errc::invalid_argument, "an array of ", shape, " is made of ", shape.elements(),
              " strings, and got ", texts.size());
  std::size_t bytes = first;
  for (const auto t : texts) bytes += t.size();
  buffer_ = ext::buffer::host(bytes);
  auto* offset = static_cast<std::int64_t*>(buffer_.data());
  char* const begin = static_cast<char*>(buffer_.data()) + first;
  char* to = begin;
  *offset = 0;
  for (const auto t : texts) {
    to = std::copy(t.begin(), t.end(), to);
    *++offset = to - begin;
  }
}

any_array any_array::view(dtype type, const dims& shape, const void* data) {
  std::size_t bytes = bytes_of_known(type, shape);
  if (type == dtype::string) bytes = ext::string_span(data, shape.elements()).bytes();
  return any_array(type, shape, ext::buffer::borrow(data, bytes));
}

void any_array::own() { *this = clone(); }

void any_array::refuse_writing() {
  ext::fail(errc::invalid_argument, "an array of strings cannot be written to: make another one");
}

any_array any_array::clone() const {
  if (!valid()) return {};
  ext::buffer elements = ext::buffer::host(bytes());
  if (bytes()) std::memcpy(elements.data(), raw(), bytes());
  return any_array(type_, shape_, std::move(elements));
}

bool operator==(const any_array& a, const any_array& b) {
  if (a.type() != b.type() || !(a.shape() == b.shape())) return false;
  if (!a.valid()) return true;
  if (a.type() == dtype::string)  // there is one layout of the same strings
    return a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  return ext::visit_dtype(a.type(), [&]<class T>() {
    return std::equal(a.data<T>(), a.data<T>() + a.elements(), b.data<T>());
  });
}

}  // namespace deft
