// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/compilations.ipp: the thread that compiles, and files of code.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>
#include <deft/core/hash.hpp>
#include <deft/core/log.hpp>
#include <deft/core/thread.hpp>
#include <deft/kernels/gpu/compilations.hpp>
#include <deft/kernels/gpu/nvrtc.hpp>
#include <filesystem>
#include <utility>

namespace deft::ext::gpu {
namespace {

/// A file: this line, how long source and code are and a hash of both, source, code. The source
/// is compared, so that another one with the same name is noticed.
struct code_header {
  char magic[16] = {'d', 'e', 'f', 't', ' ', 'g', 'p', 'u',
                    ' ', 'c', 'o', 'd', 'e', ' ', '1', '\n'};
  std::uint64_t source = 0, code = 0, hash = 0;
};
std::uint64_t hash_of(std::string_view source, std::string_view code) {
  return mix(hash_text(source), hash_text(code));
}

/// A file that only this user could have written.
std::string read_own(const std::string& name) {
  std::string all;
  const int f = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (f < 0) return all;
  struct stat s {};
  constexpr off_t most = off_t{64} << 20;
  if (fstat(f, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() &&
      (s.st_mode & (S_IWGRP | S_IWOTH)) == 0 && s.st_size <= most) {
    all.resize(static_cast<std::size_t>(s.st_size));
    std::size_t got = 0;
    for (ssize_t n = 1; got < all.size() && n > 0; got += static_cast<std::size_t>(n > 0 ? n : 0))
      n = ::read(f, all.data() + got, all.size() - got);
    all.resize(got);
  }
  close(f);
  return all;
}

}  // namespace

void compilation::end(std::string bytes, std::unique_ptr<const error> failure) {
  bytes_ = std::move(bytes);
  failure_ = std::move(failure);
  decltype(then_) all;
  {
    std::lock_guard lock(guard_);
    ended_ = true;
    all.swap(then_);
  }
  for (const auto& f : all) f(*this);
  ready_.store(true, std::memory_order_release);
  ready_.notify_all();
}
void compilation::then(std::function<void(const compilation&)> f) const {
  {
    std::lock_guard lock(guard_);
    if (!ended_) return then_.push_back(std::move(f));
  }
  f(*this);
}

compilation_ptr code_compiler::ask(const std::string& source, const std::string& architecture) {
  std::unique_lock lock(guard_);
  // A server may see any number of programs.
  if (known_.size() >= most_known)
    std::erase_if(known_, [](const auto& k) { return k.second.use_count() == 1; });
  auto& c = known_[{architecture, source}];
  if (c) return c;
  c = std::make_shared<compilation>(source, architecture);
  const auto made = c;
  lock.unlock();
  if (std::string code = read(*made); !code.empty()) {
    made->end(std::move(code), nullptr);
    return made;
  }
  has_nvrtc();  // a process may not end while another thread loads it
  lock.lock();
  if (stopped_) {
    lock.unlock();
    made->end({}, std::make_unique<error>(errc::unavailable, "the process is ending"));
    return made;
  }
  waiting_.push_back(made);
  if (!thread_.joinable()) thread_ = start_thread([this] { work(); });
  lock.unlock();
  changed_.notify_one();
  return made;
}

void code_compiler::work() {
  for (;;) {
    std::shared_ptr<compilation> next;
    {
      std::unique_lock lock(guard_);
      changed_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
      if (stopped_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    compile(*next);
  }
}
void code_compiler::stop() {
  {
    std::lock_guard lock(guard_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (auto& c : waiting_)
    c->end({}, std::make_unique<error>(errc::unavailable, "the process is ending"));
  waiting_.clear();
}

void code_compiler::compile(compilation& c) {
  std::string code;
  std::unique_ptr<const error> failure;
  try {
    ++compiled_;
    code = gpu::compile(c.source_, c.architecture_);
  } catch (const error& e) {
    failure = std::make_unique<error>(e);
    if (e.code() != errc::unimplemented)
      logging::warning("a program runs an instruction at a time on GPUs: ", e.what());
    else if (!std::exchange(said_missing_, true))
      logging::warning("programs run an instruction at a time on GPUs: ", e.what());
  } catch (const std::exception& e) {
    failure = std::make_unique<error>(errc::internal, e.what());
  }
  c.end(std::move(code), std::move(failure));
  if (!c.failure()) write(c);
}

std::string code_compiler::file_of(const std::string& source,
                                   const std::string& architecture) const {
  if (directory_.empty()) return {};
  constexpr const char* digits = "0123456789abcdef";
  const std::uint64_t hash = hash_text(source);
  std::string name;
  for (int shift = 60; shift >= 0; shift -= 4) name += digits[hash >> shift & 15];
  return str(directory_, '/', name, '.', architecture);
}

std::string code_compiler::read(const compilation& c) const {
  const std::string name = file_of(c.source_, c.architecture_);
  if (name.empty()) return {};
  const std::string all = read_own(name);
  const code_header expected;
  code_header h;
  if (all.size() < sizeof h) return {};
  std::memcpy(&h, all.data(), sizeof h);
  if (std::memcmp(h.magic, expected.magic, sizeof h.magic) != 0 || h.source != c.source_.size() ||
      h.code != all.size() - sizeof h - h.source || all.size() - sizeof h < h.source)
    return {};
  const std::string_view source = std::string_view(all).substr(sizeof h, h.source);
  const std::string_view code = std::string_view(all).substr(sizeof h + h.source);
  if (source != c.source_ || h.hash != hash_of(source, code)) return {};
  return std::string(code);
}

void code_compiler::write(const compilation& c) const {
  const std::string name = file_of(c.source_, c.architecture_);
  if (name.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(directory_, ignored);
  std::string temporary = name + ".XXXXXX";
  const int f = mkostemp(temporary.data(), O_CLOEXEC);  // for this user alone
  if (f < 0)
    return logging::info("compiled code is not kept: ", temporary, ": ", std::strerror(errno));
  code_header h;
  h.source = c.source_.size(), h.code = c.bytes_.size();
  h.hash = hash_of(c.source_, c.bytes_);
  std::string all(reinterpret_cast<const char*>(&h), sizeof h);
  all += c.source_;
  all += c.bytes_;
  std::size_t put = 0;
  for (ssize_t n = 1; put < all.size() && n > 0; put += static_cast<std::size_t>(n > 0 ? n : 0))
    n = ::write(f, all.data() + put, all.size() - put);
  const bool good = close(f) == 0 && put == all.size();
  if (!good || std::rename(temporary.c_str(), name.c_str()) != 0) unlink(temporary.c_str());
}

std::string code_directory() {
  if (const char* own = std::getenv("DEFT_CACHE_DIR")) return own;
  // A relative one is not valid.
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg == '/') return str(xdg, "/deft");
  if (const char* home = std::getenv("HOME"); home && *home) return str(home, "/.cache/deft");
  return {};
}

code_compiler& compilations() {
  static auto& c = *new code_compiler(code_directory());
  // NVRTC makes statics while it compiles, which exit destroys: the thread must have ended before.
  // Nothing but the thread's own objects goes sooner.
  static thread_local const struct before_exit {
    ~before_exit() {
      if (gettid() == getpid()) c.stop();
    }
  } guard;
  static_cast<void>(&guard);
  return c;
}

}  // namespace deft::ext::gpu
