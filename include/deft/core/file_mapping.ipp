// SPDX-License-Identifier: Apache-2.0
// deft/core/file_mapping.ipp: the system calls behind mapped files.
#pragma once
#include <sys/mman.h>

#include <cerrno>
#include <deft/core/file_mapping.hpp>

namespace deft::ext {

struct file_mapping::pages {
  pages(const file_descriptor& file, const std::string& path)
      : size(static_cast<std::size_t>(file_size(file, path))) {
    if (size == 0) return;  // no file system maps it
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (data == MAP_FAILED) fail_system(errno, str("cannot map ", path));
  }
  pages(const pages&) = delete;
  pages& operator=(const pages&) = delete;
  ~pages() {
    if (size > 0) ::munmap(data, size);
  }

  std::size_t size;
  void* data = nullptr;
};

file_mapping::file_mapping(const file_descriptor& file, const std::string& path)
    : pages_(std::make_shared<const pages>(file, path)) {}

std::string_view file_mapping::bytes() const {
  if (!pages_) return {};
  return {static_cast<const char*>(pages_->data), pages_->size};
}

buffer file_mapping::view(std::uint64_t begin, std::size_t count) const {
  return buffer::kept_by(pages_, bytes().data() + begin, count);
}

}  // namespace deft::ext
