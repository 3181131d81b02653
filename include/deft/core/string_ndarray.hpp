// SPDX-License-Identifier: Apache-2.0
// deft/core/string_ndarray.hpp: ndarrays of strings, which are read and not written.
#pragma once
#include <array>
#include <deft/core/ndarray.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace deft {

namespace detail {
/// The texts of `list`, which they refer to.
template <class List>
std::vector<std::string_view> texts_of(const List& list) {
  return {std::data(list), std::data(list) + std::size(list)};
}
template <text T>
std::vector<std::string_view> texts_of(const T* first, std::size_t n) {
  return {first, first + n};
}
}  // namespace detail

/// A dense row-major array of strings, which are bytes of any kind. Its elements are read as
/// std::string_view, valid while the array lives, and cannot be written: another array is made of
/// others. Copies share the elements.
template <std::int64_t... E>
class ndarray<std::string, E...> {
  using extents_type = detail::array_extents<E...>;

 public:
  using value_type = std::string;    ///< the element type
  using shape_type = shape_t<E...>;  ///< the extents of the type: `shape_type::value`
  /// As of other ndarrays.
  /// @{
  static constexpr int rank() { return sizeof...(E); }
  static constexpr bool is_static = shape_type::value.is_static();
  static constexpr int dynamic_extents = ((E == dyn ? 1 : 0) + ... + 0);
  /// @}

  /// All elements empty; none if an extent is `dyn`.
  ndarray() : array_(dtype::string, extents_type::from({})) {}
  /// Takes the `dyn` extents, in order, or all of them; all elements are empty. Throws
  /// invalid_argument if an extent contradicts the type.
  template <std::convertible_to<std::int64_t>... N>
  requires(dynamic_extents > 0 && (sizeof...(N) == dynamic_extents ||
                                   sizeof...(N) == sizeof...(E))) explicit ndarray(N... extents)
      : array_(dtype::string, extents_type::from({static_cast<std::int64_t>(extents)...})) {}
  /// @cond refused
  template <class... N>
  requires detail::surplus_extents<shape_type, N...>
  explicit ndarray(N...) { detail::refuse_extents<ndarray, N...>(); }
  /// @endcond

  /// The elements in row-major order, `ndarray<std::string, dyn> v{"a", "b"}`; a single `dyn`
  /// extent follows from their number. Throws invalid_argument if there are too many or too few.
  ndarray(std::initializer_list<detail::text_item> elements) requires(sizeof...(E) > 0)
      : array_(of_list(detail::texts_of(elements.begin(), elements.size()))) {}
  /// The elements of a vector, array or span of texts, as of a list in braces. Throws
  /// invalid_argument if there are too many or too few.
  template <detail::text_range V>
  requires(sizeof...(E) > 0 && !std::is_array_v<V>) explicit ndarray(const V& elements)
      : array_(of_list(detail::texts_of(elements))) {}
  ///@{
  /// Rows in braces: `ndarray<std::string, 2, 2> m{{"a", "b"}, {"c", "d"}}`; three levels for
  /// rank 3.
  template <std::size_t... M>
  requires(sizeof...(E) == 2 && sizeof...(M) > 0) ndarray(const detail::text_item (&... rows)[M])
      : array_(of_rows<are_equal<M...>, sizeof...(M), std::max({M...})>({&rows[0]...},
                                                                        std::max({M...}))) {}
  template <std::size_t... M, std::size_t... L>
  requires(sizeof...(E) == 3 && sizeof...(M) > 0) ndarray(const detail::text_item (&... rows)[M][L])
      : array_(of_rows<(are_equal<M...> && are_equal<L...>), sizeof...(M), std::max({M...}),
                       std::max({L...})>({&rows[0][0]...}, std::max({M...}) * std::max({L...}))) {}
  ///@}
  /// Takes over the elements of an ndarray that knows more of its extents.
  template <std::int64_t... F>
  requires(!std::same_as<shape_t<F...>, shape_type>)
      ndarray(ndarray<std::string, F...> o)  // NOLINT: implicit
      : array_(std::move(o).array()) {
    if constexpr (!ext::fits(shape_type::value, shape_t<F...>::value))
      static_assert(detail::takes<ndarray, ndarray<std::string, F...>>,
                    "[ndarray] expects an ndarray of its own dtype and shape, and got another: "
                    "ndarray<T, E...>(v.array()) checks extents known only at run time");
  }
  /// A scalar.
  explicit ndarray(std::string_view v) requires(sizeof...(E) == 0) : array_(any_array::scalar(v)) {}
  /// Takes `a` over. Throws invalid_argument if dtype or shape differ.
  template <std::same_as<any_array> A>
  ndarray(A a) : array_(std::move(a)) {  // NOLINT: implicit, and checked
    if (array_.type() != dtype::string || !ext::fits(shape_type::value, array_.shape()))
      ext::fail(errc::invalid_argument, "an array of ", array_.type(), array_.shape(),
                " is not an ndarray of ", dtype::string, shape_type::value);
  }

