// SPDX-License-Identifier: Apache-2.0
// deft/data/input_file.ipp: files read in order through zlib, which also reads plain ones.
#pragma once
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deft/core/error.hpp>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace deft::detail {

/// A file, plain or gzip (detected by its content), and those of its bytes that have been read but
/// not consumed.
class input_file {
 public:
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;

 protected:
  /// `operation` is named in errors. Throws not_found, unavailable.
  input_file(std::string_view operation, const std::string& file)
      : operation_(operation), name_(file), buffer_(1u << 20) {
    std::error_code e;
    if (!std::filesystem::is_regular_file(file, e))
      fail(errc::not_found, "[", operation_, "] there is no file ", name_);
    file_ = gzopen(name_.c_str(), "rb");
    if (!file_)
      fail(errc::unavailable, "[", operation_, "] cannot open ", name_, ": ", std::strerror(errno));
    gzbuffer(file_, 1u << 18);
  }
  virtual ~input_file() { gzclose_r(file_); }

  /// Where in the file an error is: "line 7".
  virtual std::string where() const = 0;
  [[noreturn]] void bad(const std::string& what) const { bad_at(where(), what); }
  [[noreturn]] void bad_at(const std::string& place, const std::string& what) const {
    fail(errc::data_loss, "[", operation_, "] ", name_, ": ", place, ": ", what);
  }

  /// The bytes that are buffered; they move when more are read.
  char* at() { return buffer_.data() + begin_; }
  const char* at() const { return buffer_.data() + begin_; }
  std::size_t available() const { return end_ - begin_; }
  void consume(std::size_t n) { begin_ += n; }

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
      constexpr std::size_t most = 1u << 30;  // bytes of one read
      const int got = gzread(file_, buffer_.data() + end_,
                             static_cast<unsigned>(std::min(buffer_.size() - end_, most)));
      if (got < 0) fail_reading();
      if (got == 0) {
        int code = Z_OK;
        gzerror(file_, &code);
        if (code == Z_BUF_ERROR) bad("its compressed data is cut off");
        break;
      }
      end_ += static_cast<std::size_t>(got);
    }
    return std::min(n, available());
  }

 private:
  [[noreturn]] void fail_reading() {
    int code = Z_OK;
    const char* text = gzerror(file_, &code);
    if (code == Z_ERRNO)
      fail(errc::unavailable, "[", operation_, "] cannot read ", name_, ": ", std::strerror(errno));
    bad(str("its compressed data is corrupt: ", text));
  }

  std::string_view operation_;
  std::string name_;
  gzFile file_ = nullptr;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace deft::detail
