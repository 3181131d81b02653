// SPDX-License-Identifier: Apache-2.0
// deft/transport/shared_memory.hpp: unnamed memory that two processes map. Internal.
#pragma once
#include <cstddef>
#include <deft/core/file.hpp>
#include <optional>
#include <utility>

namespace deft::detail {

/// Pages that are mapped in this process and another one. The system frees them with the last
/// mapping and descriptor, even if a process crashes.
class shared_memory {
 public:
  /// Allocates pages of a fixed size, and returns them with the descriptor to pass to another
  /// process. Returns nothing if the system has none; errno says why.
  static std::optional<std::pair<shared_memory, file_descriptor>> make(std::size_t bytes);
  /// Whether `fd`, received from another process, is sealed memory of this size, so that its owner
  /// cannot harm the reader by resizing it.
  static bool is_sealed(const file_descriptor& fd, std::size_t bytes);
  /// Maps the memory of `fd`, which is_sealed has checked, for reading. Returns nothing if it
  /// cannot be mapped.
  static std::optional<shared_memory> map(const file_descriptor& fd, std::size_t bytes);

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
