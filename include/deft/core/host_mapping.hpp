// SPDX-License-Identifier: Apache-2.0
// deft/core/host_mapping.hpp: the pages of large blocks of host_memory(), for devices that pin
// them.
#pragma once
#include <cstddef>
#include <deft/core/config.hpp>

namespace deft::ext {

/// Pages that host_memory() has mapped for a block of 2 MB or more.
struct host_mapping {
  void* data = nullptr;
  std::size_t bytes = 0;
};
/// The one that `p` points into; empty if there is none.
host_mapping find_host_mapping(const void* p);
/// `f` is called before pages are unmapped, from now on. There is one such function.
void on_host_unmap(void (*f)(const host_mapping& m) noexcept);

}  // namespace deft::ext
