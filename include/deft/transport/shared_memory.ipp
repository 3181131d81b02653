// SPDX-License-Identifier: Apache-2.0
// deft/transport/shared_memory.ipp: memfd, its seals, and its mappings.
#pragma once
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <deft/transport/shared_memory.hpp>

namespace deft::detail {

namespace {
// With these seals the file cannot shrink, which would give its readers SIGBUS.
constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
}  // namespace

std::optional<std::pair<shared_memory, file_descriptor>> shared_memory::make(std::size_t bytes) {
  file_descriptor fd(memfd_create("deft", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, all_seals) != 0)
    return std::nullopt;
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return std::nullopt;
  return std::pair(shared_memory(data, bytes), std::move(fd));
}

bool shared_memory::is_sealed(const file_descriptor& fd, std::size_t bytes) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  struct stat about {};
  struct statfs system {};
  // Only pages of the usual size: huge pages can be overcommitted.
  return seals >= 0 && (seals & all_seals) == all_seals && fstat(fd.get(), &about) == 0 &&
         about.st_size == static_cast<off_t>(bytes) && fstatfs(fd.get(), &system) == 0 &&
         system.f_type == TMPFS_MAGIC;
}

std::optional<shared_memory> shared_memory::map(const file_descriptor& fd, std::size_t bytes) {
  void* const data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return std::nullopt;
  return shared_memory(data, bytes);
}

shared_memory::~shared_memory() {
  if (data_) munmap(data_, bytes_);
}

}  // namespace deft::detail