  /// All extents, none of them `dyn`.
  const dims& extents() const { return array_.shape(); }
  /// The extent of axis i, from 0 to rank() - 1. Not checked.
  std::int64_t extent(int i) const { return array_.shape()[i]; }
  /// Number of elements: the product of the extents.
  std::int64_t size() const { return array_.elements(); }

  ///@{
  /// The elements in row-major order: `for (std::string_view s : v)`.
  ext::string_span::iterator begin() const { return elements().begin(); }
  ext::string_span::iterator end() const { return elements().end(); }
  ///@}
  /// The element at an index for each axis, `v(i, j)`. Unchecked, as in std::mdspan.
  template <std::convertible_to<std::int64_t>... Index>
  requires(sizeof...(Index) == sizeof...(E)) std::string_view operator()(Index... i) const {
    const std::array<std::int64_t, sizeof...(E)> at{static_cast<std::int64_t>(i)...};
    std::int64_t o = 0;
    for (std::size_t k = 0; k < sizeof...(E); ++k) o = o * array_.shape().e[k] + at[k];
    return elements()[o];
  }

  ///@{
  /// The same elements, shared.
  any_array array() const& { return array_; }
  any_array array() && { return std::exchange(array_, any_array()); }
  operator any_array() const& { return array(); }               // NOLINT: implicit on purpose
  operator any_array() && { return std::move(*this).array(); }  // NOLINT: likewise
  ///@}

  friend bool operator==(const ndarray& a, const ndarray& b) { return a.array_ == b.array_; }
  friend bool operator==(const ndarray& a, const any_array& b) { return a.array_ == b; }
  /// Of arrays of which one knows more of its extents.
  template <std::int64_t... F>
  requires(sizeof...(E) > 0 && !std::is_same_v<shape_t<F...>, shape_type> &&
           ext::may_equal(shape_type::value, shape_t<F...>::value)) friend bool
  operator==(const ndarray& a, const ndarray<std::string, F...>& b) {
    return a.array_ == detail::borrowed::from(b);
  }
  friend std::string to_string(const ndarray& a) { return to_string(a.array_); }
  template <class Stream>
  friend auto operator<<(Stream& s, const ndarray& a) -> decltype(s << std::string()) {
    return s << to_string(a.array_);
  }

 private:
  friend struct detail::borrowed;

  template <std::size_t... M>
  static constexpr bool are_equal = std::min({M...}) == std::max({M...});
  static any_array of_list(const std::vector<std::string_view>& texts) {
    return {extents_type::deduce(static_cast<std::int64_t>(texts.size())), texts};
  }
  template <bool Even, std::size_t... N>
  static any_array of_rows(std::initializer_list<const detail::text_item*> rows, std::size_t each) {
    using got = shape_t<static_cast<std::int64_t>(N)...>;
    if constexpr (!Even) {
      static_assert(Even, "[ndarray] the rows of the list have different lengths");
    } else if constexpr (!ext::fits(shape_type::value, got::value)) {
      static_assert(detail::takes<ndarray, got>,
                    "[ndarray] the list has another shape than the ndarray");
    } else {
      std::vector<std::string_view> all;
      for (const detail::text_item* r : rows) all.insert(all.end(), r, r + each);
      return any_array(got::value, all);
    }
    return {};
  }
  ext::string_span elements() const { return {array_.raw(), array_.elements()}; }

  any_array array_;
};

}  // namespace deft
