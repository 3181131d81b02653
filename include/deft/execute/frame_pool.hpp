// SPDX-License-Identifier: Apache-2.0
// deft/execute/frame_pool.hpp: a compiled part and a pool of frames for its runs.
#pragma once
#include <atomic>
#include <deft/execute/executor.hpp>
#include <memory>
#include <mutex>
#include <vector>

namespace deft::ext {

/// An executable and its idle frames. Their number is the highest number of concurrent runs so far.
class frame_pool {
 public:
  frame_pool(plan::part part, const task_resources& task) : code_(std::move(part), task) {}
  ~frame_pool() { delete idle_.load(); }

  const executable& code() const { return code_; }

  std::unique_ptr<executable::frame> take() {
    if (auto* f = idle_.exchange(nullptr)) return std::unique_ptr<executable::frame>(f);
    {
      std::lock_guard lock(guard_);
      if (!more_.empty()) {
        auto f = std::move(more_.back());
        more_.pop_back();
        return f;
      }
    }
    return code_.make_frame();
  }
  void give_back(std::unique_ptr<executable::frame> f) {
    f->release();
    executable::frame* nobody = nullptr;
    if (idle_.compare_exchange_strong(nobody, f.get())) {
      static_cast<void>(f.release());
      return;
    }
    std::lock_guard lock(guard_);
    try {
      more_.push_back(std::move(f));
    } catch (const std::bad_alloc&) {
      // It is not kept.
    }
  }

 private:
  executable code_;
  std::atomic<executable::frame*> idle_{nullptr};  ///< the usual case: one run at a time
  std::mutex guard_;
  std::vector<std::unique_ptr<executable::frame>> more_;
};

}  // namespace deft::ext
