// SPDX-License-Identifier: Apache-2.0
// deft/core/file.hpp: files that appear whole or not at all, and the directories a task may use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deft/core/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deft::ext {

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
  /// Every directory, and links are followed: for what a program does for its own user.
  static file_roots anywhere();

  /// Opens a directory, which must be one of the roots or below one; below it no link is followed.
  /// Throws permission_denied for any other, and for a link, not_found if there is none.
  file_descriptor open_directory(const std::string& path) const;
  /// Opens a file of such a directory for reading. Throws not_found if there is none, or something
  /// that is not a regular file, permission_denied for a link below a root.
  file_descriptor open_file(const std::string& path) const;

 private:
  friend class file_writer;
  /// The directory and the name under which to write `path`: for one's own user next to what a link
  /// leads to; below a root, or if it `replaces_link`, the link itself. Throws failed_precondition
  /// if something is there that is not a regular file.
  std::pair<file_descriptor, std::string> open_place(const std::string& path,
                                                     bool replaces_link) const;

  bool anywhere_ = false;
  struct root {
    std::string given, real;  ///< absolute; without links
  };
  std::vector<root> roots_;
};

std::uint64_t file_size(const file_descriptor& f, const std::string& path);
/// Reads `bytes` bytes at `offset`. Throws data_loss if the file ends before.
void read_file(const file_descriptor& f, const std::string& path, std::uint64_t offset, void* to,
               std::size_t bytes);

/// Writes a file under a temporary name of its own, and gives it its name once it is complete and
/// on the disk, replacing an older file. Until then the older one stays as it was. Several writers
/// of one file, in any processes, do not meet: the last one to commit counts. A writer deletes what
/// writers of the same file have left that did not end.
class file_writer {
 public:
  /// Throws failed_precondition if `path` is a directory, a device, a FIFO or a socket. If it is a
  /// link, the file to which it leads is replaced for one's own user, else the link, as if the
  /// writer `replaces_link`.
  file_writer(const file_roots& roots, const std::string& path, bool replaces_link = false);
  /// Deletes the temporary file if it was not committed.
  ~file_writer();
  file_writer(const file_writer&) = delete;

  /// Throws resource_exhausted on a full disk.
  void write(std::uint64_t offset, const void* data, std::size_t bytes);
  /// Writes everything to the disk and gives the file its name.
  void commit();

 private:
  void open_temporary();

  std::string path_;  ///< in errors
  file_descriptor directory_, file_;
  std::string name_, temporary_;
  std::uint64_t on_the_way_ = 0;  ///< the disk was told to write the bytes before this offset
};

/// The name of the file for which a file_writer made `name`, as it did in any version; `name` if it
/// is not that of a temporary file.
std::string_view completed_name(std::string_view name);
/// Whether a file_writer, of any process, is writing the file `name` of a directory.
bool is_being_written(const std::string& directory, const std::string& name);
/// Deletes a temporary file, unless a file_writer of any process is writing it.
void delete_leftover(const std::string& directory, const std::string& temporary);

/// The directory part of a path, "." if it has none, and the rest.
std::pair<std::string, std::string> split_path(const std::string& path);

/// Writes a whole file as file_writer does.
void write_file(const file_roots& roots, const std::string& path, std::string_view text);
/// A whole file. Throws not_found, and resource_exhausted if it is longer than `most` bytes.
std::string read_file(const file_roots& roots, const std::string& path, std::size_t most);

}  // namespace deft::ext
