// SPDX-License-Identifier: Apache-2.0
// deft/data/npy.ipp: the header of .npy files, a literal of Python, and their elements. The format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <deft/core/error.hpp>
#include <deft/core/printable.hpp>
#include <deft/data/input_file.ipp>
#include <deft/data/npy.hpp>
#include <deft/data/output_file.ipp>
#include <vector>

namespace deft {
namespace {

static_assert(std::endian::native == std::endian::little, ".npy files are little-endian");

constexpr std::string_view npy_magic("\x93NUMPY", 6);

class npy_reader : detail::input_file {
 public:
  explicit npy_reader(const std::string& file) : input_file("read_npy", file) {}
  /// A member of an .npz file.
  npy_reader(const std::string& file, const std::string& member, const detail::file_part& part)
      : input_file("read_npz", file, member, part) {}

  any_array array() {
    read_header();
    parse_header();
    const auto type = dtype_of_header();
    if (!ext::is_sound(shape_))
      bad_at(in_header(0), ext::str("its shape ", shape_, " is too large"));
    expect_array(type, shape_, ext::size_of_dtype(type));
    any_array a(type, shape_);
    read(a.mutable_raw(), a.bytes(), "elements");
    if (type == dtype::boolean) check_bools(a);
    expect_end(type, shape_);
    return a;
  }

 private:
  void read_header() {
    unsigned char head[12];
    // A shorter file has no whole header, which is said next.
    const std::string_view magic = npy_magic.substr(0, fill(npy_magic.size()));
    if (std::memcmp(at(), magic.data(), magic.size()) != 0)
      bad_at("at offset 0", "it does not begin with \\x93NUMPY, as .npy files do");
    read(head, 8, "header");
    const int version = head[6];
    if (version < 1 || version > 3 || head[7] != 0)
      bad_at("at offset 6", ext::str("its format version is ", version, ".", int{head[7]},
                                     "; expected 1.0 to 3.0"));
    const std::size_t width = version == 1 ? 2 : 4;
    read(head + 8, width, "header");
    std::uint32_t length = 0;
    std::memcpy(&length, head + 8, width);
    header_at_ = consumed();
    if (fill(length) < length) bad("it ends within its header");
    header_.assign(at(), length);
    consume(length);
  }

  // {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, keys in any order
  void parse_header() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = text();
      expect(':');
      if (key == "descr") {
        if (next() == '[' || next() == '(') unsupported("structured elements");
        descr_ = text();
      } else if (key == "fortran_order") {
        fortran_ = word();
      } else if (key == "shape") {
        has_shape_ = true;
        parse_shape();
      } else {
        bad_header();
      }
      if (!accept(',') && next() != '}') bad_header();
    }
    if (next() != '\0' || descr_.empty() || fortran_.empty() || !has_shape_) bad_header();
  }
  void parse_shape() {
    expect('(');
    while (!accept(')')) {
      next();
      std::int64_t extent = 0;
      const char* const begin = header_.data() + parsed_;
      const auto [end, error] = std::from_chars(begin, header_.data() + header_.size(), extent);
      if (error != std::errc() || extent < 0) bad_header();
      parsed_ += static_cast<std::size_t>(end - begin);
      if (parsed_ < header_.size() && header_[parsed_] == 'L') ++parsed_;  // a long of Python 2
      if (shape_.rank() == max_rank)
        ext::fail(errc::unimplemented, "[", operation(), "] ", name(), " has a rank above ",
                  max_rank);
      shape_.push_back(extent);
      if (!accept(',') && next() != ')') bad_header();
    }
  }
  /// The next character that is not blank; '\0' at the end.
  char next() {
    constexpr std::string_view blanks = " \t\n\r\f";
    while (parsed_ < header_.size() && blanks.find(header_[parsed_]) != blanks.npos) ++parsed_;
    return parsed_ < header_.size() ? header_[parsed_] : '\0';
  }
  bool accept(char c) {
    const bool there = next() == c;
    parsed_ += there;
    return there;
  }
  void expect(char c) {
    if (!accept(c)) bad_header();
  }
  std::string_view text() {
    if (next() == 'u') ++parsed_;  // as Python 2 wrote text; Python 3 reads it
    const char quote = parsed_ < header_.size() ? header_[parsed_] : '\0';
    const std::size_t end =
        quote == '\'' || quote == '"' ? header_.find(quote, parsed_ + 1) : std::string::npos;
    if (end == std::string::npos) bad_header();
    const std::string_view s = std::string_view(header_).substr(parsed_ + 1, end - parsed_ - 1);
    parsed_ = end + 1;
    return s;
  }
  std::string_view word() {
    next();
    for (std::string_view w : {"True", "False"})
      if (header_.compare(parsed_, w.size(), w) == 0) {
        parsed_ += w.size();
        return w;
      }
    bad_header();
  }

