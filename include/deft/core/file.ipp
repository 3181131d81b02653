// SPDX-License-Identifier: Apache-2.0
// deft/core/file.ipp: the system calls behind files, relative to open directories.
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deft/core/file.hpp>
#include <filesystem>
#include <memory>
#include <tuple>

namespace deft::ext {
namespace {

constexpr int directory_flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr std::uint64_t at_once = 8u << 20;  ///< bytes that the disk is given to write

[[noreturn]] void refuse_link(std::string_view what, std::string_view link) {
  fail(errc::permission_denied, what, ": \"", link,
       "\" is a symbolic link, and none is followed below the directories of --file_root");
}

/// Opens a directory below a root, one name after the other, so that no link is followed.
file_descriptor open_below(const std::string& root, std::string_view below, std::string_view what) {
  file_descriptor from(::open(root.c_str(), directory_flags));
  std::string at = root == "/" ? "" : root;
  while (from && !below.empty()) {
    const std::string name(below.substr(0, below.find('/')));
    below.remove_prefix(std::min(below.size(), name.size() + 1));
    at += str("/", name);
    file_descriptor next(::openat(from.get(), name.c_str(), directory_flags | O_NOFOLLOW));
    const int number = errno;
    struct stat s {};
    if (!next && ::fstatat(from.get(), name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(s.st_mode))
      refuse_link(what, at);
    errno = number;
    from = std::move(next);
  }
  if (!from) fail_system(errno, what);
  return from;
}

/// What is not a regular file, in words; nullptr for one, and for a link.
const char* special_kind(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return nullptr;
}

/// Where a link leads; empty if `name` is none.
std::string link_target(const file_descriptor& directory, const std::string& name) {
  std::string to(PATH_MAX, '\0');
  const ssize_t n = ::readlinkat(directory.get(), name.c_str(), to.data(), to.size());
  to.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return to;
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
  const std::string what = str("cannot open the directory \"", whole, "\"");
  if (anywhere_) {
    file_descriptor found(::open(path.c_str(), directory_flags));
    if (!found) fail_system(errno, what);
    return found;
  }
  // The root that has most of the path as it is written, whatever the order of the roots: a link
  // below that one is refused, even if it leads below another root.
  const root* nearest = nullptr;
  const char* rest = nullptr;
  for (const auto& r : roots_)
    for (const std::string* above : {&r.given, &r.real})
      if (const char* below = part_below(whole, *above);
          below && (!rest || std::strlen(below) < std::strlen(rest)))
        nearest = &r, rest = below;
  if (nearest) return open_below(nearest->real, rest, what);
  // A path from outside the roots may lead into one by links.
  std::error_code none;
  const std::string real = std::filesystem::canonical(whole, none).string();
  for (const auto& r : roots_)
    if (const char* below = part_below(real, r.real)) return open_below(r.real, below, what);
  std::string allowed;
  for (const auto& r : roots_) allowed += str(allowed.empty() ? "" : ", ", "\"", r.given, "\"");
  fail(errc::permission_denied, "\"", whole, "\" is not a directory that this task may use: ",
       roots_.empty() ? "it was started without --file_root" : "those are " + allowed);
}

file_descriptor file_roots::open_file(const std::string& path) const {
  const auto [directory, name] = split_path(path);
  const file_descriptor in = open_directory(directory);
  struct stat s {};
  const int link = anywhere_ ? 0 : AT_SYMLINK_NOFOLLOW;
  const auto refuse_special = [&](const char* kind) {
    if (kind) fail(errc::not_found, "cannot open ", path, ": it is ", kind, ", not a regular file");
  };
  if (::fstatat(in.get(), name.c_str(), &s, link) == 0) {
    if (S_ISLNK(s.st_mode)) refuse_link("cannot open " + path, path);
    refuse_special(special_kind(s.st_mode));
  }
  // Without O_NONBLOCK a FIFO that has come meanwhile would be waited for.
  file_descriptor f(::openat(in.get(), name.c_str(),
                             O_RDONLY | O_CLOEXEC | O_NONBLOCK | (anywhere_ ? 0 : O_NOFOLLOW)));
  if (!f || ::fstat(f.get(), &s) != 0) fail_system(errno, str("cannot open ", path));
  refuse_special(special_kind(s.st_mode));
  return f;
}

std::pair<file_descriptor, std::string> file_roots::open_place(const std::string& path,
                                                               bool replaces_link) const {
  const bool follows = anywhere_ && !replaces_link;
  auto [directory, name] = split_path(path);
  file_descriptor in = open_directory(directory);
  const std::string what = str("cannot write ", path);
  struct stat there {};
  const bool is_there =
      ::fstatat(in.get(), name.c_str(), &there, follows ? 0 : AT_SYMLINK_NOFOLLOW) == 0;
  if (!is_there && errno == ELOOP) fail_system(ELOOP, what);
  const char* kind = name.empty() ? "a directory"
                     : is_there   ? special_kind(there.st_mode)
                                  : nullptr;
  if (kind)
    fail(errc::failed_precondition, what, ": it is ", kind,
         ", and only a regular file is replaced; choose another name");
  if (!follows) return {std::move(in), name};
  bool is_link = false;
  for (std::string to; !(to = link_target(in, name)).empty(); is_link = true) {
    auto [next, last] = split_path(to);
    in = file_descriptor(::openat(in.get(), next.c_str(), directory_flags));
    if (!in) fail_system(errno, what);
    name = std::move(last);
  }
  // The links of /proc lead to files that may have no name.
  if (is_link && is_there && ::fstatat(in.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0)
    fail(errc::failed_precondition, what, ": the file that it leads to has no name");
  return {std::move(in), name};
}

std::uint64_t file_size(const file_descriptor& f, const std::string& path) {
  struct stat s {};
  if (::fstat(f.get(), &s) != 0) fail_system(errno, str("cannot read ", path));
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

namespace {

// Temporary files are called NAME.PID-NUMBER.tmp, and their writers hold a lock on them: one
// without a lock was left by a writer that did not end. Older versions called them NAME.tmp.
constexpr std::string_view temporary_ending = ".tmp";
constexpr std::size_t longest_beginning = 200;  ///< of NAME, so that the whole fits

/// Whether this process can lock the file, which no writer holds then.
bool lock_now(const file_descriptor& f) { return ::flock(f.get(), LOCK_EX | LOCK_NB) == 0; }

/// Calls f(name) for everything in a directory.
template <class F>
void each_name(const file_descriptor& directory, F f) {
  const int fd = ::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(fd), &::closedir);
  if (!entries) {
    ::close(fd);
    return;
  }
  while (const dirent* e = ::readdir(entries.get())) f(std::string(e->d_name));
}

file_descriptor open_temporary_of_others(const file_descriptor& directory,
                                         const std::string& name) {
  return file_descriptor(
      ::openat(directory.get(), name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

void delete_unlocked(const file_descriptor& directory, const std::string& temporary) {
  const file_descriptor f = open_temporary_of_others(directory, temporary);
  if (f && lock_now(f)) ::unlinkat(directory.get(), temporary.c_str(), 0);
}

/// Calls f(name) for the temporary files of the writers of files that begin so.
template <class F>
void each_temporary(const file_descriptor& directory, std::string_view beginning, F f) {
  each_name(directory, [&](const std::string& entry) {
    if (entry.size() > beginning.size() + temporary_ending.size() &&
        completed_name(entry) == beginning)
      f(entry);
  });
}

std::string_view beginning_of(const std::string& name) {
  return std::string_view(name).substr(0, longest_beginning);
}

}  // namespace

std::string_view completed_name(std::string_view name) {
  if (!name.ends_with(temporary_ending)) return name;
  name.remove_suffix(temporary_ending.size());
  const auto dot = name.rfind('.'), dash = name.rfind('-');
  if (dot == name.npos || dash == name.npos || dash < dot) return name;
  const auto is_number = [](std::string_view s) {
    return !s.empty() && s.find_first_not_of("0123456789") == s.npos;
  };
  const bool own =
      is_number(name.substr(dot + 1, dash - dot - 1)) && is_number(name.substr(dash + 1));
  return own ? name.substr(0, dot) : name;
}

bool is_being_written(const std::string& directory, const std::string& name) {
  const file_descriptor in(::open(directory.c_str(), directory_flags));
  bool is = false;
  if (in)
    each_temporary(in, beginning_of(name), [&](const std::string& entry) {
      const file_descriptor f = open_temporary_of_others(in, entry);
      is = is || (f ? !lock_now(f) : errno == EACCES);  // perhaps of another user
    });
  return is;
}

void delete_leftover(const std::string& directory, const std::string& temporary) {
  const file_descriptor in(::open(directory.c_str(), directory_flags));
  if (in) delete_unlocked(in, temporary);
}

file_writer::file_writer(const file_roots& roots, const std::string& path, bool replaces_link)
    : path_(path) {
  std::tie(directory_, name_) = roots.open_place(path, replaces_link);
  each_temporary(directory_, beginning_of(name_),
                 [&](const std::string& left) { delete_unlocked(directory_, left); });
  open_temporary();
}

void file_writer::open_temporary() {
  static std::atomic<std::uint64_t> made{0};
  const std::string what = str("cannot write ", path_);
  for (;;) {
    temporary_ = str(beginning_of(name_), ".", ::getpid(), "-", made++, temporary_ending);
    file_ = file_descriptor(::openat(directory_.get(), temporary_.c_str(),
                                     O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!file_ && errno == EEXIST) continue;  // of another machine's process
    if (!file_) fail_system(errno, what);
    // Some file systems have no locks: what is left there stays.
    while (::flock(file_.get(), LOCK_EX) != 0 && errno == EINTR) continue;
    struct stat s {};
    if (::fstat(file_.get(), &s) != 0) fail_system(errno, what);
    if (s.st_nlink > 0) return;  // else it was taken for a leftover before it was locked
  }
}

file_writer::~file_writer() {
  if (file_) ::unlinkat(directory_.get(), temporary_.c_str(), 0);
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
  // Whoever may read the file that is replaced may read the new one, and nobody else.
  struct stat before {};
  if (::fstatat(directory_.get(), name_.c_str(), &before, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISREG(before.st_mode) && ::fchmod(file_.get(), before.st_mode & 07777) != 0)
    fail_system(errno, what);
  if (::fsync(file_.get()) != 0) fail_system(errno, what);
  if (::renameat(directory_.get(), temporary_.c_str(), directory_.get(), name_.c_str()) != 0)
    fail_system(errno, what);
  file_ = file_descriptor();
  // The directory was opened for its path alone; the name is on the disk once it is synced.
  const file_descriptor entries(
      ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (entries && ::fsync(entries.get()) != 0 && errno != EINVAL) fail_system(errno, what);
}

std::pair<std::string, std::string> split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == path.npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

void write_file(const file_roots& roots, const std::string& path, std::string_view text) {
  file_writer f(roots, path);
  f.write(0, text.data(), text.size());
  f.commit();
}

std::string read_file(const file_roots& roots, const std::string& path, std::size_t most) {
  const file_descriptor f = roots.open_file(path);
  const std::uint64_t size = file_size(f, path);
  if (size > most)
    fail(errc::resource_exhausted, path, " has ", size, " bytes, more than the limit of ", most);
  std::string text(static_cast<std::size_t>(size), '\0');
  read_file(f, path, 0, text.data(), text.size());
  return text;
}

}  // namespace deft::ext
