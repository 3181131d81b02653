// SPDX-License-Identifier: Apache-2.0
// deft/core/ndarray.hpp: typed host values, row-major.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deft/core/any_array.hpp>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace deft {

template <class T, std::int64_t... E>
class ndarray;

namespace detail {
template <class V>
inline constexpr bool is_ndarray = false;
template <class T, std::int64_t... E>
inline constexpr bool is_ndarray<ndarray<T, E...>> = true;

/// Where contiguous elements begin. (Without <ranges>, which takes a tenth of this header's compile
/// time.)
template <class V>
using data_of = decltype(std::size(std::declval<V&>()), std::data(std::declval<V&>()));
template <class V>
concept contiguous = std::contiguous_iterator<data_of<V>> && !is_ndarray<std::remove_cvref_t<V>>;
template <class V>
concept element_range = contiguous<V> && plain_element<std::iter_value_t<data_of<V>>>;
/// A vector, array or span of texts.
template <class V>
concept text_range = contiguous<const V> && !text<V> && text<std::iter_value_t<data_of<const V>>>;
template <class V>
inline constexpr bool is_bool_vector = false;
template <class A>
inline constexpr bool is_bool_vector<std::vector<bool, A>> = true;

/// A vector, array or span of `T`s.
template <class V, class T>
concept list_of = (element_range<const V> && !std::is_array_v<V> &&
                   std::is_same_v<std::iter_value_t<data_of<const V>>, T>) ||
                  (is_bool_vector<V> && std::is_same_v<T, bool>);

/// The extents of an ndarray with extents `E…`.
template <std::int64_t... E>
struct array_extents {
  static constexpr dims declared = shape_t<E...>::value;

  /// `given`: the first `dyn` extents, the others 0; or all extents.
  static dims from(std::initializer_list<std::int64_t> given) {
    dims d = declared;
    if (given.size() == sizeof...(E) && given.size() != ((E == dyn ? 1 : 0) + ... + 0)) {
      std::copy(given.begin(), given.end(), d.begin());
      if (!fits(declared, d))
        fail(errc::invalid_argument, "an ndarray of ", declared, " cannot have the extents ", d);
      return d;
    }
    auto next = given.begin();
    for (auto& e : d)
      if (e == dyn) e = next == given.end() ? 0 : *next++;
    return d;
  }
  /// Of a list of `n` elements.
  static dims deduce(std::int64_t n) {
    static_assert(((E == dyn ? 1 : 0) + ... + 0) <= 1,
                  "a list of elements can tell one dyn extent only");
    dims d = declared;
    std::int64_t known = 1;
    for (auto e : d) known *= e == dyn ? 1 : e;
    for (auto& e : d)
      if (e == dyn) e = known ? n / known : 0;
    if (d.elements() != n)
      fail(errc::invalid_argument, "an ndarray of ", declared, " cannot hold ", n, " elements",
           declared.is_static()
               ? ""
               : "; extents go in parentheses, without braces: ndarray<float, dyn, 3> a(4)");
    return d;
  }
};
/// Whether numbers in parentheses are extents that an ndarray of extents `E…` does not take.
template <class Extents, class... N>
inline constexpr bool surplus_extents = false;
template <std::int64_t... E, class... N>
requires(std::is_arithmetic_v<N>&&...) inline constexpr bool surplus_extents<shape_t<E...>, N...> =
    [] {
      constexpr std::size_t free = ((E == dyn ? 1 : 0) + ... + 0);
      return sizeof...(N) > (sizeof...(E) == 0 ? 1 : 0) &&
             (free == 0 || (sizeof...(N) != free && sizeof...(N) != sizeof...(E)));
    }();
/// An error that says so.
template <class Array, class... N>
constexpr void refuse_extents() {
  static_assert(
      takes<Array, N...>,
      "[ndarray] expects the dyn extents alone, or all if one is dyn: ndarray<float, dyn, "
      "3> a(4), ndarray<float, 2, 3> b; elements go in braces");
}
/// An ndarray's array, for callers that neither keep nor copy it.
struct borrowed {
  template <class Array>
  static const any_array& from(const Array& a) {
    return a.array_;
  }
};
}  // namespace detail

