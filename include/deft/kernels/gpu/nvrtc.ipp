// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/nvrtc.ipp: libnvrtc by dlopen.
#pragma once
#include <algorithm>
#include <charconv>
#include <deft/core/error.hpp>
#include <deft/core/text.hpp>
#include <deft/kernels/gpu/nvrtc.hpp>
#include <deft/kernels/gpu/toolkit_library.hpp>

namespace deft::ext::gpu {
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
  int (*count)(int*) = nullptr;
  int (*numbers)(int*) = nullptr;
  toolkit_library file{"libnvrtc"};

  nvrtc_library() {
    file.find("nvrtcGetErrorString", error_string);
    file.find("nvrtcCreateProgram", create);
    file.find("nvrtcDestroyProgram", destroy);
    file.find("nvrtcCompileProgram", compile);
    file.find("nvrtcGetProgramLogSize", log_size);
    file.find("nvrtcGetProgramLog", log);
    file.find("nvrtcGetCUBINSize", cubin_size);
    file.find("nvrtcGetCUBIN", cubin);
    file.find("nvrtcGetPTXSize", ptx_size);
    file.find("nvrtcGetPTX", ptx);
    file.find("nvrtcGetNumSupportedArchs", count);
    file.find("nvrtcGetSupportedArchs", numbers);
  }
};
const nvrtc_library& nvrtc() {
  static const auto& library = *new nvrtc_library;
  return library;
}

/// An architecture that NVRTC knows: the newest one's PTX in place of a newer one.
std::string known(const nvrtc_library& n, const std::string& architecture) {
  int count = 0, number = 0;
  if (!architecture.starts_with("sm_") || n.count(&count) != 0 || count <= 0) return architecture;
  std::vector<int> all(static_cast<std::size_t>(count));
  if (n.numbers(all.data()) != 0) return architecture;
  const int newest = std::ranges::max(all);
  std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), number);
  return number > newest ? str("compute_", newest) : architecture;
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

bool has_nvrtc() { return nvrtc().file.missing().empty(); }

std::string compile(const std::string& source, const std::string& architecture) {
  const nvrtc_library& n = nvrtc();
  if (!n.file.missing().empty())
    fail(errc::unimplemented, "[nvrtc] ", n.file.missing(),
         ": install the CUDA Toolkit, or set LD_LIBRARY_PATH to where libnvrtc is");
  nvrtc_program program(n, source);
  const std::string target = known(n, architecture);
  program.compile(target);
  return target.starts_with("sm_") ? program.cubin() : program.ptx();
}

}  // namespace deft::ext::gpu
