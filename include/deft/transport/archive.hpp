// SPDX-License-Identifier: Apache-2.0
// deft/transport/archive.hpp: metadata as bytes: portable, little-endian, fixed widths, checked.
//
// Arithmetic types and enumerations take their own size, bool one byte; strings and vectors a
// 32-bit count before their elements; optionals a byte before their value; arrays, pairs and tuples
// their elements; other types what their `serialize(archive&, T&, unsigned)` writes.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deft/core/any_array.hpp>
#include <deft/graph/serialize.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace deft {

namespace detail {

template <class T>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
concept tuple_like = requires {
  std::tuple_size<T>::value;
};
template <class T>
concept fixed_width =
    std::is_arithmetic_v<T> && !std::is_same_v<T, long double> && !std::is_same_v<T, wchar_t>;
/// Vectors of these are copied as a block.
template <class T>
concept flat = fixed_width<T> && !std::is_same_v<T, bool> &&
               (std::endian::native == std::endian::little || sizeof(T) == 1);

/// Turns a value's bytes around where the machine is big-endian.
template <fixed_width T>
T little(T v) {
  if constexpr (std::endian::native != std::endian::little && sizeof(T) > 1) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(v);
    for (std::size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(bytes[i], bytes[sizeof(T) - 1 - i]);
    return std::bit_cast<T>(bytes);
  }
  return v;
}

}  // namespace detail

/// Arrays of at least so many bytes travel beside the archive, if it has a place for them.
inline constexpr std::size_t attach_from = 1024;

/// Appends to a vector. What is written is there once the archive is destroyed or flushed.
class out_archive {
 public:
  using compact = void;
  using is_saving = std::true_type;
  using is_loading = std::false_type;

  /// Larger arrays are added to `attached`, if there is one, without a copy.
  explicit out_archive(std::vector<std::byte>& to, std::vector<any_array>* attached = nullptr)
      : to_(to), attached_(attached) {
    reserve(0);
  }
  out_archive(const out_archive&) = delete;
  ~out_archive() { flush(); }

  /// Hands everything over to the vector. Does not allocate.
  void flush() {
    to_.insert(to_.end(), block_, block_ + used_);
    used_ = 0;
  }

  template <class T>
  out_archive& operator&(const T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      put(static_cast<std::uint8_t>(v));
    } else if constexpr (detail::fixed_width<T>) {
      put(v);
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      std::string_view s = v;
      put_count(s.size());
      put_bytes(s.data(), s.size());
    } else if constexpr (detail::is_vector<T>) {
      put_count(v.size());
      if constexpr (detail::flat<typename T::value_type>)
        put_bytes(v.data(), v.size() * sizeof(typename T::value_type));
      else
        for (const auto& e : v) *this& e;
    } else if constexpr (detail::is_optional<T>) {
      put(static_cast<std::uint8_t>(v.has_value()));
      if (v) *this&* v;
    } else if constexpr (detail::tuple_like<T>) {
      std::apply([&](const auto&... e) { ((*this & e), ...); }, v);
    } else if constexpr (requires { serialize(*this, const_cast<T&>(v), 0u); }) {
      serialize(*this, const_cast<T&>(v), 0u);
    } else {
      static_assert(std::is_enum_v<T>, "this type has no serialize(archive&, T&, unsigned)");
      put(static_cast<std::underlying_type_t<T>>(v));
    }
    return *this;
  }
  template <class T>
  out_archive& operator&(const named_value<T>& v) {
    return *this & v.value;
  }
  template <class T>
  out_archive& operator<<(const T& v) {
    return *this & v;
  }

  /// For arrays: dtype and shape are written already.
  void put_elements(const any_array& a) {
    if (!a.valid()) fail(errc::invalid_argument, "an array without a dtype cannot be sent");
    if (a.storage().home() && !a.storage().home()->on_host())
      fail(errc::internal, "an array in a device's memory cannot be sent");
    if (attached_ && a.bytes() >= attach_from) {
      put(std::uint8_t{1});
      put_count(attached_->size());
      attached_->push_back(a);
    } else {
      put(std::uint8_t{0});
      put_bytes(a.raw(), a.bytes());
    }
  }

 private:
  // Short pieces are gathered here: appending each to the vector costs several times as much.
  static constexpr std::size_t block_size = 512;

  template <detail::fixed_width T>
  void put(T v) {
    if (block_size - used_ < sizeof v) spill();
    v = detail::little(v);
    std::memcpy(block_ + used_, &v, sizeof v);
    used_ += sizeof v;
  }
  void put_count(std::size_t n) {
    if (n > UINT32_MAX) fail(errc::resource_exhausted, "more than 2^32 elements in metadata");
    put(static_cast<std::uint32_t>(n));
  }
  void put_bytes(const void* data, std::size_t n) {
    if (n == 0) return;
    if (block_size - used_ < n) {
      spill();
      if (n > block_size) {
        reserve(n);
        auto* bytes = static_cast<const std::byte*>(data);
        to_.insert(to_.end(), bytes, bytes + n);
        return;
      }
    }
    std::memcpy(block_ + used_, data, n);
    used_ += n;
  }
  void spill() {
    flush();
    reserve(0);
  }
  /// Room for n bytes and a block, so that flush does not allocate.
  void reserve(std::size_t n) {
    std::size_t least = to_.size() + n + block_size;
    if (to_.capacity() < least) to_.reserve(std::max(least, 2 * to_.capacity()));
  }

  std::vector<std::byte>& to_;
  std::vector<any_array>* attached_;
  std::size_t used_ = 0;
  std::byte block_[block_size];
};

