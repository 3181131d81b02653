// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/pinned.ipp: large blocks of the host's memory, pinned where they are.
#pragma once
#include <unistd.h>

#include <deft/core/host_mapping.hpp>
#include <deft/kernels/gpu/cuda/runtime.ipp>
#include <mutex>
#include <unordered_map>

namespace deft::ext::gpu::cuda {
namespace {

/// Mappings of host_memory() that copies have used. To pin one takes longer than to copy it once,
/// so that is done the second time; it stays pinned until it is unmapped.
class pinned_mappings {
 public:
  pinned_mappings() {
    on_host_unmap([](const host_mapping& m) noexcept { all().unmap(m); });
  }
  static pinned_mappings& all() {
    static auto& p = *new pinned_mappings;
    return p;
  }

  /// Pins what `bytes` bytes at `p` are part of, if it is worth it. A GPU must be in use.
  void use(const void* p, std::size_t bytes) {
    const host_mapping m = find_host_mapping(p);
    if (!m.data || static_cast<const char*>(p) + bytes > static_cast<char*>(m.data) + m.bytes)
      return;
    std::lock_guard lock(guard_);
    const auto [at, first] = known_.try_emplace(m.data, state::used);
    if (first || at->second != state::used) return;
    at->second = state::refused;
    if (pinned_ + m.bytes > limit()) return;
    if (cudaHostRegister(m.data, m.bytes, cudaHostRegisterPortable) != cudaSuccess) {
      cudaGetLastError();
      return;
    }
    at->second = state::pinned;
    pinned_ += m.bytes;
  }

 private:
  enum class state : std::uint8_t { used, pinned, refused };

  /// Pinned pages are lost to everybody else.
  static std::size_t limit() {
    static const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                                     static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 4;
    return bytes;
  }
  void unmap(const host_mapping& m) noexcept {
    std::lock_guard lock(guard_);
    const auto at = known_.find(m.data);
    if (at == known_.end()) return;
    if (at->second == state::pinned) {
      pinned_ -= m.bytes;
      if (cudaHostUnregister(m.data) != cudaSuccess) cudaGetLastError();
    }
    known_.erase(at);
  }

  std::mutex guard_;
  std::unordered_map<void*, state> known_;
  std::size_t pinned_ = 0;  ///< bytes
};

}  // namespace
}  // namespace deft::ext::gpu::cuda