  dtype dtype_of_header() {
    const std::string_view element = descr_.substr(std::min<std::size_t>(1, descr_.size()));
    const dtype named = ext::dtype_named(&ext::element_names::numpy, element);
    if (named != dtype::none) {
      if (descr_[0] == '>' && ext::size_of_dtype(named) > 1) unsupported("big-endian elements");
      if (fortran_ == "True") unsupported("Fortran order");
      return named;
    }
    unsupported(ext::str("elements of type ", ext::printable(descr_)));
  }
  /// Any other byte in a bool would be undefined behaviour.
  void check_bools(const any_array& a) const {
    const auto* bytes = static_cast<const unsigned char*>(a.raw());
    for (std::size_t i = 0; i < a.bytes(); ++i)
      if (bytes[i] > 1)
        bad_at(ext::str("at offset ", consumed() - a.bytes() + i),
               ext::str("a bool is ", int{bytes[i]}));
  }

  std::string in_header(std::size_t i) const { return ext::str("at offset ", header_at_ + i); }
  [[noreturn]] void bad_header() const {
    bad_at(in_header(parsed_), "its header is not that of an array");
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    ext::fail(errc::unimplemented, "[", operation(), "] ", name(), " has ", what,
              "; expected f2, f4, f8, i1, i4, i8, u1 or b1, little-endian, in C order");
  }

  std::uint64_t header_at_ = 0;
  std::string header_;
  std::size_t parsed_ = 0;  ///< of the header
  std::string_view descr_, fortran_;
  bool has_shape_ = false;
  dims shape_;
};

/// What precedes the elements of an array. `operation` is named in errors.
std::string npy_head(std::string_view operation, const std::string& file, const any_array& array) {
  if (!array.valid())
    ext::fail(errc::invalid_argument, "[", operation, "] there is no array for ", file);
  const auto& type = ext::traits_of(array.type());
  if (type.names.numpy.empty())
    ext::fail(errc::invalid_argument, "[", operation, "] .npy files cannot hold ", array.type(),
              ": ", file);
  std::string header =
      ext::str("{'descr': '", type.size > 1 ? '<' : '|', type.names.numpy,
               "', 'fortran_order': False, 'shape': (", ext::join(array.shape(), ", "),
               array.shape().rank() == 1 ? ",), }" : "), }");
  // Elements begin at a multiple of 64 bytes.
  constexpr std::size_t before = npy_magic.size() + 4;
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  const auto length = static_cast<std::uint16_t>(header.size());
  std::string head(npy_magic);
  head += {'\1', '\0', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  return head += header;
}

}  // namespace

any_array read_npy(const std::string& file) { return npy_reader(file).array(); }

void write_npy(const std::string& file, const any_array& array) {
  const std::string head = npy_head("write_npy", file, array);
  detail::output_file f("write_npy", file);
  f.write(head);
  f.write({static_cast<const char*>(array.raw()), array.bytes()});
  f.close();
}

}  // namespace deft
