// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/runtime.ipp: errors of CUDA's runtime, and those that a GPU does not
// recover from.
#pragma once
#include <cuda_runtime_api.h>

#include <deft/core/error.hpp>
#include <deft/core/log.hpp>
#include <deft/kernels/device.hpp>
#include <mutex>
#include <utility>

namespace deft::ext::gpu::cuda {
namespace {

std::string text_of(cudaError_t e) {
  return str(cudaGetErrorString(e), " (", cudaGetErrorName(e), ")");
}

/// Whether every later call of the process will fail, too: what was running has broken the context.
bool is_sticky(cudaError_t e) {
  switch (static_cast<int>(e)) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorMpsClientTerminated:
    case 226:  // cudaErrorContained, which older toolkits do not declare
    case 721:  // cudaErrorTensorMemoryLeak, likewise
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

/// A call of the runtime that failed.
struct failed_call : error {
  failed_call(cudaError_t what, const char* doing)
      : error(what == cudaErrorMemoryAllocation ? errc::resource_exhausted : errc::internal,
              str("the GPU's runtime failed ", doing, ": ", text_of(what))),
        code(what) {}
  cudaError_t code;
};
/// `doing`: "to start a kernel".
void check(cudaError_t e, const char* doing) {
  if (e == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that the next call does not return it
  throw failed_call(e, doing);
}

/// Which launches of a GPU are known to be done, and what broke it. Thread-safe.
class launch_log {
 public:
  explicit launch_log(int gpu) : gpu_(gpu) {}

  /// After they were queued. Call forget before the step is destroyed.
  void add(const device_step* step, std::span<const std::uint32_t> items) {
    std::lock_guard lock(guard_);
    for (auto item : items) recent_[launched_++ % most] = {step, item};
  }
  void forget(const device_step* step) {
    std::lock_guard lock(guard_);
    for (auto& e : recent_)
      if (e.step == step) e.step = nullptr;
  }
  std::uint64_t launched() const {
    std::lock_guard lock(guard_);
    return launched_;
  }
  /// The first `n` are done.
  void done(std::uint64_t n) {
    std::lock_guard lock(guard_);
    if (n > done_) done_ = n;
  }
  /// The GPU does nothing more. Logged once.
  void broke(cudaError_t e) {
    {
      std::lock_guard lock(guard_);
      if (broken_ != cudaSuccess) return;
      broken_ = e;
      running_ = running();
    }
    if (e == cudaErrorCudartUnloading) return;  // the process is ending
    logging::log(logging::level::error, "GPU ", gpu_, " has stopped for good", running_, ": ",
                 text_of(e), "; start the task again");
  }
  bool is_broken() const {
    std::lock_guard lock(guard_);
    return broken_ != cudaSuccess;
  }
  /// A step's error, at the first of its launches that was not known to be done.
  std::shared_ptr<const error> failure(const device_step* of, std::uint32_t& item) const {
    std::lock_guard lock(guard_);
    if (broken_ == cudaSuccess) return nullptr;
    item = UINT32_MAX;
    for (std::uint64_t i = first(); i < launched_; ++i)
      if (recent_[i % most].step == of) {
        item = recent_[i % most].item;
        break;
      }
    std::string who = "before this step" + running_;
    if (const std::uint64_t others = launched_ - first(); item != UINT32_MAX)
      who = others == 1 ? "in this node"
                        : str("in this node or one of ", others - 1,
                              " that were queued with it; CUDA_LAUNCH_BLOCKING=1 tells which");
    return std::make_shared<const error>(
        errc::internal, str("the GPU has stopped for good ", who, ": ", text_of(broken_),
                            "; start the task again"));
  }
  /// Throws what a step is told that asks something of the broken GPU. Its own `failure` names the
  /// node, if it was this step that was running.
  [[noreturn]] void refuse() const {
    std::uint32_t item = 0;
    throw error(*failure(nullptr, item));
  }

 private:
  static constexpr std::uint64_t most = 1024;
  struct entry {
    const device_step* step = nullptr;
    std::uint32_t item = 0;
  };
  /// Of the first launch that is not known to be done; "" if there is none.
  std::string running() const {
    if (first() == launched_) return {};
    const entry& e = recent_[first() % most];
    const std::string name = e.step ? e.step->name_of(e.item) : std::string();
    if (name.empty()) return {};
    const std::uint64_t others = launched_ - first() - 1;
    return str(", while node \"", name, "\" ",
               others ? str("or one of ", others, " that were queued with it ") : "", "ran");
  }
  std::uint64_t first() const { return std::max(done_, launched_ > most ? launched_ - most : 0); }

  const int gpu_;
  mutable std::mutex guard_;
  entry recent_[most];
  std::uint64_t launched_ = 0, done_ = 0;
  cudaError_t broken_ = cudaSuccess;
  std::string running_;  ///< when it broke
};

}  // namespace
}  // namespace deft::ext::gpu::cuda
