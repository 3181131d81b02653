// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/toolkit_library.ipp: where libraries of the CUDA Toolkit are looked for.
#pragma once
#include <cstdlib>
#include <deft/core/text.hpp>
#include <deft/kernels/gpu/toolkit_library.hpp>
#include <vector>

namespace deft::ext::gpu {

toolkit_library::toolkit_library(std::string name, const char* file,
                                 std::span<const std::string_view> endings)
    : name_(std::move(name)) {
  if (file && *file) {
    library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library_) missing_ = str(name_, " cannot be loaded: ", dlerror());
    return;
  }
  std::vector<std::string> folders{""};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* toolkit = std::getenv(variable); toolkit && *toolkit)
      folders.push_back(str(toolkit, "/lib64/"));
  folders.push_back("/usr/local/cuda/lib64/");
  for (const auto& folder : folders)
    for (const auto& ending : endings)
      if ((library_ = dlopen(str(folder, name_, ending).c_str(), RTLD_NOW | RTLD_LOCAL))) return;
  missing_ = name_ + " was not found";
}

}  // namespace deft::ext::gpu
