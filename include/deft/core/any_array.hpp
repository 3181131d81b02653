// SPDX-License-Identifier: Apache-2.0
// deft/core/any_array.hpp: a host or device value with a dtype and shape known only at run time.
#pragma once
#include <deft/core/buffer.hpp>
#include <deft/core/dims.hpp>
#include <deft/core/dtype.hpp>
#include <deft/core/string_span.hpp>
#include <span>
#include <string>
#include <utility>

namespace deft {

class any_array;
/// As NumPy prints it; long arrays are shortened with dots.
std::string to_string(const any_array& a);

/// A dense row-major array. Copies share their elements: the first write through mutable_data
/// copies them for the array that is written. A pointer from mutable_data may be written through
/// until the array is copied. An array that was moved from is empty. Strings are not written: an
/// array of them is made of its elements, and they are read by `strings`.
class any_array {
 public:
  /// Empty: without dtype and elements; valid() is false.
  any_array() = default;
  /// @cond
  any_array(const any_array&) = default;
  any_array& operator=(const any_array&) = default;
  any_array(any_array&& o) noexcept
      : buffer_(std::move(o.buffer_)), shape_(o.shape_), type_(std::exchange(o.type_, {})) {}
  any_array& operator=(any_array&& o) noexcept {
    buffer_ = std::move(o.buffer_);
    shape_ = o.shape_;
    type_ = std::exchange(o.type_, {});
    return *this;
  }
  /// @endcond
  /// `any_array a(dtype::float32, {2, 3})`, its elements not initialized; strings are empty. Throws
  /// invalid_argument if `shape` has a `dyn` extent, resource_exhausted if there is not enough
  /// memory.
  any_array(dtype type, const dims& shape);
  /// Of strings, in row-major order: `any_array a({2}, texts)`. Throws invalid_argument if `shape`
  /// has not as many elements as `texts`.
  any_array(const dims& shape, std::span<const std::string_view> texts);
  /// @cond internal
  any_array(dtype type, const dims& shape, ext::buffer elements)
      : buffer_(std::move(elements)), shape_(shape), type_(type) {}
  /// @endcond
  /// Refers to `data`, which must outlive all copies of the array. Throws as the constructor.
  static any_array view(dtype type, const dims& shape, const void* data);
  /// A scalar.
  /// @{
  template <ext::plain_element T>
  static any_array scalar(T v) {
    any_array a(dtype_of<T>, dims{});
    *a.mutable_data<T>() = v;
    return a;
  }
  static any_array scalar(std::string_view v) { return any_array(dims{}, {&v, 1}); }
  /// @}

  /// Element type; none if the array is empty.
  dtype type() const { return type_; }
  /// Extents, all of them known.
  const dims& shape() const { return shape_; }
  /// Number of elements: 1 for a scalar, 0 for an empty array.
  std::int64_t elements() const { return valid() ? shape_.elements() : 0; }
  /// Bytes of all elements; of strings, with the offsets that tell where each begins.
  std::size_t bytes() const {
    if (type_ == dtype::string) [[unlikely]]
      return ext::string_span(raw(), elements()).bytes();
    return static_cast<std::size_t>(elements()) * ext::size_of_dtype(type_);
  }
  /// Whether the array has a dtype, and so a value. One with an extent of 0 is valid, too.
  bool valid() const { return type_ != dtype::none; }

  /// @cond internal
  const ext::buffer& storage() const { return buffer_; }
  ext::buffer take_storage() && { return std::move(buffer_); }
  /// @endcond
  /// The first element, for reading, whatever the dtype; of strings, the first offset.
  const void* raw() const { return buffer_.data(); }
  /// The first element, for writing: copies the elements first if they are shared or borrowed.
  /// Throws invalid_argument for strings.
  void* mutable_raw() {
    if (type_ == dtype::string) [[unlikely]]
      refuse_writing();
    if (buffer_ && !buffer_.unique()) own();
    return buffer_.data();
  }

  /// The first element, for reading: `a.data<float>()[i]` is number i in row-major order. Throws
  /// invalid_argument if T is not the element type.
  template <ext::plain_element T>
  const T* data() const {
    expect(dtype_of<T>);
    return static_cast<const T*>(buffer_.data());
  }
  /// The first element, for writing: copies the elements first if they are shared or borrowed.
  /// Throws invalid_argument if T is not the element type.
  template <ext::plain_element T>
  T* mutable_data() {
    expect(dtype_of<T>);
    return static_cast<T*>(mutable_raw());
  }
  /// All elements in row-major order, for reading while the array lives and is not changed:
  /// `for (float f : a.span<float>())`. Throws as data does.
  template <ext::plain_element T>
  std::span<const T> span() const {
    return {data<T>(), static_cast<std::size_t>(elements())};
  }
  /// The elements of an array of strings, as std::string_view, while the array lives and is not
  /// changed: `for (std::string_view s : a.strings())`, `a.strings()[i]`. Throws invalid_argument
  /// for another dtype.
  ext::string_span strings() const {
    expect(dtype::string);
    return {raw(), elements()};
  }
  /// The only element. Throws invalid_argument if there are others, or T is not the element type.
  template <ext::element T>
  T item() const {
    expect(dtype_of<T>);
    if (elements() != 1)
      ext::fail(errc::invalid_argument, "an array of shape ", shape_, " is not one element");
    if constexpr (ext::plain_element<T>)
      return *data<T>();
    else
      return T(strings()[0]);
  }

  /// A copy that shares nothing.
  any_array clone() const;

  template <class Stream>
  friend auto operator<<(Stream& s, const any_array& a) -> decltype(s << std::string()) {
    return s << to_string(a);
  }

 private:
  void expect(dtype t) const {
    if (t != type_)
      ext::fail(errc::invalid_argument, "an array of ", type_, " cannot be read as ", t);
  }
  void own();
  [[noreturn]] static void refuse_writing();

  ext::buffer buffer_;
  dims shape_;
  dtype type_ = dtype::none;
};

/// Same dtype, same shape, same elements (NaN equals nothing).
bool operator==(const any_array& a, const any_array& b);

}  // namespace deft
