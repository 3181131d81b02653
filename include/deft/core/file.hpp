// SPDX-License-Identifier: Apache-2.0
// deft/core/file.hpp: files that appear whole or not at all, and the directories a task may use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deft/core/error.hpp>
#include <string>
#include <utility>
#include <vector>

namespace deft {

/// A file descriptor, closed at the end.
class file_descriptor {
 public:
  file_descriptor() = default;
  explicit file_descriptor(int fd) : fd_(fd) {}
  file_descriptor(file_descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  file_descriptor& operator=(file_descriptor o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~file_descriptor();

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Throws the error of a failed system call: resource_exhausted for a full disk, not_found,
/// permission_denied, data_loss where the device cannot read, else unavailable. The message is
/// `what` and the system's text.
[[noreturn]] void fail_system(int number, std::string_view what);

/// The directories below which files are read and written for others.
class file_roots {
 public:
  /// None: every use is refused.
  file_roots() = default;
  /// Throws not_found if one of them is not a directory.
  explicit file_roots(const std::vector<std::string>& directories);
  /// Every directory: for what a program does for its own user.
  static file_roots anywhere();

  /// Opens a directory, which must be one of the roots or below one; below it no link is followed.
  /// Throws permission_denied for any other, not_found if there is none.
  file_descriptor open_directory(const std::string& path) const;

 private:
  bool anywhere_ = false;
  struct root {
    std::string given, real;  ///< absolute; without links
  };
  std::vector<root> roots_;
};

/// Opens a file of an open directory for reading; `path` names it in errors. Throws not_found,
/// permission_denied for a link.
file_descriptor open_file(const file_descriptor& directory, const std::string& name,
                          const std::string& path);
std::uint64_t file_size(const file_descriptor& f, const std::string& path);
/// Reads `bytes` bytes at `offset`. Throws data_loss if the file ends before.
void read_file(const file_descriptor& f, const std::string& path, std::uint64_t offset, void* to,
               std::size_t bytes);

/// Writes a file under a temporary name, `name.tmp`, and gives it its own name once it is complete
/// and on the disk, replacing an older file. Until then the older one stays as it was.
class file_writer {
 public:
  /// `path` names the file in errors.
  file_writer(file_descriptor directory, std::string name, std::string path);
  /// Deletes the temporary file if it was not committed.
  ~file_writer();
  file_writer(const file_writer&) = delete;

  /// Throws resource_exhausted on a full disk.
  void write(std::uint64_t offset, const void* data, std::size_t bytes);
  /// Writes everything to the disk and gives the file its name.
  void commit();

 private:
  file_descriptor directory_, file_;
  std::string name_, path_;
  std::uint64_t on_the_way_ = 0;  ///< the disk was told to write the bytes before this offset
};

/// The directory part of a path, "." if it has none, and the rest.
std::pair<std::string, std::string> split_path(const std::string& path);

/// Writes a whole file as file_writer does.
void write_file(const file_roots& roots, const std::string& path, std::string_view text);
/// A whole file. Throws not_found, and resource_exhausted if it is longer than `most` bytes.
std::string read_file(const file_roots& roots, const std::string& path, std::size_t most);

}  // namespace deft
