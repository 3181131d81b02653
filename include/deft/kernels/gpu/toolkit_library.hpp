// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/toolkit_library.hpp: a library of the CUDA Toolkit, or beside it, loaded where
// the machine has it.
#pragma once
#include <dlfcn.h>
#include <deft/core/config.hpp>

#include <span>
#include <string>
#include <string_view>

namespace deft::ext::gpu {

/// One that was loaded stays so.
class toolkit_library {
 public:
  /// Endings of those that belong to CUDA 13 and 12.
  static constexpr std::string_view of_cuda[] = {".so.13", ".so.12", ".so"};

  /// "libnvrtc" with one of these endings, the first that there is: by its name or in the toolkit
  /// at $CUDA_HOME, $CUDA_PATH or /usr/local/cuda. `file`: that one instead, if it is neither null
  /// nor empty.
  explicit toolkit_library(std::string name, const char* file = nullptr,
                           std::span<const std::string_view> endings = of_cuda);

  template <class F>
  void find(const char* symbol, F& function) {
    if (library_) function = reinterpret_cast<F>(dlsym(library_, symbol));
    if (!function && missing_.empty()) missing_ = name_ + " has no " + symbol;
  }
  /// Why it cannot be used; "": it can.
  const std::string& missing() const { return missing_; }

 private:
  std::string name_, missing_;
  void* library_ = nullptr;
};

}  // namespace deft::ext::gpu
