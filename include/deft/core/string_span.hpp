// SPDX-License-Identifier: Apache-2.0
// deft/core/string_span.hpp: how an array of strings is laid out, in one block, and its elements
// read in place.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deft/core/config.hpp>
#include <iterator>
#include <string_view>
#include <utility>

namespace deft {

namespace detail {

/// What is taken for one string: a std::string, a std::string_view, a literal.
template <class V>
concept text = requires(const V& v, void (&take)(std::string_view)) {
  take(v);
};

/// An element of a list of strings. It is made of one text, where a std::string_view would also be
/// made of two, as of two pointers: `{{"a", "b"}, {"c", "d"}}` is a matrix.
struct text_item {
  std::string_view value;
  template <text V>
  text_item(const V& v) : value(v) {}                  // NOLINT: implicit on purpose
  operator std::string_view() const { return value; }  // NOLINT: likewise
};

}  // namespace detail

namespace ext {

/// The elements of an array of strings, which it refers to. They are laid out as Arrow's large
/// strings are: for n of them n + 1 offsets of 64 bits, of which the first is 0, then the bytes of
/// all, so that element i is what lies between offsets i and i + 1.
class string_span {
 public:
  using value_type = std::string_view;

  string_span() = default;
  /// `layout` as above, of `n` elements.
  string_span(const void* layout, std::int64_t n)
      : offsets_(static_cast<const std::int64_t*>(layout)), size_(n) {}

  std::int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// Element number `i`, valid while the array lives and is not changed. Not checked.
  std::string_view operator[](std::int64_t i) const { return begin()[i]; }

  class iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::int64_t;
    using reference = std::string_view;
    using pointer = void;

    iterator() = default;
    iterator(const std::int64_t* offset, const char* texts) : offset_(offset), texts_(texts) {}
    std::string_view operator*() const { return (*this)[0]; }
    std::string_view operator[](std::int64_t n) const {
      return {texts_ + offset_[n], static_cast<std::size_t>(offset_[n + 1] - offset_[n])};
    }
    iterator& operator++() { return ++offset_, *this; }
    iterator operator++(int) { return {offset_++, texts_}; }
    iterator& operator--() { return --offset_, *this; }
    iterator operator--(int) { return {offset_--, texts_}; }
    iterator& operator+=(std::int64_t n) { return offset_ += n, *this; }
    iterator& operator-=(std::int64_t n) { return offset_ -= n, *this; }
    friend iterator operator+(iterator i, std::int64_t n) { return i += n; }
    friend iterator operator+(std::int64_t n, iterator i) { return i += n; }
    friend iterator operator-(iterator i, std::int64_t n) { return i -= n; }
    friend std::int64_t operator-(iterator a, iterator b) { return a.offset_ - b.offset_; }
    friend bool operator==(iterator a, iterator b) { return a.offset_ == b.offset_; }
    friend auto operator<=>(iterator a, iterator b) { return a.offset_ <=> b.offset_; }

   private:
    const std::int64_t* offset_ = nullptr;  ///< of this element
    const char* texts_ = nullptr;
  };
  iterator begin() const { return {offsets_, texts()}; }
  iterator end() const { return {offsets_ ? offsets_ + size_ : nullptr, texts()}; }

  /// Bytes of the layout of `n` elements before the first text.
  static std::size_t offset_bytes(std::int64_t n) {
    return (static_cast<std::size_t>(n) + 1) * sizeof(std::int64_t);
  }
  /// Bytes of the whole layout.
  std::size_t bytes() const {
    return offsets_ ? offset_bytes(size_) + static_cast<std::size_t>(offsets_[size_]) : 0;
  }
  /// Whether `bytes` bytes at `layout`, which a peer may have sent, are an array of `n` strings.
  static bool is_sound(const void* layout, std::int64_t n, std::size_t bytes);

 private:
  const char* texts() const {
    return offsets_ ? reinterpret_cast<const char*>(offsets_ + size_ + 1) : nullptr;
  }

  const std::int64_t* offsets_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace ext

}  // namespace deft
