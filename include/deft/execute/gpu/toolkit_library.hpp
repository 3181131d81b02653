// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/toolkit_library.hpp: a library of the CUDA Toolkit, loaded where the machine has
// it.
#pragma once
#include <dlfcn.h>

#include <string>

namespace deft::gpu {

/// One that was loaded stays so.
class toolkit_library {
 public:
  /// "libnvrtc": of CUDA 13 or 12, by its name or in the toolkit at $CUDA_HOME, $CUDA_PATH or
  /// /usr/local/cuda. `file`: that one instead, if it is neither null nor empty.
  explicit toolkit_library(std::string name, const char* file = nullptr);

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

}  // namespace deft::gpu
