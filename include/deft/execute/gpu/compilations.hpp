// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/compilations.hpp: sources that are compiled while others run, and the code that
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

namespace deft::gpu {

/// A source's code for one architecture, which may not be there yet.
class compilation {
 public:
  compilation(std::string source, std::string architecture)
      : source_(std::move(source)), architecture_(std::move(architecture)) {}

  /// Whether it has ended, well or not. Costs a load: a kernel asks in each run.
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  void wait() const { ready_.wait(false, std::memory_order_acquire); }
  /// Calls f once it has ended, before `ready` says so: at once, or on the thread that compiles,
  /// which it must not hold up.
  void then(std::function<void(const compilation&)> f) const;
  /// Of one that is ready: why there is no code; nullptr: there is.
  const error* failure() const { return failure_.get(); }
  /// Of one that is ready and has not failed: a cubin, or PTX.
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

/// Compiles on a thread of its own, which is started when there is something to compile, one after
/// the other. Keeps what it has compiled.
class code_compiler {
 public:
  /// `directory`: where code is kept from one process to the next; "": nowhere. It is made when
  /// there is something to keep. A file there that is damaged, of another source, or of another
  /// user is not used; one that cannot be written is not.
  explicit code_compiler(std::string directory) : directory_(std::move(directory)) {}
  /// Waits for what is being compiled; what is still to come fails.
  ~code_compiler() { stop(); }

  /// The code of this source for an architecture, as gpu::compile knows it; the same object each
  /// time. Looks on disk before it returns; the first time that nothing is there, libnvrtc is
  /// loaded.
  compilation_ptr ask(const std::string& source, const std::string& architecture);

  /// As the destructor; then `ask` gives what is known, and what is on disk.
  void stop();

  std::size_t compiled() const { return compiled_; }  ///< sources that NVRTC was given
  /// The file of that code; "" if code is not kept.
  std::string file_of(const std::string& source, const std::string& architecture) const;

 private:
  /// Then those that nobody holds are forgotten.
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
  bool said_missing_ = false;  ///< that there is no NVRTC; of the thread
  std::thread thread_;
};

/// Where a process keeps compiled code: DEFT_CACHE_DIR, else $XDG_CACHE_HOME/deft, else
/// ~/.cache/deft; "" if DEFT_CACHE_DIR is empty, or there is no home.
std::string code_directory();
/// The process' own, with that directory. Once the main thread has called this, which a device does
/// where it is made, the end of the process waits for what is being compiled: without, NVRTC may
/// crash there.
code_compiler& compilations();

}  // namespace deft::gpu