/// A dense row-major array with extents `E…` (`dyn` where known only at run time). It owns its
/// elements or views the caller's; a copy of it owns a copy of them. It can be indexed as `v(i,
/// j)`, iterated, compared, printed as NumPy does, and fed without a copy.
template <class T, std::int64_t... E>
class ndarray {
  using extents_type = detail::array_extents<E...>;
  static_assert(detail::is_element_type<T>,
                "element types are " DEFT_ELEMENT_TYPES
                "; for long long use std::int64_t, for other integers std::int32_t");

 public:
  using value_type = T;              ///< the element type
  using shape_type = shape_t<E...>;  ///< the extents of the type: `shape_type::value`
  /// Number of axes; 0 for a scalar.
  static constexpr int rank() { return sizeof...(E); }
  /// Whether no extent is `dyn`.
  static constexpr bool is_static = shape_type::value.is_static();
  /// How many extents are `dyn`.
  static constexpr int dynamic_extents = ((E == dyn ? 1 : 0) + ... + 0);

  /// All elements zero; empty if an extent is `dyn`.
  ndarray() : ndarray(extents_type::from({})) {}

  /// Takes the `dyn` extents, in order, or all of them; all elements are zero.
  /// Throws invalid_argument if an extent contradicts the type.
  template <std::convertible_to<std::int64_t>... N>
  requires(dynamic_extents > 0 && (sizeof...(N) == dynamic_extents ||
                                   sizeof...(N) == sizeof...(E))) explicit ndarray(N... extents)
      : ndarray(extents_type::from({static_cast<std::int64_t>(extents)...})) {}

  /// @cond refused
  template <class... N>
  requires detail::surplus_extents<shape_type, N...>
  explicit ndarray(N...) { detail::refuse_extents<ndarray, N...>(); }
  /// @endcond

  /// The elements in row-major order; a single `dyn` extent follows from their number.
  /// Throws invalid_argument if there are too many or too few.
  ndarray(std::initializer_list<T> elements) requires(sizeof...(E) > 0)
      : ndarray(any_array(dtype_of<T>,
                          extents_type::deduce(static_cast<std::int64_t>(elements.size())))) {
    std::copy(elements.begin(), elements.end(), begin());
  }
  /// The elements of a vector, array or span, as of a list in braces:
  /// `ndarray<float, dyn, 3> rows(values)`. Throws invalid_argument if there are too many or too
  /// few.
  template <detail::list_of<T> V>
  requires(sizeof...(E) > 0) explicit ndarray(const V& elements)
      : ndarray(any_array(dtype_of<T>,
                          extents_type::deduce(static_cast<std::int64_t>(std::size(elements))))) {
    std::copy(std::begin(elements), std::end(elements), begin());
  }
  ///@{
  /// Rows in braces: `ndarray<float, 2, 2> m{{1, 2}, {3, 4}}`; three levels for rank 3.
  template <std::size_t... M>
  requires(sizeof...(E) == 2 && sizeof...(M) > 0) ndarray(const T (&... rows)[M])
      : ndarray(any_array(dtype_of<T>, braces<are_equal<M...>, sizeof...(M), std::max({M...})>())) {
    T* to = begin();
    ((to = std::copy(rows, rows + M, to)), ...);
  }
  template <std::size_t... M, std::size_t... L>
  requires(sizeof...(E) == 3 && sizeof...(M) > 0) ndarray(const T (&... rows)[M][L])
      : ndarray(any_array(dtype_of<T>, braces < are_equal<M...> && are_equal<L...>, sizeof...(M),
                          std::max({M...}), std::max({L...}) > ())) {
    T* to = begin();
    const auto add = [&to](const auto& planes) {
      for (const auto& row : planes) to = std::copy(std::begin(row), std::end(row), to);
    };
    (add(rows), ...);
  }
  ///@}
  /// Takes over the elements of an ndarray that has the same dtype and knows more of its extents:
  /// an `ndarray<float, dyn, 3>` from an `ndarray<float, 2, 3>`.
  template <class U, std::int64_t... F>
  requires(!std::same_as<ndarray<U, F...>, ndarray>)
      ndarray(ndarray<U, F...> o)  // NOLINT: implicit
      : ndarray(taken_from(std::move(o))) {}
  /// A scalar.
  explicit ndarray(T v) requires(sizeof...(E) == 0) : ndarray(any_array::scalar(v)) {}

