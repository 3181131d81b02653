// SPDX-License-Identifier: Apache-2.0
// deft/transport/archive.hpp: serialization of metadata: portable, little-endian, fixed widths,
// checked.
//
// Arithmetic types and enumerations take their own size, a bool one byte. Strings and vectors are a
// 32-bit count and their elements; optionals a byte and their value; arrays, pairs and tuples their
// elements. Other types are what their `serialize(archive&, T&, unsigned)` writes.
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

namespace deft::ext {}  // namespace deft::ext

namespace deft::detail {

template <class T>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;
template <class T>
inline constexpr bool may_be_absent = false;
template <class T>
inline constexpr bool may_be_absent<std::optional<T>> = true;
template <class T>
concept tuple_like = requires {
  std::tuple_size<T>::value;
};
template <class T>
concept fixed_width =
    std::is_arithmetic_v<T> && !std::is_same_v<T, long double> && !std::is_same_v<T, wchar_t>;
/// Vectors of these types are copied as a block.
template <class T>
concept flat = fixed_width<T> && !std::is_same_v<T, bool> &&
               (std::endian::native == std::endian::little || sizeof(T) == 1);

/// Converts between native and little-endian byte order.
template <fixed_width T>
T little(T v) {
  if constexpr (std::endian::native != std::endian::little && sizeof(T) > 1) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(v);
    for (std::size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(bytes[i], bytes[sizeof(T) - 1 - i]);
    return std::bit_cast<T>(bytes);
  }
  return v;
}

}  // namespace deft::detail

namespace deft::ext {

/// Arrays of at least this many bytes are attached to the message instead of copied into the
/// metadata, if the archive has a list of attachments.
inline constexpr std::size_t attach_from = 1024;

/// Serializes into a vector of bytes, which is complete once the archive is flushed or destroyed.
class out_archive {
 public:
  using compact = void;
  using is_saving = std::true_type;
  using is_loading = std::false_type;

  /// Appends to `to`. Arrays of `attach_from` bytes or more are added to `attached`, if given,
  /// without a copy.
  explicit out_archive(std::vector<std::byte>& to, std::vector<any_array>* attached = nullptr)
      : to_(to), attached_(attached) {
    reserve(0);
  }
  out_archive(const out_archive&) = delete;
  ~out_archive() { flush(); }

  /// Writes everything buffered to the vector. Does not allocate.
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
    } else if constexpr (detail::may_be_absent<T>) {
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

  /// The elements of an array whose dtype and shape have been written.
  void put_elements(const any_array& a) {
    if (!a.valid()) fail(errc::invalid_argument, "cannot send an empty array");
    if (a.storage().home() && !a.storage().home()->on_host())
      fail(errc::internal, "cannot send an array that is in a device's memory");
    if (attached_ && a.bytes() >= attach_from) {
      put(std::uint8_t{1});
      put_count(attached_->size());
      attached_->push_back(a);
    } else {
      put(std::uint8_t{0});
      if (a.type() == dtype::string) put(static_cast<std::uint64_t>(a.bytes()));
      put_bytes(a.raw(), a.bytes());
    }
  }

 private:
  // Short pieces are buffered: appending each to the vector costs several times as much.
  static constexpr std::size_t block_size = 512;

  template <detail::fixed_width T>
  void put(T v) {
    if (block_size - used_ < sizeof v) spill();
    v = detail::little(v);
    std::memcpy(block_ + used_, &v, sizeof v);
    used_ += sizeof v;
  }
  void put_count(std::size_t n) {
    if (n > UINT32_MAX)
      fail(errc::resource_exhausted, "a list in metadata has ", n,
           " elements (limit 4,294,967,295)");
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

/// Limits of in_archive, besides the number of bytes it is given.
struct archive_limits {
  std::size_t memory = std::size_t{1} << 30;  ///< bytes that may be allocated in all
  int depth = 128;                            ///< of nested values, such as functions in functions
};

/// Reads what out_archive wrote. The bytes may come from an untrusted peer: counts are checked
/// against the bytes that are left before anything is allocated. Throws data_loss if the bytes end
/// early or are invalid, and resource_exhausted past the limits; the archive must not be used after
/// that.
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
    } else if constexpr (detail::may_be_absent<T>) {
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

  /// Bytes that are left to read.
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  /// Throws data_loss if there are unread bytes.
  void finish() const {
    if (left()) fail(errc::data_loss, "metadata has ", left(), " unread bytes");
  }

  /// The elements of an array of `bytes` bytes, whose dtype and shape have been read and checked;
  /// strings say themselves how many bytes they have.
  any_array get_elements(dtype type, const dims& shape, std::uint64_t bytes) {
    if (get_flag()) {
      auto n = get<std::uint32_t>();
      if (n >= attached_.size())
        fail(errc::data_loss, "metadata refers to tensor ", n, " of ", attached_.size());
      const any_array& a = attached_[n];
      if (a.type() != type || !(a.shape() == shape))
        fail(errc::data_loss, "metadata describes tensor ", n, " as ", type, shape, ", but it is ",
             a.type(), a.shape());
      return a;
    }
    const bool has_lengths = type == dtype::string;
    if (has_lengths) bytes = get<std::uint64_t>();
    if (bytes > left()) ends_early(bytes);
    charge(bytes);
    if (has_lengths) {
      buffer copy = buffer::host(bytes);
      std::memcpy(copy.data(), at_, bytes);
      if (!string_span::is_sound(copy.data(), shape.elements(), bytes))
        fail(errc::data_loss, "metadata has strings whose offsets are not sound");
      at_ += bytes;
      return any_array(type, shape, std::move(copy));
    }
    any_array a(type, shape);
    if (bytes) std::memcpy(a.mutable_raw(), at_, bytes);
    if (type == dtype::boolean)
      for (std::size_t i = 0; i < bytes; ++i)
        if (at_[i] > std::byte{1})
          fail(errc::data_loss, "metadata has a bool that is neither 0 nor 1");
    at_ += bytes;
    return a;
  }

 private:
  [[noreturn]] void ends_early(std::uint64_t wanted) const {
    fail(errc::data_loss, "metadata ends early: expected ", wanted, " more bytes, got ", left());
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
    if (v > 1) fail(errc::data_loss, "metadata has a bool that is neither 0 nor 1");
    return v == 1;
  }
  /// Reads the number of elements that take at least `each` bytes each.
  std::size_t get_count(std::size_t each) {
    std::size_t n = get<std::uint32_t>();
    if (n > left() / each) ends_early(static_cast<std::uint64_t>(n) * each);
    return n;
  }
  void charge(std::size_t bytes) {
    if (bytes > limits_.memory)
      fail(errc::resource_exhausted, "metadata needs more memory than its limit allows");
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
      // At most as many as fit into the remaining bytes; the vector grows with the rest.
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

/// Serializes `values`, one after the other.
template <class... T>
std::vector<std::byte> to_bytes(const T&... values) {
  std::vector<std::byte> bytes;
  out_archive ar(bytes);
  ((ar & values), ...);
  ar.flush();
  return bytes;
}
/// Reads `values` from `bytes`. Throws as in_archive, and data_loss if bytes are left over.
template <class... T>
void from_bytes(std::span<const std::byte> bytes, T&... values) {
  in_archive ar(bytes);
  ((ar & values), ...);
  ar.finish();
}

}  // namespace deft::ext
