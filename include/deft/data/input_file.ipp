// SPDX-License-Identifier: Apache-2.0
// deft/data/input_file.ipp: files read in order, plain or through zlib.
#pragma once
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deft/core/dims.hpp>
#include <deft/core/dtype.hpp>
#include <deft/core/error.hpp>
#include <deft/core/file.hpp>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deft::detail {

/// A member of an archive.
struct file_part {
  std::uint64_t begin = 0, bytes = 0;  ///< in the file
  bool deflated = false;
  std::uint64_t size = 0;  ///< bytes without compression
  std::uint32_t crc = 0;   ///< CRC-32 of these
};

/// A file, plain or gzip (detected by its content), or a part of one, and those of its bytes that
/// have been read but not consumed.
class input_file {
 public:
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;

 protected:
  /// `operation` is named in errors; `is_plain` says of a file that begins as gzip's do whether it
  /// is a plain one all the same. Throws not_found, unavailable.
  input_file(std::string_view operation, const std::string& file,
             bool (*is_plain)(std::string_view begin) = nullptr)
      : operation_(operation), name_(file), buffer_(1u << 20) {
    open(file);
    end_ = read_file(buffer_.data(), compressed_bytes);
    const std::string_view begin(buffer_.data(), end_);
    if (!begin.starts_with("\x1f\x8b") || (is_plain && is_plain(begin))) return;
    compressed_.assign(buffer_.begin(), buffer_.begin() + compressed_bytes);
    constexpr int gzip_alone = 16;
    if (inflateInit2(&stream_, MAX_WBITS + gzip_alone) != Z_OK) throw std::bad_alloc();
    give_stream(std::exchange(end_, 0));
  }
  /// `part` of a file, whose bytes are there; `member` is its name. expect_end compares the
  /// checksum.
  input_file(std::string_view operation, const std::string& file, const std::string& member,
             const file_part& part)
      : operation_(operation),
        name_(str(file, ": ", member)),
        buffer_(std::min<std::uint64_t>(part.size, 1u << 20) + 1),
        part_(part) {
    open(file);
    ::lseek(file_.get(), static_cast<off_t>(part.begin), SEEK_SET);
    size_ = left_ = part.bytes;
    if (!part.deflated) return;
    compressed_.resize(compressed_bytes);
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    inflated_ = Z_OK;
  }
  virtual ~input_file() { inflateEnd(&stream_); }

  std::string_view operation() const { return operation_; }
  const std::string& name() const { return name_; }
  /// Where in the file an error is: "line 7".
  virtual std::string where() const { return str("at offset ", consumed_); }
  [[noreturn]] void bad(const std::string& what) const { bad_at(where(), what); }
  [[noreturn]] void bad_at(const std::string& place, const std::string& what) const {
    fail(errc::data_loss, "[", operation_, "] ", name_, ": ", place, ": ", what);
  }

  /// The bytes that are buffered; they move when more are read.
  char* at() { return buffer_.data() + begin_; }
  const char* at() const { return buffer_.data() + begin_; }
  std::size_t available() const { return end_ - begin_; }
  void consume(std::size_t n) { begin_ += n, consumed_ += n; }
  /// How many bytes have been consumed, as they are without compression.
  std::uint64_t consumed() const { return consumed_; }

  /// Reads until `n` bytes are buffered, or the file ends; how many of them there are. Throws
  /// data_loss if the compressed data is corrupt or cut off, unavailable if it cannot be read.
  std::size_t fill(std::size_t n) {
    while (available() < n) {
      if (begin_ > 0 && (begin_ == end_ || begin_ + n > buffer_.size())) {
        std::memmove(buffer_.data(), at(), available());
        end_ -= begin_;
        begin_ = 0;
      }
      if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
      const std::size_t got = read_some(buffer_.data() + end_, buffer_.size() - end_);
      if (got == 0) break;
      end_ += got;
    }
    return std::min(n, available());
  }

  /// Consumes `n` bytes into `to`. Throws as fill, and data_loss if the file ends within its
  /// `what`.
  void read(void* to, std::size_t n, std::string_view what) {
    auto* p = static_cast<char*>(to);
    const std::size_t buffered = std::min(n, available());
    if (buffered > 0) std::memcpy(p, at(), buffered);
    consume(buffered);
    for (std::size_t left = n - buffered; left > 0;) {
      const std::size_t got = read_some(p + n - left, left);
      if (got == 0) bad(str("it ends within its ", what));
      consumed_ += got;
      left -= got;
    }
  }