  /// Takes `a` over, without a copy of the elements where `a` is their only holder:
  /// `ndarray<float, dyn, 10> v = s.run(t)` of an any_tensor. Throws invalid_argument if dtype or
  /// shape differ. (A template, so that nothing else is converted to an any_array for it.)
  template <std::same_as<any_array> A>
  ndarray(A a) : array_(std::move(a)) {  // NOLINT: implicit, and checked
    if (array_.type() != dtype_of<T> || !ext::fits(shape_type::value, array_.shape()))
      ext::fail(errc::invalid_argument, "an array of ", array_.type(), array_.shape(),
                " is not an ndarray of ", dtype_of<T>, shape_type::value);
    elements_ = static_cast<const T*>(array_.raw());
    for (std::size_t k = 0; k < sizeof...(E); ++k) extents_[k] = array_.shape().e[k];
  }

  /// Refers to `data`, which must outlive the array; `extents` are the `dyn` ones, or all of them.
  /// Throws invalid_argument if an extent contradicts the type, or is negative.
  template <std::convertible_to<std::int64_t>... N>
  static ndarray view(const T* data, N... extents) {
    const dims d = extents_type::from({static_cast<std::int64_t>(extents)...});
    return ndarray(any_array::view(dtype_of<T>, d, data));
  }

  /// @cond
  ndarray(const ndarray& o) : ndarray(o.array_.clone()) {}
  ndarray(ndarray&& o) noexcept { swap(o); }
  ndarray& operator=(ndarray o) noexcept {
    swap(o);
    return *this;
  }
  /// @endcond

  /// All extents, none of them `dyn`.
  const dims& extents() const { return array_.shape(); }
  /// The extent of axis i, from 0 to rank() - 1. Not checked.
  std::int64_t extent(int i) const { return extents_[static_cast<std::size_t>(i)]; }
  /// Number of elements: the product of the extents.
  std::int64_t size() const { return array_.elements(); }

  /// The first element, for reading; the others follow in row-major order.
  const T* data() const { return elements_; }
  /// The first element, for writing: copies shared or borrowed elements first. The pointer may be
  /// written through until `array()` shares the elements.
  T* data() {
    // That all of it is known after the call is what lets a compiler take the question, and the
    // extents, out of a loop over elements.
    T* p = writable_;
    if (!p) [[unlikely]] {
      const auto extents = extents_;
      writable_ = p = own();
      extents_ = extents;
    }
    return p;
  }
  ///@{
  /// The elements in row-major order: `for (float f : v)`. Of an array that is not const they may
  /// be written, and are copied first as by data().
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  ///@}

  ///@{
  /// The element at an index for each axis, `v(i, j)`. Unchecked, as in std::mdspan.
  template <std::convertible_to<std::int64_t>... Index>
  requires(sizeof...(Index) == sizeof...(E)) const T& operator()(Index... i) const {
    return data()[offset(std::index_sequence_for<Index...>(), static_cast<std::int64_t>(i)...)];
  }
  template <std::convertible_to<std::int64_t>... Index>
  requires(sizeof...(Index) == sizeof...(E)) T& operator()(Index... i) {
    return data()[offset(std::index_sequence_for<Index...>(), static_cast<std::int64_t>(i)...)];
  }
  ///@}

  /// @cond refused
  template <class A>
  operator std::vector<T, A>() const {  // NOLINT: implicit, to say what is meant
    static_assert(detail::takes<std::vector<T, A>, ndarray<T, E...>>,
                  "an ndarray is not a std::vector: std::vector<T>(v.begin(), v.end()) copies its "
                  "elements");
    return {};
  }
  /// @endcond

  ///@{
  /// The same elements, shared until one of the two is written; so is an any_array made of this.
  /// `std::move(v).array()` gives them away.
  any_array array() const& {
    std::atomic_ref(writable_).store(nullptr,
                                     std::memory_order_relaxed);  // other threads may do so too
    return array_;
  }
  any_array array() && {
    elements_ = writable_ = nullptr;
    extents_ = {};
    return std::exchange(array_, any_array());
  }