/// What in_archive allows beyond what the bytes themselves allow.
struct archive_limits {
  std::size_t memory = std::size_t{1} << 30;  ///< bytes that may be allocated in all
  int depth = 32;                             ///< of values within values
};

/// Reads what out_archive wrote, from anyone: counts are checked against the bytes that are left
/// before anything is allocated. Throws data_loss where the bytes end early or cannot be, and
/// resource_exhausted past the limits; after that it must not be used.
class in_archive {
 public:
  using compact = void;
  using is_saving = std::false_type;
  using is_loading = std::true_type;

  explicit in_archive(std::span<const std::byte> from, std::span<const any_array> attached = {},
                      archive_limits limits = {})
      : at_(from.data()), end_(from.data() + from.size()), attached_(attached), limits_(limits) {}

  template <class T>
  in_archive& operator&(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      v = get_flag();
    } else if constexpr (detail::fixed_width<T>) {
      v = get<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      std::size_t n = get_count(1);
      charge(n);
      v.assign(reinterpret_cast<const char*>(at_), n);
      at_ += n;
    } else if constexpr (detail::is_vector<T>) {
      get_vector(v);
    } else if constexpr (detail::is_optional<T>) {
      v.reset();
      if (get_flag()) *this& v.emplace();
    } else if constexpr (detail::tuple_like<T>) {
      std::apply([&](auto&... e) { ((*this & e), ...); }, v);
    } else if constexpr (requires { serialize(*this, v, 0u); }) {
      if (++depth_ > limits_.depth)
        fail(errc::resource_exhausted, "metadata is nested deeper than ", limits_.depth);
      serialize(*this, v, 0u);
      --depth_;
    } else {
      static_assert(std::is_enum_v<T>, "this type has no serialize(archive&, T&, unsigned)");
      v = static_cast<T>(get<std::underlying_type_t<T>>());
    }
    return *this;
  }
  template <class T>
  in_archive& operator&(const named_value<T>& v) {
    return *this & v.value;
  }
  template <class T>
  in_archive& operator>>(T& v) {
    return *this & v;
  }

  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  /// Throws data_loss if there is more than was read.
  void finish() const {
    if (left()) fail(errc::data_loss, "metadata has ", left(), " bytes too many");
  }

  /// For arrays: their elements, once dtype and shape are read and checked to be `bytes` bytes.
  any_array get_elements(dtype type, const dims& shape, std::uint64_t bytes) {
    if (get_flag()) {
      auto n = get<std::uint32_t>();
      if (n >= attached_.size()) fail(errc::data_loss, "metadata refers to tensor ", n);
      const any_array& a = attached_[n];
      if (a.type() != type || !(a.shape() == shape))
        fail(errc::data_loss, "tensor ", n, " is not the one that metadata refers to");
      return a;
    }
    if (bytes > left()) ends_early(bytes);
    charge(bytes);
    any_array a(type, shape);
    if (bytes) std::memcpy(a.mutable_raw(), at_, bytes);
    if (type == dtype::boolean)
      for (std::size_t i = 0; i < bytes; ++i)
        if (at_[i] > std::byte{1}) fail(errc::data_loss, "a bool that is neither 0 nor 1");
    at_ += bytes;
    return a;
  }

 private:
  [[noreturn]] void ends_early(std::uint64_t wanted) const {
    fail(errc::data_loss, "metadata ends early: ", wanted, " bytes wanted, ", left(), " left");
  }
  template <detail::fixed_width T>
  T get() {
    if (left() < sizeof(T)) ends_early(sizeof(T));
    T v;
    std::memcpy(&v, at_, sizeof v);
    at_ += sizeof v;
    return detail::little(v);
  }
  bool get_flag() {
    auto v = get<std::uint8_t>();
    if (v > 1) fail(errc::data_loss, "a bool that is neither 0 nor 1");
    return v == 1;
  }
  /// A number of elements that take at least `each` bytes.
  std::size_t get_count(std::size_t each) {
    std::size_t n = get<std::uint32_t>();
    if (n > left() / each) ends_early(static_cast<std::uint64_t>(n) * each);
    return n;
  }
  void charge(std::size_t bytes) {
    if (bytes > limits_.memory)
      fail(errc::resource_exhausted, "metadata wants more memory than it may");
    limits_.memory -= bytes;
  }
  template <class T>
  void get_vector(std::vector<T>& v) {
    v.clear();
    if constexpr (detail::flat<T>) {
      std::size_t n = get_count(sizeof(T));
      charge(n * sizeof(T));
      v.resize(n);
      if (n) std::memcpy(v.data(), at_, n * sizeof(T));
      at_ += n * sizeof(T);
    } else {
      std::size_t n = get_count(1);
      // No more than the bytes there are could hold; the rest grows as elements come.
      v.reserve(std::min(n, left() / sizeof(T) + 1));
      for (std::size_t i = 0; i < n; ++i) {
        charge(sizeof(T));
        if constexpr (std::is_same_v<T, bool>)
          v.push_back(get_flag());
        else
          *this& v.emplace_back();
      }
    }
  }

  const std::byte* at_;
  const std::byte* end_;
  std::span<const any_array> attached_;
  archive_limits limits_;
  int depth_ = 0;
};

/// `values` as metadata.
template <class... T>
std::vector<std::byte> to_bytes(const T&... values) {
  std::vector<std::byte> bytes;
  out_archive ar(bytes);
  ((ar & values), ...);
  ar.flush();
  return bytes;
}
/// Reads exactly `values` from metadata.
template <class... T>
void from_bytes(std::span<const std::byte> bytes, T&... values) {
  in_archive ar(bytes);
  ((ar & values), ...);
  ar.finish();
}

}  // namespace deft
