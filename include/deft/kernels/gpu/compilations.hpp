// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/compilations.hpp: sources that are compiled while others run, and the code that
// is kept, in memory and on disk.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deft/core/error.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace deft::ext::gpu {

/// The compiled code of a source for one architecture, which may not be ready yet.
class compilation {
 public:
  compilation(std::string source, std::string architecture)
      : source_(std::move(source)), architecture_(std::move(architecture)) {}

  /// Whether it has ended, successfully or not. Costs one load: a kernel asks in each run.
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  void wait() const { ready_.wait(false, std::memory_order_acquire); }
  /// Calls f when it has ended, before `ready` returns true: immediately, or on the compiling
  /// thread, which `f` must not block.
  void then(std::function<void(const compilation&)> f) const;
  /// If ready: the error; nullptr if it succeeded.
  const error* failure() const { return failure_.get(); }
  /// If ready and not failed: a cubin, or PTX.
  const std::string& bytes() const { return bytes_; }

 private:
  friend class code_compiler;
  void end(std::string bytes, std::unique_ptr<const error> failure);

  const std::string source_, architecture_;
  std::string bytes_;
  std::unique_ptr<const error> failure_;
  mutable std::mutex guard_;
  mutable std::vector<std::function<void(const compilation&)>> then_;
  bool ended_ = false;
  std::atomic<bool> ready_{false};
};
using compilation_ptr = std::shared_ptr<const compilation>;

/// Compiles sources one after the other on a background thread, which is started with the first
/// source. Keeps the compiled code.
class code_compiler {
 public:
  /// `directory`: where code is kept between processes; "": nowhere. It is made when there is code
  /// to keep. A file there is not used if it is damaged, of another source, or of another user.
  /// Files that cannot be written are skipped.
  explicit code_compiler(std::string directory) : directory_(std::move(directory)) {}
  /// Waits for the running compilation; pending ones fail.
  ~code_compiler() { stop(); }

  /// The code of this source for an architecture, as named for gpu::compile; the same object each
  /// time. Looks on disk before it returns; loads libnvrtc when code is first missing there.
  compilation_ptr ask(const std::string& source, const std::string& architecture);

  /// As the destructor; `ask` then only gives code that is known or on disk.
  void stop();

  std::size_t compiled() const { return compiled_; }  ///< number of sources passed to NVRTC
  /// The file of that code; "" if code is not kept.
  std::string file_of(const std::string& source, const std::string& architecture) const;

 private:
  /// Above this number, compilations without other holders are dropped.
  static constexpr std::size_t most_known = 1024;

  void work();
  void compile(compilation& c);
  std::string read(const compilation& c) const;
  void write(const compilation& c) const;

  const std::string directory_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<compilation>> known_;
  std::deque<std::shared_ptr<compilation>> waiting_;
  bool stopped_ = false;
  std::atomic<std::size_t> compiled_{0};
  bool said_missing_ = false;  ///< whether a missing NVRTC was logged; used by the thread
  std::thread thread_;
};

/// Where a process keeps compiled code: DEFT_CACHE_DIR, else $XDG_CACHE_HOME/deft, else
/// ~/.cache/deft; "" if DEFT_CACHE_DIR is empty, or there is no home directory.
std::string code_directory();
/// The compiler of the process, with that directory. Devices call this when they are made. Once the
/// main thread has called it, the end of the process waits for the running compilation; otherwise
/// NVRTC may crash there.
code_compiler& compilations();

}  // namespace deft::ext::gpu
