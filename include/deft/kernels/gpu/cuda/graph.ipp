// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/graph.ipp: launches that are kept as a CUDA graph.
#pragma once
#include <deft/kernels/gpu/cuda/queues.ipp>

namespace deft::ext::gpu::cuda {
namespace {

/// A stream whose work is kept rather than done, as long as this lives. One at a time for each GPU.
class capturing {
 public:
  explicit capturing(queues& q) : lock_(q.capture_guard()), on_(q.capture()) {
    check(cudaStreamBeginCapture(on_, cudaStreamCaptureModeThreadLocal), "to begin a graph");
  }
  ~capturing() {
    if (!open_) return;
    cudaGraph_t unfinished = nullptr;
    if (cudaStreamEndCapture(on_, &unfinished) != cudaSuccess) cudaGetLastError();
    if (unfinished) cudaGraphDestroy(unfinished);
  }
  capturing(const capturing&) = delete;

  cudaStream_t stream() const { return on_; }
  cudaGraph_t finish() {
    open_ = false;
    cudaGraph_t made = nullptr;
    check(cudaStreamEndCapture(on_, &made), "to end a graph");
    return made;
  }

 private:
  std::lock_guard<std::mutex> lock_;
  const cudaStream_t on_;
  bool open_ = true;
};

class graph final : public launch_graph {
 public:
  /// `items`: of its launches, for errors. `updates`: whether some change variables.
  graph(std::shared_ptr<queues> of, cudaGraph_t from, std::vector<std::uint32_t> items,
        bool updates)
      : queues_(std::move(of)), items_(std::move(items)), updates_(updates) {
    const cudaError_t e = cudaGraphInstantiate(&native_, from, 0);
    cudaGraphDestroy(from);
    check(e, "to make a graph");
  }
  /// A run that is under way goes on.
  ~graph() override {
    try {
      queues_->attempt([&] { cudaGraphExecDestroy(native_); });
    } catch (const error&) {  // the GPU has stopped
    }
  }

  cudaGraphExec_t native() const { return native_; }
  std::span<const std::uint32_t> items() const { return items_; }
  bool updates() const { return updates_; }

 private:
  const std::shared_ptr<queues> queues_;
  const std::vector<std::uint32_t> items_;
  const bool updates_;
  cudaGraphExec_t native_ = nullptr;
};

}  // namespace
}  // namespace deft::ext::gpu::cuda
