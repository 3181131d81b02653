// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/library.ipp: a library that queues kernels of its own on a GPU, loaded with
// the first work for it.
#pragma once
#include <cstdlib>
#include <deft/core/log.hpp>
#include <deft/kernels/gpu/cuda/memory.ipp>
#include <deft/kernels/gpu/toolkit_library.hpp>

namespace deft::ext::gpu::cuda {
namespace {

/// Whether what is queued there becomes part of a graph. Nothing may be allocated then.
bool is_captured(cudaStream_t on) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(on, &capture), "to be asked");
  return capture != cudaStreamCaptureStatusNone;
}

/// For one GPU, with one workspace for all work, which runs one after the other. Functions: of its
/// C interface, create, destroy and status_string among them.
template <class Functions>
class gpu_library {
 public:
  gpu_library(const gpu_library&) = delete;

 protected:
  using descriptor = std::unique_ptr<void, int (*)(void*)>;

  gpu_library(std::shared_ptr<queues> q, std::shared_ptr<device_memory> m)
      : queues_(std::move(q)), memory_(std::move(m)) {}
  /// After all of its work is done.
  ~gpu_library() {
    if (handle_ && cudaSetDevice(queues_->number()) == cudaSuccess) library_.destroy(handle_);
  }

  int gpu() const { return queues_->number(); }
  /// Whether it is there; once it is, with a workspace of `bytes()`. `load()`: the file; what is
  /// wrong is told to `missing` once.
  template <class Load, class Bytes, class Missing>
  bool open(cudaStream_t on, const char* title, Load load, Bytes bytes, Missing missing) {
    if (workspace_ || missing_) return !missing_;
    if (is_captured(on)) return false;
    if (!handle_) {
      toolkit_library file = load();
      library_.each([&](const char* name, auto& function) { file.find(name, function); });
      std::string why = file.missing();
      if (why.empty())
        if (const int said = library_.create(&handle_); said != 0)
          why = str(title, " cannot be used: ", library_.status_string(said));
      if (!why.empty()) {
        missing_ = true;
        handle_ = nullptr;
        missing(why);
        return false;
      }
    }
    workspace_ = buffer(memory_->allocate(bytes()));
    return true;
  }

  Functions library_;
  void* handle_ = nullptr;
  buffer workspace_;

 private:
  const std::shared_ptr<queues> queues_;
  const std::shared_ptr<device_memory> memory_;
  bool missing_ = false;
};

}  // namespace
}  // namespace deft::ext::gpu::cuda
