// SPDX-License-Identifier: Apache-2.0
// deft/data/output_file.ipp: files written in order through zlib, which also writes plain ones.
#pragma once
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deft/core/error.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace deft::detail {

/// A file, compressed if its name ends with ".gz". `operation` is named in errors: unavailable if
/// it cannot be written, resource_exhausted if the disk is full. After an error the file has a gap,
/// and every call throws that error again.
class output_file {
 public:
  output_file(std::string_view operation, const std::string& file)
      : operation_(operation), name_(file) {
    errno = 0;
    file_ = gzopen(name_.c_str(), name_.ends_with(".gz") ? "wbe" : "wbeT");
    check(file_ != nullptr);
    gzbuffer(file_, 1u << 18);
  }
  /// Without close, errors of what is written last are lost.
  ~output_file() {
    if (file_) gzclose_w(file_);
  }
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  void write(std::string_view bytes) {
    if (!file_ && !failure_)
      fail(errc::failed_precondition, "[", operation_, "] ", name_, " is closed");
    while (!bytes.empty()) {
      const auto part = static_cast<unsigned>(std::min<std::size_t>(bytes.size(), 1u << 30));
      errno = 0;
      check(file_ && gzwrite(file_, bytes.data(), part) == static_cast<int>(part));
      bytes.remove_prefix(part);
    }
  }
  void flush() {
    errno = 0;
    check(!file_ || gzflush(file_, Z_SYNC_FLUSH) == Z_OK);
  }
  void close() {
    errno = 0;
    check(!file_ || gzclose_w(std::exchange(file_, nullptr)) == Z_OK);
  }

 private:
  /// Throws the first error, and again whenever it is called afterwards.
  void check(bool succeeded) {
    if (!succeeded && !failure_) {
      failure_ = errno;
      // Now, as zlib may still refer to the caller's bytes.
      if (file_) gzclose_w(std::exchange(file_, nullptr));
    }
    if (!failure_) return;
    fail(*failure_ == ENOSPC ? errc::resource_exhausted : errc::unavailable, "[", operation_,
         "] cannot write ", name_, ": ",
         *failure_ ? std::strerror(*failure_) : "the data cannot be compressed");
  }

  std::string_view operation_;
  std::string name_;
  gzFile file_ = nullptr;
  std::optional<int> failure_;  ///< errno of what failed first
};

}  // namespace deft::detail
