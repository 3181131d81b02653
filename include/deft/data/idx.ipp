// SPDX-License-Identifier: Apache-2.0
// deft/data/idx.ipp: reading and writing IDX files.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <deft/data/idx.hpp>
#include <deft/data/input_file.ipp>
#include <deft/data/output_file.ipp>
#include <type_traits>
#include <vector>

namespace deft {
namespace detail {

/// An element type of the file format.
struct idx_code {
  unsigned char code;
  unsigned width;  // bytes of an element in the file
  dtype type;      // of the array
};
inline constexpr idx_code idx_codes[] = {
    {0x08, 1, dtype::uint8}, {0x09, 1, dtype::int32},   {0x0B, 2, dtype::int32},
    {0x0C, 4, dtype::int32}, {0x0D, 4, dtype::float32}, {0x0E, 8, dtype::float64},
};

template <class U>
constexpr U swapped(U v) {
  U r = 0;
  for (unsigned i = 0; i < sizeof(U); ++i) r = static_cast<U>(r << 8 | ((v >> (8 * i)) & 0xff));
  return r;
}

/// Reads an IDX file: the header on construction, then the elements.
class idx_reader : input_file {
 public:
  explicit idx_reader(const std::string& file) : input_file("read_idx", file) {
    unsigned char magic[4];
    read(magic, 4, "header");
    auto found = std::find_if(std::begin(idx_codes), std::end(idx_codes),
                              [&](const idx_code& c) { return c.code == magic[2]; });
    if (magic[0] || magic[1]) bad_at("at offset 0", "it does not begin with two zero bytes");
    if (found == std::end(idx_codes))
      bad_at("at offset 2", str("its element type ", int{magic[2]}, " is unknown"));
    if (magic[3] == 0 || magic[3] > max_rank)
      bad_at("at offset 3", str("its rank is ", int{magic[3]}, "; expected 1 to ", max_rank));
    code_ = *found;
    header_.type = code_.type;
    for (int i = 0; i < magic[3]; ++i) {
      std::uint32_t extent = 0;
      read(&extent, 4, "header");
      header_.shape.push_back(std::endian::native == std::endian::little ? swapped(extent)
                                                                         : extent);
    }
    expect_array(header_.type, header_.shape, code_.width);
  }

  const idx_header& header() const { return header_; }

  any_array elements() {
    any_array a(header_.type, header_.shape);
    auto n = static_cast<std::size_t>(a.elements());
    if (code_.width == size_of_dtype(header_.type)) {
      read(a.mutable_raw(), a.bytes(), "elements");
      to_native(a);
    } else if (code_.width == 1) {
      widen<std::int8_t>(a, n);
    } else {
      widen<std::int16_t>(a, n);
    }
    expect_end(header_.type, header_.shape);
    return a;
  }

 private:
  template <class From>
  void widen(any_array& a, std::size_t n) {
    std::vector<From> raw(n);
    read(raw.data(), n * sizeof(From), "elements");
    std::int32_t* to = a.mutable_data<std::int32_t>();
    for (std::size_t i = 0; i < n; ++i) {
      auto bits = static_cast<std::make_unsigned_t<From>>(raw[i]);
      to[i] = static_cast<From>(std::endian::native == std::endian::little ? swapped(bits) : bits);
    }
  }
  template <class U>
  static void swap_all(void* data, std::size_t n) {
    auto* bytes = static_cast<char*>(data);
    for (std::size_t i = 0; i < n; ++i) {
      U v;
      std::memcpy(&v, bytes + i * sizeof(U), sizeof(U));
      v = swapped(v);
      std::memcpy(bytes + i * sizeof(U), &v, sizeof(U));
    }
  }
  static void to_native(any_array& a) {
    if (std::endian::native != std::endian::little) return;
    auto n = static_cast<std::size_t>(a.elements());
    if (size_of_dtype(a.type()) == 4) swap_all<std::uint32_t>(a.mutable_raw(), n);
    if (size_of_dtype(a.type()) == 8) swap_all<std::uint64_t>(a.mutable_raw(), n);
  }

  idx_header header_;
  idx_code code_{};
};

}  // namespace detail

any_array read_idx(const std::string& file) { return detail::idx_reader(file).elements(); }

namespace ext {

idx_header read_idx_header(const std::string& file) { return detail::idx_reader(file).header(); }

}  // namespace ext

void write_idx(const std::string& file, const any_array& array) {
  using detail::idx_codes;
  auto code = std::find_if(std::begin(idx_codes), std::end(idx_codes), [&](const auto& c) {
    return c.type == array.type() && c.width == ext::size_of_dtype(c.type);
  });
  if (code == std::end(idx_codes))
    ext::fail(errc::invalid_argument, "[write_idx] IDX files cannot hold ", array.type(), ": ",
              file);
  if (array.shape().empty())
    ext::fail(errc::invalid_argument, "[write_idx] IDX files cannot hold scalars: ", file);
  std::string bytes{'\0', '\0', static_cast<char>(code->code),
                    static_cast<char>(array.shape().rank())};
  auto put = [&](std::uint64_t v, unsigned width) {
    for (unsigned i = width; i-- > 0;) bytes += static_cast<char>(v >> (8 * i));
  };
  for (auto e : array.shape()) {
    if (e > std::int64_t{0xffffffff})
      ext::fail(errc::invalid_argument, "[write_idx] IDX files cannot hold an extent of ", e,
                " (limit 4,294,967,295): ", file);
    put(static_cast<std::uint64_t>(e), 4);
  }
  ext::visit_dtype(array.type(), [&]<class T>() {
    for (T v : array.span<T>()) {
      if constexpr (sizeof(T) == 8)
        put(std::bit_cast<std::uint64_t>(v), 8);
      else if constexpr (sizeof(T) == 4)
        put(std::bit_cast<std::uint32_t>(v), 4);
      else
        bytes += static_cast<char>(v);
    }
  });
  detail::output_file f("write_idx", file);
  f.write(bytes);
  f.close();
}

}  // namespace deft
