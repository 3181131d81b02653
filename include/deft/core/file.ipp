// SPDX-License-Identifier: Apache-2.0
// deft/core/file.ipp: the system calls behind files, relative to open directories.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deft/core/file.hpp>
#include <filesystem>

namespace deft {
namespace {

constexpr int directory_flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr std::uint64_t at_once = 8u << 20;  ///< bytes that the disk is given to write

/// Opens a directory below another, one name after the other, so that no link is followed.
file_descriptor open_below(file_descriptor from, std::string_view below) {
  while (!below.empty()) {
    const std::string name(below.substr(0, below.find('/')));
    below.remove_prefix(std::min(below.size(), name.size() + 1));
    file_descriptor next(::openat(from.get(), name.c_str(), directory_flags | O_NOFOLLOW));
    if (!next) {
      const int number = errno;
      struct stat s {};
      const bool is_link =
          ::fstatat(from.get(), name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(s.st_mode);
      errno = is_link ? ELOOP : number;
      return {};
    }
    from = std::move(next);
  }
  return from;
}

/// The part of `path` below `root`; nullptr if it is not there.
const char* part_below(const std::string& path, const std::string& root) {
  if (path == root) return "";
  if (root == "/") return path.c_str() + 1;
  return path.starts_with(root) && path[root.size()] == '/' ? path.c_str() + root.size() + 1
                                                            : nullptr;
}

}  // namespace

file_descriptor::~file_descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

void fail_system(int number, std::string_view what) {
  const errc code = [number] {
    switch (number) {
      case ENOSPC:
      case EDQUOT:
      case EFBIG:
      case EMFILE:
      case ENFILE:
        return errc::resource_exhausted;
      case ENOENT:
      case ENOTDIR:
        return errc::not_found;
      case EACCES:
      case EPERM:
      case EROFS:
      case ELOOP:
      case EXDEV:
        return errc::permission_denied;
      case EIO:
        return errc::data_loss;
      default:
        return errc::unavailable;
    }
  }();
  fail(code, what, ": ", std::strerror(number));
}

file_roots::file_roots(const std::vector<std::string>& directories) {
  for (const auto& d : directories) {
    std::error_code e;
    const auto whole = std::filesystem::canonical(d, e);
    if (e || !std::filesystem::is_directory(whole, e))
      fail(errc::not_found, "the file root \"", d, "\" is not a directory");
    const auto given = (std::filesystem::absolute(d) / "").lexically_normal().parent_path();
    roots_.push_back({given.string(), whole.string()});
  }
}

file_roots file_roots::anywhere() {
  file_roots r;
  r.anywhere_ = true;
  return r;
}

file_descriptor file_roots::open_directory(const std::string& path) const {
  const std::string whole =
      (std::filesystem::absolute(path) / "").lexically_normal().parent_path().string();
  const auto failed = [&](int number) {
    fail_system(number, str("cannot open the directory \"", whole, "\""));
  };
  if (anywhere_) {
    const int fd = ::open(whole.c_str(), directory_flags);
    if (fd < 0) failed(errno);
    return file_descriptor(fd);
  }
  for (const auto& r : roots_) {
    const char* below = part_below(whole, r.given);
    if (!below) below = part_below(whole, r.real);
    if (!below) continue;
    file_descriptor from(::open(r.real.c_str(), directory_flags));
    if (!from) failed(errno);
    file_descriptor found = open_below(std::move(from), below);
    if (!found) failed(errno);
    return found;
  }
  std::string allowed;
  for (const auto& r : roots_) allowed += str(allowed.empty() ? "" : ", ", "\"", r.given, "\"");
  fail(errc::permission_denied, "\"", whole, "\" is not a directory that this task may use: ",
       roots_.empty() ? "it was started without --file_root" : "those are " + allowed);
}

file_descriptor open_file(const file_descriptor& directory, const std::string& name,
                          const std::string& path) {
  file_descriptor f(::openat(directory.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!f) fail_system(errno, str("cannot open ", path));
  return f;
}

std::uint64_t file_size(const file_descriptor& f, const std::string& path) {
  struct stat s {};
  if (::fstat(f.get(), &s) != 0) fail_system(errno, str("cannot read ", path));
  if (!S_ISREG(s.st_mode)) fail(errc::not_found, path, " is not a regular file");
  return static_cast<std::uint64_t>(s.st_size);
}

void read_file(const file_descriptor& f, const std::string& path, std::uint64_t offset, void* to,
               std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(f.get(), at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system(errno, str("cannot read ", path));
    if (got == 0) fail(errc::data_loss, path, " ends at byte ", offset);
    at += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

file_writer::file_writer(file_descriptor directory, std::string name, std::string path)
    : directory_(std::move(directory)), name_(std::move(name)), path_(std::move(path)) {
  const std::string temporary = name_ + ".tmp";
  // What a crash left there; a link is removed, not followed.
  ::unlinkat(directory_.get(), temporary.c_str(), 0);
  file_ = file_descriptor(::openat(directory_.get(), temporary.c_str(),
                                   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file_) fail_system(errno, str("cannot write ", path_));
}

file_writer::~file_writer() {
  if (file_) ::unlinkat(directory_.get(), (name_ + ".tmp").c_str(), 0);
}

void file_writer::write(std::uint64_t offset, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = ::pwrite(file_.get(), at, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_system(errno, str("cannot write ", path_));
    at += put;
    offset += static_cast<std::uint64_t>(put);
    bytes -= static_cast<std::size_t>(put);
  }
  // The disk works while the next bytes are made. What fails there fails in commit().
  if (offset >= on_the_way_ + at_once) {
    ::sync_file_range(file_.get(), static_cast<off_t>(on_the_way_),
                      static_cast<off_t>(offset - on_the_way_), SYNC_FILE_RANGE_WRITE);
    on_the_way_ = offset;
  }
}

void file_writer::commit() {
  const std::string what = str("cannot write ", path_);
  if (::fsync(file_.get()) != 0) fail_system(errno, what);
  if (::renameat(directory_.get(), (name_ + ".tmp").c_str(), directory_.get(), name_.c_str()) != 0)
    fail_system(errno, what);
  file_ = file_descriptor();
  // The directory was opened for its path alone; the name is on the disk once it is synced.
  const file_descriptor entries(::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY));
  if (entries && ::fsync(entries.get()) != 0 && errno != EINVAL) fail_system(errno, what);
}

std::pair<std::string, std::string> split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == path.npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

void write_file(const file_roots& roots, const std::string& path, std::string_view text) {
  const auto [directory, name] = split_path(path);
  file_writer f(roots.open_directory(directory), name, path);
  f.write(0, text.data(), text.size());
  f.commit();
}

std::string read_file(const file_roots& roots, const std::string& path, std::size_t most) {
  const auto [directory, name] = split_path(path);
  const file_descriptor f = open_file(roots.open_directory(directory), name, path);
  const std::uint64_t size = file_size(f, path);
  if (size > most)
    fail(errc::resource_exhausted, path, " has ", size, " bytes, more than the limit of ", most);
  std::string text(static_cast<std::size_t>(size), '\0');
  read_file(f, path, 0, text.data(), text.size());
  return text;
}

}  // namespace deft
