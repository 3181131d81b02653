// SPDX-License-Identifier: Apache-2.0
// deft/core/ndarray.hpp: typed host values, row-major.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/core/any_array.hpp>
#include <initializer_list>
#include <vector>

namespace deft {

/// A dense row-major array with extents `E…` (`dyn` where known at run time only). It owns its
/// elements, or views someone's; a copy owns a copy. Indexed `v(i, j)`, iterated, printed like
/// NumPy, compared, and fed without a copy.
template <class T, std::int64_t... E>
class ndarray {
  static_assert(
      detail::is_element_type<T>,
      "element types are float, double, std::int32_t, std::int64_t, std::uint8_t and bool; "
      "for long long use std::int64_t, for other integers std::int32_t");

 public:
  using value_type = T;
  using shape_type = shape_t<E...>;
  static constexpr int rank() { return sizeof...(E); }
  static constexpr bool is_static = shape_type::value.is_static();
  static constexpr int dynamic_extents = ((E == dyn ? 1 : 0) + ... + 0);

  /// All elements zero; empty if an extent is `dyn`.
  ndarray() : ndarray(dims_from({})) {}

  /// The `dyn` extents, in order; all elements zero.
  template <std::convertible_to<std::int64_t>... N>
  requires(sizeof...(N) == dynamic_extents && sizeof...(N) > 0) explicit ndarray(N... extents)
      : ndarray(dims_from({static_cast<std::int64_t>(extents)...})) {}

  /// The elements in row-major order; a single `dyn` extent follows from their number.
  /// Throws invalid_argument if there are too many or too few.
  ndarray(std::initializer_list<T> elements) requires(sizeof...(E) > 0)
      : array_(dtype_of<T>, deduce(static_cast<std::int64_t>(elements.size()))) {
    std::copy(elements.begin(), elements.end(), begin());
  }
  /// A scalar.
  explicit ndarray(T v) requires(sizeof...(E) == 0) : array_(any_array::scalar(v)) {}

  /// Takes `a` over, without a copy of the elements where `a` is their only holder.
  /// Throws invalid_argument if dtype or shape differ.
  explicit ndarray(any_array a) : array_(std::move(a)) {
    if (array_.type() != dtype_of<T> || !fits(shape_type::value, array_.shape()))
      fail(errc::invalid_argument, "an array of ", array_.type(), array_.shape(),
           " is no ndarray of ", dtype_of<T>, shape_type::value);
  }

  /// Refers to `data`, which must outlive the array; `extents` are all of them, or the `dyn` ones.
  template <std::convertible_to<std::int64_t>... N>
  static ndarray view(const T* data, N... extents) {
    dims d;
    if constexpr (sizeof...(N) == sizeof...(E))
      d = dims{static_cast<std::int64_t>(extents)...};
    else
      d = dims_from({static_cast<std::int64_t>(extents)...});
    return ndarray(any_array::view(dtype_of<T>, d, data));
  }

  ndarray(const ndarray& o) : array_(o.array_.clone()) {}
  ndarray(ndarray&& o) noexcept = default;
  ndarray& operator=(const ndarray& o) {
    if (this != &o) array_ = o.array_.clone();
    return *this;
  }
  ndarray& operator=(ndarray&& o) noexcept = default;

  const dims& extents() const { return array_.shape(); }
  std::int64_t extent(int i) const { return array_.shape()[i]; }
  std::int64_t size() const { return array_.elements(); }

  const T* data() const { return static_cast<const T*>(array_.raw()); }
  /// Copies before the first write if someone else may see the elements.
  T* data() { return static_cast<T*>(array_.mutable_raw()); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  T* begin() { return data(); }
  T* end() { return data() + size(); }

  /// Unchecked, as in std::mdspan.
  template <std::convertible_to<std::int64_t>... I>
  requires(sizeof...(I) == sizeof...(E)) const T& operator()(I... i) const {
    return data()[offset({static_cast<std::int64_t>(i)...})];
  }
  template <std::convertible_to<std::int64_t>... I>
  requires(sizeof...(I) == sizeof...(E)) T& operator()(I... i) {
    return data()[offset({static_cast<std::int64_t>(i)...})];
  }

  template <class A>
  operator std::vector<T, A>() const {  // NOLINT: implicit, to say what is meant
    static_assert(detail::takes<std::vector<T, A>, ndarray<T, E...>>,
                  "an ndarray is not a std::vector: std::vector<T>(v.begin(), v.end()) copies its "
                  "elements");
    return {};
  }

  /// The same elements, shared until one of the two is written.
  const any_array& array() const& { return array_; }
  any_array array() && { return std::move(array_); }

  friend bool operator==(const ndarray& a, const ndarray& b) { return a.array_ == b.array_; }
  friend std::string to_string(const ndarray& a) { return to_string(a.array_); }
  template <class Stream>
  friend auto operator<<(Stream& s, const ndarray& a) -> decltype(s << std::string()) {
    return s << to_string(a.array_);
  }

 private:
  explicit ndarray(const dims& d) : array_(dtype_of<T>, d) {
    if (array_.bytes()) std::memset(array_.mutable_raw(), 0, array_.bytes());
  }
  static dims dims_from(std::initializer_list<std::int64_t> dynamic) {
    dims d = shape_type::value;
    auto next = dynamic.begin();
    for (auto& e : d)
      if (e == dyn) e = next == dynamic.end() ? 0 : *next++;
    return d;
  }
  static dims deduce(std::int64_t n) {
    static_assert(dynamic_extents <= 1, "a list of elements can tell one dyn extent only");
    dims d = shape_type::value;
    std::int64_t known = 1;
    for (auto e : d) known *= e == dyn ? 1 : e;
    for (auto& e : d)
      if (e == dyn) e = known ? n / known : 0;
    if (d.elements() != n)
      fail(errc::invalid_argument, "an ndarray of ", shape_type::value, " cannot hold ", n,
           " elements");
    return d;
  }
  std::int64_t offset(std::initializer_list<std::int64_t> index) const {
    std::int64_t o = 0;
    int k = 0;
    for (auto i : index) o = o * array_.shape()[k++] + i;
    return o;
  }

  any_array array_;
};

}  // namespace deft
