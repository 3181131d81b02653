// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/nvrtc.ipp: libnvrtc by dlopen.
#pragma once
#include <dlfcn.h>
#include <cstdlib>
#include <deft/core/error.hpp>
#include <deft/core/text.hpp>
#include <deft/execute/gpu/nvrtc.hpp>
#include <vector>

namespace deft::gpu {
namespace {

/// The functions of nvrtc.h that are used, declared anew: enumerations are ints, programs pointers.
struct nvrtc_library {
  const char* (*error_string)(int) = nullptr;
  int (*create)(void** program, const char* source, const char* name, int headers,
                const char* const* header, const char* const* include) = nullptr;
  int (*destroy)(void** program) = nullptr;
  int (*compile)(void* program, int options, const char* const* option) = nullptr;
  int (*log_size)(void* program, std::size_t*) = nullptr;
  int (*log)(void* program, char*) = nullptr;
  int (*cubin_size)(void* program, std::size_t*) = nullptr;
  int (*cubin)(void* program, char*) = nullptr;
  int (*ptx_size)(void* program, std::size_t*) = nullptr;
  int (*ptx)(void* program, char*) = nullptr;
  std::string missing = {};  ///< why it cannot be used; "": it can

  nvrtc_library() {
    void* const library = open();
    if (!library) {
      missing = "libnvrtc was not found";
      return;
    }
    find(library, "nvrtcGetErrorString", error_string);
    find(library, "nvrtcCreateProgram", create);
    find(library, "nvrtcDestroyProgram", destroy);
    find(library, "nvrtcCompileProgram", compile);
    find(library, "nvrtcGetProgramLogSize", log_size);
    find(library, "nvrtcGetProgramLog", log);
    find(library, "nvrtcGetCUBINSize", cubin_size);
    find(library, "nvrtcGetCUBIN", cubin);
    find(library, "nvrtcGetPTXSize", ptx_size);
    find(library, "nvrtcGetPTX", ptx);
  }

 private:
  static void* open() {
    std::vector<std::string> folders{""};
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
      if (const char* toolkit = std::getenv(name); toolkit && *toolkit)
        folders.push_back(str(toolkit, "/lib64/"));
    folders.push_back("/usr/local/cuda/lib64/");
    for (const auto& folder : folders)
      for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
        if (void* found = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
    return nullptr;
  }
  template <class F>
  void find(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (!function && missing.empty()) missing = str("libnvrtc has no ", name);
  }
};
const nvrtc_library& nvrtc() {
  static const auto& library = *new nvrtc_library;
  return library;
}

/// A program of NVRTC's.
class nvrtc_program {
 public:
  nvrtc_program(const nvrtc_library& n, const std::string& source) : n_(n) {
    check(n_.create(&program_, source.c_str(), "program.cu", 0, nullptr, nullptr));
  }
  ~nvrtc_program() {
    if (program_) n_.destroy(&program_);
  }
  nvrtc_program(const nvrtc_program&) = delete;

  void compile(const std::string& architecture) {
    const std::string target = "--gpu-architecture=" + architecture;
    const char* const options[] = {target.c_str(), "--std=c++17", "--disable-warnings"};
    if (const int result = n_.compile(program_, 3, options))
      fail(errc::internal, "[nvrtc] ", n_.error_string(result), " for ", architecture, ": ",
           text(n_.log_size, n_.log));
  }
  std::string cubin() const { return text(n_.cubin_size, n_.cubin); }
  std::string ptx() const { return text(n_.ptx_size, n_.ptx); }

 private:
  void check(int result) const {
    if (result) fail(errc::internal, "[nvrtc] ", n_.error_string(result));
  }
  std::string text(int (*size_of)(void*, std::size_t*), int (*get)(void*, char*)) const {
    std::size_t size = 0;
    check(size_of(program_, &size));
    std::string s(size, '\0');
    if (size) check(get(program_, s.data()));
    return s;
  }

  const nvrtc_library& n_;
  void* program_ = nullptr;
};

}  // namespace

bool has_nvrtc() { return nvrtc().missing.empty(); }

std::string compile(const std::string& source, const std::string& architecture) {
  const nvrtc_library& n = nvrtc();
  if (!n.missing.empty())
    fail(errc::unimplemented, "[nvrtc] ", n.missing,
         ": install the CUDA Toolkit, or set LD_LIBRARY_PATH to where libnvrtc is");
  nvrtc_program program(n, source);
  program.compile(architecture);
  return architecture.starts_with("sm_") ? program.cubin() : program.ptx();
}

}  // namespace deft::gpu
