// SPDX-License-Identifier: Apache-2.0
// deft/transport/shared_memory.hpp: memory that two processes map, without a name. Internal.
#pragma once
#include <cstddef>
#include <optional>
#include <utility>

namespace deft::detail {

/// A file descriptor that is closed with it.
class descriptor {
 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// Pages that are mapped here and in the process that made them, or was given them. The system
/// takes them back with the last mapping and descriptor, however a process ends.
class shared_memory {
 public:
  /// New pages, which can be neither taken away nor added to, and the descriptor to give to
  /// another process. Nothing where the system has none; errno says why.
  static std::optional<std::pair<shared_memory, descriptor>> make(std::size_t bytes);
  /// Whether `fd`, which another process has given, is such memory of this size: whoever reads it
  /// is then safe from what its maker does with it.
  static bool is_sound(const descriptor& fd, std::size_t bytes);
  /// What `fd` stands for, if it is sound, to be read. Nothing where it cannot be mapped.
  static std::optional<shared_memory> map(const descriptor& fd, std::size_t bytes);

  shared_memory(shared_memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  shared_memory& operator=(shared_memory&&) = delete;
  ~shared_memory();
  std::byte* data() const { return data_; }

 private:
  shared_memory(void* data, std::size_t bytes)
      : data_(static_cast<std::byte*>(data)), bytes_(bytes) {}

  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace deft::detail