  operator any_array() const& { return array(); }               // NOLINT: implicit on purpose
  operator any_array() && { return std::move(*this).array(); }  // NOLINT: likewise
  ///@}

  friend bool operator==(const ndarray& a, const ndarray& b) { return a.array_ == b.array_; }
  friend bool operator==(const ndarray& a, const any_array& b) { return a.array_ == b; }
  /// Of arrays of which one knows more of its extents.
  template <std::int64_t... F>
  requires(sizeof...(E) > 0 && !std::is_same_v<shape_t<F...>, shape_type> &&
           ext::may_equal(shape_type::value, shape_t<F...>::value)) friend bool
  operator==(const ndarray& a, const ndarray<T, F...>& b) {
    return a.array_ == detail::borrowed::from(b);
  }
  friend std::string to_string(const ndarray& a) { return to_string(a.array_); }
  template <class Stream>
  friend auto operator<<(Stream& s, const ndarray& a) -> decltype(s << std::string()) {
    return s << to_string(a.array_);
  }

 private:
  friend struct detail::borrowed;

  explicit ndarray(const dims& d) : ndarray(any_array(dtype_of<T>, d)) {
    if (array_.bytes()) std::memset(data(), 0, array_.bytes());
  }
  template <std::size_t... M>
  static constexpr bool are_equal = std::min({M...}) == std::max({M...});
  /// The extents of nested braces.
  template <bool Even, std::size_t... N>
  static dims braces() {
    using got = shape_t<static_cast<std::int64_t>(N)...>;
    if constexpr (!Even)
      static_assert(Even, "[ndarray] the rows of the list have different lengths");
    else if constexpr (!ext::fits(shape_type::value, got::value))
      static_assert(detail::takes<ndarray, got>,
                    "[ndarray] the list has another shape than the ndarray");
    return got::value;
  }
  template <class U, std::int64_t... F>
  static any_array taken_from(ndarray<U, F...>&& o) {
    if constexpr (!std::is_same_v<T, U> || !ext::fits(shape_type::value, shape_t<F...>::value))
      static_assert(detail::takes<ndarray, ndarray<U, F...>>,
                    "[ndarray] expects an ndarray of its own dtype and shape, and got another: "
                    "ndarray<T, E...>(v.array()) checks extents known only at run time");
    return std::move(o).array();
  }
  void swap(ndarray& o) noexcept {
    std::swap(array_, o.array_);
    std::swap(elements_, o.elements_);
    std::swap(writable_, o.writable_);
    std::swap(extents_, o.extents_);
  }
  /// At the first access for writing, not at each.
  DEFT_NOINLINE T* own() {
    T* p = static_cast<T*>(array_.mutable_raw());
    elements_ = p;
    return p;
  }
  template <std::size_t... K, class... Index>
  std::int64_t offset(std::index_sequence<K...>, Index... i) const {
    std::int64_t o = 0;
    ((o = o * extent_at<K>() + i), ...);
    return o;
  }
  template <std::size_t K>
  std::int64_t extent_at() const {
    if constexpr (shape_type::value.e[K] == dyn)
      return extents_[K];
    else
      return shape_type::value.e[K];
  }

  any_array array_;
  const T* elements_ = nullptr;    ///< of array_
  mutable T* writable_ = nullptr;  ///< the same, if they are not shared: they may be written
  std::array<std::int64_t, sizeof...(E)> extents_{};  ///< of array_
};

/// @cond refused
/// Arrays that can never be equal are not compared.
template <class T, std::int64_t... E, class U, std::int64_t... F>
requires(!std::is_same_v<T, U> || !ext::may_equal(shape_t<E...>::value, shape_t<F...>::value)) bool
operator==(const ndarray<T, E...>&, const ndarray<U, F...>&) = delete;
/// @endcond

namespace detail {
template <class>
inline constexpr std::int64_t dyn_for = dyn;
}

/// An array of these extents that refers to `data`, which must outlive it: `view(p, rows, 784)`.
template <ext::plain_element T, std::convertible_to<std::int64_t>... N>
auto view(const T* data, N... extents) {
  return ndarray<T, detail::dyn_for<N>...>::view(data, extents...);
}

}  // namespace deft

#include <deft/core/string_ndarray.hpp>