  /// Throws data_loss if the file is too small for an array whose elements have `width` bytes in
  /// it, before anything is allocated for them.
  void expect_array(dtype type, const dims& shape, std::size_t width) const {
    // An empty array needs no bytes, but its other extents must be plausible too.
    std::uint64_t needed = width;
    for (auto e : shape)
      if (e != 0) needed = product(needed, static_cast<std::uint64_t>(e));
    // Deflate compresses by a factor of at most 1032.
    const std::uint64_t most = compressed_.empty() ? size_ - consumed_ : product(size_, 1032);
    if (needed > (shape.contains(0) ? std::uint64_t{1} << 40 : most))
      bad(str("its header announces ", shape, " elements of ", type,
              ", more than the file can hold"));
  }
  /// Throws data_loss if bytes follow an array's, and if those of a compressed file or of a part
  /// were corrupt.
  void expect_end(dtype type, const dims& shape) {
    if (fill(1) > 0) bad(str("it has more bytes than ", shape, " elements of ", type, " need"));
    if (part_ && (consumed_ != part_->size || crc_ != part_->crc)) bad("its checksum is wrong");
  }

 private:
  void open(const std::string& file) {
    std::error_code e;
    if (const auto found = std::filesystem::status(file, e); !is_regular_file(found))
      fail(errc::not_found, "[", operation_, "] ",
           exists(found) ? str(name_, " is not a file") : str("there is no file ", name_));
    size_ = std::filesystem::file_size(file, e);
    if (e) fail(errc::unavailable, "[", operation_, "] cannot read ", name_, ": ", e.message());
    file_ = file_descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_)
      fail(errc::unavailable, "[", operation_, "] cannot open ", name_, ": ", std::strerror(errno));
  }
  static std::uint64_t product(std::uint64_t a, std::uint64_t b) {
    std::uint64_t r = 0;
    return __builtin_mul_overflow(a, b, &r) ? ~std::uint64_t{0} : r;
  }
  /// At least a byte and `n` at most, or none at the end of the file.
  std::size_t read_some(char* to, std::size_t n) {
    const std::size_t got = compressed_.empty() ? read_file(to, n) : inflate_some(to, n);
    if (part_)
      crc_ = static_cast<std::uint32_t>(crc32_z(crc_, reinterpret_cast<const Bytef*>(to), got));
    return got;
  }
  /// The same of the bytes that the file itself has.
  std::size_t read_file(char* to, std::size_t n) {
    const ssize_t got =
        ::read(file_.get(), to, static_cast<std::size_t>(std::min<std::uint64_t>(n, left_)));
    if (got < 0)
      fail(errc::unavailable, "[", operation_, "] cannot read ", name_, ": ", std::strerror(errno));
    left_ -= static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
  }
  /// Bytes that precede corrupt data are returned; the next call throws. In a file of gzip other
  /// compressed parts may follow the first, and zeros, which fill up blocks.
  std::size_t inflate_some(char* to, std::size_t n) {
    const auto most = static_cast<unsigned>(std::min<std::size_t>(n, 1u << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = most;
    while (stream_.avail_out == most) {
      if (inflated_ == Z_MEM_ERROR) throw std::bad_alloc();
      if (inflated_ != Z_OK && inflated_ != Z_STREAM_END)
        bad(str("its compressed data is corrupt: ", stream_.msg ? stream_.msg : "no more follows"));
      if (part_ && inflated_ == Z_STREAM_END) break;
      if (stream_.avail_in == 0) give_stream(read_file(compressed_.data(), compressed_.size()));
      if (stream_.avail_in == 0 && inflated_ == Z_OK) bad("its compressed data is cut off");
      if (stream_.avail_in == 0) break;
      if (inflated_ == Z_STREAM_END && *stream_.next_in == 0) {
        ++stream_.next_in, --stream_.avail_in;
        continue;
      }
      if (inflated_ == Z_STREAM_END) inflateReset(&stream_);
      inflated_ = inflate(&stream_, Z_NO_FLUSH);
    }
    return most - stream_.avail_out;
  }
  void give_stream(std::size_t bytes) {
    stream_.next_in = reinterpret_cast<Bytef*>(compressed_.data());
    stream_.avail_in = static_cast<unsigned>(bytes);
  }

  std::string_view operation_;
  std::string name_;
  file_descriptor file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t size_ = 0, consumed_ = 0;

  static constexpr std::size_t compressed_bytes = 1u << 18;  ///< read at a time
  std::vector<char> compressed_;                             ///< empty if the file is plain
  z_stream stream_{};
  int inflated_ = Z_STREAM_END;  ///< what zlib returned last

  std::optional<file_part> part_;           ///< none: the whole file
  std::uint64_t left_ = ~std::uint64_t{0};  ///< bytes of the part that are not read
  std::uint32_t crc_ = 0;                   ///< of what was read of it
};

}  // namespace deft::detail
